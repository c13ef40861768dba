// SPDX-License-Identifier: Apache-2.0
// Turns the rounds of a path and shape into one row of figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/cpu_cost.hpp"
#include "probe/histogram.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// One item that a run measures: a path with a shape.
struct Cell {
  Path* path = nullptr;
  Shape shape;
  double offered_share = 0;  ///< of the closed loop's rate, as an open loop; 0: a closed loop
  unsigned series = 0;       ///< the same cell twice in a run is compared with itself
};

/// The results of one round. Times are of one unit of Work.
struct Round {
  double p50_ns = 0;
  double units_per_s = 0;
  bool disturbed = false;  ///< an involuntary switch, or steal, fell into it
  bool warm = false;       ///< the warm-up ended because three batches agreed
};

/// The sums of all rounds of a cell.
struct Tally {
  Histogram latency;  ///< ps, of one unit
  std::vector<Round> rounds;
  std::vector<double> offered_per_s;
  CpuCost cpu;
  Path::CpuTime other;
  std::uint64_t units = 0;
  std::uint64_t samples = 0;
  std::uint64_t batch = 0;  ///< transfers in one timed sample; 1: each is timed
  Work work;
  Bound bound;
};

struct Row {
  double p50_ns = 0, p90_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
  double gbytes_per_s = 0, transfers_per_s = 0, offered_per_s = 0;
  double cpu_user_ns = 0, cpu_system_ns = 0, other_user_ns = 0, other_system_ns = 0;
  double least = 0, most = 0;        ///< of the rounds' medians, ns
  std::vector<double> rounds;        ///< the rounds' medians, ns, in their order
  unsigned disturbed = 0, warm = 0;  ///< rounds
  double p50_undisturbed_ns = 0;     ///< 0: all were disturbed
  double variation = 0;              ///< of the rounds' medians: standard deviation over mean
  bool unsettled = false;            ///< that is more than kUnsettled
  std::uint64_t samples = 0, batch = 0;
  double bound_gbytes_per_s = 0;  ///< 0: none is known
  std::string bound_why;
  std::string refused;  ///< why the figures are not to be believed; empty: nothing is known against them
};

inline constexpr double kUnsettled = 0.30;
inline constexpr double kOverBound =
    1.02;  ///< figures up to so much of the bound pass: the clock and the bound's own figures are no better

/// Precondition: at least one round.
[[nodiscard]] Row row_of(const Tally& tally);
/// Precondition: not empty. For an even count, the mean of the two middle values.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace wherry::probe
