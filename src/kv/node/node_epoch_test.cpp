// SPDX-License-Identifier: Apache-2.0
// Tests the change from one epoch to the next: fences, leftovers, leaders that die, nodes that return.
#include <gtest/gtest.h>

#include "kv/node/testing.hpp"

namespace wherry::kv::testing {
namespace {

using namespace registers;

class KvEpoch : public ::testing::Test {
 protected:
  /// Nodes 0 to 2 in epoch 1; node 0 leads it.
  void start(unsigned nodes = 3, NodeOptions options = {.lane_bits = 8}, NodeFaults faults = {}) {
    cluster = std::make_unique<Cluster>(nodes, options, Weather{}, 1, Cluster::kBucketBits, faults);
    plan = {.epoch = 1};
    plan.members = plan.serving = static_cast<std::uint8_t>((1U << nodes) - 1);
    cluster->enter_all(plan);
    cluster->settle();
  }
  void next_epoch(std::uint8_t members, unsigned leader) {
    ++plan.epoch;
    plan.serving = static_cast<std::uint8_t>(plan.serving & members);
    plan.members = members;
    plan.lead_all(leader);
    cluster->enter_all(plan);
  }
  Kv request(Kind kind, std::uint64_t key, std::uint32_t number, std::uint16_t lane = 1) const {
    return {.kind = static_cast<std::uint8_t>(kind),
            .epoch = static_cast<std::uint16_t>(plan.epoch),
            .client = lane,
            .request = number,
            .key = key};
  }
  Frame ask(unsigned node, const Kv& h, const std::vector<std::byte>& value = {}) {
    const auto frame = cluster->call(node, h, value);
    EXPECT_TRUE(frame.has_value()) << name_of(static_cast<Kind>(h.kind));
    return frame.value_or(Frame{});
  }
  Frame write(unsigned node, std::uint64_t key, std::string_view value, std::uint32_t number, std::uint16_t lane = 1) {
    return ask(node, request(Kind::write, key, number, lane), bytes_of(value));
  }
  Frame read(unsigned node, std::uint64_t key) { return ask(node, request(Kind::read, key, ++tag)); }
  std::string text(unsigned node, std::uint64_t key) {
    const Frame f = read(node, key);
    if (f.status() != Status::ok) return std::string(name_of(f.status()));
    return {reinterpret_cast<const char*>(f.value.data()), f.value.size()};
  }
  /// A write whose replicate frames reach only these nodes. No later message about it arrives.
  void write_that_reaches(unsigned leader, unsigned nodes, std::uint64_t key, std::string_view value,
                          std::uint32_t number, std::uint16_t lane = 1) {
    cluster->drop = [nodes](const Frame& f) {
      if (f.kind() == Kind::replicated || f.kind() == Kind::commit || f.kind() == Kind::write_done) return true;
      return f.kind() == Kind::replicate && (nodes >> (f.to.ip - node_at(0).ip) & 1) == 0;
    };
    cluster->send(client_at(0), node_at(leader), {request(Kind::write, key, number, lane), bytes_of(value)});
    cluster->run(cluster->now + 3000);
    cluster->drop = nullptr;
  }
  std::uint32_t state(unsigned node) { return cluster->node(node).read(kStateOffset); }
  std::uint32_t leftovers(unsigned node) { return kStateLeftovers.get(state(node)); }
  bool opened(unsigned node) { return kStateOpened.get(state(node)) != 0; }

