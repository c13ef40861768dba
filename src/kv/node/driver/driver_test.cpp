// SPDX-License-Identifier: Apache-2.0
// Tests the messages of a node's driver to the keeper and its accesses to the core.
#include "kv/node/driver/driver.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <vector>

#include "kv/node/driver/testing.hpp"

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

constexpr std::uint64_t kMs = 250'000;  ///< cycles
const Cycles kLimit = DriverOptions{}.keeper_silence;

/// A core, its driver, and the driver's messages to the keeper.
class KvDriver : public testing::Test {
 protected:
  void connect() {
    driver_.connected(truth_);
    pass();
  }
  void pass() { driver_.on_time(truth_ = driver_.next_time()); }
  void configure(const Configuration& c) { driver_.on_message(Configure{c}, truth_); }
  Cycles truth_ = 0;
  FakeCore core_{truth_, DriftingClock{}, 0};
  Heard heard_;
  Driver driver_{{.cluster = "c", .bucket_bits = 10, .lanes = 64, .retry_cycles = 1000}, core_, heard_, truth_};
};

/// A configuration in which node 0 is the only member.
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

TEST_F(KvDriver, Report_ExpectWhateverTheCoreDropped) {
  using namespace registers;
  core_.write(kFramesKvOffset, 100);
  core_.write(kRetriesOffset, 9);
  const std::uint32_t reasons[] = {kDroppedChecksumOffset,  kDroppedLengthOffset, kDroppedEpochOffset,
                                   kDroppedDuplicateOffset, kDroppedBusyOffset,   kDroppedSourceOffset};
  for (std::uint32_t i = 0; i < std::size(reasons); ++i) core_.write(reasons[i], 1U << i);
  driver_.connected(truth_);
  driver_.on_message(Ping{.ping = 5}, truth_);
  ASSERT_FALSE(heard_.reports.empty());
  const Counters& counters = heard_.reports.back().counters;
  EXPECT_EQ(counters.frames, 100U);
  EXPECT_EQ(counters.dropped, 0b111111U);
  EXPECT_EQ(counters.retries, 9U);
}

TEST_F(KvDriver, KeeperSaysNothingForLongerThanItsLimit_ExpectItToBeGivenUpAndNotBefore) {
  driver_.connected(truth_);
  EXPECT_FALSE(driver_.keeper_silent(truth_ + kLimit));
  EXPECT_TRUE(driver_.keeper_silent(truth_ + kLimit + 1));
  driver_.on_message(Ping{.ping = 5}, truth_ += kLimit);
  EXPECT_FALSE(driver_.keeper_silent(truth_ + kLimit)) << "any word counts";
  driver_.disconnected();
  EXPECT_FALSE(driver_.keeper_silent(truth_ + 2 * kLimit)) << "of whom?";
  driver_.connected(truth_ += 2 * kLimit);
  EXPECT_FALSE(driver_.keeper_silent(truth_ + kLimit)) << "one that is new";
}

TEST_F(KvDriver, LeaseQuestionUnansweredThoughPingsCome_ExpectTheKeeperGivenUp) {
  connect();
  configure(alone(1));
  while (heard_.asks.empty()) pass();
  const Cycles asked = truth_;
  while (truth_ < asked + 2 * kLimit && !driver_.keeper_silent(truth_)) {
    driver_.on_message(Ping{.ping = 5}, truth_);
    pass();
  }
  EXPECT_TRUE(driver_.keeper_silent(truth_));
  EXPECT_GT(truth_, asked + kLimit) << "too early";
}

TEST_F(KvDriver, CoreWithoutRoom_ExpectNoHelloAndBothNumbersInTheReason) {
  core_.lane_bits = 5;
  Driver lanes({.cluster = "c", .bucket_bits = 10, .lanes = 64}, core_, heard_, truth_);
  lanes.connected(truth_);
  EXPECT_TRUE(heard_.hellos.empty());
  EXPECT_NE(lanes.unfit().find("32 lanes, the cluster file has lanes = 64"), std::string::npos) << lanes.unfit();
  core_.lane_bits = 6;
  core_.most_bucket_bits = 22;
  Driver bits({.cluster = "c", .bucket_bits = 23, .lanes = 64}, core_, heard_, truth_);
  bits.connected(truth_);
  EXPECT_TRUE(heard_.hellos.empty());
  EXPECT_NE(bits.unfit().find("2^22 buckets and does not take the cluster file's bucket_bits = 23"), std::string::npos)
      << bits.unfit();
  Driver fits({.cluster = "c", .bucket_bits = 22, .lanes = 64, .accept = true}, core_, heard_, truth_);
  fits.connected(truth_);
  EXPECT_EQ(fits.unfit(), "");
  ASSERT_EQ(heard_.hellos.size(), 1U);
  EXPECT_EQ(heard_.hellos[0].bucket_bits, 22U);
  EXPECT_TRUE(heard_.hellos[0].accept);
}

