// SPDX-License-Identifier: Apache-2.0
// What a rank leaves for whoever looks at the job as a whole (`wherry advise`): one JSON file, when the environment
// variable WHERRY_STATISTICS names a directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/event_counter.hpp"
#include "route/client/wiring.hpp"

namespace wherry::route {

class StatisticsFile {
 public:
  /// Into the directory that WHERRY_STATISTICS names; null: it is not set. An error when nobody can write there. Call
  /// it before threads are started: the counter knows the calling one and those that come of it.
  static Result<std::unique_ptr<StatisticsFile>> open();

  explicit StatisticsFile(std::string directory) : directory_(std::move(directory)) {}
  /// What the file tells of begins now: the rank has joined its job.
  void begin();
  /// Writes DIRECTORY/rank-N.json, whole or not at all.
  Status write(const Place& place, const Statistics& statistics);

 private:
  const std::string directory_;
  EventCounter misses_ = EventCounter::cache_misses();
  std::uint64_t began_ns_ = 0, began_cpu_ns_ = 0, began_misses_ = 0;
};

}  // namespace wherry::route
