// SPDX-License-Identifier: Apache-2.0
#include "sim/softcore/vex_core.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "sim/memory/axi_memory.hpp"
#include "sim/memory/ddr4.hpp"
#include "sim/softcore/assembler.hpp"

namespace wherry::sim::softcore {
namespace {

constexpr std::uint64_t kBase = 1 << 30;  ///< of the DRAM in the card's memory
constexpr Register kAddress = x(5), kValue = x(6), kDevice = x(7), kEnd = x(8);

/// A core before DDR4.
struct Board {
  explicit Board(const Assembler& code) : ddr4(memory::kCardController, memory::kDdr4_2400), bus(ddr4, content, 1) {
    const std::vector<std::uint32_t>& words = code.words();
    content.load(kBase, {reinterpret_cast<const std::uint8_t*>(words.data()), words.size() * 4});
    core.record(&trace);
  }
  void run(std::uint64_t core_cycles) {
    while (core.off() == 0 && core.counts().cycles < core_cycles) {
      const memory::AxiAnswer answer = bus.answer(0);
      bus.step({&core.request(), 1});
      core.step(answer);
    }
  }
  [[nodiscard]] std::uint32_t word(std::uint32_t address) const {
    std::array<std::uint8_t, 4> bytes{};
    content.dump(kBase + address, bytes);
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::uint64_t count(BusKind kind) const {
    std::uint64_t count = 0;
    for (const BusAccess& access : trace.accesses) count += access.kind == kind ? 1 : 0;
    return count;
  }

  memory::Ddr4 ddr4;
  memory::Content content;
  memory::AxiMemory bus;
  VexCore core{kBase};
  BusTrace trace;
};

void say(Assembler& code, char letter) {
  code.load_immediate(kValue, static_cast<std::uint32_t>(letter));
  code.store_word(kValue, kDevice, kConsole);
}

void switch_off(Assembler& code, std::uint32_t value) {
  code.load_immediate(kValue, value);
  code.store_word(kValue, kDevice, kPower);
  code.jump(code.here());
}

/// 64 words are written, and read back twice. Writes go through, eight words are a line, and the cache keeps the lines.
TEST(VexCore, WritesAndReadsBack_ExpectItsWordsAndTheAccessesOfAWriteThroughCache) {
  constexpr std::uint32_t kData = 0x10'0000, kWords = 64;
  Assembler code;
  code.load_immediate(kDevice, kDevices);
  code.load_immediate(kAddress, kDramBase + kData);
  code.load_immediate(kEnd, kDramBase + kData + kWords * 4);
  const std::uint32_t write = code.here();
  code.store_word(kAddress, kAddress);
  code.add_immediate(kAddress, kAddress, 4);
  code.branch_if_below(kAddress, kEnd, write);
  for (unsigned round = 0; round < 2; ++round) {
    code.load_immediate(kAddress, kDramBase + kData);
    const std::uint32_t read = code.here();
    code.load_word(kValue, kAddress);
    code.exclusive_or(kValue, kValue, kAddress);
    code.branch_if_equal(kValue, kZero, code.here() + 8);
    code.jump(0);  // wrong: it begins again, and never ends
    code.add_immediate(kAddress, kAddress, 4);
    code.branch_if_below(kAddress, kEnd, read);
  }
  say(code, 'o');
  say(code, 'k');
  switch_off(code, 1);
  Board board(code);
  board.run(100'000);
  EXPECT_EQ(board.core.off(), 1U);
  EXPECT_EQ(board.core.console(), "ok");
  EXPECT_EQ(board.core.fault(), "");
  EXPECT_EQ(board.bus.violation(), "");
  for (std::uint32_t i = 0; i < kWords; ++i) EXPECT_EQ(board.word(kData + 4 * i), kDramBase + kData + 4 * i);
  const VexCounts& counts = board.core.counts();
  EXPECT_EQ(counts.written_words, kWords);
  EXPECT_EQ(counts.written_bytes, 4U * kWords);
  EXPECT_EQ(counts.read_lines, kWords * 4 / kLineBytes);
  EXPECT_EQ(counts.read_words, 0U);
  EXPECT_GE(counts.fetched_lines, code.words().size() * 4 / kLineBytes);
  EXPECT_LE(counts.fetched_lines, code.words().size() * 4 / kLineBytes + 3);
  EXPECT_EQ(board.count(BusKind::kWriteWord), counts.written_words);
  EXPECT_EQ(board.count(BusKind::kReadLine), counts.read_lines);
  EXPECT_EQ(board.count(BusKind::kFetchLine), counts.fetched_lines);
  const BusAccess& first = board.trace.accesses.front();
  EXPECT_EQ(first.address, 0U);
  EXPECT_EQ(first.kind, BusKind::kFetchLine);
  const Result<BusTrace> again = BusTrace::decode(board.trace.encode());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->accesses, board.trace.accesses);
}

/// The time is in microseconds of 100 cycles each. The core waits for a time that it computes.
TEST(VexCore, WaitsForATime_ExpectSoManyCycles) {
  Assembler code;
  code.load_immediate(kDevice, kDevices);
  code.load_immediate(kEnd, 200);
  const std::uint32_t wait = code.here();
  code.load_word(kValue, kDevice);
  code.branch_if_below(kValue, kEnd, wait);
  switch_off(code, 7);
  Board board(code);
  board.run(100'000);
  EXPECT_EQ(board.core.off(), 7U);
  EXPECT_GE(board.core.counts().cycles, 200U * 100);
  EXPECT_LE(board.core.counts().cycles, 200U * 100 + 200);
}

TEST(VexCore, AsksWhereNothingIs_ExpectAFault) {
  Assembler code;
  code.load_immediate(kDevice, kDevices);
  code.load_immediate(kAddress, kDramBase + kDramBytes);
  code.load_word(kValue, kAddress);
  switch_off(code, 1);
  Board board(code);
  board.run(10'000);
  EXPECT_NE(board.core.fault().find("nothing is at 0x42000000"), std::string::npos) << board.core.fault();
}

}  // namespace
}  // namespace wherry::sim::softcore
