// SPDX-License-Identifier: Apache-2.0
// A JSON file with the statistics of one rank, for `wherry advise`. Written if the environment variable
// WHERRY_STATISTICS names a directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/event_counter.hpp"
#include "route/client/wiring.hpp"

namespace wherry::route {

class StatisticsFile {
 public:
  /// Prepares a file in the directory that WHERRY_STATISTICS names. Null: it is not set. kInvalidArgument: the
  /// directory is not writable. Call this before threads start, because the counter counts the calling thread and
  /// threads that it starts later.
  static Result<std::unique_ptr<StatisticsFile>> open();

  explicit StatisticsFile(std::string directory) : directory_(std::move(directory)) {}
  /// Call it when the rank has joined its job.
  void begin() { began_ = take({}); }
  /// Call it at the first message: times and misses count from here, without start-up and preparation of input.
  void communicate(const Statistics& now) { began_ = take(now); }
  /// Call it when all messages are handled: times and misses count up to here if no message follows.
  void quiet(const Statistics& now) { quiet_ = take(now); }
  /// Writes DIRECTORY/rank-N.json. The file appears only when it is complete.
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
