// SPDX-License-Identifier: Apache-2.0
// Tests within one epoch: statuses, versions, lanes, the window, loss and repetition of each frame, counters.
#include "kv/node/node.hpp"

#include <gtest/gtest.h>

#include <set>

#include "kv/node/testing.hpp"

namespace wherry::kv::testing {
namespace {

using namespace registers;

constexpr std::uint16_t kEpoch = 7;

Kv request(Kind kind, std::uint64_t key, std::uint32_t number, std::uint32_t version = 0, std::uint16_t lane = 1) {
  return {.kind = static_cast<std::uint8_t>(kind),
          .epoch = kEpoch,
          .client = lane,
          .request = number,
          .version = version,
          .key = key};
}

/// Nodes in epoch 7; node 0 leads it.
class KvNode : public ::testing::Test {
 protected:
  explicit KvNode(unsigned nodes = 3) : cluster(nodes, {.lane_bits = 8}) {
    plan.epoch = kEpoch;
    plan.members = plan.serving = static_cast<std::uint8_t>((1U << nodes) - 1);
    cluster.enter_all(plan);
    cluster.settle();
  }
  Frame ask(unsigned node, const Kv& h, const std::vector<std::byte>& value = {}) {
    const auto frame = cluster.call(node, h, value);
    EXPECT_TRUE(frame.has_value()) << name_of(static_cast<Kind>(h.kind));
    return frame.value_or(Frame{});
  }
  Frame write(std::uint64_t key, std::string_view value, std::uint32_t number) {
    return ask(0, request(Kind::write, key, number), bytes_of(value));
  }
  Frame read(unsigned node, std::uint64_t key) { return ask(node, request(Kind::read, key, ++tag)); }
  std::uint32_t state(unsigned node) { return cluster.node(node).read(kStateOffset); }
  std::uint32_t sent(unsigned node, Kind kind) {
    return cluster.node(node).read(sent_offset(static_cast<std::uint32_t>(kind)));
  }
  void lose(Kind kind, unsigned times = ~0U, std::optional<unsigned> to = {}) {
    cluster.drop = [=, left = times](const Frame& f) mutable {
      if (f.kind() != kind || left == 0 || (to && !(f.to == node_at(*to)))) return false;
      --left;
      return true;
    };
  }

