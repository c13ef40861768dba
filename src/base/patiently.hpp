// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

#include "base/clock.hpp"

namespace wherry {

/// Repeats `open()` for up to a second until it succeeds. After a restart, the port, queue or lock of the previous
/// process may still be in use.
template <typename Open>
auto patiently(const Open& open) {
  const Deadline deadline(std::chrono::seconds(1));
  auto opened = open();
  while (!opened && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    opened = open();
  }
  return opened;
}

}  // namespace wherry
