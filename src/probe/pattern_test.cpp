// SPDX-License-Identifier: Apache-2.0
#include "probe/pattern.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace wherry::probe {
namespace {

/// A second version of splitmix64, from the paper: G. Steele, D. Lea, C. Flood, OOPSLA 2014, figure 16.
std::byte reference(std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t z = seed + (offset / 8 + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return static_cast<std::byte>(z >> 8 * (offset % 8));
}

TEST(Pattern, FillAtAnyOffsetAndLength_ExpectTheReferencesBytesAndNoneBeside) {
  for (std::size_t offset = 0; offset < 17; ++offset) {
    for (std::size_t bytes = 0; bytes < 40; ++bytes) {
      std::vector<std::byte> memory(bytes + 2, kGuard);
      fill_pattern({memory.data() + 1, bytes}, 42, offset);
      EXPECT_EQ(memory.front(), kGuard);
      EXPECT_EQ(memory.back(), kGuard);
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i + 1], reference(42, offset + i));
      EXPECT_FALSE(find_wrong({memory.data() + 1, bytes}, 42, offset));
    }
  }
}

TEST(Pattern, AnyByteFlipped_ExpectItsPlace) {
  for (std::size_t offset : {0, 3}) {
    std::vector<std::byte> memory(203);
    fill_pattern(memory, 7, offset);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      for (const int bit : {0, 7}) {
        memory[i] ^= static_cast<std::byte>(1 << bit);
        EXPECT_EQ(find_wrong(memory, 7, offset), i);
        memory[i] ^= static_cast<std::byte>(1 << bit);
      }
    }
  }
}

TEST(Pattern, StaleShiftedOrUnwritten_ExpectThatItIsNoticed) {
  std::vector<std::byte> memory(4096);
  fill_pattern(memory, 1);
  EXPECT_EQ(find_wrong(memory, 2).value_or(99), 0U) << "data of another round";
  EXPECT_TRUE(find_wrong(memory, 1, 8)) << "data of another place";
  EXPECT_TRUE(find_wrong(memory, 1, 64));
  fill_poison(memory, 1);
  EXPECT_FALSE(find_touched(memory, 1));
  for (std::size_t i = 0; i < memory.size(); ++i) ASSERT_NE(memory[i], reference(1, i)) << "poison is never right";
  memory[77] ^= std::byte{1};
  EXPECT_EQ(find_touched(memory, 1), 77U);
}

}  // namespace
}  // namespace wherry::probe
