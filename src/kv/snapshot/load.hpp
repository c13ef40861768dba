// SPDX-License-Identifier: Apache-2.0
// Writes a snapshot's keys to a cluster, in the same way as any client: docs/guide/kv-snapshot.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kv/snapshot/key_listing.hpp"
#include "kv/snapshot/snapshot_file.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// The content of a snapshot file of which every byte was checked.
struct SnapshotContent {
  SnapshotHead head;
  SnapshotTail tail;
};
/// Errors name the file: kNotFound, kPermissionDenied, kInvalidArgument (not a snapshot), kProtocol (damaged),
/// kCancelled.
Result<SnapshotContent> check_snapshot(const std::string& path, const Progress& progress);

struct LoadOptions {
  std::string file;
  std::string cluster;  ///< its file
  std::uint32_t bucket_bits = 0;
  std::uint32_t lanes = 32;  ///< writes in flight
  std::optional<std::uint16_t> first_lane = std::nullopt;
  bool overwrite = false;  ///< keys that are there already
  std::chrono::nanoseconds patience{};
};

struct LoadResult {
  SnapshotContent content;
  std::uint64_t loaded = 0;
  std::uint64_t skipped = 0;                ///< they were there already
  std::uint64_t no_room = 0;                ///< the table had no room for them
  std::vector<std::uint64_t> without_room;  ///< the first of those
  wherry::Status end;                       ///< why it ended before all were asked for; what was loaded stays
};

/// Reads the whole file twice. If it is damaged, or has more keys than the cluster can ever hold (kResourceExhausted),
/// nothing is written.
Result<LoadResult> load(const LoadOptions& options, const Progress& progress);

}  // namespace wherry::kv
