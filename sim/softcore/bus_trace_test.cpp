// SPDX-License-Identifier: Apache-2.0
#include "sim/softcore/bus_trace.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "sim/memory/axi_memory.hpp"
#include "sim/memory/bram.hpp"
#include "sim/softcore/assembler.hpp"
#include "sim/softcore/firmware.hpp"

namespace wherry::sim::softcore {
namespace {

BusTrace random_trace(std::uint64_t seed, unsigned count) {
  SplitMix64 random(seed);
  BusTrace trace;
  std::uint64_t cycle = 0;
  for (unsigned i = 0; i < count; ++i) {
    cycle += random.below(4) == 0 ? random.below(100'000) : random.below(30);
    const auto kind = static_cast<BusKind>(random.below(4));
    const bool line = kind == BusKind::kReadLine || kind == BusKind::kFetchLine;
    trace.accesses.push_back(
        {cycle, std::uint64_t{random.below(1 << 19)} * 32 + (line ? 0 : random.below(8) * 4), kind});
  }
  return trace;
}

TEST(BusTrace, EncodedAndDecoded_ExpectTheSame) {
  const BusTrace trace = random_trace(1, 5'000);
  const std::vector<std::uint8_t> bytes = trace.encode();
  EXPECT_LT(bytes.size(), 6 * trace.accesses.size());
  const Result<BusTrace> again = BusTrace::decode(bytes);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again.value().accesses, trace.accesses);
  EXPECT_EQ(again.value().clock_hz, trace.clock_hz);
}

/// Bytes written by hand, from the format in docs/design/card-memory.md: 100 MHz; a fetch of the line 0x40 in cycle 5,
/// a write to 0x3c 130 later, a read of 0x44 at once, a read of the line 0x60.
TEST(BusTrace, BytesByHand_ExpectTheirMeaning) {
  const std::vector<std::uint8_t> bytes{'W',  'B',  'T',  '2',  0x00, 0xe1, 0xf5, 0x05, 5,
                                        0x83, 0x01, 0x82, 0x01, 5,    0,    16,   1,    58};
  const Result<BusTrace> trace = BusTrace::decode(bytes);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace.value().clock_hz, 100'000'000U);
  const std::vector<BusAccess> expected{{5, 0x40, BusKind::kFetchLine},
                                        {135, 0x3c, BusKind::kWriteWord},
                                        {135, 0x44, BusKind::kReadWord},
                                        {136, 0x60, BusKind::kReadLine}};
  EXPECT_EQ(trace.value().accesses, expected);
  EXPECT_EQ(trace.value().encode(), bytes);
}

TEST(BusTrace, BrokenBytes_ExpectWhereAndWhy) {
  const auto why = [](std::vector<std::uint8_t> bytes) {
    const Result<BusTrace> trace = BusTrace::decode(bytes);
    return trace.ok() ? std::string() : trace.status().message();
  };
  EXPECT_EQ(why({}), "bus trace, byte 0: does not begin with WBT2 and a clock");
  EXPECT_EQ(why({'W', 'B', 'T', '1', 1, 0, 0, 0}), "bus trace, byte 0: does not begin with WBT2 and a clock");
  EXPECT_EQ(why({'W', 'B', 'T', '2', 0, 0, 0, 0}), "bus trace, byte 4: the clock is 0 Hz");
  EXPECT_EQ(why({'W', 'B', 'T', '2', 1, 0, 0, 0, 5}), "bus trace, byte 8: a number is cut short or too long");
  EXPECT_EQ(why({'W', 'B', 'T', '2', 1, 0, 0, 0, 0x80, 0}), "bus trace, byte 8: a number is cut short or too long");
  EXPECT_EQ(why({'W', 'B', 'T', '2', 1, 0, 0, 0, 5, 4}), "bus trace, byte 8: out of range");
  EXPECT_EQ(why({'W', 'B', 'T', '2', 1, 0, 0, 0, 5, 10}), "bus trace, byte 8: a line that begins within a line");
  // A trace that is read back must be one that would have been written.
  SplitMix64 random(2);
  const std::vector<std::uint8_t> good = random_trace(3, 200).encode();
  for (unsigned i = 0; i < 3'000; ++i) {
    std::vector<std::uint8_t> bytes = good;
    bytes.resize(random.below(static_cast<std::uint32_t>(bytes.size())) + 1);
    for (unsigned j = 0; j < 3; ++j)
      bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] = static_cast<std::uint8_t>(random());
    const Result<BusTrace> trace = BusTrace::decode(bytes);
    if (trace.ok()) {
      EXPECT_EQ(trace.value().encode(), bytes);
    }
  }
}

/// On a memory that answers at once, each access goes in its own cycle. Afterwards the trace begins again.
TEST(TracePlayer, TraceOnBram_ExpectItsCountsAndItsTime) {
  BusTrace trace;
  trace.clock_hz = 100'000'000;
  trace.accesses = {{10, 0, BusKind::kReadLine},
                    {40, 64, BusKind::kWriteWord},
                    {41, 128, BusKind::kWriteWord},
                    {500, 4, BusKind::kReadWord}};
  memory::Bram bram;
  memory::Content content;
  memory::AxiMemory bus(bram, content, 1, memory::kBramPort);
  TracePlayer player(trace, 250'000'000, 4096, 1 << 16);
  std::vector<std::uint64_t> asked;
  for (unsigned cycle = 0; cycle < 1'270; ++cycle) {
    const memory::AxiAnswer answer = bus.answer(0);
    const memory::AxiRequest request = player.request();
    if ((request.ar_valid && answer.ar_ready) || (request.aw_valid && answer.aw_ready)) asked.push_back(cycle);
    bus.step({&request, 1});
    player.step(answer);
  }
  EXPECT_EQ(player.reads(), 2U);
  EXPECT_EQ(player.writes(), 2U);
  ASSERT_EQ(asked.size(), 4U);
  EXPECT_EQ(asked[0], 25U);  // cycle 10 of 100 MHz
  EXPECT_EQ(asked[1], 100U);
  EXPECT_GT(asked[2], 103U);  // it waits for the one before
  EXPECT_EQ(asked[3], 1'250U);
}

TEST(TracePlayer, BegunWithin_ExpectTheRestThenTheWhole) {
  BusTrace trace;
  trace.clock_hz = 100'000'000;
  for (std::uint64_t i = 0; i < 10; ++i) trace.accesses.push_back({1'000 + 100 * i, 64 * i, BusKind::kFetchLine});
  memory::Bram bram;
  memory::Content content;
  memory::AxiMemory bus(bram, content, 1, memory::kBramPort);
  TracePlayer player(trace, 100'000'000, 0, 1 << 16, 7);
  std::vector<std::uint64_t> places;
  for (unsigned cycle = 0; cycle < 100 * 3 + 1'000 + 950; ++cycle) {
    const memory::AxiAnswer answer = bus.answer(0);
    const memory::AxiRequest request = player.request();
    if (request.ar_valid && answer.ar_ready) {
      places.push_back(request.ar.address / 64);
      EXPECT_EQ(request.ar.size, 5U);
    }
    bus.step({&request, 1});
    player.step(answer);
  }
  const std::vector<std::uint64_t> expected{7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(places, expected);
  EXPECT_EQ(player.rounds(), 2U);
  EXPECT_EQ(bus.violation(), "");
}

/// Words put together by hand from the RISC-V manual's formats.
TEST(Assembler, Instructions_ExpectTheirEncodings) {
  Assembler code;
  code.nop();
  code.load_immediate(x(5), 0x8000'0800);
  code.exclusive_or(x(8), x(7), x(9));
  code.store_word(x(8), x(7), 4);
  code.load_word(x(13), x(7));
  code.branch_if_equal(x(13), x(8), code.here() + 8);
  code.branch_if_below(x(7), x(6), 0);
  code.jump(0);
  const std::vector<std::uint32_t> expected{0x00000013, 0x800012b7, 0x80028293, 0x0093c433, 0x0083a223,
                                            0x0003a683, 0x00868463, 0xfe63e2e3, 0xfe1ff06f};
  EXPECT_EQ(code.words(), expected);
}

TEST(Firmware, MemoryTest_ExpectItFitsTheCoresOwnMemory) {
  EXPECT_LT(memory_test_firmware(0, 4096, 4).size() * 4, kReport);
  EXPECT_EQ(idle_firmware().size(), 2U);
}

}  // namespace
}  // namespace wherry::sim::softcore