  std::unique_ptr<Cluster> cluster;
  Plan plan;
  std::uint32_t tag = 1000;
};

TEST_F(KvEpoch, LeaderDiesWithItsWriteOnTheNewLeader_ExpectItCompletedOnce) {
  start();
  ASSERT_EQ(write(0, 5, "old", 40).status(), Status::ok);
  cluster->settle();
  write_that_reaches(0, 0b010, 5, "new", 41);
  cluster->kill(0);
  next_epoch(0b110, 1);
  cluster->settle();
  EXPECT_TRUE(opened(1));
  EXPECT_EQ(text(1, 5), "new");
  EXPECT_EQ(text(2, 5), "new");
  const Frame again = write(1, 5, "new", 41);
  EXPECT_EQ(again.status(), Status::ok);
  EXPECT_EQ(again.header.version, 2U) << "from the record";
  EXPECT_EQ(read(1, 5).header.version, 2U);
}

TEST_F(KvEpoch, LeaderDiesWithItsWriteOnAFollower_ExpectItRolledBackAndTheRetryNew) {
  start();
  ASSERT_EQ(write(0, 5, "old", 40).status(), Status::ok);
  cluster->settle();
  write_that_reaches(0, 0b100, 5, "new", 41);
  cluster->kill(0);
  next_epoch(0b110, 1);
  cluster->settle();
  EXPECT_EQ(text(1, 5), "old");
  EXPECT_EQ(text(2, 5), "old");
  const Frame record = ask(2, {.kind = 6, .client = 1, .request = 900});
  EXPECT_EQ(record.header.key, 40U);
  EXPECT_EQ(record.header.version, 0U);
  EXPECT_EQ(write(1, 5, "new", 41).header.version, 2U);
  cluster->settle();
  EXPECT_EQ(text(2, 5), "new");
}

TEST_F(KvEpoch, LeaderDiesWithItsWriteOnNobody_ExpectTheRetryNew) {
  start();
  write_that_reaches(0, 0, 5, "new", 41);
  cluster->kill(0);
  next_epoch(0b110, 2);
  cluster->settle();
  EXPECT_EQ(text(1, 5), "no_such_key");
  EXPECT_EQ(write(2, 5, "new", 41).header.version, 1U);
}

TEST_F(KvEpoch, LeaderDiesAfterItsCommitWasLost_ExpectTheAnswerAgain) {
  start();
  cluster->drop = [](const Frame& f) { return f.kind() == Kind::write_done || f.kind() == Kind::commit; };
  cluster->send(client_at(0), node_at(0), {request(Kind::write, 5, 41), bytes_of("new")});
  cluster->run(cluster->now + 5000);
  cluster->drop = nullptr;
  cluster->kill(0);
  next_epoch(0b110, 2);
  EXPECT_EQ(write(2, 5, "new", 41).status(), Status::busy) << "not opened yet";
  cluster->settle();
  EXPECT_EQ(write(2, 5, "new", 41).header.version, 1U);
  EXPECT_EQ(text(1, 5), "new");
}

TEST_F(KvEpoch, RemovalLeftOver_ExpectItReplayedOrRolledBack) {
  for (const unsigned leader : {1U, 2U}) {
    start();
    ASSERT_EQ(write(0, 5, "old", 1).status(), Status::ok);
    cluster->settle();
    cluster->drop = [](const Frame& f) {
      return f.kind() == Kind::replicated_remove || (f.kind() == Kind::replicate_remove && f.to == node_at(2));
    };
    cluster->send(client_at(0), node_at(0), {request(Kind::remove, 5, 2), {}});
    cluster->run(cluster->now + 3000);
    cluster->drop = nullptr;
    cluster->kill(0);
    next_epoch(0b110, leader);
    cluster->settle();
    for (const unsigned node : {1U, 2U}) EXPECT_EQ(text(node, 5), leader == 1 ? "no_such_key" : "old");
  }
}

TEST_F(KvEpoch, NewKeyRolledBack_ExpectItsWayFree) {
  start();
  write_that_reaches(0, 0b100, 5, "new", 41);
  cluster->kill(0);
  next_epoch(0b110, 1);
  cluster->settle();
  EXPECT_EQ(text(2, 5), "no_such_key");
  EXPECT_EQ(leftovers(2), 0U);
}

TEST_F(KvEpoch, LeftoversNotSettled_ExpectNobodyShowsThem) {
  start();
  write_that_reaches(0, 0b110, 5, "new", 41);
  cluster->kill(0);
  cluster->drop = [](const Frame& f) {
    return f.from == node_at(1) || f.from == node_at(2) ? !(f.to == client_at(0)) : false;
  };
  next_epoch(0b110, 1);
  cluster->run(cluster->now + 3000);
  EXPECT_EQ(text(1, 5), "busy");
  EXPECT_EQ(text(2, 5), "pending");
  EXPECT_EQ(text(1, 6), "no_such_key") << "another bucket";
  EXPECT_FALSE(opened(1));
  EXPECT_EQ(leftovers(1), 1U);
  EXPECT_EQ(leftovers(2), 1U);
  cluster->drop = nullptr;
  cluster->settle();
  EXPECT_EQ(text(1, 5), "new");
  EXPECT_EQ(text(2, 5), "new");
  EXPECT_TRUE(opened(1));
}

TEST_F(KvEpoch, LeaderAskedForItsOwnLeftover_ExpectNoWordOfItBeforeItIsCommitted) {
  start();
  write_that_reaches(0, 0b110, 5, "new", 41);
  cluster->kill(0);
  cluster->drop = [](const Frame& f) { return f.kind() == Kind::replicate; };
  next_epoch(0b110, 1);
  cluster->settle();
  EXPECT_EQ(leftovers(2), 1U) << "were it believed now and node 1 died, it would be shown and lost";
  EXPECT_EQ(text(2, 5), "pending");
  cluster->drop = nullptr;
  cluster->settle();
  EXPECT_EQ(text(2, 5), "new");
}

TEST_F(KvEpoch, LeftoversOfTwoFormerLeaders_ExpectAllSettled) {
  start(5);
  for (unsigned slot = 0; slot < kSlots; ++slot) plan.leaders[slot] = static_cast<std::uint8_t>(slot % 2);
  ++plan.epoch;
  cluster->enter_all(plan);
  cluster->settle();
  std::uint64_t even = 1;
  while (bucket_of_key(even) % 2 != 0) ++even;
  std::uint64_t odd = 1;
  while (bucket_of_key(odd) % 2 != 1) ++odd;
  write_that_reaches(0, 0b00100, even, "even", 1, 1);
  write_that_reaches(1, 0b01000, odd, "odd", 1, 2);
  EXPECT_EQ(text(2, even), "pending");
  EXPECT_EQ(text(3, odd), "pending");
  cluster->kill(0);
  cluster->kill(1);
  next_epoch(0b11100, 2);
  cluster->settle();
  for (unsigned node = 2; node < 5; ++node) {
    EXPECT_EQ(text(node, even), "even") << "the new leader had it";
    EXPECT_EQ(text(node, odd), "no_such_key") << "the new leader had it not";
    EXPECT_EQ(leftovers(node), 0U);
  }
  EXPECT_TRUE(opened(2));
}

TEST_F(KvEpoch, LeftoverThroughTwoEpochs_ExpectTheLastLeaderToDecide) {
  start(4);
  write_that_reaches(0, 0b0100, 5, "new", 41);
  cluster->kill(0);
  cluster->drop = [](const Frame& f) { return f.kind() == Kind::fetch || f.kind() == Kind::entry; };
  next_epoch(0b1110, 1);
  cluster->settle();
  EXPECT_FALSE(opened(1));
  cluster->drop = nullptr;
  cluster->kill(1);
  next_epoch(0b1100, 2);
  cluster->settle();
  EXPECT_EQ(text(2, 5), "new");
  EXPECT_EQ(text(3, 5), "new");
  EXPECT_EQ(write(2, 5, "new", 41).header.version, 1U);
}

TEST_F(KvEpoch, OldLeaderGoesOn_ExpectNoAcknowledgements) {
  start();
  ++plan.epoch;
  plan.members = plan.serving = 0b110;
  plan.lead_all(1);
  cluster->enter(1, plan);
  cluster->enter(2, plan);
  cluster->settle();
  Kv late = request(Kind::write, 5, 41);
  late.epoch = 1;
  EXPECT_FALSE(cluster->call(0, late, bytes_of("late"))) << "it never hears that it is committed";
  EXPECT_EQ(kStateInFlight.get(state(0)), 1U);
  EXPECT_EQ(text(1, 5), "no_such_key");
  EXPECT_GT(cluster->node(1).read(kDroppedEpochOffset), 0U);
  Kv stale = request(Kind::write, 5, 42);
  stale.epoch = 1;
  EXPECT_EQ(ask(1, stale).status(), Status::stale_epoch);
}

TEST_F(KvEpoch, LeaderKeepsItsSlots_ExpectItsWindowSentAgain) {
  start(4);
  cluster->kill(3);
  cluster->send(client_at(0), node_at(0), {request(Kind::write, 5, 41), bytes_of("new")});
  cluster->run(cluster->now + 3000);
  EXPECT_EQ(kStateInFlight.get(state(0)), 1U) << "waits for the dead";
  std::optional<Frame> answer;
  cluster->on_client = [&](const Frame& f) { answer = f; };
  next_epoch(0b0111, 0);
  cluster->settle();
  cluster->on_client = nullptr;
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status(), Status::ok);
  EXPECT_EQ(answer->header.epoch, 2);
  for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(text(node, 5), "new");
}

TEST_F(KvEpoch, LeadershipMoves_ExpectTheOldLeadersWindowRolledBack) {
  start();
  write_that_reaches(0, 0, 5, "new", 41);
  EXPECT_EQ(kStateInFlight.get(state(0)), 1U);
  next_epoch(0b111, 1);
  cluster->settle();
  EXPECT_EQ(kStateInFlight.get(state(0)), 0U);
  EXPECT_EQ(write(1, 5, "new", 41).header.version, 1U);
  cluster->settle();
  EXPECT_EQ(text(0, 5), "new");
}

TEST_F(KvEpoch, FramesOfAnEpochLost_ExpectItOpenedAllTheSame) {
  for (const Kind kind : {Kind::enter, Kind::entered, Kind::fetch, Kind::entry, Kind::replicate, Kind::replicated}) {
    start();
    write_that_reaches(0, 0b100, 5, "new", 41);
    write_that_reaches(0, 0b010, 77, "new", 41, 2);
    cluster->kill(0);
    cluster->drop = [kind, left = 2](const Frame& f) mutable { return f.kind() == kind && left-- > 0; };
    next_epoch(0b110, 1);
    cluster->settle();
    EXPECT_TRUE(opened(1)) << name_of(kind);
    EXPECT_EQ(text(2, 5), "no_such_key");
    EXPECT_EQ(text(2, 77), "new");
  }
}

TEST_F(KvEpoch, SameEpochTwice_ExpectNothing) {
  start();
  Plan other = plan;
  other.members = 0b001;
  cluster->enter(0, other);
  EXPECT_EQ(write(0, 5, "a", 1).status(), Status::ok);
  cluster->settle();
  EXPECT_EQ(text(2, 5), "a") << "it still replicates to all";
}

TEST_F(KvEpoch, MoreLeftoversThanRoom_ExpectAFaultAndSilenceUntilCleared) {
  start(3, {.lane_bits = 8, .max_leftovers = 4});
  std::uint16_t lane = 0;
  for (std::uint64_t key = 1; lane < 5; ++key)
    if (bucket_of_key(key) % 5 == lane) write_that_reaches(0, 0b110, key, "x", 1, lane++);
  cluster->kill(0);
  next_epoch(0b110, 1);
  cluster->settle();
  EXPECT_TRUE(kStateFault.get(state(1)));
  EXPECT_FALSE(kStateServing.get(state(1)));
  EXPECT_FALSE(cluster->call(1, request(Kind::ping, 0, 1)));
  EXPECT_FALSE(cluster->call(1, request(Kind::read, 5, 2)));
  AnyNode& node = cluster->node(1);
  node.write(kControlOffset, kControlEnable.mask() | kControlClearTable.mask());
  EXPECT_TRUE(kStateFault.get(state(1))) << "only with epoch 0";
  node.write(kEpochOffset, 0);
  node.write(kControlOffset, kControlEnable.mask() | kControlClearTable.mask());
  EXPECT_FALSE(kStateFault.get(state(1)));
  EXPECT_EQ(text(1, 5), "not_serving");
}

class KvReturn : public KvEpoch {
 protected:
  void admit(unsigned node) {
    cluster->restart(node);
    ++plan.epoch;
    plan.members = static_cast<std::uint8_t>(plan.members | 1U << node);
    cluster->enter_all(plan);
    cluster->node(node).write(kSyncFromOffset, 0);
    cluster->node(node).write(kSyncCountOffset, 1U << Cluster::kBucketBits);
    cluster->node(node).write(kSyncLanesOffset, 256);
    cluster->run(cluster->now + 1);
  }
  bool has_all(unsigned node) {
    return cluster->node(node).read(kSyncCountOffset) == 0 && cluster->node(node).read(kSyncLanesOffset) == 0;
  }
  static bool of(const Frame& f, Kind kind, unsigned from) { return f.kind() == kind && f.from == node_at(from); }
  /// Node 2 returns while a write of lane 1, which the leader has committed, is a leftover at node 1. Returns node 1's
  /// answer about this lane.
  Frame lane_of_a_leftover(NodeFaults faults = {}) {
    start(3, {.lane_bits = 8}, faults);
    cluster->kill(2);
    next_epoch(0b011, 0);
    cluster->settle();
    EXPECT_EQ(write(0, 5, "a", 40).status(), Status::ok);
    cluster->settle();
    cluster->drop = [](const Frame& f) { return f.kind() == Kind::commit || f.kind() == Kind::write_done; };
    cluster->send(client_at(0), node_at(0), {request(Kind::write, 5, 41), bytes_of("b")});
    cluster->run(cluster->now + 3000);
    EXPECT_EQ(text(0, 5), "b");
    EXPECT_EQ(text(1, 5), "pending");

    cluster->drop = [](const Frame& f) { return of(f, Kind::fetch, 1) || of(f, Kind::lane_record, 0); };
    admit(2);
    cluster->settle();
    EXPECT_EQ(cluster->node(2).read(kSyncCountOffset), 0U);
    EXPECT_EQ(leftovers(1), 1U);
    return ask(1, {.kind = static_cast<std::uint8_t>(Kind::lane), .client = 1});
  }
  void lead_by_the_returned_node() {
    cluster->drop = nullptr;
    cluster->settle();
    EXPECT_TRUE(has_all(2));
    ++plan.epoch;
    plan.serving = 0b110;
    plan.lead_all(2);
    cluster->enter_all(plan);
    cluster->settle();
  }
};

TEST_F(KvReturn, NodeReturns_ExpectTableAndLanesWhole) {
  start();
  for (std::uint32_t i = 1; i <= 60; ++i)
    ASSERT_EQ(write(0, i, std::string(i * 17, 'a'), i, static_cast<std::uint16_t>(i % 50)).status(), Status::ok);
  ASSERT_EQ(ask(0, request(Kind::remove, 60, 500)).status(), Status::ok);
  cluster->settle();
  cluster->kill(2);
  next_epoch(0b011, 0);
  cluster->settle();
  admit(2);
  EXPECT_EQ(cluster->node(2).read(kSyncCountOffset), 256U);
  EXPECT_EQ(text(2, 5), "not_serving");
  cluster->settle();
  ASSERT_TRUE(has_all(2));
  ++plan.epoch;
  plan.serving = 0b111;
  plan.lead_all(2);
  cluster->enter_all(plan);
  cluster->settle();
  for (std::uint32_t i = 1; i < 60; ++i) EXPECT_EQ(text(2, i), std::string(i * 17, 'a'));
  EXPECT_EQ(text(2, 60), "no_such_key");
  const Frame again = write(2, 49, std::string(49 * 17, 'a'), 49, 49);
  EXPECT_EQ(again.header.version, read(2, 49).header.version) << "from the lane's record";
}

TEST_F(KvReturn, WritesMeanwhile_ExpectTheNewestKept) {
  start();
  ASSERT_EQ(write(0, 5, "a", 1).status(), Status::ok);
  cluster->kill(2);
  next_epoch(0b011, 0);
  cluster->settle();
  std::vector<Frame> held;
  cluster->drop = [&](const Frame& f) {
    if (f.kind() != Kind::entry) return false;
    held.push_back(f);
    return true;
  };
  admit(2);
  cluster->run(cluster->now + 3000);
  EXPECT_EQ(write(0, 5, "b", 2).status(), Status::ok);
  cluster->settle();
  cluster->drop = nullptr;
  for (const Frame& f : held) cluster->send(f.from, f.to, {f.header, f.value});
  cluster->settle();
  EXPECT_TRUE(has_all(2));
  ++plan.epoch;
  plan.serving = 0b111;
  cluster->enter_all(plan);
  cluster->settle();
  EXPECT_EQ(text(2, 5), "b");
}

TEST_F(KvReturn, LostFramesAndAnEpochBetween_ExpectItToGoOn) {
  start();
  for (std::uint32_t i = 1; i <= 20; ++i) ASSERT_EQ(write(0, i, "x", i).status(), Status::ok);
  cluster->kill(2);
  next_epoch(0b011, 0);
  cluster->settle();
  cluster->drop = [n = 0](const Frame& f) mutable {
    const bool counts =
        f.kind() == Kind::fetch || f.kind() == Kind::entry || f.kind() == Kind::lane || f.kind() == Kind::lane_record;
    return counts && ++n % 3 == 0;
  };
  admit(2);
  cluster->run(cluster->now + 15'000);
  EXPECT_FALSE(has_all(2));
  ++plan.epoch;
  plan.lead_all(1);
  cluster->enter_all(plan);
  cluster->run(cluster->now + 5000 * Cluster::kRetry);  // what is lost again and again comes later each time
  ASSERT_TRUE(has_all(2));
  EXPECT_GT(cluster->node(2).read(kRetriesOffset), 0U);
  ++plan.epoch;
  plan.serving = 0b111;
  cluster->enter_all(plan);
  cluster->settle();
  for (std::uint32_t i = 1; i <= 20; ++i) EXPECT_EQ(text(2, i), "x");
}

TEST_F(KvReturn, WriteInFlightWhenItAsksForTheLane_ExpectTheNumberBefore) {
  start();
  cluster->kill(2);
  next_epoch(0b011, 0);
  cluster->settle();
  ASSERT_EQ(write(0, 5, "a", 40).status(), Status::ok);
  cluster->settle();
  write_that_reaches(0, 0b010, 5, "b", 41);
  cluster->drop = [](const Frame& f) { return f.kind() == Kind::replicate || f.kind() == Kind::replicated; };
  admit(2);
  cluster->settle();
  ASSERT_EQ(cluster->node(2).read(kSyncLanesOffset), 0U);
  cluster->kill(0);  // and 41 with it, but for what node 1 has
  ++plan.epoch;
  plan.members = plan.serving = 0b110;
  plan.lead_all(2);
  cluster->drop = nullptr;
  cluster->enter_all(plan);
  cluster->settle();
  EXPECT_EQ(text(1, 5), "a");
  EXPECT_EQ(write(2, 5, "b", 41).header.version, 2U) << "41 is new to it";
}

/// Node 2 got the write in an entry from a leader that died. Only node 1 knows which lane's write it was.
TEST_F(KvReturn, CommittedWriteLeftOverWhenItAsksForTheLane_ExpectItsRecord) {
  const Frame record = lane_of_a_leftover();
  EXPECT_EQ(record.status(), Status::busy) << "it may be committed, or taken back";
  EXPECT_EQ(record.header.key, 40U);
  cluster->kill(0);
  cluster->drop = [](const Frame& f) { return of(f, Kind::replicate, 1); };
  next_epoch(0b110, 1);
  cluster->settle();
  EXPECT_NE(cluster->node(2).read(kSyncLanesOffset), 0U);
  lead_by_the_returned_node();
  EXPECT_EQ(write(2, 5, "b", 41).header.version, 2U) << "not once more";
  EXPECT_EQ(text(1, 5), "b");
}

TEST_F(KvReturn, TellLeftovers_ExpectTheWriteOnceMore) {
  const Frame record = lane_of_a_leftover({NodeFault::tell_leftovers});
  EXPECT_EQ(record.status(), Status::ok);
  EXPECT_EQ(record.header.key, 40U);
  cluster->kill(0);
  cluster->drop = [](const Frame& f) { return of(f, Kind::replicate, 1); };
  next_epoch(0b110, 1);
  cluster->settle();
  lead_by_the_returned_node();
  EXPECT_EQ(write(2, 5, "b", 41).header.version, 3U) << "the rule is not needed";
}

TEST_F(KvReturn, LaneRecordOfAnotherEpoch_ExpectItIgnored) {
  start();
  cluster->kill(2);
  next_epoch(0b011, 0);
  cluster->settle();
  std::vector<Frame> records;
  cluster->drop = [&](const Frame& f) {
    if (f.kind() == Kind::lane_record) records.push_back(f);
    return f.kind() == Kind::lane_record;
  };
  admit(2);
  cluster->run(cluster->now + 3000);
  ASSERT_FALSE(records.empty());
  cluster->drop = nullptr;
  const std::uint32_t left = cluster->node(2).read(kSyncLanesOffset);
  ASSERT_NE(left, 0U);
  const auto arrive = [&] {
    for (const Frame& f : records) cluster->node(2).receive(f.from, {f.header, f.value}, cluster->now);
  };
  // A record from a sender that had not entered this epoch, in which no write is committed without node 2.
  for (Frame& f : records) --f.header.epoch;
  arrive();
  EXPECT_EQ(cluster->node(2).read(kSyncLanesOffset), left);
  for (Frame& f : records) ++f.header.epoch;
  arrive();
  EXPECT_LT(cluster->node(2).read(kSyncLanesOffset), left);
}

}  // namespace
}  // namespace wherry::kv::testing
