// SPDX-License-Identifier: Apache-2.0
#include "kv/control/configuration.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace wherry::kv {
namespace {

Configuration good(NodeMask members) {
  Configuration c;
  c.epoch = 1;
  c.members = c.serving = members;
  c.leaders = first_leaders(members);
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) c.peers[node] = {0, 0x0a000001 + node, 19286};
  return c;
}

TEST(Configuration, EpochsWithLowBitsZero_ExpectSkipped) {
  EXPECT_EQ(next_epoch(0), 1U);
  EXPECT_EQ(next_epoch(65534), 65535U);
  EXPECT_EQ(next_epoch(65535), 65537U);
  EXPECT_EQ(next_epoch((std::uint64_t{1} << 40) - 1), (std::uint64_t{1} << 40) + 1);
}

TEST(Configuration, FirstLeaders_ExpectSlotModuloNodes) {
  const Leaders leaders = first_leaders(0b10110);
  constexpr std::array<std::uint8_t, 3> kNodes{1, 2, 4};
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) EXPECT_EQ(leaders[slot], kNodes[slot % 3]);
}

TEST(Configuration, EveryChangeOfTheServingSet_ExpectEvenSpreadAndLeastMovement) {
  for (std::uint32_t before = 1; before < 256; ++before) {
    for (std::uint32_t after = 1; after < 256; ++after) {
      const Leaders old = first_leaders(static_cast<NodeMask>(before));
      Leaders now = old;
      spread_leaders(now, static_cast<NodeMask>(after));
      std::array<std::uint32_t, kMaxNodes> had{};
      std::array<std::uint32_t, kMaxNodes> has_now{};
      std::uint32_t moved = 0;
      for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
        ++had[old[slot]];
        ASSERT_TRUE(has(static_cast<NodeMask>(after), now[slot]));
        ++has_now[now[slot]];
        moved += old[slot] != now[slot] ? 1 : 0;
      }
      std::uint32_t least = 256;
      std::uint32_t most = 0;
      std::uint32_t gained = 0;
      for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
        if (!has(static_cast<NodeMask>(after), node)) continue;
        least = std::min(least, has_now[node]);
        most = std::max(most, has_now[node]);
        gained += has_now[node] > had[node] ? has_now[node] - had[node] : 0;
      }
      ASSERT_LE(most - least, 1U);
      ASSERT_EQ(moved, gained);  // nobody gave a slot away to be given another
      if (before == after) {
        ASSERT_EQ(moved, 0U);
      }
    }
  }
}

TEST(Configuration, WhatIsWrong_ExpectNamed) {
  ASSERT_TRUE(check(good(0b111)));
  const auto error = [](auto change) {
    Configuration c = good(0b111);
    change(c);
    const wherry::Status s = check(c);
    EXPECT_FALSE(s);
    return s.message();
  };
  EXPECT_NE(error([](auto& c) { c.epoch = 65536; }).find("65536"), std::string::npos);
  EXPECT_NE(error([](auto& c) { c.serving = 0; }).find("no node serves"), std::string::npos);
  EXPECT_NE(error([](auto& c) { c.members = 0b011; }).find("node 2"), std::string::npos);
  EXPECT_NE(error([](auto& c) { c.leaders[77] = 5; }).find("slot 77"), std::string::npos);
  EXPECT_NE(error([](auto& c) { c.leaders[3] = 200; }).find("slot 3"), std::string::npos);
  EXPECT_NE(error([](auto& c) { c.bucket_bits = 7; }).find("bucket_bits 7"), std::string::npos);
  EXPECT_NE(error([](auto& c) { c.peers[1].port = 0; }).find("node 1"), std::string::npos);
  EXPECT_NE(error([](auto& c) { c.peers[2] = c.peers[0]; }).find("nodes 0 and 2"), std::string::npos);
}

}  // namespace
}  // namespace wherry::kv
