// SPDX-License-Identifier: Apache-2.0
// A snapshot of a cluster that continues to serve: docs/guide/kv-snapshot.md. For each key, the file has one state that
// was acknowledged between begin and end of the dump. The file is not the state of all keys at one moment.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "kv/snapshot/key_listing.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

struct DumpOptions {
  std::string cluster;  ///< its file
  std::string name;     ///< its name
  std::string out;      ///< the file to be written; its directory exists
  bool replace = false;
  std::vector<std::string> windows;     ///< sockets of nodes, of which the first that lists its keys does
  std::chrono::nanoseconds patience{};  ///< with nodes that do not answer
};

struct DumpResult {
  SnapshotHead head;
  SnapshotTail tail;
  std::uint64_t listed = 0;  ///< keys that were asked for
  std::uint64_t gone = 0;    ///< of them deleted, before or meanwhile
};

/// Leaves no file unless it succeeds. kAlreadyExists: the file exists; kUnavailable: no node lists its keys, or none
/// answers; kCancelled: `progress` returned false; also the errors of list_keys().
Result<DumpResult> dump(const DumpOptions& options, const Progress& progress);

}  // namespace wherry::kv
