// SPDX-License-Identifier: Apache-2.0
// Tests of the DMA engine's data part, Verilated. The rig checks every byte, independently of how the engine moves it.
#include "sim/dma/data_rig.hpp"

#include <gtest/gtest.h>

#include "sim/dma/rate.hpp"
#include "sim/dma/soak.hpp"

namespace wherry::sim::dma {
namespace {

constexpr std::uint64_t kLimit = 60'000;  // cycles
constexpr std::uint64_t kSource = 0x70'0000'0000;

/// Runs until all turns of a way are answered.
void run(DataRig& rig, Way way) {
  for (std::uint64_t i = 0; i < kLimit && rig.open(way) != 0 && rig.error().empty(); ++i) rig.cycle();
  ASSERT_EQ(rig.error(), "");
  ASSERT_EQ(rig.open(way), 0U);
}

Turn turn_of(DataRig& rig, Way way, std::uint32_t bytes, std::uint32_t host_off, std::uint32_t card_off) {
  if (way == Way::kToCard)
    return {.host = kSource + host_off, .card = rig.card_memory().base() + card_off, .bytes = bytes};
  return {.host = rig.host_memory().base() + host_off, .card = kSource + card_off, .bytes = bytes};
}

TEST(DmaData, Move_PairsOfAlignments_ExpectEveryByte) {
  DataRig rig({});
  for (const Way way : {Way::kToCard, Way::kToHost}) {
    std::uint32_t place = 0;
    for (const std::uint32_t bytes : {1U, 3U, 64U, 200U, 4096U}) {
      for (std::uint32_t host = 0; host < 64; host += 9) {
        for (std::uint32_t card = 0; card < 64; card += 7) {
          rig.post(way, turn_of(rig, way, bytes, place + host, place + card));
          place += 4096 + 64;
          if (rig.open(way) > 32) run(rig, way);
        }
      }
      place = place % 4096;
      run(rig, way);
    }
    for (const Done& done : rig.done(way)) EXPECT_EQ(done.error, Error::kNone);
  }
}

TEST(DmaData, Move_4KiBAligned_ExpectOneBurstOf64BeatsOnceAllIsThere) {
  RigOptions options;
  options.mrrs = 5;
  DataRig rig(options);
  rig.post(Way::kToCard, turn_of(rig, Way::kToCard, kTurnBytes, 0, 0));
  run(rig, Way::kToCard);
  EXPECT_EQ(rig.bursts, 1U);
  EXPECT_TRUE(rig.longest_burst_is(64));
}

TEST(DmaData, CardStandsStill_ExpectNothingLostAndNoReadBeyondTheRing) {
  RigOptions options;
  options.link.rtt_ns = 100;
  DataRig rig(options);
  rig.freeze_card(true);
  for (std::uint32_t i = 0; i < 30; ++i)
    rig.post(Way::kToCard, turn_of(rig, Way::kToCard, kTurnBytes, i * 4096, i * 4096));
  for (std::uint32_t i = 0; i < 20'000; ++i) rig.cycle();
  ASSERT_EQ(rig.error(), "");
  // 512 lines are 8 turns, of which some have moved on to the registers before the card.
  EXPECT_LE(rig.link().reads * 512, std::uint64_t{9} * kTurnBytes);
  EXPECT_EQ(rig.open(Way::kToCard), 30U);
  rig.freeze_card(false);
  run(rig, Way::kToCard);
}

TEST(DmaData, PlaceIsReserved_ExpectNoReadBeyondTheRestAndTheSameRate) {
  for (const unsigned reserve : {0U, 128U, 255U}) {
    RigOptions options;
    options.reserve = reserve;
    DataRig rig(options);
    rig.freeze_card(true);
    for (std::uint32_t i = 0; i < 30; ++i)
      rig.post(Way::kToCard, turn_of(rig, Way::kToCard, kTurnBytes, i * 4096, i * 4096));
    for (std::uint32_t i = 0; i < 20'000; ++i) rig.cycle();
    // 512 lines of 64 bytes. A read needs 9 free lines (8 and one), and some lines moved on to the card's port.
    const std::uint64_t asked = rig.link().reads * 512, lines = 512 - reserve;
    EXPECT_LE(asked, lines * 64 + 4096) << reserve;
    EXPECT_GE(asked, (lines - 9) * 64 - 511) << reserve;
    rig.freeze_card(false);
    run(rig, Way::kToCard);
    // 24 KiB are more than 14.6 GB/s times 0.9 us, the bytes in flight.
    if (reserve == 255) continue;
    const RateResult found = measure({.bytes = 4096, .depth = 16, .transfers = 300, .rig = options});
    EXPECT_EQ(found.error, "");
    EXPECT_GE(found.share, 0.99) << reserve;
  }
}

TEST(DmaData, HostIsSilent_ExpectTimeOutsAndNoByteWritten) {
  RigOptions options;
  options.timeout = 4;
  DataRig rig(options);
  rig.link().silence(true);
  for (std::uint32_t i = 0; i < 4; ++i) rig.post(Way::kToCard, turn_of(rig, Way::kToCard, 2048, i * 4096, i * 4096));
  run(rig, Way::kToCard);
  for (const Done& done : rig.done(Way::kToCard)) {
    EXPECT_EQ(done.error, Error::kTimeout);
    EXPECT_EQ(done.bytes, 0U);
  }
  EXPECT_EQ(rig.timed_out, 16U);
  rig.done(Way::kToCard).clear();
  rig.link().silence(false);
  for (std::uint32_t i = 0; i < 100; ++i) rig.post(Way::kToCard, turn_of(rig, Way::kToCard, 2048, i * 4096, i * 4096));
  run(rig, Way::kToCard);
  for (const Done& done : rig.done(Way::kToCard)) EXPECT_EQ(done.error, Error::kNone);
}

TEST(DmaData, Reset_AnswersStillComing_ExpectAllAbsorbedAndNewTurnsRight) {
  RigOptions options;
  options.link.rtt_ns = 20'000;  // far longer than the reset
  options.timeout = 100;
  DataRig rig(options);
  for (std::uint32_t i = 0; i < 20; ++i)
    rig.post(Way::kToCard, turn_of(rig, Way::kToCard, kTurnBytes, i * 4096, i * 4096));
  for (std::uint32_t i = 0; i < 500; ++i) rig.cycle();
  rig.stop(true);
  run(rig, Way::kToCard);
  EXPECT_LT(rig.now(), 2'500U);  // nothing was awaited: a round trip has 5,000 cycles
  for (const Done& done : rig.done(Way::kToCard)) EXPECT_EQ(done.error, Error::kReset);
  rig.done(Way::kToCard).clear();
  rig.stop(false);
  // The same tags with other bytes: late completions of the ended requests come first.
  for (std::uint32_t i = 0; i < 40; ++i)
    rig.post(Way::kToCard, turn_of(rig, Way::kToCard, kTurnBytes, (100 + i) * 4096 + 17, i * 4096));
  run(rig, Way::kToCard);
  EXPECT_EQ(rig.done(Way::kToCard).size(), 40U);
  for (const Done& done : rig.done(Way::kToCard)) EXPECT_EQ(done.error, Error::kNone);
  EXPECT_EQ(rig.unexpected, 0U);
}

TEST(DmaData, Soak_RandomWorlds_ExpectNothingWrong) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SoakResult result = soak(seed, 400'000, seed % 4 != 0);
    EXPECT_EQ(result.error, "");
    EXPECT_GE(result.bytes, 400'000U);
  }
}

// In simulated time, so the same on every machine. The targets: 0.98, 0.90, 100 M/s.
TEST(DmaData, Rate_Depth16At4KiB_ExpectTheLinksBound) {
  for (const Way way : {Way::kToCard, Way::kToHost}) {
    const RateResult large = measure({.way = way, .bytes = 4096, .depth = 16, .transfers = 300, .rig = {}});
    EXPECT_EQ(large.error, "");
    EXPECT_GE(large.share, 0.98);
    EXPECT_LE(large.share, 1.01);
    const RateResult small = measure({.way = way, .bytes = 64, .depth = 480, .transfers = 3000, .rig = {}});
    EXPECT_EQ(small.error, "");
    EXPECT_GE(small.millions, 100);
  }
}

}  // namespace
}  // namespace wherry::sim::dma
