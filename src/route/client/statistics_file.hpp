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
  /// The rank has joined its job.
  void begin() { began_ = take({}); }
  /// Times and misses count from here, the first message on: start-up, and input that is read or made, do not.
  void communicate(const Statistics& now) { began_ = take(now); }
  /// All messages have been handled. Times and misses count to here, unless messages follow.
  void quiet(const Statistics& now) { quiet_ = take(now); }
  /// Writes DIRECTORY/rank-N.json, whole or not at all.
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
