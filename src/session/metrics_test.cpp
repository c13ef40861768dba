// SPDX-License-Identifier: Apache-2.0
#include "session/metrics.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace wherry::session {
namespace {

/// The value in a line of the page, or an empty text.
std::string value_of(const std::string& page, const std::string& sample) {
  const std::size_t at = page.find("\n" + sample + " ");
  if (at == std::string::npos) return "";
  const std::size_t from = at + sample.size() + 2;
  return page.substr(from, page.find('\n', from) - from);
}

TEST(Metrics, TimesOnAndBesideTheBounds_ExpectEachInTheBucketThatIsNotBelowIt) {
  TimeHistogram times;
  for (const std::uint64_t ns :
       {0ULL, 1'000ULL, 1'001ULL, 5'000ULL, 9'999'999'999ULL, 10'000'000'000ULL, 10'000'000'001ULL, 60'000'000'000ULL})
    times.add(ns);
  MetricsWriter out;
  out.histogram("x_seconds", "Some times.", times);
  EXPECT_TRUE(out.text().starts_with("# HELP x_seconds Some times.\n# TYPE x_seconds histogram\n")) << out.text();
  // In the exposition format "le" is inclusive, and each bucket includes the counts of the buckets before it.
  EXPECT_EQ(value_of(out.text(), "x_seconds_bucket{le=\"1e-06\"}"), "2");
  EXPECT_EQ(value_of(out.text(), "x_seconds_bucket{le=\"2e-06\"}"), "3");
  EXPECT_EQ(value_of(out.text(), "x_seconds_bucket{le=\"5e-06\"}"), "4");
  EXPECT_EQ(value_of(out.text(), "x_seconds_bucket{le=\"5\"}"), "4");
  EXPECT_EQ(value_of(out.text(), "x_seconds_bucket{le=\"10\"}"), "6");
  EXPECT_EQ(value_of(out.text(), "x_seconds_bucket{le=\"+Inf\"}"), "8");
  EXPECT_EQ(value_of(out.text(), "x_seconds_count"), "8");
  EXPECT_DOUBLE_EQ(std::stod(value_of(out.text(), "x_seconds_sum")), 90.000007001);
}

TEST(Metrics, HistogramWithoutTimes_ExpectEveryBucketWithZero) {
  MetricsWriter out;
  out.histogram("x_seconds", "None.", TimeHistogram{});
  std::size_t zeros = 0;
  for (std::size_t at = 0; (at = out.text().find("} 0\n", at)) != std::string::npos; ++at) ++zeros;
  EXPECT_EQ(zeros, TimeHistogram::kBoundsNs.size() + 1);
  EXPECT_EQ(value_of(out.text(), "x_seconds_sum"), "0");
  EXPECT_EQ(value_of(out.text(), "x_seconds_count"), "0");
}

TEST(Metrics, BoundsOfTheBuckets_ExpectThemToRise) {
  for (std::size_t i = 1; i < TimeHistogram::kBoundsNs.size(); ++i) {
    const std::uint64_t before = TimeHistogram::kBoundsNs[i - 1];
    EXPECT_GT(TimeHistogram::kBoundsNs[i], before);
    EXPECT_LE(2 * TimeHistogram::kBoundsNs[i], 5 * before);
  }
}

}  // namespace
}  // namespace wherry::session
