// SPDX-License-Identifier: Apache-2.0
// For tests: options of ranks that a test launcher starts.
#pragma once

#include <chrono>

#include "wherry/route.hpp"

namespace wherry::route::testing_support {

/// MPICH's ranks spin while they wait for each other. With more ranks than cores on a busy machine, the start alone
/// takes longer than the default start_timeout.
inline Options patient() {
  Options options;
  options.start_timeout = std::chrono::minutes(5);
  return options;
}

}  // namespace wherry::route::testing_support
