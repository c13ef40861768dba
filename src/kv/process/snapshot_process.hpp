// SPDX-License-Identifier: Apache-2.0
// `wherry-kv dump` and `wherry-kv load`. Standard output is for programs: from time to time a line of JSON with the
// progress, and a last line with "result". If the reader closes standard output, the process ends, and no file of a
// dump remains.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "wherry/status.hpp"

namespace wherry::kv {

struct SnapshotProcessOptions {
  std::string cluster;  ///< its file
  std::string file;
  double patience_s = 30;  ///< with a cluster that does not answer
  // dump
  std::optional<std::uint32_t> node;  ///< the one that lists its keys; none: any of this machine
  bool replace = false;
  // load
  bool overwrite = false;
  bool check = false;  ///< the file alone
  std::optional<std::uint16_t> lane;
};

wherry::Status run_dump(const SnapshotProcessOptions& options, const std::atomic<bool>& stop);
/// kResourceExhausted, reported after the result: the table had no room for some of the keys.
wherry::Status run_load(const SnapshotProcessOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv
