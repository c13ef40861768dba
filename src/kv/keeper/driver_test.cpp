// SPDX-License-Identifier: Apache-2.0
// What a node's driver says of the core's counters.
#include "kv/keeper/driver.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kv/keeper/testing.hpp"

namespace wherry::kv {
namespace {

struct Heard final : DriverOutput {
  void send(const ToKeeper& message) override {
    if (const auto* report = std::get_if<Report>(&message)) reports.push_back(*report);
    if (const auto* hello = std::get_if<Hello>(&message)) hellos.push_back(*hello);
    if (const auto* ask = std::get_if<AskLease>(&message)) asks.push_back(*ask);
    if (const auto* one = std::get_if<Entered>(&message)) entered.push_back(one->epoch);
  }
  std::uint64_t draw_boot() override { return 7; }
  std::vector<Report> reports;
  std::vector<Hello> hellos;
  std::vector<AskLease> asks;
  std::vector<std::uint64_t> entered;
};

TEST(Driver, Report_ExpectWhateverTheCoreDropped) {
  using namespace registers;
  const Cycles truth = 0;
  FakeCore core(truth, DriftingClock{}, 0);
  core.write(kFramesKvOffset, 100);
  core.write(kRetriesOffset, 9);
  const std::uint32_t reasons[] = {kDroppedChecksumOffset, kDroppedLengthOffset, kDroppedEpochOffset,
                                   kDroppedDuplicateOffset, kDroppedBusyOffset};
  for (std::uint32_t i = 0; i < std::size(reasons); ++i) core.write(reasons[i], 1U << i);
  Heard heard;
  Driver driver({.cluster = "c", .bucket_bits = 10, .lanes = 64}, core, heard, truth);
  driver.connected(truth);
  driver.on_message(Ping{.ping = 5}, truth);
  ASSERT_FALSE(heard.reports.empty());
  const Counters& counters = heard.reports.back().counters;
  EXPECT_EQ(counters.frames, 100U);
  EXPECT_EQ(counters.dropped, 0b11111U);
  EXPECT_EQ(counters.retries, 9U);
}

TEST(Driver, CoreWithoutRoom_ExpectNoHelloAndBothNumbersInTheReason) {
  const Cycles truth = 0;
  FakeCore core(truth, DriftingClock{}, 0);
  Heard heard;
  core.lane_bits = 5;
  Driver lanes({.cluster = "c", .bucket_bits = 10, .lanes = 64}, core, heard, truth);
  lanes.connected(truth);
  EXPECT_TRUE(heard.hellos.empty());
  EXPECT_NE(lanes.unfit().find("32 lanes, the cluster file has lanes = 64"), std::string::npos) << lanes.unfit();
  core.lane_bits = 6;
  core.most_bucket_bits = 22;
  Driver bits({.cluster = "c", .bucket_bits = 23, .lanes = 64}, core, heard, truth);
  bits.connected(truth);
  EXPECT_TRUE(heard.hellos.empty());
  EXPECT_NE(bits.unfit().find("2^22 buckets and does not take the cluster file's bucket_bits = 23"), std::string::npos)
      << bits.unfit();
  Driver fits({.cluster = "c", .bucket_bits = 22, .lanes = 64, .accept = true}, core, heard, truth);
  fits.connected(truth);
  EXPECT_EQ(fits.unfit(), "");
  ASSERT_EQ(heard.hellos.size(), 1U);
  EXPECT_EQ(heard.hellos[0].bucket_bits, 22U);
  EXPECT_TRUE(heard.hellos[0].accept);
}

/// Two clocks, each slewed by 8.3 % (chrony's default) in opposite directions.
TEST(Driver, ClocksSlewedApart_ExpectTheLeaseToEndHereFirst) {
  Cycles truth = 0;
  FakeCore core(truth, DriftingClock{}, 0);
  Heard heard;
  Driver driver({.cluster = "c", .bucket_bits = 10, .lanes = 64}, core, heard, truth);
  driver.connected(truth);
  driver.on_time(truth = 1'000'000);
  Configuration c;
  c.epoch = 1;
  c.members = c.serving = 1;
  c.bucket_bits = 10;
  c.leaders = first_leaders(1);
  c.peers[0] = {0, 0x7f000001, 19286};
  c.boots[0] = 7;
  driver.on_message(Configure{c}, truth);
  driver.on_time(truth += 1);
  ASSERT_FALSE(heard.asks.empty());
  const Cycles asked = truth;
  constexpr Cycles kLease = 75'000'000;
  driver.on_message(Grant{heard.asks.back().id, kLease}, truth);
  ASSERT_GT(core.lease, asked);
  const double here = static_cast<double>(core.lease - asked) / (1 - 0.0833);  // this clock is slow
  const double there = static_cast<double>(kLease) / (1 + 0.0833);             // the keeper's is fast
  EXPECT_LT(here, there);
}

Configuration alone(std::uint64_t epoch, NodeMask serving = 1) {
  Configuration c;
  c.epoch = epoch;
  c.members = 1;
  c.serving = serving;
  c.bucket_bits = 10;
  c.leaders = first_leaders(1);
  c.peers[0] = {0, 0x7f000001, 19286};
  c.boots[0] = 7;
  return c;
}

/// A core in hardware enters an epoch when the network has taken its frames, and hears of no other one before.
TEST(Driver, NetworkStandsStill_ExpectEnteredOnlyOfWhatTheCoreEnteredAndNoWriteUnheard) {
  Cycles truth = 0;
  FakeCore core(truth, DriftingClock{}, 0);
  Heard heard;
  Driver driver({.cluster = "c", .bucket_bits = 10, .lanes = 64}, core, heard, truth);
  driver.connected(truth);
  driver.on_time(truth = driver.next_time());
  driver.on_message(Configure{alone(1)}, truth);
  EXPECT_EQ(heard.entered, std::vector<std::uint64_t>{1});
  core.stuck = true;
  driver.on_message(Configure{alone(2)}, truth);
  driver.on_message(Configure{alone(3)}, truth);
  driver.on_message(Configure{alone(3)}, truth);
  driver.on_message(Configure{alone(4)}, truth);
  for (int i = 0; i < 20; ++i) driver.on_time(truth = driver.next_time());
  EXPECT_EQ(heard.entered, std::vector<std::uint64_t>{1});
  EXPECT_EQ(core.unheard, 0U);
  EXPECT_EQ(core.now.epoch, 1U);
  core.stuck = false;
  for (int i = 0; i < 3; ++i) driver.on_time(truth = driver.next_time());
  EXPECT_EQ(heard.entered, (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_EQ(core.now.epoch, 4U);
}

TEST(Driver, LeftOutWhileTheNetworkStandsStill_ExpectNoLeaseAtOnceAndAnEmptyCoreLater) {
  Cycles truth = 0;
  FakeCore core(truth, DriftingClock{}, 0);
  Heard heard;
  Driver driver({.cluster = "c", .bucket_bits = 10, .lanes = 64}, core, heard, truth);
  driver.connected(truth);
  driver.on_time(truth = driver.next_time());
  driver.on_message(Configure{alone(1)}, truth);
  driver.on_time(truth);
  ASSERT_FALSE(heard.asks.empty());
  driver.on_message(Grant{heard.asks.back().id, 75'000'000}, truth);
  EXPECT_TRUE(core.leased());
  core.stuck = true;
  driver.on_message(Configure{alone(2)}, truth);
  Configuration without = alone(3);
  without.members = without.serving = 2;
  driver.on_message(Configure{without}, truth);
  EXPECT_FALSE(core.leased());
  for (int i = 0; i < 5; ++i) driver.on_time(truth = driver.next_time());
  core.stuck = false;
  for (int i = 0; i < 5; ++i) driver.on_time(truth = driver.next_time());
  EXPECT_EQ(core.now.epoch, 0U);
  EXPECT_EQ(core.fetched, 0U);
  EXPECT_EQ(heard.entered, std::vector<std::uint64_t>{1});
  EXPECT_TRUE(heard.hellos.back().boot == 7 && !heard.hellos.back().entered);
  EXPECT_TRUE(heard.reports.back().ready);
}

}  // namespace
}  // namespace wherry::kv
