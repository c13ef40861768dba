// SPDX-License-Identifier: Apache-2.0
// Tests the Verilated core with NIC models in the PCIe fabric: short forms of the measurements and soaks of
// bypass_rtl_bench.
#include "sim/bypass/rig.hpp"

#include <gtest/gtest.h>

#include "sim/bypass/echo.hpp"
#include "sim/bypass/soak.hpp"
#include "sim/bypass/stream_functions.hpp"

namespace wherry::sim {
namespace {

constexpr pcie::Time kSettle = 20 * pcie::kMicrosecond;

class RtlRig : public testing::TestWithParam<bool> {};

TEST_P(RtlRig, LineRate10GOf300Bytes_ExpectEveryFrameBackInOrder) {
  InPlaceEcho in_place;
  EchoStream stream;
  Rig rig({.in_place = GetParam()}, &in_place, GetParam() ? nullptr : &stream);
  ASSERT_TRUE(rig.ready) << rig.ready.message();
  rig.queue.run(kSettle);
  const nic::Source source(rig.queue, rig.meter, {.frames = 2000, .sizes = {300}, .start = rig.queue.now()});
  rig.queue.run();
  nic::Checker& checker = rig.meter.checker();
  EXPECT_EQ(checker.frames, 2000U);
  EXPECT_EQ(checker.wrong + checker.reordered + checker.missing, 0U);
  EXPECT_EQ(rig.nic.counters().tx_writebacks, 0U);
  EXPECT_EQ(rig.core_counter("tx_done"), 2000U);
  // This checks the simulation, not speed: frames arrive every 259 ns, so they must leave every 259 ns.
  EXPECT_NEAR(static_cast<double>(rig.meter.last_out() - rig.meter.first_out()), 1999.0 * nic::slot_time(300, 10'000),
              3.0 * nic::slot_time(300, 10'000));
}
INSTANTIATE_TEST_SUITE_P(Ways, RtlRig, testing::Bool(),
                         [](const auto& way) { return way.param ? "InPlace" : "Stream"; });

TEST(RtlRigSleep, IdleForASecond_ExpectClockStandsAndTrafficAfterwards) {
  InPlaceEcho in_place;
  Rig rig({}, &in_place, nullptr);
  ASSERT_TRUE(rig.ready);
  rig.queue.run(pcie::kMillisecond);
  const std::uint64_t cycles = rig.card.counters().cycles;
  EXPECT_TRUE(rig.card.asleep());
  rig.queue.run(pcie::kSecond);
  EXPECT_EQ(rig.card.counters().cycles, cycles);
  const nic::Source source(rig.queue, rig.meter, {.frames = 10, .start = rig.queue.now()});
  rig.queue.run();
  EXPECT_EQ(rig.meter.checker().frames, 10U);
  EXPECT_EQ(rig.meter.checker().wrong, 0U);
}

TEST(RtlRigGenerator, BothDirections_ExpectAllCheckedAndSent) {
  // The pair must run first, because frames before that are refused and counted.
  GeneratorStream generator({.frames = 1000, .sizes = {60, 300, 1514}, .start = pcie::kMillisecond});
  Rig rig({.in_place = false}, nullptr, &generator, false);
  ASSERT_TRUE(rig.ready);
  ASSERT_LT(rig.queue.now(), pcie::kMillisecond);
  const nic::Source source(rig.queue, rig.meter, {.frames = 1000, .sizes = {60, 300, 1514}, .start = rig.queue.now()});
  rig.queue.run();
  EXPECT_EQ(generator.received.frames, 1000U);
  EXPECT_EQ(generator.received.wrong + generator.received.reordered + generator.received.missing, 0U);
  EXPECT_EQ(rig.meter.checker().frames, 1000U);
  EXPECT_EQ(rig.meter.checker().wrong + rig.meter.checker().reordered + rig.meter.checker().missing, 0U);
}

class RtlSoak : public testing::TestWithParam<int> {};

TEST_P(RtlSoak, ReorderingAndTrouble_ExpectInIsOutPlusCountedAndTrafficAfterwards) {
  const auto trouble = static_cast<Trouble>(GetParam());
  std::uint64_t struck = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const SoakResult one = soak({.seed = seed, .frames = 150, .trouble = trouble});
    for (const std::string& sentence : one.wrong) ADD_FAILURE() << "seed " << seed << ": " << sentence;
    struck += one.struck;
  }
  const bool by_fault = trouble != Trouble::kNone && (trouble < Trouble::kNicRemoved || trouble == Trouble::kHostile);
  if (by_fault) {
    EXPECT_GT(struck, 0U) << "the trouble did not happen";
  }
}
INSTANTIATE_TEST_SUITE_P(Troubles, RtlSoak, testing::Range(0, static_cast<int>(Trouble::kCount)),
                         [](const auto& number) {
                           std::string name(name_of(static_cast<Trouble>(number.param)));
                           std::erase_if(name, [](char c) { return c == ' ' || c == '\''; });
                           return name;
                         });

/// A seed of the million-frame soak. If queues are stopped while frames in place wait in the core, the in-place mode
/// must not change.
TEST(RtlSoakSeed, StoppedWithFramesInPlaceWithin_ExpectRestAndTrafficAfterwards) {
  const SoakResult one = soak({.seed = 118, .frames = 5'263, .trouble = Trouble::kReadsRefused});
  EXPECT_EQ(one.wrong, std::vector<std::string>{});
  EXPECT_GT(one.counted, 0U);
}

}  // namespace
}  // namespace wherry::sim