/// Registers of a core with a list of sources. The test checks the list after each write.
class ListedCore final : public RegisterIo {
 public:
  explicit ListedCore(FakeCore& core) : core_(core) { core.sources = 14; }
  std::uint32_t read(std::uint32_t offset) override { return core_.read(offset); }
  void write(std::uint32_t offset, std::uint32_t value) override {
    core_.write(offset, value);
    if (offset < registers::source_ip_offset(0) || offset >= registers::kFramesKvOffset) return;
    for (std::uint32_t ip = 0x0a0000f0; on_change && ip < 0x0a000110; ++ip) on_change(ip, allows(ip));
  }
  [[nodiscard]] bool allows(std::uint32_t ip) {
    for (std::uint32_t i = 0; i < 14; ++i) {
      const std::uint32_t mask = core_.read(registers::source_mask_offset(i));
      if (mask != 0 && ((ip ^ core_.read(registers::source_ip_offset(i))) & mask) == 0) return true;
    }
    return false;
  }
  std::function<void(std::uint32_t, bool)> on_change;

 private:
  FakeCore& core_;
};

TEST_F(KvDriver, CoreWithAList_ExpectTheMergedSourcesAndNoOthersInIt) {
  core_.lane_bits = 6;
  ListedCore listed(core_);
  const Subnet first{0x0a000000, 0xffffff00};
  const Subnet both{0x0a000000, 0xfffffe00};
  const Subnet one{0x0a0000fe, 0xffffffff};
  DriverOptions options{
      .cluster = "c", .bucket_bits = 10, .lanes = 64, .sources = {one, {0x0a000100, 0xffffff00}, first}};
  {
    Driver driver(options, listed, heard_, truth_);
    EXPECT_EQ(driver.unfit(), "");
    EXPECT_EQ(core_.read(registers::source_ip_offset(0)), both.ip);
    EXPECT_EQ(core_.read(registers::source_mask_offset(0)), both.mask);
    EXPECT_EQ(core_.read(registers::source_mask_offset(1)), 0U);
  }
  // Another driver takes over the same core, with another list.
  std::uint32_t looks = 0;
  listed.on_change = [&](std::uint32_t ip, bool allowed) {
    ++looks;
    EXPECT_TRUE(!allowed || both.has(ip) || ip == 0x0a000105) << std::hex << ip;
  };
  options.sources = {{0x0a000105, 0xffffffff}, {0xc0a80000, 0xffff0000}};
  Driver driver(options, listed, heard_, truth_);
  EXPECT_GT(looks, 14U);
  for (std::uint32_t ip = 0x0a000000; ip < 0x0a000200; ++ip) ASSERT_EQ(listed.allows(ip), ip == 0x0a000105);
  EXPECT_TRUE(listed.allows(0xc0a80005));
  options.sources = {{}};
  listed.on_change = nullptr;
  Driver everybody(options, listed, heard_, truth_);
  for (const std::uint32_t ip : {0U, 0x7fffffffU, 0x80000000U, ~0U}) EXPECT_TRUE(listed.allows(ip)) << std::hex << ip;
  options.sources.clear();
  Driver nobody(options, listed, heard_, truth_);
  for (const std::uint32_t ip : {0U, 0x0a000105U, 0x80000000U, ~0U}) EXPECT_FALSE(listed.allows(ip)) << std::hex << ip;
}

TEST_F(KvDriver, MoreSourcesThanTheCoreHolds_ExpectNoHelloAndBothNumbersInTheReason) {
  core_.lane_bits = 6;
  core_.sources = 3;
  DriverOptions options{.cluster = "c", .bucket_bits = 10, .lanes = 64};
  for (std::uint32_t i = 0; i < 4; ++i) options.sources.push_back({0x0a000000 + 2 * i, 0xffffffff});
  Driver many(options, core_, heard_, truth_);
  many.connected(truth_);
  EXPECT_TRUE(heard_.hellos.empty());
  EXPECT_NE(many.unfit().find("holds 3 subnets"), std::string::npos) << many.unfit();
  EXPECT_NE(many.unfit().find("('clients' and the nodes) are 4"), std::string::npos) << many.unfit();
  EXPECT_EQ(core_.read(registers::source_mask_offset(0)), 0U) << "nobody rather than some";
  options.sources.push_back({0x0a000001, 0xffffffff});
  options.sources.push_back({0x0a000003, 0xffffffff});  // now 0 to 3, 4, and 6
  Driver fits(options, core_, heard_, truth_);
  fits.connected(truth_);
  EXPECT_EQ(fits.unfit(), "");
  EXPECT_EQ(heard_.hellos.size(), 1U);
}

