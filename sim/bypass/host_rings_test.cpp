// SPDX-License-Identifier: Apache-2.0
// Tests the Verilated core and DMA engine with rings in the host's memory: no traffic between NIC and card.
#include <gtest/gtest.h>

#include "sim/bypass/echo.hpp"
#include "sim/bypass/host_rig.hpp"
#include "sim/bypass/stream_functions.hpp"

namespace wherry::sim {
namespace {

constexpr pcie::Time kSettle = 20 * pcie::kMicrosecond, kQuiet = 200 * pcie::kMicrosecond;

void expect_balance(HostRig& rig) {
  EXPECT_EQ(rig.core_counter("rx_in"), rig.core_counter("rx_frames") + rig.core_counter("rx_error") +
                                           rig.core_counter("rx_size") + rig.core_counter("rx_stopped"));
  EXPECT_EQ(rig.core_counter("tx_posted"), rig.core_counter("tx_done") + rig.core_counter("tx_stopped"));
  for (const char* name : {"rx_unexpected", "rx_stray", "tx_unexpected", "outside_writes", "outside_reads"})
    EXPECT_EQ(rig.core_counter(name), 0U) << name;
  EXPECT_EQ(rig.card.counters().reads_refused + rig.card.counters().writes_refused, 0U);
}

struct Way {
  bool in_place = true;
  std::string_view nic = "ixgbe";
  pcie::PeerToPeer peer = pcie::PeerToPeer::kRefused;
  std::uint32_t pauses = 0;
  bool reorders = false;
};

class HostRingsWays : public testing::TestWithParam<Way> {};

TEST_P(HostRingsWays, FramesOfAllSizes_ExpectEachBackWholeAndInOrderAndNothingBetweenPeers) {
  const Way& way = GetParam();
  InPlaceEcho in_place;
  EchoStream stream;
  HostRigOptions options{.nic = way.nic, .peer_to_peer = way.peer, .in_place = way.in_place, .pauses = way.pauses};
  if (way.nic != "ixgbe") options.nic_link = {.generation = 3, .lanes = 8};
  if (way.reorders) options.reordering = {.per_mille = 200};
  HostRig rig(options, &in_place, way.in_place ? nullptr : &stream);
  ASSERT_TRUE(rig.ready) << rig.ready.message();
  rig.run_until(rig.queue.now() + kSettle);
  // This rate is one that the slowest of these ways carries, so no frame may be lost.
  const nic::Source source(
      rig.queue, rig.meter,
      {.frames = 140, .sizes = {60, 64, 300, 1514, 61, 127, 9000}, .load_per_mille = 250, .start = rig.queue.now()});
  while (!source.finished() && rig.health) rig.run_until(rig.queue.now() + kSettle);
  rig.run_dry(kQuiet);
  ASSERT_TRUE(rig.health) << rig.health.message();
  nic::Checker& checker = rig.meter.checker();
  EXPECT_EQ(checker.frames, 140U);
  EXPECT_EQ(checker.wrong + checker.reordered + checker.missing, 0U);
  EXPECT_EQ(rig.core_counter("tx_done"), 140U);
  EXPECT_EQ(rig.nic.counters().rx_dropped_all() + rig.nic.counters().tx_dropped_all(), 0U);
  EXPECT_EQ(rig.fabric.counters().peer_requests + rig.fabric.counters().peer_refused +
                rig.fabric.counters().peer_reads_vanished,
            0U);
  expect_balance(rig);
}

INSTANTIATE_TEST_SUITE_P(Ways, HostRingsWays,
                         testing::Values(Way{.in_place = true}, Way{.in_place = false},
                                         Way{.in_place = true, .nic = "igb"}, Way{.in_place = true, .nic = "e1000e"},
                                         Way{.in_place = false, .nic = "i40e"},
                                         Way{.in_place = true, .nic = "ice", .peer = pcie::PeerToPeer::kReadsVanish},
                                         Way{.in_place = true, .pauses = 200'000, .reorders = true},
                                         Way{.in_place = false, .pauses = 200'000, .reorders = true}));

TEST(HostRings, LineRateOf64Bytes_ExpectLossesCountedAtTheNicAndNoFrameWrong) {
  // The rate exceeds what host and engine carry: the NIC drops frames that find no descriptor.
  InPlaceEcho in_place;
  HostRig rig({}, &in_place, nullptr);
  ASSERT_TRUE(rig.ready) << rig.ready.message();
  rig.run_until(rig.queue.now() + kSettle);
  const nic::Source source(rig.queue, rig.meter, {.frames = 2000, .sizes = {60}, .start = rig.queue.now()});
  while (!source.finished() && rig.health) rig.run_until(rig.queue.now() + kSettle);
  rig.run_dry(kQuiet);
  ASSERT_TRUE(rig.health) << rig.health.message();
  const nic::NicCounters& nic = rig.nic.counters();
  EXPECT_EQ(nic.received, 2000U);
  EXPECT_EQ(nic.received, nic.delivered + nic.rx_dropped_all());
  EXPECT_EQ(rig.meter.checker().frames, nic.delivered);
  EXPECT_EQ(rig.meter.checker().wrong + rig.meter.checker().reordered, 0U);
  EXPECT_EQ(rig.core_counter("tx_done"), nic.delivered);
  expect_balance(rig);
}

TEST(HostRings, TheHostStopsTurning_ExpectNoFrameUntilItGoesOn) {
  // Unlike with rings in the card, frames stop when the host stops polling.
  InPlaceEcho in_place;
  HostRig rig({}, &in_place, nullptr);
  ASSERT_TRUE(rig.ready) << rig.ready.message();
  rig.run_until(rig.queue.now() + kSettle);
  const nic::Source source(rig.queue, rig.meter, {.frames = 20, .sizes = {300}, .start = rig.queue.now()});
  rig.queue.run(rig.queue.now() + pcie::kMillisecond);
  EXPECT_EQ(rig.meter.checker().frames, 0U);
  rig.run_dry(kQuiet);
  EXPECT_EQ(rig.meter.checker().frames, 20U);
  EXPECT_EQ(rig.meter.checker().wrong + rig.meter.checker().reordered, 0U);
}

TEST(HostRings, TakeBackInTheMiddleOfTrafficAndHandOverAgain_ExpectEverythingCountedAndTraffic) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    InPlaceEcho in_place;
    HostRig rig({.seed = seed}, &in_place, nullptr);
    ASSERT_TRUE(rig.ready) << rig.ready.message();
    rig.run_until(rig.queue.now() + kSettle);
    {
      const nic::Source source(rig.queue, rig.meter, {.frames = 300, .sizes = {300}, .start = rig.queue.now()});
      rig.run_until(rig.queue.now() + (5 + 7 * static_cast<pcie::Time>(seed)) * pcie::kMicrosecond);
      const Status stopped = rig.stop();
      ASSERT_TRUE(stopped) << stopped.message();
      while (!source.finished()) rig.queue.run(rig.queue.now() + kSettle);
    }
    EXPECT_EQ(rig.core_counter("tx_posted"), rig.core_counter("tx_done") + rig.core_counter("tx_stopped"));
    EXPECT_EQ(rig.meter.checker().wrong + rig.meter.checker().reordered, 0U);
    const std::uint64_t before = rig.meter.checker().frames;
    const Status started = rig.start();
    ASSERT_TRUE(started) << started.message();
    rig.run_until(rig.queue.now() + kSettle);
    const nic::Source again(rig.queue, rig.meter, {.frames = 50, .sizes = {300}, .start = rig.queue.now()});
    while (!again.finished()) rig.run_until(rig.queue.now() + kSettle);
    rig.run_dry(kQuiet);
    EXPECT_TRUE(rig.health) << rig.health.message();
    EXPECT_EQ(rig.meter.checker().frames - before, 50U);
    EXPECT_EQ(rig.meter.checker().wrong, 0U);
  }
}

}  // namespace
}  // namespace wherry::sim