  Cluster cluster;
  Plan plan;
  std::uint32_t tag = 1000;
};

TEST_F(KvNode, Write_ExpectEveryNodeReadsIt) {
  const Frame done = write(5, "hello", 1);
  EXPECT_EQ(done.kind(), Kind::write_done);
  EXPECT_EQ(done.status(), Status::ok);
  EXPECT_EQ(done.header.version, 1U);
  EXPECT_EQ(done.header.epoch, kEpoch);
  cluster.settle();
  for (unsigned node = 0; node < 3; ++node) {
    const Frame got = read(node, 5);
    EXPECT_EQ(got.status(), Status::ok);
    EXPECT_EQ(got.header.version, 1U);
    EXPECT_EQ(got.header.node, 0);
    EXPECT_EQ(got.value, bytes_of("hello"));
    EXPECT_EQ(read(node, 6).status(), Status::no_such_key);
  }
}

TEST_F(KvNode, FollowerDoesNotAnswer_ExpectItAskedAfterTwiceAsLongEachTimeAndReported) {
  std::vector<Cycles> sent_at;
  cluster.drop = [&](const Frame& f) {
    if (f.kind() != Kind::replicate || !(f.to == node_at(2))) return false;
    sent_at.push_back(cluster.now);
    return true;
  };
  cluster.send(client_at(0), node_at(0), {request(Kind::write, 5, 1), {}});
  const Cycles start = cluster.now;
  cluster.run(start + 1000 * Cluster::kRetry);
  ASSERT_GT(sent_at.size(), 8U);
  EXPECT_LT(sent_at.size(), 25U) << "a thousand without back-off";
  for (std::size_t i = 2; i < sent_at.size(); ++i) {
    const Cycles gap = sent_at[i] - sent_at[i - 1];
    EXPECT_GE(gap + 1, std::min(2 * (sent_at[i - 1] - sent_at[i - 2]), 64 * Cluster::kRetry));
    EXPECT_LE(gap, 65 * Cluster::kRetry) << "bounded";
  }
  AnyNode& leader = cluster.node(0);
  leader.set_now(cluster.now);
  EXPECT_EQ(leader.silent_members(300 * Cluster::kRetry), 0b100);
  EXPECT_EQ(leader.silent_members(2000 * Cluster::kRetry), 0) << "not for so long";
  leader.set_now(cluster.now);
  EXPECT_EQ(cluster.node(1).silent_members(1), 0) << "nothing waits at a follower";
  cluster.drop = nullptr;
  cluster.run(cluster.now + 65 * Cluster::kRetry);
  leader.set_now(cluster.now);
  EXPECT_EQ(leader.silent_members(1), 0);
  EXPECT_EQ(read(2, 5).status(), Status::ok);
}

TEST_F(KvNode, EmptyAndLongestValue_ExpectThemWhole) {
  std::uint32_t number = 0;
  for (const std::size_t length : {0U, 1U, 1023U, 1024U}) {
    const std::string value(length, static_cast<char>('a' + length % 7));
    EXPECT_EQ(write(9, value, ++number).status(), Status::ok);
    cluster.settle();
    for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(read(node, 9).value, bytes_of(value));
  }
}

TEST_F(KvNode, Remove_ExpectItGoneAndVersionsThatNeverComeAgain) {
  EXPECT_EQ(write(5, "a", 1).header.version, 1U);
  const Frame removed = ask(0, request(Kind::remove, 5, 2));
  EXPECT_EQ(removed.kind(), Kind::remove_done);
  EXPECT_EQ(removed.header.version, 2U);
  cluster.settle();
  for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(read(node, 5).status(), Status::no_such_key);
  EXPECT_EQ(write(5, "b", 3).header.version, 3U);
  EXPECT_EQ(ask(0, request(Kind::write_if, 5, 4, 1), bytes_of("c")).status(), Status::version_mismatch);
  EXPECT_EQ(ask(0, request(Kind::remove_if, 5, 5, 1)).status(), Status::version_mismatch);
}

TEST_F(KvNode, NewKeyOfABucket_ExpectVersionAboveTheBucketsHighest) {
  const auto keys = keys_of_one_bucket(17, 3);
  EXPECT_EQ(write(keys[0], "a", 1).header.version, 1U);
  EXPECT_EQ(write(keys[1], "b", 2).header.version, 2U);
  EXPECT_EQ(write(keys[0], "c", 3).header.version, 3U);
  EXPECT_EQ(write(keys[2], "d", 4).header.version, 4U);
  cluster.settle();
  EXPECT_EQ(read(2, keys[0]).value, bytes_of("c"));
  EXPECT_EQ(read(2, keys[1]).value, bytes_of("b"));
}

TEST_F(KvNode, Conditions_ExpectTheVersionFound) {
  const Frame none = ask(0, request(Kind::write_if, 5, 1, 4), bytes_of("a"));
  EXPECT_EQ(none.status(), Status::version_mismatch);
  EXPECT_EQ(none.header.version, 0U);
  EXPECT_EQ(ask(0, request(Kind::write_if, 5, 2, 0), bytes_of("a")).status(), Status::ok);
  const Frame there = ask(0, request(Kind::write_if, 5, 3, 0), bytes_of("b"));
  EXPECT_EQ(there.status(), Status::version_mismatch);
  EXPECT_EQ(there.header.version, 1U);
  EXPECT_EQ(ask(0, request(Kind::write_if, 5, 4, 1), bytes_of("b")).header.version, 2U);
  EXPECT_EQ(ask(0, request(Kind::remove_if, 5, 5, 2)).status(), Status::ok);
  EXPECT_EQ(ask(0, request(Kind::remove_if, 5, 6, 3)).status(), Status::no_such_key);
  EXPECT_EQ(ask(0, request(Kind::remove, 5, 7)).status(), Status::no_such_key);
}

TEST_F(KvNode, FullBucket_ExpectTableFullForAFifthKeyOnly) {
  const auto keys = keys_of_one_bucket(200, 5);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(write(keys[i], "x", i + 1).status(), Status::ok);
  EXPECT_EQ(write(keys[4], "x", 5).status(), Status::table_full);
  EXPECT_EQ(write(keys[2], "y", 6).status(), Status::ok);
  EXPECT_EQ(ask(0, request(Kind::remove, keys[0], 7)).status(), Status::ok);
  EXPECT_EQ(write(keys[4], "z", 8).status(), Status::ok) << "a way is free again";
}

TEST_F(KvNode, RepeatedRequest_ExpectTheRecordedAnswer) {
  EXPECT_EQ(write(5, "a", 1).header.version, 1U);
  EXPECT_EQ(write(5, "a", 1).header.version, 1U);
  EXPECT_EQ(ask(0, request(Kind::write_if, 5, 2, 9), bytes_of("b")).status(), Status::version_mismatch);
  for (std::uint32_t lane = 2; lane < 10; ++lane)  // the version that was expected comes to pass
    (void)ask(0, request(Kind::write, 5, 1, 0, static_cast<std::uint16_t>(lane)), bytes_of("c"));
  EXPECT_EQ(read(0, 5).header.version, 9U);
  const Frame again = ask(0, request(Kind::write_if, 5, 2, 9), bytes_of("b"));
  EXPECT_EQ(again.status(), Status::version_mismatch);
  EXPECT_EQ(again.header.version, 1U);
  EXPECT_EQ(read(0, 5).header.version, 9U);
}

TEST_F(KvNode, RequestBeforeTheRecord_ExpectItDropped) {
  (void)write(5, "a", 10);
  EXPECT_FALSE(cluster.call(0, request(Kind::write, 5, 9), bytes_of("b")));
  EXPECT_EQ(cluster.node(0).read(kDroppedDuplicateOffset), 1U);
  EXPECT_EQ(read(0, 5).value, bytes_of("a"));
}

TEST_F(KvNode, NumbersThatWrap_ExpectNewerOnes) {
  EXPECT_EQ(write(5, "a", 0x7fffffff).status(), Status::ok);
  EXPECT_EQ(write(5, "b", 0xfffffffe).status(), Status::ok);
  EXPECT_EQ(write(5, "c", 1).status(), Status::ok);
  cluster.settle();
  EXPECT_EQ(read(1, 5).value, bytes_of("c"));
}

TEST_F(KvNode, FormsThatNoRequestHas_ExpectFinalRefusals) {
  EXPECT_EQ(write(5, std::string(1025, 'x'), 1).status(), Status::too_long);
  EXPECT_EQ(ask(0, request(Kind::read, 5, 2), bytes_of("x")).status(), Status::bad_frame);
  EXPECT_EQ(ask(0, request(Kind::remove, 5, 3), bytes_of("x")).status(), Status::bad_frame);
  Kv detail = request(Kind::write, 5, 4);
  detail.detail = 1;
  EXPECT_EQ(ask(0, detail).status(), Status::bad_frame);
  Kv node = request(Kind::read, 5, 5);
  node.node = 1;
  EXPECT_EQ(ask(0, node).status(), Status::bad_frame);
  EXPECT_EQ(ask(0, request(Kind::ping, 0, 6), bytes_of("x")).status(), Status::bad_frame);
  EXPECT_EQ(ask(0, request(Kind::lane, 0, 7), bytes_of("x")).status(), Status::bad_frame);
  EXPECT_EQ(ask(0, request(Kind::write, 5, 8, 0, 256)).status(), Status::bad_lane);
  EXPECT_EQ(ask(0, request(Kind::lane, 0, 9, 0, 256)).status(), Status::bad_lane);
  EXPECT_EQ(ask(0, request(Kind::read, 5, 10, 0, 60000)).status(), Status::no_such_key) << "a read's is a tag";
}

TEST_F(KvNode, WrongPlaceOrTime_ExpectAskAgain) {
  const Frame other = ask(1, request(Kind::write, 5, 1));
  EXPECT_EQ(other.status(), Status::not_leader);
  EXPECT_EQ(other.header.node, 0);
  Kv old = request(Kind::write, 5, 1);
  old.epoch = kEpoch - 1;
  const Frame stale = ask(0, old);
  EXPECT_EQ(stale.status(), Status::stale_epoch);
  EXPECT_EQ(stale.header.epoch, kEpoch);
  Kv ancient = request(Kind::read, 5, 2);
  ancient.epoch = 1;
  EXPECT_EQ(ask(1, ancient).status(), Status::no_such_key) << "reads are of any epoch";
}

TEST_F(KvNode, LeaseThatEnds_ExpectNotServing) {
  (void)write(5, "a", 1);
  cluster.settle();
  for (unsigned node = 0; node < 3; ++node) cluster.lease(node, cluster.now + 50'000);
  EXPECT_EQ(read(1, 5).status(), Status::ok);
  EXPECT_TRUE(kStateServing.get(state(1)));
  cluster.run(cluster.now + 60'000);
  EXPECT_EQ(read(1, 5).status(), Status::not_serving);
  EXPECT_EQ(write(5, "b", 2).status(), Status::not_serving);
  EXPECT_EQ(ask(1, request(Kind::ping, 0, 77)).status(), Status::not_serving);
  EXPECT_FALSE(kStateServing.get(state(1)));
}

TEST_F(KvNode, LeaseThatEndsInAWrite_ExpectItCommitted) {
  cluster.drop = [](const Frame& f) { return f.kind() == Kind::replicate; };
  cluster.lease(0, cluster.now + 3000);
  cluster.send(client_at(0), node_at(0), {request(Kind::write, 5, 1), bytes_of("a")});
  cluster.run(cluster.now + 5000);
  EXPECT_EQ(kStateInFlight.get(state(0)), 1U);
  cluster.drop = nullptr;
  cluster.settle();
  EXPECT_EQ(kStateInFlight.get(state(0)), 0U);
  EXPECT_EQ(read(2, 5).value, bytes_of("a"));
}

TEST_F(KvNode, BucketInFlight_ExpectBusyForItAlone) {
  const auto keys = keys_of_one_bucket(33, 2);
  lose(Kind::replicated);
  cluster.send(client_at(0), node_at(0), {request(Kind::write, keys[0], 1), bytes_of("a")});
  cluster.run(cluster.now + 3000);
  EXPECT_EQ(ask(0, request(Kind::write, keys[1], 1, 0, 2)).status(), Status::busy);
  EXPECT_FALSE(cluster.call(0, request(Kind::write, keys[0], 1), bytes_of("a"))) << "the answer will come";
  EXPECT_EQ(read(0, keys[0]).status(), Status::no_such_key) << "the leader shows what is committed";
  EXPECT_EQ(read(1, keys[0]).status(), Status::pending);
  EXPECT_EQ(read(1, keys[1]).status(), Status::pending) << "the bucket, not the key";
  cluster.drop = nullptr;
  cluster.settle();
  EXPECT_EQ(read(1, keys[0]).value, bytes_of("a"));
}

TEST_F(KvNode, FullWindow_ExpectBusy) {
  lose(Kind::replicated);
  std::set<std::uint32_t> buckets;
  std::uint64_t key = 0;
  for (std::uint16_t lane = 0; lane < 64; ++lane) {
    while (!buckets.insert(bucket_of_key(++key)).second) continue;
    cluster.send(client_at(0), node_at(0), {request(Kind::write, key, 1, 0, lane), bytes_of("a")});
  }
  cluster.run(cluster.now + 3000);
  EXPECT_EQ(kStateInFlight.get(state(0)), 64U);
  while (!buckets.insert(bucket_of_key(++key)).second) continue;
  EXPECT_EQ(ask(0, request(Kind::write, key, 1, 0, 100)).status(), Status::busy);
  cluster.drop = nullptr;
  cluster.settle();
  EXPECT_EQ(kStateInFlight.get(state(0)), 0U);
  EXPECT_EQ(ask(0, request(Kind::write, key, 1, 0, 100)).status(), Status::ok);
}

TEST_F(KvNode, LostReplicateOrItsAnswer_ExpectItSentAgain) {
  std::uint32_t number = 0;
  for (const Kind kind : {Kind::replicate, Kind::replicated}) {
    lose(kind, 3);
    EXPECT_EQ(write(5, "a", ++number).status(), Status::ok);
  }
  EXPECT_GE(cluster.node(0).read(kRetriesOffset), 3U);
  for (const Kind kind : {Kind::replicate_remove, Kind::replicated_remove}) {
    (void)write(5, "a", ++number);
    lose(kind, 3);
    EXPECT_EQ(ask(0, request(Kind::remove, 5, ++number)).status(), Status::ok);
  }
  cluster.settle();
  for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(read(node, 5).status(), Status::no_such_key);
}

TEST_F(KvNode, LostCommit_ExpectPendingUntilAReadAsks) {
  lose(Kind::commit, 1, 1);
  (void)write(5, "a", 1);
  cluster.settle();
  const Frame pending = read(1, 5);
  EXPECT_EQ(pending.status(), Status::pending);
  EXPECT_EQ(pending.header.node, 0);
  EXPECT_EQ(read(2, 5).value, bytes_of("a"));
  cluster.run(cluster.now + 5000);
  EXPECT_EQ(read(1, 5).value, bytes_of("a"));
}

TEST_F(KvNode, LostCommitOfARemoval_ExpectTheSame) {
  (void)write(5, "a", 1);
  lose(Kind::commit, 1, 1);
  (void)ask(0, request(Kind::remove, 5, 2));
  cluster.settle();
  EXPECT_EQ(read(1, 5).status(), Status::pending);
  cluster.run(cluster.now + 5000);
  EXPECT_EQ(read(1, 5).status(), Status::no_such_key);
}

TEST_F(KvNode, LostCommit_ExpectAtMostOneQuestionPerRetry) {
  lose(Kind::commit);
  (void)write(5, "a", 1);
  cluster.settle();
  const auto before = sent(1, Kind::replicated);
  for (int i = 0; i < 5; ++i) (void)read(1, 5);
  EXPECT_EQ(sent(1, Kind::replicated), before + 1);
}

TEST_F(KvNode, NextWriteAtThePlace_ExpectTheLostCommitMadeUp) {
  lose(Kind::commit, 1, 1);
  (void)write(5, "a", 1);
  cluster.settle();
  (void)write(77, "b", 2);
  cluster.settle();
  EXPECT_EQ(read(1, 5).value, bytes_of("a"));
}

TEST_F(KvNode, EveryFrameTwice_ExpectOneEffect) {
  Cluster twice(3, {.lane_bits = 8}, {.repeat = 1.0, .shortest = 100, .longest = 9000});
  twice.enter_all(plan);
  twice.settle();
  for (std::uint32_t number = 1; number <= 50; ++number) {
    const auto done = twice.call(0, request(Kind::write, 5, number), bytes_of("a"));
    ASSERT_TRUE(done);
    if (done->status() == Status::busy) {
      twice.settle();
      --number;
      continue;
    }
    ASSERT_EQ(done->header.version, number);
  }
  twice.settle();
  for (unsigned node = 0; node < 3; ++node) {
    EXPECT_EQ(twice.node(node).table().next_version(bucket_of_key(5)), 51U);
    EXPECT_EQ(twice.call(node, request(Kind::read, 5, 999))->status(), Status::ok);
  }
}

TEST_F(KvNode, OldRepetitionAtAPlaceInUse_ExpectNothingCommittedByIt) {
  std::optional<Frame> old;
  cluster.seen = [&](const Frame& f) {
    if (f.kind() == Kind::replicate && f.to == node_at(1) && !old) old = f;
  };
  (void)write(5, "a", 1);
  cluster.settle();
  lose(Kind::replicated, ~0U, 0);
  cluster.send(client_at(0), node_at(0), {request(Kind::write, 77, 2), bytes_of("b")});
  cluster.run(cluster.now + 2000);
  EXPECT_EQ(read(1, 77).status(), Status::pending);
  cluster.send(old->from, old->to, {old->header, old->value});
  cluster.run(cluster.now + 2000);
  EXPECT_EQ(read(1, 77).status(), Status::pending);
}

TEST_F(KvNode, LaneRecord_ExpectTheLastSettledRequest) {
  (void)write(5, "a", 41);
  cluster.settle();
  for (unsigned node = 0; node < 3; ++node) {
    const Frame record = ask(node, {.kind = 6, .client = 1, .request = 500 + node});
    EXPECT_EQ(record.header.key, 41U);
    EXPECT_EQ(record.header.version, 1U);
    EXPECT_EQ(record.status(), Status::ok);
  }
  lose(Kind::replicated, ~0U, 0);
  cluster.send(client_at(0), node_at(0), {request(Kind::write, 5, 42), bytes_of("b")});
  cluster.run(cluster.now + 2000);
  for (unsigned node = 0; node < 3; ++node) {
    const Frame record = ask(node, {.kind = 6, .client = 1, .request = 600 + node});
    EXPECT_EQ(record.header.key, 41U) << "42 may yet be rolled back";
    EXPECT_EQ(record.header.version, 0U);
  }
}

TEST_F(KvNode, Refusal_ExpectItInTheLeadersRecord) {
  (void)ask(0, request(Kind::remove, 5, 3));
  EXPECT_EQ(ask(0, {.kind = 6, .client = 1, .request = 500}).status(), Status::no_such_key);
}

TEST_F(KvNode, FramesOfStrangers_ExpectThemDropped) {
  const Kv good{.kind = static_cast<std::uint8_t>(Kind::replicate),
                .node = 0,
                .epoch = kEpoch,
                .client = 1,
                .request = 1,
                .version = 1,
                .key = 5};
  const auto feed = [&](const Endpoint& from, const Kv& h, const std::vector<std::byte>& value = {}) {
    cluster.node(1).receive(from, {h, value}, cluster.now);
  };
  Kv other_epoch = good;
  other_epoch.epoch = kEpoch + 1;
  feed(node_at(0), other_epoch);
  Kv no_member = good;
  no_member.node = 5;
  feed(node_at(5), no_member);
  feed(client_at(0), good);
  Kv no_leader = good;
  no_leader.node = 2;
  feed(node_at(2), no_leader);
  EXPECT_EQ(cluster.node(1).read(kDroppedEpochOffset), 4U);
  feed(node_at(0), good, std::vector<std::byte>(1025));
  Kv commit = good;
  commit.kind = static_cast<std::uint8_t>(Kind::commit);
  feed(node_at(0), commit, bytes_of("x"));
  EXPECT_EQ(cluster.node(1).read(kDroppedLengthOffset), 2U);
  feed(client_at(0), {.kind = static_cast<std::uint8_t>(Kind::read_done)});
  feed(client_at(0), {.kind = 31});
  EXPECT_EQ(cluster.node(1).read(received_offset(31)), 1U);
  EXPECT_EQ(cluster.node(1).counters().dropped, 8U);
  EXPECT_EQ(cluster.node(1).table().next_version(bucket_of_key(5)), 1U);
}

TEST_F(KvNode, Counters_ExpectTheirIdentities) {
  (void)write(5, "a", 1);
  (void)write(5, "a", 1);
  EXPECT_FALSE(cluster.call(0, request(Kind::write, 5, 0), bytes_of("b")));
  (void)read(0, 6);
  (void)ask(0, request(Kind::ping, 0, 5));
  cluster.node(0).count_dropped(NodeDrop::kChecksum);
  cluster.node(0).count_dropped(NodeDrop::kLength);
  cluster.node(0).count_passed_rx(3);
  cluster.node(0).count_passed_tx(4);
  cluster.settle();
  for (unsigned node = 0; node < 3; ++node) {
    AnyNode& n = cluster.node(node);
    std::uint32_t received = 0;
    for (std::uint32_t kind = 0; kind < kReceivedCount; ++kind) received += n.read(received_offset(kind));
    const NodeCounters& c = n.counters();
    EXPECT_EQ(n.read(kFramesKvOffset), c.dropped + c.refused + c.answered + c.taken);
    EXPECT_EQ(n.read(kFramesKvOffset), received + n.read(kDroppedChecksumOffset) + n.read(kDroppedLengthOffset));
  }
  AnyNode& n = cluster.node(0);
  EXPECT_EQ(n.read(kDroppedChecksumOffset), 1U);
  EXPECT_EQ(n.read(kFramesPassedRxOffset), 3U);
  EXPECT_EQ(n.read(kFramesPassedTxOffset), 4U);
  EXPECT_EQ(n.read(replies_offset(static_cast<unsigned>(Status::ok))), 2U);
  EXPECT_EQ(n.read(replies_offset(static_cast<unsigned>(Status::no_such_key))), 1U);
  EXPECT_EQ(n.read(sent_offset(static_cast<unsigned>(Kind::replicate))), 2U);
  EXPECT_EQ(n.read(received_offset(static_cast<unsigned>(Kind::replicated))), 2U);
  EXPECT_EQ(n.read(kDroppedBusyOffset), 0U);
  n.write(kControlOffset, kControlEnable.mask() | kControlClearCounters.mask());
  EXPECT_EQ(n.read(kFramesKvOffset), 0U);
  EXPECT_EQ(n.read(kControlOffset), kControlEnable.mask());
}

TEST_F(KvNode, Registers_ExpectWhatTheirPageSays) {
  AnyNode& n = cluster.node(2);
  EXPECT_EQ(n.read(kIdOffset), kIdReset);
  EXPECT_EQ(n.read(kCoreVersionOffset), kCoreVersionReset);
  EXPECT_EQ(kCapabilityLaneBits.get(n.read(kCapabilityOffset)), 8U);
  EXPECT_EQ(kCapabilityMaxFollowers.get(n.read(kCapabilityOffset)), 7U);
  EXPECT_EQ(n.read(kNodeOffset), 2U);
  EXPECT_EQ(n.read(kMembersOffset), 0x0707U);
  EXPECT_EQ(n.read(peer_ip_offset(1)), node_at(1).ip);
  n.write(peer_mac_low_offset(3), 0x33445566);
  n.write(peer_mac_high_offset(3), 0xffff1122);
  EXPECT_EQ(n.read(peer_mac_low_offset(3)), 0x33445566U);
  EXPECT_EQ(n.read(peer_mac_high_offset(3)), 0x1122U);
  n.write(leader_offset(31), 0x76543210);
  EXPECT_EQ(n.read(leader_offset(31)), 0x76543210U);
  n.set_now(0x1'0000'0005);
  EXPECT_EQ(n.read(cycles_offset(0)), 5U);
  n.set_now(0x2'0000'0006);
  EXPECT_EQ(n.read(cycles_offset(1)), 1U) << "latched with the low word";
  n.write(lease_offset(0), 9);
  EXPECT_EQ(n.read(lease_offset(0)), 0xffffffffU) << "the high word sets both";
  n.write(lease_offset(1), 3);
  EXPECT_EQ(n.read(lease_offset(0)), 9U);
  EXPECT_EQ(n.read(lease_offset(1)), 3U);
  n.write(kBucketBitsOffset, 12);
  EXPECT_EQ(n.read(kBucketBitsOffset), Cluster::kBucketBits) << "only with epoch 0";
  n.write(kIdOffset, 1);
  EXPECT_EQ(n.read(kIdOffset), kIdReset);
  EXPECT_EQ(n.read(0xffc), 0U);
}

TEST_F(KvNode, StagedRegisters_ExpectNoEffectBeforeTheEpoch) {
  cluster.node(0).write(kMembersOffset, 0);
  cluster.node(0).write(kNodeOffset, 3);
  EXPECT_EQ(write(5, "a", 1).status(), Status::ok);
}

TEST_F(KvNode, Disabled_ExpectFramesPassed) {
  cluster.node(0).write(kControlOffset, 0);
  EXPECT_FALSE(cluster.call(0, request(Kind::read, 5, 1)));
  EXPECT_EQ(cluster.node(0).read(kFramesPassedRxOffset), 1U);
}

TEST_F(KvNode, NoEpoch_ExpectEverythingRefused) {
  cluster.restart(1);
  cluster.lease(1, kNever);
  EXPECT_EQ(read(1, 5).status(), Status::not_serving);
  EXPECT_EQ(ask(1, request(Kind::write, 5, 1)).status(), Status::not_serving);
  EXPECT_EQ(ask(1, request(Kind::lane, 0, 2)).status(), Status::not_serving);
  const Frame pong = ask(1, request(Kind::ping, 0, 3));
  EXPECT_EQ(pong.status(), Status::not_serving);
  EXPECT_EQ(pong.header.epoch, 0);
}

class KvLoneNode : public KvNode {
 protected:
  KvLoneNode() : KvNode(1) {}
};

TEST_F(KvLoneNode, Write_ExpectItCommittedWhileLeased) {
  EXPECT_EQ(write(5, "a", 1).status(), Status::ok);
  EXPECT_EQ(read(0, 5).value, bytes_of("a"));
  cluster.lease(0, cluster.now);
  EXPECT_EQ(write(5, "b", 2).status(), Status::not_serving);
}

}  // namespace
}  // namespace wherry::kv::testing
