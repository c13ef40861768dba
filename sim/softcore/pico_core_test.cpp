// SPDX-License-Identifier: Apache-2.0
#include "sim/softcore/pico_core.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/memory/axi_memory.hpp"
#include "sim/memory/axi_mux.hpp"
#include "sim/memory/ddr4.hpp"
#include "sim/memory/traffic.hpp"

namespace wherry::sim::softcore {
namespace {

using namespace memory;

/// A DMA engine's stream and a soft core that share one DDR4 memory through the interconnect.
struct Card {
  explicit Card(const Load& load, const Ddr4Controller& controller = kCardController,
                const Ddr4Timing& timing = kDdr4_2400)
      : ddr4(controller, timing), bus(ddr4, content, 1), mux(bus, {0, 1}), stream(load) {}

  template <typename Core>
  void run(Core& core, unsigned cycles) {
    for (unsigned cycle = 0; cycle < cycles; ++cycle) {
      const std::array<AxiRequest, 2> requests{stream.request(), core.request()};
      const AxiAnswer first = mux.answer(0), second = mux.answer(1);
      mux.step(requests);
      stream.step(first);
      core.step(second);
    }
  }

  Ddr4 ddr4;
  Content content;
  AxiMemory bus;
  AxiMux mux;
  TrafficManager stream;
};

constexpr std::uint32_t kTested = 64 << 20;  ///< where the memory test works, away from the stream

TEST(PicoCore, MemoryTestBesideWrites_ExpectRoundsWithoutErrors) {
  Card card({.writes = true});
  PicoCore core(memory_test_firmware(kTested, 256, 4), {});
  card.run(core, 120'000);
  EXPECT_FALSE(core.trapped());
  EXPECT_GE(core.local(kReport), 2U) << "rounds";
  EXPECT_EQ(core.local(kReport + 4), 0U) << "wrong words";
  EXPECT_GE(core.counts().card_reads, 2U * 64);
  EXPECT_GE(core.counts().card_writes, 2U * 64);
  EXPECT_EQ(card.bus.violation(), "");
}

/// The firmware's comparison is real: it must count words that the stream overwrites.
TEST(PicoCore, MemoryTestWhereTheStreamWrites_ExpectErrors) {
  Card card({.writes = true, .region = 1 << 12});
  PicoCore core(memory_test_firmware(0, 1024, 4), {});
  card.run(core, 200'000);
  EXPECT_GE(core.local(kReport), 1U);
  EXPECT_GT(core.local(kReport + 4), 0U);
}

TEST(PicoCore, IdleAndNops_ExpectOnlyWhatTheyFetch) {
  Card quiet({});
  PicoCore idle(idle_firmware(), {});
  quiet.run(idle, 6'000);
  EXPECT_EQ(idle.counts().card_reads + idle.counts().card_writes, 0U);
  EXPECT_FALSE(idle.trapped());

  Card card({});
  const std::vector<std::uint32_t> nops = nop_firmware();
  card.content.load(0x1f00, {reinterpret_cast<const std::uint8_t*>(nops.data()), nops.size() * 4});
  PicoCore core(nops, {.code_on_card = true, .code_address = 0x1f00});
  card.run(core, 30'000);
  EXPECT_FALSE(core.trapped());
  EXPECT_EQ(core.counts().card_writes, 0U);
  EXPECT_GT(core.counts().card_reads, 500U);
}

/// A recorded trace, when replayed, must affect a stream as the recorded core did.
TEST(PicoCore, RecordedAndReplayed_ExpectTheSameLoad) {
  BusTrace trace;
  std::uint64_t live_bytes = 0, live_accesses = 0;
  {
    Card card({.writes = true}, kLitedramController, kLitedramTiming);
    PicoCore core(memory_test_firmware(kTested, 4096, 64), {});
    core.record(&trace);
    card.run(core, 90'000);
    live_bytes = card.stream.written_bytes();
    live_accesses = core.counts().card_reads + core.counts().card_writes;
  }
  ASSERT_GT(live_accesses, 100U);
  EXPECT_EQ(trace.accesses.size(), live_accesses);
  const Result<BusTrace> read_back = BusTrace::decode(trace.encode());
  ASSERT_TRUE(read_back.ok());
  Card card({.writes = true}, kLitedramController, kLitedramTiming);
  TracePlayer player(read_back.value(), 300'000'000, 0, std::uint64_t{1} << 31);
  card.run(player, 90'000);
  const auto played = static_cast<double>(player.reads() + player.writes());
  EXPECT_NEAR(played, static_cast<double>(live_accesses), 0.02 * static_cast<double>(live_accesses) + 2);
  EXPECT_NEAR(static_cast<double>(card.stream.written_bytes()) / static_cast<double>(live_bytes), 1.0, 0.02);
}

/// Paper 000: the soft core's program reduces the DMA engine's rate. Fetches are reads: they turn the bus round in a
/// stream of writes, but not in a stream of reads. The memory test writes as much as it reads, so it slows both.
TEST(PicoCore, FirmwareBesideAStream_ExpectFetchesCostWritesMoreAndTheMemoryTestBoth) {
  enum class Runs : std::uint8_t { kIdle, kFetches, kTest };
  const auto rate = [](bool writes, Runs what) {
    Card card({.reads = !writes, .writes = writes}, kLitedramController, kLitedramTiming);
    const bool fetches = what == Runs::kFetches;
    const std::vector<std::uint32_t> firmware = fetches               ? nop_firmware()
                                                : what == Runs::kTest ? memory_test_firmware(kTested, 1 << 20, 2044)
                                                                      : idle_firmware();
    if (fetches)
      card.content.load(kTested, {reinterpret_cast<const std::uint8_t*>(firmware.data()), firmware.size() * 4});
    PicoCore core(firmware, {.code_on_card = fetches, .code_address = kTested});
    card.run(core, 60'000);
    return static_cast<double>(card.stream.read_bytes() + card.stream.written_bytes());
  };
  const auto kept = [&rate](bool writes, Runs what) { return rate(writes, what) / rate(writes, Runs::kIdle); };
  EXPECT_GT(kept(false, Runs::kFetches), 0.8);
  EXPECT_LT(kept(true, Runs::kFetches), 0.65);
  EXPECT_LT(kept(false, Runs::kTest), 0.9);
  EXPECT_LT(kept(true, Runs::kTest), 0.9);
}

}  // namespace
}  // namespace wherry::sim::softcore
