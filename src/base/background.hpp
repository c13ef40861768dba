// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>
#include <sys/resource.h>

#include <exception>
#include <thread>

#include "wherry/status.hpp"

namespace wherry {

inline constexpr int kBackgroundNice = 10;  ///< of threads that must not keep the data thread from its core

/// Runs `start`, which returns a Status or a Result, on a thread of lower priority and waits for it. Threads that it
/// starts inherit that priority (nice is per thread on Linux).
template <typename Start>
auto in_background(Start start) {
  decltype(start()) result = Status(StatusCode::kInternal, "not started");
  std::thread thread([&] {
    (void)setpriority(PRIO_PROCESS, 0, kBackgroundNice);
    try {
      result = start();
    } catch (const std::exception& error) {  // threads that it needs cannot be had, say
      result =
          Status(StatusCode::kResourceExhausted, fmt::format("a part of the agent did not start: {}", error.what()));
    }
  });
  thread.join();
  return result;
}

}  // namespace wherry
