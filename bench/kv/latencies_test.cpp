// SPDX-License-Identifier: Apache-2.0
#include "kv/latencies.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace wherry::kv::bench {
namespace {

TEST(Latencies, RandomTimes_ExpectPercentilesOfSortedOnes) {
  const auto latencies = std::make_unique<Latencies>();
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t ns = random() >> (20 + random() % 40);
    all.push_back(ns);
    latencies->add(ns);
  }
  std::sort(all.begin(), all.end());
  for (const double part : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto exact = static_cast<double>(all[static_cast<std::size_t>(part * static_cast<double>(all.size()))]);
    const auto found = static_cast<double>(latencies->percentile(part));
    EXPECT_GE(found, exact);
    EXPECT_LE(found, exact * (1 + 1.0 / 64) + 1) << part;
  }
  EXPECT_EQ(latencies->percentile(1), all.back());
  EXPECT_EQ(latencies->max(), all.back());
}

TEST(Latencies, SmallAndHugeTimes_ExpectTheirOwnSteps) {
  const auto latencies = std::make_unique<Latencies>();
  EXPECT_EQ(latencies->percentile(0.5), 0U);
  for (std::uint64_t ns = 0; ns < 200; ++ns) latencies->add(ns);
  EXPECT_EQ(latencies->percentile(0.25), 50U);
  latencies->add(~std::uint64_t{0});
  EXPECT_EQ(latencies->max(), ~std::uint64_t{0});
  EXPECT_EQ(latencies->count(), 201U);
}

}  // namespace
}  // namespace wherry::kv::bench
