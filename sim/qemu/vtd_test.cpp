// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/vtd.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace wherry::sim {
namespace {

constexpr std::uint16_t kCard = source_id(4, 0, 0);
constexpr std::uint64_t kRoot = 0x1000, kContext = 0x2000, kTop = 0x3000, kMiddle = 0x4000, kBottom = 0x5000;
constexpr std::uint64_t kAddress = 0xFEA0'3818;  // a register of a NIC

/// Tables written by hand: three levels, 39 bits.
class SimQemuVtd : public ::testing::Test {
 protected:
  SimQemuVtd() {
    put(kRoot + 16 * 4, kContext | 1);
    put(kContext, kTop | 1);
    put(kContext + 8, 1U << 8 | 1);  // domain 1, 39 bits
    put(kTop + 8 * (kAddress >> 30), kMiddle | 3);
    put(kMiddle + 8 * (kAddress >> 21 & 511), kBottom | 3);
    put(kBottom + 8 * (kAddress >> 12 & 511), 0xFEA0'3000 | 3);
  }
  void put(std::uint64_t at, std::uint64_t value) { std::memcpy(memory.data() + at, &value, sizeof value); }
  std::optional<std::uint64_t> translate(std::uint64_t address = kAddress, std::uint16_t source = kCard) const {
    return VtdTables(memory, kRoot).translate_write(source, address);
  }
  std::vector<std::byte> memory = std::vector<std::byte>(0x6000);
};

TEST_F(SimQemuVtd, AMappedPage_ExpectItsAddress) { EXPECT_EQ(translate(), kAddress); }

TEST_F(SimQemuVtd, APageMappedElsewhere_ExpectThatAddress) {
  put(kBottom + 8 * (kAddress >> 12 & 511), 0x1'2345'6000 | 3);
  EXPECT_EQ(translate(), 0x1'2345'6818U);
}

TEST_F(SimQemuVtd, ALargePage_ExpectItsAddress) {
  put(kMiddle + 8 * (kAddress >> 21 & 511), 0xFEA0'0000 | 1U << 7 | 3);
  EXPECT_EQ(translate(), kAddress);
}

TEST_F(SimQemuVtd, FourLevels_ExpectItsAddress) {
  std::vector<std::byte> more(0x7000);
  std::memcpy(more.data(), memory.data(), memory.size());
  memory = more;
  put(0x6000, kTop | 3);  // the first of the fourth level
  put(kContext, 0x6000 | 1);
  put(kContext + 8, 1U << 8 | 2);
  EXPECT_EQ(translate(), kAddress);
}

TEST_F(SimQemuVtd, PassThrough_ExpectTheAddressItself) {
  put(kContext, 2U << 2 | 1);
  EXPECT_EQ(translate(0x1'0000'0000), 0x1'0000'0000U);
}

TEST_F(SimQemuVtd, AnotherPage_ExpectAFault) { EXPECT_EQ(translate(kAddress + 0x1000), std::nullopt); }

TEST_F(SimQemuVtd, AnotherFunction_ExpectAFault) {
  EXPECT_EQ(translate(kAddress, source_id(4, 0, 1)), std::nullopt);
  EXPECT_EQ(translate(kAddress, source_id(3, 0, 0)), std::nullopt);
}

TEST_F(SimQemuVtd, APageToReadOnly_ExpectAFault) {
  put(kBottom + 8 * (kAddress >> 12 & 511), 0xFEA0'3000 | 1);
  EXPECT_EQ(translate(), std::nullopt);
}

TEST_F(SimQemuVtd, AnAddressBeyondItsWidth_ExpectAFault) {
  EXPECT_EQ(translate(kAddress | std::uint64_t{1} << 39), std::nullopt);
}

TEST_F(SimQemuVtd, TablesOutsideOfMemory_ExpectAFault) {
  put(kTop + 8 * (kAddress >> 30), 0x7FFF'F000 | 3);
  EXPECT_EQ(translate(), std::nullopt);
  EXPECT_EQ(VtdTables(memory, ~std::uint64_t{0}).translate_write(kCard, kAddress), std::nullopt);
}

}  // namespace
}  // namespace wherry::sim
