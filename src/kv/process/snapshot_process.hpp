// SPDX-License-Identifier: Apache-2.0
// `wherry-kv dump` and `wherry-kv load`. Standard output is for programs: a line of JSON now and then, with the
// progress so far, and a last one with "result". If the reader closes it, the process ends, and nothing remains of a
// dump.
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
/// kResourceExhausted, after the result was said: the table had no room for some of the keys.
wherry::Status run_load(const SnapshotProcessOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv
