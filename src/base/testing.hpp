// SPDX-License-Identifier: Apache-2.0
// For tests.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace wherry::testing_support {

/// For what never happens: a machine that has much else to do must not make a test fail.
constexpr std::chrono::minutes kPatience{5};

/// Asks `condition`, which makes the progress itself, until it is true, for as long as there is patience. Whether it
/// was.
template <typename Condition>
bool turn_until(Condition condition) {
  for (const Deadline deadline(kPatience); !condition();) {
    if (deadline.passed()) return false;
  }
  return true;
}

}  // namespace wherry::testing_support