TEST_F(KvDriver, CoreOfAnotherMajorVersion_ExpectNoHelloAndBothVersionsInTheReason) {
  using namespace registers;
  const std::uint32_t major = kCoreVersionMajor.get(kCoreVersionReset);
  const DriverOptions options{.cluster = "c", .bucket_bits = 10, .lanes = 64};
  core_.lane_bits = 6;
  for (const std::uint32_t other : {major - 1, major + 1}) {
    core_.core_version = kCoreVersionMinor.set(kCoreVersionMajor.set(0, other), 3);
    Driver driver(options, core_, heard_, truth_);
    driver.connected(truth_);
    EXPECT_TRUE(heard_.hellos.empty());
    EXPECT_NE(
        driver.unfit().find(fmt::format("version {}.3, and this program knows those of version {}:", other, major)),
        std::string::npos)
        << driver.unfit();
  }
  core_.core_version = kCoreVersionMinor.set(kCoreVersionReset, 7);
  Driver newer(options, core_, heard_, truth_);
  newer.connected(truth_);
  EXPECT_EQ(newer.unfit(), "") << "additions";
  EXPECT_EQ(heard_.hellos.size(), 1U);
}

/// A core whose writes wait, in a cluster with several members.
class KvDriverSilence : public KvDriver {
 protected:
  void enter(NodeMask members) { enter(members, members); }
  void enter(NodeMask serving, NodeMask members, std::uint32_t fetching = 0) {
    driver_.connected(truth_);
    driver_.on_time(truth_ = kMs);
    driver_.on_time(truth_ += 10 * kMs);
    Configuration c;
    c.epoch = 1;
    c.members = members;
    c.serving = serving;
    c.bucket_bits = 10;
    c.leaders = first_leaders(serving);
    for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
      if (!has(members, node)) continue;
      c.peers[node] = {0, 0x7f000001, static_cast<std::uint16_t>(19286 + node)};
      c.boots[node] = 7 + node;
    }
    core_.take(fetching);
    driver_.on_message(Configure{c}, truth_);
    ASSERT_EQ(driver_.epoch(), 1U);
    ASSERT_EQ(driver_.complete(), serving == members);
  }
  /// The driver's report after that time.
  NodeMask after(Cycles time) {
    for (const Cycles end = truth_ + time; truth_ < end;) driver_.on_message(Ping{.ping = 5}, truth_ += 10 * kMs);
    return heard_.reports.back().silent;
  }
  std::uint32_t pace() { return core_.read(registers::kRetryCyclesOffset); }
  void answer() {
    const std::uint32_t at = registers::received_offset(static_cast<std::uint32_t>(Kind::replicated));
    core_.write(at, core_.read(at) + 1);
  }
};

TEST_F(KvDriverSilence, TheOtherOfTwoDoesNotAnswer_ExpectItReportedUntilItDoes) {
  enter(0b11);
  EXPECT_EQ(after(1000 * kMs), 0) << "nothing waits";
  core_.in_flight = 3;
  core_.unanswered = 0b10;
  EXPECT_EQ(after(290 * kMs), 0);
  EXPECT_EQ(after(50 * kMs), 0b10);
  answer();
  EXPECT_EQ(after(10 * kMs), 0);
  EXPECT_EQ(after(500 * kMs), 0b10);
  core_.in_flight = 0;
  EXPECT_EQ(after(10 * kMs), 0);
}

TEST_F(KvDriverSilence, WritesThatAreAnsweredAllTheTime_ExpectNothing) {
  enter(0b11);
  core_.in_flight = 20;
  for (int i = 0; i < 100; ++i) {
    answer();
    EXPECT_EQ(after(200 * kMs), 0);
  }
}

TEST_F(KvDriverSilence, OneOfThreeDoesNotAnswer_ExpectTheOneToWhichTheCoreRepeats) {
  enter(0b111);
  core_.in_flight = 20;
  EXPECT_EQ(after(2000 * kMs), 0) << "nothing was repeated";
  core_.unanswered = 0b1100;
  EXPECT_EQ(after(10 * kMs), 0b100) << "not one that is no member any more";
  answer();
  EXPECT_EQ(after(10 * kMs), 0);
}

TEST_F(KvDriverSilence, OneOfThreeDoesNotSayThatItEntered_ExpectItReportedUntilTheCoreTakesWrites) {
  enter(0b111);
  core_.opened = false;
  core_.unanswered = 0b10;
  EXPECT_EQ(after(290 * kMs), 0);
  EXPECT_EQ(after(50 * kMs), 0b10);
  core_.opened = true;
  EXPECT_EQ(after(10 * kMs), 0);
}

