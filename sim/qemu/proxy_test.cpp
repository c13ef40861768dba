// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "sim/qemu/proxy_card.hpp"
#include "sim/qemu/proxy_message.hpp"

namespace wherry::sim {
namespace {

/// Messages made by hand: {command, 0, size, 0} and the body, in words of 32 bits.
Bytes words(std::initializer_list<std::uint32_t> values) {
  Writer writer;
  for (const std::uint32_t value : values) writer.put(value);
  return std::move(writer).take();
}

TEST(SimQemuProxyMessage, BarRead_ExpectItsFields) {
  const Bytes bytes = words({5, 0, 24, 0, 0xD000'1000, 0x1, 0, 0, 4, 1});
  const auto parsed = parse_proxy_message(bytes);
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->bytes, 40U);
  EXPECT_EQ((*parsed)->message.command, ProxyCommand::kBarRead);
  EXPECT_EQ((*parsed)->message.address, 0x1'D000'1000U);
  EXPECT_EQ((*parsed)->message.bytes, 4U);
}

TEST(SimQemuProxyMessage, BarWriteOfEightBytes_ExpectItsValue) {
  const auto parsed = parse_proxy_message(words({4, 0, 24, 0, 0x10, 0, 0x3322'1100, 0x7766'5544, 8, 1}));
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->message.value, 0x7766'5544'3322'1100U);
}

TEST(SimQemuProxyMessage, ConfigWrite_ExpectItsFields) {
  const auto parsed = parse_proxy_message(words({2, 0, 12, 0, 0x18, 0xFFFF'FFFF, 4}));
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->bytes, 28U);
  EXPECT_EQ((*parsed)->message.address, 0x18U);
  EXPECT_EQ((*parsed)->message.value, 0xFFFF'FFFFU);
}

TEST(SimQemuProxyMessage, NotAllThere_ExpectPatience) {
  const Bytes bytes = words({5, 0, 24, 0, 0xD000'1000, 0x1, 0, 0, 4, 1});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto parsed = parse_proxy_message(ByteView(bytes).first(size));
    ASSERT_TRUE(parsed) << size;
    EXPECT_FALSE(*parsed) << size;
  }
}

TEST(SimQemuProxyMessage, Nonsense_ExpectProtocolError) {
  const std::vector<Bytes> wrong{
      words({8, 0, 0, 0}),                     // no such command
      words({0xFFFF'FFFF, 0, 0, 0}),           // negative
      words({1, 0, 8, 0, 0, 0}),               // an answer
      words({5, 0, 23, 0, 0, 0, 0, 0, 4, 1}),  // other sizes
      words({7, 0, 8, 0, 0, 0}),
      words({5, 0, 24, 1, 0, 0, 0, 0, 4, 1}),  // beyond 4 GiB
      words({5, 0, 24, 0, 0, 0, 0, 0, 3, 1}),  // three bytes
      words({5, 0, 24, 0, 0, 0, 0, 0, 0, 1}),  // none
      words({3, 0, 12, 0, 4093, 0, 4}),        // behind the last register
      words({3, 0, 12, 0, 0xFFFF'FFFF, 0, 4}),
      words({2, 0, 12, 0, 0, 0, 0xFFFF'FFFF}),
  };
  for (std::size_t i = 0; i < wrong.size(); ++i)
    EXPECT_EQ(parse_proxy_message(wrong[i]).status().code(), StatusCode::kProtocol) << i;
}

TEST(SimQemuProxyMessage, Answer_ExpectEightBytesBehindTheHeader) {
  EXPECT_EQ(proxy_answer(0x1'0000'0002), words({1, 0, 8, 0, 2, 1}));
}

/// Records writes. Reads return offsets.
struct Target final : DmaTarget {
  std::vector<std::pair<std::uint32_t, std::vector<std::byte>>> written;
  void write(std::uint32_t offset, std::span<const std::byte> data) override {
    written.emplace_back(offset, std::vector(data.begin(), data.end()));
  }
  void read(std::uint32_t offset, std::span<std::byte> data) override {
    std::uint64_t value = 0x1111'1111'0000'0000U | offset;
    std::memcpy(data.data(), &value, data.size());
  }
  std::optional<TailWrite> next_tail() override { return std::nullopt; }
  void tick() override {}
};

class SimQemuProxyCard : public ::testing::Test {
 protected:
  std::uint64_t config(std::uint64_t at, std::uint32_t bytes = 4) {
    return *card.handle({.command = ProxyCommand::kConfigRead, .address = at, .bytes = bytes});
  }
  void set_config(std::uint64_t at, std::uint64_t value, std::uint32_t bytes = 4) {
    EXPECT_EQ(card.handle({.command = ProxyCommand::kConfigWrite, .address = at, .value = value, .bytes = bytes}), 0U);
  }
  Target target;
  ProxyCard card{target};
};

TEST_F(SimQemuProxyCard, Identity_ExpectItCannotBeWritten) {
  EXPECT_EQ(config(0), 0x9038'10EEU);
  set_config(0, 0);
  EXPECT_EQ(config(0), 0x9038'10EEU);
  EXPECT_EQ(config(0xA, 2), 0x1200U);
}

TEST_F(SimQemuProxyCard, Sizing_ExpectOneBarOf8MiB) {
  for (std::uint64_t bar = 0; bar < 7; ++bar) {  // as QEMU asks
    set_config(0x10 + 4 * bar, 0xFFFF'FFFF);
    EXPECT_EQ(config(0x10 + 4 * bar), bar == 2 ? 0xFF80'0000U : 0U) << bar;
  }
  set_config(0x18, 0xD080'0000);
  EXPECT_EQ(config(0x18), 0xD080'0000U);
  set_config(0x1B, 0xC0, 1);
  EXPECT_EQ(config(0x18), 0xC080'0000U);
}

TEST_F(SimQemuProxyCard, AccessesToTheBar_ExpectOffsets) {
  set_config(0x18, 0xD080'0000);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kBarRead, .address = 0xD0C0'0004, .bytes = 4}), 0x40'0004U);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kBarRead, .address = 0xD0FF'FFF8, .bytes = 8}),
            0x1111'1111'007F'FFF8U);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kBarWrite, .address = 0xD080'0003, .value = 0xAB, .bytes = 1}), 0U);
  ASSERT_EQ(target.written.size(), 1U);
  EXPECT_EQ(target.written[0].first, 3U);
  EXPECT_EQ(target.written[0].second, std::vector{std::byte{0xAB}});
  EXPECT_EQ(card.strays(), 0U);
}

TEST_F(SimQemuProxyCard, AccessesBesideTheBar_ExpectCounted) {
  set_config(0x18, 0xD080'0000);
  for (const std::uint64_t address : {0xD07F'FFFCULL, 0xD0FF'FFFDULL, 0xD100'0000ULL, ~0ULL - 3}) {
    EXPECT_EQ(card.handle({.command = ProxyCommand::kBarRead, .address = address, .bytes = 4}), 0U);
    EXPECT_EQ(card.handle({.command = ProxyCommand::kBarWrite, .address = address, .value = 1, .bytes = 4}), 0U);
  }
  EXPECT_EQ(card.strays(), 8U);
  EXPECT_TRUE(target.written.empty());
}

TEST_F(SimQemuProxyCard, Reset_ExpectNoAddressAndNoMastering) {
  set_config(0x18, 0xD080'0000);
  set_config(0x04, 0x0006, 2);
  EXPECT_TRUE(card.bus_master());
  EXPECT_EQ(card.handle({.command = ProxyCommand::kReset}), 0U);
  EXPECT_FALSE(card.bus_master());
  EXPECT_EQ(config(0x04, 2), 0U);
  EXPECT_EQ(config(0x18), 0U);
  EXPECT_EQ(card.resets(), 1U);
}

struct Registers final : RegisterTarget {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> written;
  int resets = 0;
  std::uint32_t read_register(std::uint32_t offset) override { return 0x2222'0000U | offset; }
  void write_register(std::uint32_t offset, std::uint32_t value) override { written.emplace_back(offset, value); }
  void reset() override { ++resets; }
};

class SimQemuProxyCardWithRegisters : public ::testing::Test {
 protected:
  std::uint64_t config(std::uint64_t at) {
    return *card.handle({.command = ProxyCommand::kConfigRead, .address = at, .bytes = 4});
  }
  void set_config(std::uint64_t at, std::uint64_t value) {
    (void)card.handle({.command = ProxyCommand::kConfigWrite, .address = at, .value = value, .bytes = 4});
  }
  Target target;
  Registers registers;
  ProxyCard card{target, registers};
};

TEST_F(SimQemuProxyCardWithRegisters, SizingBeforeAReset_ExpectTwoBarsOf32Bits) {
  for (std::uint64_t bar = 0; bar < 6; ++bar) {
    set_config(0x10 + 4 * bar, 0xFFFF'FFFF);
    EXPECT_EQ(config(0x10 + 4 * bar), bar == 0 ? 0xFFFF'0000U : bar == 2 ? 0xFF80'0000U : 0U) << bar;
  }
}

TEST_F(SimQemuProxyCardWithRegisters, SizingAfterAReset_ExpectTheWindowWith64Bits) {
  (void)card.handle({.command = ProxyCommand::kReset});
  EXPECT_EQ(registers.resets, 1);
  for (std::uint64_t bar = 0; bar < 6; ++bar) set_config(0x10 + 4 * bar, 0xFFFF'FFFF);
  EXPECT_EQ(config(0x10), 0xFFFF'0000U);
  EXPECT_EQ(config(0x14), 0U);
  EXPECT_EQ(config(0x18), 0xFF80'0004U);
  EXPECT_EQ(config(0x1C), 0xFFFF'FFFFU);
  EXPECT_EQ(config(0x20), 0U);
}

TEST_F(SimQemuProxyCardWithRegisters, AccessesToBothBars_ExpectEachAtItsTarget) {
  (void)card.handle({.command = ProxyCommand::kReset});
  set_config(0x10, 0xFE10'0000);
  set_config(0x18, 0xFD80'0000);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kBarRead, .address = 0xFE10'0130, .bytes = 4}), 0x2222'0130U);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kBarWrite, .address = 0xFE10'0010, .value = 7, .bytes = 4}), 0U);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kBarRead, .address = 0xFDC0'0004, .bytes = 4}), 0x40'0004U);
  EXPECT_EQ(registers.written, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0x10, 7}}));
  EXPECT_EQ(card.strays(), 0U);
}

TEST_F(SimQemuProxyCardWithRegisters, RegistersByOtherThanFourBytes_ExpectCounted) {
  (void)card.handle({.command = ProxyCommand::kReset});
  set_config(0x10, 0xFE10'0000);
  set_config(0x18, 0xFD80'0000);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kBarRead, .address = 0xFE10'0000, .bytes = 8}), 0U);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kBarWrite, .address = 0xFE10'0002, .value = 1, .bytes = 4}), 0U);
  EXPECT_EQ(card.strays(), 2U);
  EXPECT_TRUE(registers.written.empty());
}

TEST_F(SimQemuProxyCard, WhatWantsNoAnswer_ExpectNone) {
  EXPECT_EQ(card.handle({.command = ProxyCommand::kSyncMemory}), std::nullopt);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kInterrupts}), std::nullopt);
  EXPECT_EQ(card.handle({.command = ProxyCommand::kReset}), 0U);
}

}  // namespace
}  // namespace wherry::sim
