// SPDX-License-Identifier: Apache-2.0
// A JSON file with the statistics of one rank, for `wherry advise`, if the environment variable WHERRY_STATISTICS names
// a directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/event_counter.hpp"
#include "route/client/wiring.hpp"

namespace wherry::route {

class StatisticsFile {
 public:
  /// For the directory that WHERRY_STATISTICS names. Null: it is not set. kInvalidArgument: it cannot be written to.
  /// Call this before threads are started, because the counter counts the calling thread and the threads that it
  /// starts.
  static Result<std::unique_ptr<StatisticsFile>> open();

  explicit StatisticsFile(std::string directory) : directory_(std::move(directory)) {}
  /// The rank has joined its job.
  void begin() { began_ = take({}); }
  /// The first message: times and misses count from here, without start-up and without reading or making the input.
  void communicate(const Statistics& now) { began_ = take(now); }
  /// All messages have been handled. Times and misses count up to here, unless messages follow.
  void quiet(const Statistics& now) { quiet_ = take(now); }
  /// Writes DIRECTORY/rank-N.json. The file appears complete or not at all.
  Status write(const Place& place, const Statistics& statistics);

 private:
  struct Moment {
    std::uint64_t ns = 0, cpu_ns = 0, misses = 0, blocked_ns = 0;
    std::uint64_t messages = 0;
  };
  Moment take(const Statistics& now);

  const std::string directory_;
  EventCounter misses_ = EventCounter::cache_misses();
  Moment began_, quiet_;
};

}  // namespace wherry::route
