// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/traffic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "sim/bypass/echo.hpp"

namespace wherry::sim {
namespace {

unsigned word(std::span<const std::byte> frame, std::size_t at) {
  return std::to_integer<unsigned>(frame[at]) << 8 | std::to_integer<unsigned>(frame[at + 1]);
}

/// The RFC 1071 sum, which is 0xFFFF if it is right.
unsigned sum(std::span<const std::byte> data, unsigned start = 0) {
  unsigned total = start;
  for (std::size_t i = 0; i < data.size(); ++i) total += std::to_integer<unsigned>(data[i]) << (i % 2 == 0 ? 8 : 0);
  while (total >> 16 != 0) total = (total & 0xFFFF) + (total >> 16);
  return total;
}

TEST(SimQemuTraffic, ManyFrames_ExpectAllSizesAndKindsAndRightChecksums) {
  const Traffic traffic(7);
  std::set<std::vector<std::byte>> frames;
  std::set<unsigned> kinds;
  std::set<std::uint32_t> sizes;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    for (const bool reply : {false, true}) {
      const auto frame = reply ? traffic.reply(i) : traffic.frame(i);
      ASSERT_EQ(frame.size(), traffic.size(i));
      if (!reply) {
        EXPECT_TRUE(frames.insert(frame).second);
      }
      const unsigned type = word(frame, 12);
      const unsigned protocol = type == 0x0800 ? std::to_integer<unsigned>(frame[23]) : 0;
      kinds.insert(protocol);
      sizes.insert(traffic.size(i));
      if (protocol == 0) continue;
      EXPECT_EQ(word(frame, 16), frame.size() - 14);
      EXPECT_EQ(sum(std::span(frame).subspan(14, 20)), 0xFFFFU);
      const auto transport = std::span(frame).subspan(34);
      const unsigned pseudo =
          protocol == 17 ? sum(std::span(frame).subspan(26, 8), 17 + static_cast<unsigned>(transport.size())) : 0;
      EXPECT_EQ(sum(transport, pseudo), 0xFFFFU) << i;
    }
  }
  EXPECT_EQ(kinds, (std::set<unsigned>{0, 1, 17}));
  EXPECT_EQ(*sizes.begin(), 60U);
  EXPECT_EQ(*sizes.rbegin(), 9000U);
  EXPECT_TRUE(sizes.contains(2048) && sizes.contains(2049));
}

// Makes the same bytes in two ways: from the fields, and by swapping them.
TEST(SimQemuTraffic, Reply_ExpectWhatAnEchoMakesOfTheFrame) {
  const Traffic traffic(8);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    auto frame = traffic.frame(i);
    EXPECT_NE(frame, traffic.reply(i));
    echo(std::span(frame).first(std::min<std::size_t>(64, frame.size())));
    EXPECT_EQ(frame, traffic.reply(i)) << i;
  }
}

TEST(SimQemuTraffic, ShortOnes_ExpectNoneLonger) {
  const Traffic traffic(9, 128);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_GE(traffic.size(i), 60U);
    EXPECT_LE(traffic.frame(i).size(), 128U);
  }
}

TEST(SimQemuTraffic, OtherSeed_ExpectOtherFrames) {
  EXPECT_EQ(Traffic(1).frame(5), Traffic(1).frame(5));
  EXPECT_NE(Traffic(1).frame(5), Traffic(2).frame(5));
}

}  // namespace
}  // namespace wherry::sim
