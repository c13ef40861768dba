// SPDX-License-Identifier: Apache-2.0
// Logging rules: the code that handles an error logs it once; other code returns it without logging. Code that runs for
// each offload does not log. Would-block is never logged.
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

/// Logs a line of level warn, on standard error in a program without init_log(), such as an application.
void warn_line(const std::string& text);

/// Limits log lines that strangers can cause to ten lines in ten seconds. One thread.
class LogLimit {
 public:
  /// True: write the line. `held_back`: lines that were suppressed since the last written line.
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
