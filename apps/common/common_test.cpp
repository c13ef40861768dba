// SPDX-License-Identifier: Apache-2.0
// Tests of the code that the applications share.
#include <gtest/gtest.h>

#include "common/distribution.hpp"
#include "common/random.hpp"

namespace wherry::apps {
namespace {

TEST(Random, KnownStream_ExpectTheAuthorsNumbers) {
  // The first outputs of the reference splitmix64 seeded with 1234567.
  EXPECT_EQ(splitmix(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(splitmix(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(splitmix(1234567, 2), 9817491932198370423u);
}

TEST(Random, ScaledNumbers_ExpectThemInRange) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_LT(below(splitmix(3, i), 7), 7u);
    EXPECT_EQ(below(splitmix(3, i), 1), 0u);
    EXPECT_GE(unit(splitmix(3, i)), 0.0);
    EXPECT_LT(unit(splitmix(3, i)), 1.0);
  }
  EXPECT_LT(unit(~std::uint64_t{0}), 1.0);
}

TEST(Divider, LargestNumbers_ExpectTrueQuotients) {
  const std::uint64_t numbers[]{
      0, 1, 2, 3, 7, 255, 256, 65535, 1 << 20, (1ull << 31) - 1, 1ull << 31, (1ull << 32) - 2, (1ull << 32) - 1};
  for (const std::uint64_t by : numbers) {
    if (by == 0) continue;
    for (const std::uint64_t n : numbers) EXPECT_EQ(Divider(by).quotient(n), n / by) << n << " / " << by;
  }
}

TEST(Distribution, EveryElement_ExpectOneHomeAndTheWayBack) {
  for (const auto kind : {Distribution::Kind::kCyclic, Distribution::Kind::kBlock}) {
    for (const Rank ranks : {1u, 2u, 3u, 7u, 20u}) {
      for (const std::uint64_t size : {0u, 1u, 2u, 13u, 14u, 100u}) {
        const Distribution elements(kind, size, ranks);
        std::vector<std::uint64_t> held(ranks);
        for (std::uint64_t i = 0; i < size; ++i) {
          const auto [rank, local] = elements.home(i);
          ASSERT_LT(rank, ranks);
          EXPECT_LT(local, elements.count(rank));
          EXPECT_EQ(elements.element(rank, local), i);
          ++held[rank];
        }
        for (Rank rank = 0; rank < ranks; ++rank) EXPECT_EQ(held[rank], elements.count(rank));
      }
    }
  }
}

TEST(Share, AllRanks_ExpectEveryPieceOnce) {
  for (const Rank ranks : {1u, 3u, 8u}) {
    for (const std::uint64_t total : {0u, 2u, 17u}) {
      std::uint64_t next = 0;
      for (Rank rank = 0; rank < ranks; ++rank) {
        const Share share = Share::of(total, rank, ranks);
        EXPECT_EQ(share.first, next);
        next = share.last;
      }
      EXPECT_EQ(next, total);
    }
  }
}

}  // namespace
}  // namespace wherry::apps
