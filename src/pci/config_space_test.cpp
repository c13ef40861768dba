// SPDX-License-Identifier: Apache-2.0
#include "pci/config_space.hpp"

#include <gtest/gtest.h>

#include "pci/tree_testing.hpp"

namespace wherry::pci {
namespace {

using testing_support::ConfigBytes;

ConfigSpace space(const ConfigBytes& bytes, std::size_t most = kConfigExtended) {
  return ConfigSpace(bytes.bytes(most));
}

TEST(ConfigSpace, ReadAcsBehindAnotherCapability_ExpectItsRegisters) {
  const ConfigSpace config = space(ConfigBytes().acs(0x5F, 0x1D));
  const auto acs = config.acs();
  ASSERT_TRUE(acs);
  EXPECT_EQ(acs->offset, 0x148);
  EXPECT_EQ(acs->capability, 0x5F);
  EXPECT_EQ(acs->control, 0x1D);
}

TEST(ConfigSpace, ReadAcsWithoutRoot_ExpectNotKnown) {
  for (const std::size_t most : {std::size_t{0}, std::size_t{1}, kConfigHeader, kConfigClassic, kConfigExtended - 1}) {
    const ConfigSpace config = space(ConfigBytes().acs(0x5F, 0x1D), most);
    EXPECT_FALSE(config.sees_extended());
    EXPECT_FALSE(config.acs());
  }
}

TEST(ConfigSpace, WalkListInACircle_ExpectAnEnd) {
  const ConfigSpace config = space(ConfigBytes()
                                       .u16(0x06, 0x10)
                                       .u8(0x34, 0x40)
                                       .u16(0x40, 0x01 | 0x50 << 8)
                                       .u16(0x50, 0x05 | 0x40 << 8)
                                       .u32(0x100, 0x0001 | 1U << 16 | 0x200U << 20)
                                       .u32(0x200, 0x0003 | 1U << 16 | 0x100U << 20));
  EXPECT_FALSE(config.find(0x10));
  EXPECT_FALSE(config.find_extended(0x0D));
  EXPECT_EQ(config.find(0x05), 0x50);
  EXPECT_EQ(config.find_extended(0x03), 0x200);
}

TEST(ConfigSpace, WalkListIntoHeader_ExpectAnEnd) {
  // A pointer below 0x40 (in the extended list: below 0x100) leads to registers, not to a capability.
  const ConfigSpace config = space(ConfigBytes()
                                       .u16(0x06, 0x10)
                                       .u8(0x34, 0x10)
                                       .u8(0x10, 0x10)
                                       .u32(0x100, 0x0001 | 1U << 16 | 0x40U << 20)
                                       .u32(0x40, 0x0D));
  EXPECT_FALSE(config.find(0x10));
  EXPECT_FALSE(config.find_extended(0x0D));
}

TEST(ConfigSpace, ReadCapabilityListOfDeviceWithout_ExpectNone) {
  ConfigBytes bytes;
  bytes.u8(0x34, 0x40).u8(0x40, 0x10);  // but Status says that there is no list
  EXPECT_FALSE(space(bytes).find(0x10));
}

TEST(ConfigSpace, ReadCapabilityAtTheEnd_ExpectNothingBeyondIt) {
  // Its registers would lie beyond the end and read as all ones, as if every redirect were on.
  EXPECT_FALSE(space(ConfigBytes().u32(0x100, 0x0001 | 1U << 16 | 0xFFCU << 20).u32(0xFFC, 0x0D | 1U << 16)).acs());
  EXPECT_FALSE(space(ConfigBytes().u16(0x06, 0x10).u8(0x34, 0xFC).u8(0xFC, 0x10)).express());
}

TEST(ConfigSpace, ReadFunctionThatIsGone_ExpectNothing) {
  const ConfigSpace config(std::vector<std::byte>(kConfigExtended, std::byte{0xFF}));
  EXPECT_FALSE(config.acs());
  EXPECT_FALSE(config.express());
  EXPECT_FALSE(config.find(0x10));
}

TEST(ConfigSpace, ReadExpressCapability_ExpectTypeAndControl) {
  const auto express = space(ConfigBytes().express(6, 0x2810)).express();
  ASSERT_TRUE(express);
  EXPECT_EQ(express->type, PortType::kSwitchDownstream);
  EXPECT_EQ(express->device_control & kRelaxedOrdering, kRelaxedOrdering);
}

TEST(ConfigSpace, ReadBars_ExpectUpperHalvesToBePartOfTheLower) {
  const ConfigSpace config = space(ConfigBytes()
                                       .u32(0x10, 0xE000'0000)
                                       .u32(0x14, 0xC001)
                                       .wide_bar(2, 0x38'0000'0000, true)
                                       .wide_bar(4, 0x39'0000'0000, false));
  ASSERT_TRUE(config.bar(0));
  EXPECT_EQ(config.bar(0)->address, 0xE000'0000U);
  EXPECT_FALSE(config.bar(0)->wide);
  ASSERT_TRUE(config.bar(1));
  EXPECT_FALSE(config.bar(1)->memory);
  EXPECT_EQ(config.bar(1)->address, 0xC000U);
  ASSERT_TRUE(config.bar(2));
  EXPECT_EQ(config.bar(2)->address, 0x38'0000'0000U);
  EXPECT_TRUE(config.bar(2)->wide && config.bar(2)->prefetchable);
  EXPECT_FALSE(config.bar(3));
  EXPECT_FALSE(config.bar(4)->prefetchable);
  EXPECT_FALSE(config.bar(5));
  EXPECT_FALSE(config.bar(6));
}

TEST(ConfigSpace, ReadWideBarInTheLastRegister_ExpectNothingBeyondTheHeader) {
  const auto bar = space(ConfigBytes().u32(0x24, 0xE000'0004)).bar(5);
  ASSERT_TRUE(bar);
  EXPECT_FALSE(bar->wide);
  EXPECT_EQ(bar->address, 0xE000'0000U);
}

TEST(ConfigSpace, ReadWindowsOfBridge_ExpectBothEndsIncluded) {
  const ConfigSpace config =
      space(ConfigBytes().bridge(0xE000'0000, 0xE01F'FFFF, 0x38'0000'0000, 0x38'00FF'FFFF), kConfigHeader);
  const Window memory = config.memory_window(), wide = config.prefetchable_window();
  EXPECT_EQ(memory.first, 0xE000'0000U);
  EXPECT_EQ(memory.last, 0xE01F'FFFFU);
  EXPECT_EQ(wide.first, 0x38'0000'0000U);
  EXPECT_EQ(wide.last, 0x38'00FF'FFFFU);
  EXPECT_TRUE(wide.covers(0x38'0000'0000, 16ULL << 20));
  EXPECT_FALSE(wide.covers(0x38'0000'0000, (16ULL << 20) + 1));
  EXPECT_FALSE(wide.covers(0x38'0100'0000, 1));
  EXPECT_FALSE(wide.covers(~std::uint64_t{0}, 2));
}

TEST(ConfigSpace, ReadClosedWindow_ExpectItToCoverNothing) {
  const ConfigSpace config = space(ConfigBytes().bridge(0xFFF0'0000, 0x0000'0000, 0xFFFF'FFFF'FFF0'0000, 0));
  EXPECT_FALSE(config.memory_window().covers(0, 1));
  EXPECT_FALSE(config.prefetchable_window().covers(0xFFF0'0000, 1));
}

}  // namespace
}  // namespace wherry::pci
