// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace wherry {
namespace {

/// The output of the public reference implementation (S. Vigna, splitmix64.c) for this seed.
constexpr std::uint64_t kSeed = 1234567;
constexpr std::array<std::uint64_t, 5> kReference{6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                                  4593380528125082431U, 16408922859458223821U};

TEST(SplitMix64, Draw_KnownSeed_ExpectReferenceValues) {
  SplitMix64 random(kSeed);
  for (const std::uint64_t expected : kReference) EXPECT_EQ(random(), expected);
}

TEST(SplitMix64, Draw_ByIndex_ExpectSameStream) {
  for (std::size_t i = 0; i < kReference.size(); ++i) EXPECT_EQ(splitmix64(kSeed, i), kReference.at(i));
  EXPECT_EQ(splitmix64(kSeed), kReference.front());
}

TEST(SplitMix64, Draw_SeedZero_ExpectReferenceValue) { EXPECT_EQ(splitmix64(0), 0xe220a8397b1dcdafU); }

TEST(SplitMix64, Below_Bounds_ExpectOnlyValuesBelowAndAllOfThem) {
  SplitMix64 random(1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) ++seen.at(random.below(7));  // at() throws beyond the bound
  for (const int count : seen) EXPECT_GT(count, 0);
  EXPECT_EQ(random.below(0), 0U);
  EXPECT_EQ(random.below(1), 0U);
}

static_assert(std::uniform_random_bit_generator<SplitMix64>);

}  // namespace
}  // namespace wherry
