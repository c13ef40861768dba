// SPDX-License-Identifier: Apache-2.0
// Compares with sorted values. python/tests/test_probe_histogram.py compares with numpy's percentiles.
#include "probe/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/random.hpp"

namespace wherry::probe {
namespace {

/// The value by nearest rank: the smallest that at least `part` of all values do not exceed.
std::uint64_t nearest_rank(std::vector<std::uint64_t> values, double part) {
  std::ranges::sort(values);
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
  return values[rank == 0 ? 0 : rank - 1];
}

/// Values over many powers of two, like latencies.
std::vector<std::uint64_t> some_values(std::uint64_t seed, std::size_t count) {
  SplitMix64 random(seed);
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(random() >> (20 + random.below(43)));
  return values;
}

TEST(Histogram, PercentilesOfRandomValues_ExpectNearestRankToWithinAStep) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto values = some_values(seed, 1 + seed * 531);
    const auto histogram = std::make_unique<Histogram>();
    for (const std::uint64_t value : values) histogram->add(value);
    ASSERT_EQ(histogram->count(), values.size());
    EXPECT_EQ(histogram->max(), std::ranges::max(values));
    EXPECT_EQ(histogram->min(), std::ranges::min(values));
    for (const double part : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto exact = static_cast<double>(nearest_rank(values, part));
      EXPECT_NEAR(static_cast<double>(histogram->percentile(part)), exact, exact / 128 + 0.5) << seed << ", " << part;
    }
  }
}

TEST(Histogram, Merge_ExpectTheSameAsOneOfAllValues) {
  const auto whole = std::make_unique<Histogram>(), merged = std::make_unique<Histogram>();
  for (std::uint64_t part = 0; part < 5; ++part) {
    const auto one = std::make_unique<Histogram>();
    for (const std::uint64_t value : some_values(part, 1000)) one->add(value), whole->add(value);
    merged->merge(*one);
  }
  merged->merge(*std::make_unique<Histogram>());
  EXPECT_EQ(merged->count(), whole->count());
  EXPECT_EQ(merged->min(), whole->min());
  EXPECT_EQ(merged->max(), whole->max());
  for (int i = 0; i <= 1000; ++i) EXPECT_EQ(merged->percentile(i / 1000.0), whole->percentile(i / 1000.0));
}

TEST(Histogram, Steps_ExpectThatTheyFollowEachOtherAndAreNoWiderThanA64thOfTheirValue) {
  for (std::size_t i = 0; i + 1 < Histogram::kCells; ++i) {
    ASSERT_EQ(Histogram::last_of(i) + 1, Histogram::first_of(i + 1));
    ASSERT_EQ(Histogram::index_of(Histogram::first_of(i)), i);
    ASSERT_EQ(Histogram::index_of(Histogram::last_of(i)), i);
    const std::uint64_t width = Histogram::last_of(i) - Histogram::first_of(i) + 1;
    ASSERT_TRUE(width == 1 || width * 64 <= Histogram::first_of(i)) << i;
  }
}

TEST(Histogram, ValuesBeyondTheLastStep_ExpectTheirGreatest) {
  const auto histogram = std::make_unique<Histogram>();
  histogram->add(5);
  histogram->add(~std::uint64_t{0}, 3);
  EXPECT_EQ(histogram->count(), 4U);
  EXPECT_EQ(histogram->percentile(0.25), 5U);
  EXPECT_EQ(histogram->percentile(0.5), ~std::uint64_t{0});
}

TEST(Histogram, NoValues_ExpectZeros) {
  const auto histogram = std::make_unique<Histogram>();
  EXPECT_EQ(histogram->percentile(0.5), 0U);
  EXPECT_EQ(histogram->min(), 0U);
  EXPECT_EQ(histogram->max(), 0U);
}

}  // namespace
}  // namespace wherry::probe
