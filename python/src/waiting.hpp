// SPDX-License-Identifier: Apache-2.0
// Waiting from Python, in part without the GIL, so that other threads run and Ctrl-C works.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "wherry/status.hpp"

namespace wherry::python {

using Clock = std::chrono::steady_clock;

/// Not-a-number and times over thirty years become thirty years.
inline std::chrono::nanoseconds from_seconds(double seconds) {
  constexpr double kForever = 1e9;
  if (seconds < -kForever) seconds = -kForever;
  return std::chrono::nanoseconds(static_cast<std::int64_t>((seconds < kForever ? seconds : kForever) * 1e9));
}

/// The result of one check: whether the operation is over, and its status.
struct Look {
  bool over;
  Status status;
};

/// Waits in slices, and returns the status of the last call of `look`. Only one thread at a time may use a session: in
/// Python, the thread that holds the GIL. So `look`, which changes the session, runs with the GIL. Only `ready`, which
/// must not change it, runs without. Checks for Ctrl-C between slices.
template <typename LookFor, typename Ready>
Status wait_in_slices(double seconds, std::chrono::nanoseconds slice, const LookFor& look, const Ready& ready) {
  // The client notices that the agent has died only in waits of more than 1 ms.
  constexpr std::chrono::microseconds kLongLook{1200};
  constexpr std::chrono::milliseconds kBetweenLongLooks{20};
  const auto start = Clock::now();
  const auto end = start + from_seconds(seconds);
  auto long_look = start + kBetweenLongLooks;
  Look seen = look(std::chrono::nanoseconds(0));
  while (!seen.over && Clock::now() < end) {
    {
      const nanobind::gil_scoped_release release;
      const auto until = std::min(end, Clock::now() + slice);
      // Spins at first, because an answer may come soon; then yields, then sleeps.
      for (auto now = Clock::now(); now < until && !ready(); now = Clock::now()) {
        if (now - start > std::chrono::milliseconds(2))
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        else if (now - start > std::chrono::microseconds(50))
          std::this_thread::yield();
      }
    }
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    const bool is_long = Clock::now() >= long_look;
    seen = look(is_long ? std::chrono::nanoseconds(kLongLook) : std::chrono::nanoseconds(0));
    if (is_long) long_look = Clock::now() + kBetweenLongLooks;
  }
  return std::move(seen.status);
}
inline constexpr std::chrono::microseconds kShortSlice{50};   ///< where `ready` cannot tell
inline constexpr std::chrono::microseconds kLongSlice{1000};  ///< where it can

}  // namespace wherry::python
