// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/nic.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace wherry::sim {
namespace {

/// Registers that keep what is written, and do at once what takes a NIC a while.
struct Registers final : NicRegisters {
  std::map<std::uint32_t, std::uint32_t> values;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> writes;
  Result<std::uint32_t> read(std::uint32_t offset) override { return values[offset]; }
  Status write(std::uint32_t offset, std::uint32_t value) override {
    writes.emplace_back(offset, value);
    values[offset] = value;
    if (offset == 0 && (value & 1U << 26) != 0) values[0] = 0;  // CTRL.RST clears itself
    if (offset == 0 && (value & 1U << 6) != 0 && !needs_phy) values[8] = 2;
    if (offset == 0x20) {
      values[0x20] |= 1U << 28;
      if (value == 0x0420'1200) values[8] = 2;
    }
    return {};
  }
  Status pause(int) override { return {}; }
  bool needs_phy = false;
  [[nodiscard]] std::size_t place(std::uint32_t offset, std::size_t from = 0) const {
    for (std::size_t i = from; i < writes.size(); ++i)
      if (writes[i].first == offset) return i;
    return writes.size();
  }
};

constexpr NicRings kRings{.rx = 0x1'C080'0000, .tx = 0x1'C081'0000, .rx_entries = 64, .tx_entries = 128};

TEST(SimQemuNic, SetUp82574_ExpectRingsExtendedDescriptorsAndReceiverLast) {
  Registers registers;
  NicDriver driver(registers, *bypass::find_personality("e1000e"));
  ASSERT_TRUE(driver.set_up(kRings));
  EXPECT_EQ(registers.values[0x2818] + registers.values[0x3818], 0U);
  registers.values[0x2818] = 63;  // the card's
  ASSERT_TRUE(driver.start());
  EXPECT_EQ(registers.values[0x2800], 0xC080'0000U);  // RDBAL0
  EXPECT_EQ(registers.values[0x2804], 1U);
  EXPECT_EQ(registers.values[0x2808], 1024U);         // RDLEN0: bytes
  EXPECT_EQ(registers.values[0x3800], 0xC081'0000U);  // TDBAL0
  EXPECT_EQ(registers.values[0x3808], 2048U);
  EXPECT_EQ(registers.values[0x2810] + registers.values[0x3810], 0U);
  EXPECT_EQ(registers.values[0x5008], 0x8000U);       // RFCTL.EXSTEN
  EXPECT_EQ(registers.values[0x0100], 0x0400'803AU);  // RCTL: EN, UPE, MPE, LPE, BAM, SECRC
  EXPECT_EQ(registers.values[0x0400], 0xAU);          // TCTL: EN, PSP
  EXPECT_EQ(registers.place(0xC00C), registers.writes.size());
  EXPECT_LT(registers.place(0x2808), registers.place(0x0100, 1));
  EXPECT_EQ(registers.writes.back().first, 0x0400U);
}

TEST(SimQemuNic, SetUp82576_ExpectQueuesEnabledAndLinkNegotiated) {
  Registers registers;
  registers.needs_phy = true;
  NicDriver driver(registers, *bypass::find_personality("igb"));
  ASSERT_TRUE(driver.set_up(kRings));
  EXPECT_EQ(registers.values[0xC000], 0xC080'0000U);
  EXPECT_EQ(registers.values[0xC008], 1024U);
  EXPECT_EQ(registers.values[0xE000], 0xC081'0000U);
  EXPECT_EQ(registers.values[0xC00C], 0x0200'0002U);  // SRRCTL: one buffer of 2 KiB
  EXPECT_EQ(registers.values[0xC028], 0x0200'0000U);  // RXDCTL.ENABLE
  EXPECT_EQ(registers.values[0xE028], 0x0200'0000U);  // TXDCTL.ENABLE
  EXPECT_GE(registers.values[0x5004], 9018U);         // RLPML
  EXPECT_EQ(registers.writes[registers.place(0x20)].second, 0x0420'1200U);
  EXPECT_EQ(registers.place(0x5008), registers.writes.size());
}

TEST(SimQemuNic, Reset_ExpectDmaOffBeforeAndInterruptsOffAfter) {
  Registers registers;
  NicDriver driver(registers, *bypass::find_personality("e1000e"));
  ASSERT_TRUE(driver.reset());
  const std::size_t reset = registers.place(0);
  EXPECT_EQ(registers.writes[reset].second, 1U << 26);
  EXPECT_LT(registers.place(0x0100), reset);
  EXPECT_LT(registers.place(0x0400), reset);
  EXPECT_LT(registers.place(0xD8, reset), registers.writes.size());
}

}  // namespace
}  // namespace wherry::sim
