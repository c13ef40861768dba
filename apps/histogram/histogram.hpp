// SPDX-License-Identifier: Apache-2.0
// Increments random counters that are distributed over the ranks, with one 8-byte message each.
#pragma once

#include "common/distribution.hpp"
#include "common/huge_vector.hpp"
#include "wherry/route.hpp"

namespace wherry::apps {

struct HistogramOptions {
  std::uint64_t counters = std::uint64_t{1} << 20;  ///< of all ranks together
  std::uint64_t updates = std::uint64_t{1} << 24;   ///< likewise
  Distribution::Kind distribution = Distribution::Kind::kCyclic;
  std::uint64_t seed = 1;
};

struct Histogram {
  HugeVector<std::uint64_t> counts;  ///< of this rank's counters, by local number
  double seconds = 0;
};

Result<Histogram> run(route::Runtime& runtime, const HistogramOptions& options);

}  // namespace wherry::apps
