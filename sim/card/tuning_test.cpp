// SPDX-License-Identifier: Apache-2.0
// The driver's measures for high rates: doorbells in time, and no more read-ahead than helps.
#include <gtest/gtest.h>

#include "dma/generated/registers.hpp"
#include "sim/card/testing.hpp"

namespace wherry::sim::card {
namespace {

using namespace testing_support;
namespace reg = wherry::dma::registers;

constexpr std::uint32_t kBytes = 4096;

/// Posts a transfer of 4 KiB from or to the first 128 KiB.
void post(Bench& bench, Ring& ring, std::uint64_t number) {
  const std::uint64_t place = number % 32 * kBytes;
  ASSERT_TRUE(ring.post({.host = bench.memory.iova + place, .card = place, .bytes = kBytes, .cookie = number}).ok());
}

TEST(SimCardTuning, RingInTimeAtDepth16_ExpectFewDoorbellsAndEveryTransferOnce) {
  constexpr std::uint64_t kTransfers = 200, kDepth = 16;
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    Bench bench({}, {.ring_bits = 4});
    Ring& ring = bench.ring(direction);
    const std::uint64_t before = bench.rig.card.counters().bells;
    std::uint64_t posted = 0, told = 0;
    const auto end = bench.rig.device.now() + 5ms;
    while (told != kTransfers && bench.rig.device.now() < end) {
      for (; posted != kTransfers && posted - told < kDepth; ++posted) {
        post(bench, ring, posted);
        ring.ring_bell_in_time();
      }
      std::array<Done, 3> done;
      const std::size_t count = ring.poll(done);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(done[i].error, driver::Error::kNone);
        ASSERT_EQ(done[i].cookie, told++);
      }
      bench.rig.device.pause(20ns);
    }
    EXPECT_EQ(told, kTransfers);
    // Two to four transfers share a doorbell, except at the beginning and at the end.
    EXPECT_LT(bench.rig.card.counters().bells - before, kTransfers * 2 / 3);
  }
}

TEST(SimCardTuning, LeaveADoorbellAndPollOnly_ExpectItToBeRungInTime) {
  Bench bench;
  Ring& ring = bench.ring(Direction::kToCard);
  bench.rig.device.pause(10us);  // the registers of all rings were written: doorbells come behind
  const auto bells = [&] { return bench.rig.card.counters().bells; };
  const std::uint64_t before = bells();
  for (std::uint64_t i = 0; i < 20; ++i) post(bench, ring, i);
  ring.ring_bell();
  post(bench, ring, 20);
  ring.ring_bell_in_time();
  bench.rig.device.pause(1us);
  EXPECT_EQ(bells() - before, 1U);  // the engine has plenty
  std::array<Done, 32> done;
  std::uint64_t told = 0;
  for (const auto end = bench.rig.device.now() + 1ms; told != 21 && bench.rig.device.now() < end;) {
    told += ring.poll(done);
    bench.rig.device.pause(50ns);
  }
  EXPECT_EQ(told, 21U);
  EXPECT_EQ(bells() - before, 2U);
}

TEST(SimCardTuning, LeaveADoorbellAndSleep_ExpectItToBeRungAtOnce) {
  Bench bench;
  Ring& ring = bench.ring(Direction::kToCard);
  ring.moderate(1, 0);
  for (std::uint64_t i = 0; i < 20; ++i) post(bench, ring, i);
  ring.ring_bell();
  // Only this one has an interrupt, so without its doorbell nothing would wake the driver.
  ASSERT_TRUE(ring.post({.host = bench.memory.iova, .card = 0, .bytes = kBytes, .cookie = 20, .interrupt = true}).ok());
  ring.ring_bell_in_time();
  std::array<Done, 32> done;
  std::uint64_t told = 0;
  for (int i = 0; i < 30 && told != 21; ++i) {
    ASSERT_TRUE(ring.wait(1ms, true));
    told += ring.poll(done);
  }
  EXPECT_EQ(told, 21U);
}

TEST(SimCardTuning, LeaveADoorbellAndRecover_ExpectTheTransferVoid) {
  Bench bench;
  Ring& ring = bench.ring(Direction::kToHost);
  for (std::uint64_t i = 0; i < 20; ++i) post(bench, ring, i);
  ring.ring_bell();
  post(bench, ring, 20);
  ring.ring_bell_in_time();
  ASSERT_TRUE(ring.recover().ok());
  std::array<Done, 32> done;
  ASSERT_EQ(ring.poll(done), 21U);
  EXPECT_EQ(done[20].error, driver::Error::kReset);
  post(bench, ring, 21);
  ring.ring_bell_in_time();  // nothing is under way: at once
  EXPECT_EQ(bench.next(ring).cookie, 21U);
}

TEST(SimCardTuning, MeasureARead_ExpectTheRoundTripOfTheFabric) {
  for (const std::int64_t round_trip : {800, 2000}) {
    RigOptions options{.with_switch = false};
    set_round_trip(options, round_trip * pcie::kNanosecond);
    Bench bench(options);
    const auto found = bench.engine->measure_read();
    ASSERT_TRUE(found) << found.status().to_string();
    // In the engine a fetched descriptor takes some cycles more than one in a doorbell; the driver polls every 10 ns.
    EXPECT_GE(found->count(), round_trip - 10);
    EXPECT_LE(found->count(), round_trip + 80);
    EXPECT_EQ(bench.move(Direction::kToCard, 4096, 4096, 5000).error, driver::Error::kNone);
  }
}

TEST(SimCardTuning, Tune_ExpectPlaceLeftFreeWhereTheRoundTripIsShortAndAlsoAfterAReset) {
  for (const auto& [round_trip, least, most] : {std::tuple{800, 150U, 255U}, {2000, 0U, 0U}}) {
    RigOptions options{.with_switch = false};
    set_round_trip(options, round_trip * pcie::kNanosecond);
    Bench bench(options);
    const auto reserve = [&] { return bench.rig.device.read32(driver::kRegisterBar, reg::kReadReserveOffset); };
    EXPECT_EQ(reserve(), 0U);
    ASSERT_TRUE(bench.engine->tune().ok());
    const std::uint32_t found = reserve();
    EXPECT_GE(found, least) << round_trip;
    EXPECT_LE(found, most) << round_trip;
    ASSERT_TRUE(bench.engine->reset().ok());
    EXPECT_EQ(reserve(), found);
    EXPECT_EQ(bench.move(Direction::kToCard, 4096, 4096, 60'000).error, driver::Error::kNone);
  }
}

TEST(SimCardTuning, MeasureAReadBesideTransfers_ExpectARefusal) {
  Bench bench;
  post(bench, bench.ring(Direction::kToCard), 0);
  EXPECT_EQ(bench.engine->measure_read().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(bench.engine->tune().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace wherry::sim::card
