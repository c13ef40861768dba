// SPDX-License-Identifier: Apache-2.0
// The common part of all benchmarks: statistics, errors, Ctrl-C.
#pragma once

#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::bench {

/// Thrown after Ctrl-C or SIGTERM. It unwinds to main, which ends the children.
class Interrupted : public std::exception {};

void catch_signals();
/// Throws Interrupted after a signal. Long loops call it once per round.
void check_interrupted();

/// Throws std::runtime_error "what: why".
void require(const Status& status, std::string_view what);
template <typename T>
T require(Result<T> result, std::string_view what) {
  if (!result) require(result.status(), what);
  return *std::move(result);
}

struct Summary {
  double median = 0, min = 0, max = 0, p99 = 0;
};
/// Precondition: not empty.
Summary summarize(std::vector<double> values);
double median(std::vector<double> values);

}  // namespace wherry::bench
