// SPDX-License-Identifier: Apache-2.0
// For tests.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace wherry::testing_support {

/// Asks `condition`, which makes the progress itself, until it is true; a minute is for what never happens. Whether it
/// was.
template <typename Condition>
bool turn_until(Condition condition) {
  for (const Deadline deadline(std::chrono::minutes(1)); !condition();) {
    if (deadline.passed()) return false;
  }
  return true;
}

}  // namespace wherry::testing_support