TEST_F(KvDriverSilence, NobodyAnswers_ExpectRepetitionsToBackOffAndTheOldPaceWithTheFirstAnswer) {
  enter(0b111);
  EXPECT_EQ(pace(), 1000U);
  core_.in_flight = 20;
  (void)after(20 * kMs);
  EXPECT_EQ(pace(), 1000U);
  (void)after(20 * kMs);
  EXPECT_EQ(pace(), 4'000U);
  (void)after(100 * kMs);
  EXPECT_EQ(pace(), 16'000U);
  (void)after(5000 * kMs);
  EXPECT_EQ(pace(), 64'000U);
  answer();
  (void)after(10 * kMs);
  EXPECT_EQ(pace(), 1000U);
}

/// Answers come after the next request: 32 locations are requested each millisecond, and no more are answered.
TEST_F(KvDriverSilence, AnswersToWhatIsFetchedComeTooLate_ExpectQuestionsToBackOffUntilTheyDoNot) {
  enter(0b110, 0b111, 2'000'000'000);
  ASSERT_FALSE(driver_.complete());
  const std::uint32_t entries = registers::received_offset(static_cast<std::uint32_t>(Kind::entry));
  const auto pass = [&](std::uint32_t repeated, std::uint32_t answered) {
    core_.write(registers::kRetriesOffset, core_.read(registers::kRetriesOffset) + repeated);
    core_.write(entries, core_.read(entries) + answered);
    (void)after(60 * kMs);
  };
  (void)after(60 * kMs);
  pass(100, 3000);  // some are lost
  EXPECT_EQ(pace(), 1000U);
  pass(1600, 1500);
  EXPECT_EQ(pace(), 2000U);
  for (int i = 0; i < 20; ++i) pass(100, 0);
  EXPECT_EQ(pace(), 64'000U);
  pass(0, 1000);
  EXPECT_EQ(pace(), 32'000U);
  core_.take(0);
  driver_.on_message(Settled{1}, truth_);
  (void)after(10'000 * kMs);
  ASSERT_TRUE(driver_.complete());
  EXPECT_EQ(pace(), 1000U);
}

/// Two clocks that are slewed by 8.3 % each (chrony's default) in opposite directions.
TEST_F(KvDriver, ClocksSlewedApart_ExpectTheLeaseToEndHereFirst) {
  connect();
  configure(alone(1));
  driver_.on_time(truth_ += 1);
  ASSERT_FALSE(heard_.asks.empty());
  const Cycles asked = truth_;
  constexpr Cycles kLease = 75'000'000;
  driver_.on_message(Grant{heard_.asks.back().id, kLease}, truth_);
  ASSERT_GT(core_.lease, asked);
  const double here = static_cast<double>(core_.lease - asked) / (1 - 0.0833);  // this clock is slow
  const double there = static_cast<double>(kLease) / (1 + 0.0833);              // the keeper's is fast
  EXPECT_LT(here, there);
}

/// A core in hardware has entered an epoch when the network has taken its frames. Until then it gets no other epoch.
TEST_F(KvDriver, NetworkStandsStill_ExpectEnteredOnlyOfWhatTheCoreEnteredAndNoWriteUnheard) {
  connect();
  configure(alone(1));
  EXPECT_EQ(heard_.entered, std::vector<std::uint64_t>{1});
  core_.stuck = true;
  configure(alone(2));
  configure(alone(3));
  configure(alone(3));
  configure(alone(4));
  for (int i = 0; i < 20; ++i) pass();
  EXPECT_EQ(heard_.entered, std::vector<std::uint64_t>{1});
  EXPECT_EQ(core_.unheard, 0U);
  EXPECT_EQ(core_.now.epoch, 1U);
  core_.stuck = false;
  for (int i = 0; i < 3; ++i) pass();
  EXPECT_EQ(heard_.entered, (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_EQ(core_.now.epoch, 4U);
}

TEST_F(KvDriver, LeftOutWhileTheNetworkStandsStill_ExpectNoLeaseAtOnceAndAnEmptyCoreLater) {
  connect();
  configure(alone(1));
  driver_.on_time(truth_);
  ASSERT_FALSE(heard_.asks.empty());
  driver_.on_message(Grant{heard_.asks.back().id, 75'000'000}, truth_);
  EXPECT_TRUE(core_.leased());
  core_.stuck = true;
  configure(alone(2));
  Configuration without = alone(3);
  without.members = without.serving = 2;
  configure(without);
  EXPECT_FALSE(core_.leased());
  for (int i = 0; i < 5; ++i) pass();
  core_.stuck = false;
  for (int i = 0; i < 5; ++i) pass();
  EXPECT_EQ(core_.now.epoch, 0U);
  EXPECT_EQ(core_.fetched, 0U);
  EXPECT_EQ(heard_.entered, std::vector<std::uint64_t>{1});
  EXPECT_TRUE(heard_.hellos.back().boot == 7 && !heard_.hellos.back().entered);
  EXPECT_TRUE(heard_.reports.back().ready);
}

}  // namespace
}  // namespace wherry::kv
