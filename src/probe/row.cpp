// SPDX-License-Identifier: Apache-2.0
#include "probe/row.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace wherry::probe {
namespace {

double variation(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2 || mean == 0) return 0;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (count - 1)) / mean;
}

std::string against_bound(const Row& row, const Bound& bound) {
  const double bytes_per_s = row.gbytes_per_s * 1e9;
  if (bound.bytes_per_s > 0 && bytes_per_s > bound.bytes_per_s * kOverBound)
    return fmt::format("{:.4g} GB/s is over the bound of {:.4g} GB/s: {}", row.gbytes_per_s, bound.bytes_per_s / 1e9,
                       bound.why);
  if (bound.transfers_per_s > 0 && row.transfers_per_s > bound.transfers_per_s * kOverBound)
    return fmt::format("{:.4g} transfers/s are over the bound of {:.4g}: {}", row.transfers_per_s,
                       bound.transfers_per_s, bound.why);
  return "";
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Row row_of(const Tally& tally) {
  Row row;
  std::vector<double> rates, calm;
  for (const Round& round : tally.rounds) {
    row.rounds.push_back(round.p50_ns);
    rates.push_back(round.units_per_s);
    if (!round.disturbed) calm.push_back(round.p50_ns);
    row.disturbed += round.disturbed ? 1 : 0;
    row.warm += round.warm ? 1 : 0;
  }
  const auto ns = [&](double part) { return static_cast<double>(tally.latency.percentile(part)) / 1000; };
  row.p50_ns = median(row.rounds);
  row.p90_ns = ns(0.9), row.p99_ns = ns(0.99), row.p999_ns = ns(0.999);
  row.max_ns = static_cast<double>(tally.latency.max()) / 1000;
  row.transfers_per_s = median(rates);
  row.gbytes_per_s = row.transfers_per_s * static_cast<double>(tally.work.bytes) / 1e9;
  if (!tally.offered_per_s.empty()) row.offered_per_s = median(tally.offered_per_s);
  if (tally.units > 0) {
    const auto each = [&](std::uint64_t of) { return static_cast<double>(of) / static_cast<double>(tally.units); };
    row.cpu_user_ns = each(tally.cpu.user_ns), row.cpu_system_ns = each(tally.cpu.system_ns);
    row.other_user_ns = each(tally.other.user_ns), row.other_system_ns = each(tally.other.system_ns);
  }
  row.least = std::ranges::min(row.rounds), row.most = std::ranges::max(row.rounds);
  if (!calm.empty()) row.p50_undisturbed_ns = median(calm);
  row.variation = variation(row.rounds);
  row.unsettled = row.variation > kUnsettled;
  row.samples = tally.samples, row.batch = tally.batch;
  row.bound_gbytes_per_s = tally.bound.bytes_per_s / 1e9;
  row.bound_why = tally.bound.why;
  row.refused = against_bound(row, tally.bound);
  return row;
}

}  // namespace wherry::probe
