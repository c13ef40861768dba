// SPDX-License-Identifier: Apache-2.0
// Tests only: options of ranks that a launcher of tests starts.
#pragma once

#include <chrono>

#include "wherry/route.hpp"

namespace wherry::route::testing_support {

/// Ranks of MPICH spin while they wait for each other. With more ranks than cores, on a busy machine, the start alone
/// takes longer than the usual start_timeout.
inline Options patient() {
  Options options;
  options.start_timeout = std::chrono::minutes(5);
  return options;
}

}  // namespace wherry::route::testing_support
