// SPDX-License-Identifier: Apache-2.0
// Logging rules: an error is logged once, where it is decided; callers pass it up silently. Nothing is logged on a path
// that runs per offload. Would-block is never logged.
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>
#include <utility>

#include "wherry/status.hpp"

namespace wherry {

/// Sends the log to stderr, or to `file` (appending). Level: trace, debug, info, warn, error, off. Control characters
/// in a line are written as text, such as "\n" and "\x1b", so a chosen name cannot forge a line.
Status init_log(const std::string& level, const std::string& file);

/// A line of level warn; on standard error in a program that has not called init_log(), an application say.
void warn_line(const std::string& text);

/// Limits lines that strangers can cause to ten in ten seconds. One thread.
class LogLimit {
 public:
  /// True: write the line. `held_back`: lines that were not written since the last one that was.
  bool admit(std::uint64_t now_ns, std::uint64_t& held_back) noexcept {
    constexpr std::uint64_t kPeriodNs = 10'000'000'000ULL;
    constexpr std::uint64_t kLines = 10;
    if (lines_ == 0 || now_ns - since_ >= kPeriodNs) {
      since_ = now_ns;
      lines_ = 0;
    }
    if (lines_ == kLines) {
      ++held_back_;
      return false;
    }
    ++lines_;
    held_back = std::exchange(held_back_, 0);
    return true;
  }

 private:
  std::uint64_t since_ = 0, lines_ = 0, held_back_ = 0;
};

}  // namespace wherry
