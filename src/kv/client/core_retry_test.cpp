// SPDX-License-Identifier: Apache-2.0
// Tests ClientCore with refusals, other leaders, other epochs and silence: when it repeats a request, to which node,
// and when it gives up.
#include "kv/client/core.hpp"

#include <gtest/gtest.h>

#include "kv/client/core_rig_testing.hpp"
#include "kv/serial.hpp"

namespace wherry::kv {
namespace {

using namespace testing;

TEST(KvClientCore, NotLeader_AsksTheLeaderAndRemembers) {
  Rig rig(lanes(1));
  rig.start();
  ASSERT_TRUE(rig.put(1, "x"));
  const Sent first = rig.take();
  const auto leader = static_cast<std::uint8_t>((first.node + 1) % 3);
  rig.reply(first, first.node, Status::not_leader, 1, leader);
  const Sent second = rig.take();
  EXPECT_EQ(second.node, leader);
  EXPECT_EQ(second.header.request, first.header.request);
  rig.reply(first, first.node, Status::not_leader, 1, leader);  // repeated
  EXPECT_TRUE(rig.sent.empty());
  rig.reply(second, leader, Status::ok, 1, leader, 4);
  EXPECT_EQ(rig.take_end().version, 4);
  ASSERT_TRUE(rig.put(1, "y"));
  EXPECT_EQ(rig.take().node, leader);
}

TEST(KvClientCore, NodesThatNameEachOther_ClientPauses) {
  Rig rig(lanes(1));
  rig.start();
  ASSERT_TRUE(rig.put(1, "x", 0, rig.now + 50 * kMillisecond));
  const Cycles before = rig.now;
  for (int i = 0; i < 5; ++i) {
    const Sent sent = rig.take();
    rig.reply(sent, sent.node, Status::not_leader, 1, static_cast<std::uint8_t>((sent.node + 1) % 3));
  }
  EXPECT_TRUE(rig.sent.empty());
  rig.pass();
  EXPECT_GT(rig.now, before);
  EXPECT_EQ(rig.take().kind(), Kind::write);
}

TEST(KvClientCore, StaleEpoch_RetriesInTheNewOne) {
  Rig rig(lanes(1));
  rig.start(0, 1);
  ASSERT_TRUE(rig.put(1, "x"));
  const Sent first = rig.take();
  EXPECT_EQ(first.header.epoch, 1);
  rig.reply(first, first.node, Status::stale_epoch, 2, first.node);
  const Sent second = rig.take();
  EXPECT_EQ(second.header.epoch, 2);
  EXPECT_EQ(second.header.request, first.header.request);
  rig.reply(first, first.node, Status::stale_epoch, 2, first.node);  // repeated
  EXPECT_TRUE(rig.sent.empty());
  rig.reply(second, second.node, Status::ok, 2, second.node, 1);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kOk);
}

TEST(KvClientCore, LateReplyOfAnOlderEpoch_IsNotBelieved) {
  Rig rig(lanes(1));
  rig.start(0, 1);
  ASSERT_TRUE(rig.put(1, "x"));
  const Sent first = rig.take();
  const auto other = static_cast<std::uint8_t>((first.node + 1) % 3);
  rig.pass();
  const Sent again = rig.take();  // the timeout
  rig.reply(again, again.node, Status::stale_epoch, 2, other);
  const Sent second = rig.take();
  EXPECT_EQ(second.node, other);
  // The old leader sent its refusal after the first try; it arrives only now.
  rig.reply(first, first.node, Status::version_mismatch, 1, first.node, 8);
  rig.reply(first, first.node, Status::ok, 1, first.node, 8);
  EXPECT_TRUE(rig.ended.empty());
  EXPECT_TRUE(rig.sent.empty());
  rig.reply(second, other, Status::ok, 2, other, 9);
  EXPECT_EQ(rig.take_end().version, 9);
}

TEST(KvClientCore, NodeLagsBehind_ClientNeverGoesBack) {
  Rig rig(lanes(1));
  rig.start(0, 5);
  ASSERT_TRUE(rig.put(1, "x"));
  const Sent first = rig.take();
  rig.reply(first, first.node, Status::stale_epoch, 4, static_cast<std::uint8_t>((first.node + 1) % 3));
  EXPECT_EQ(rig.core->epoch(), 5);
  EXPECT_TRUE(rig.sent.empty());  // it waits for the node to enter the epoch
  rig.pass();
  const Sent second = rig.take();
  EXPECT_EQ(second.header.epoch, 5);
  EXPECT_EQ(second.node, first.node);
}

TEST(KvClientCore, Epochs_WrapAround) {
  Rig rig(lanes(1));
  rig.start(0, 65535);
  ASSERT_TRUE(rig.put(1, "x"));
  const Sent first = rig.take();
  rig.reply(first, first.node, Status::stale_epoch, 1, first.node);  // 0 is skipped
  const Sent second = rig.take();
  EXPECT_EQ(second.header.epoch, 1);
  rig.reply(second, second.node, Status::stale_epoch, 65535, second.node);
  EXPECT_EQ(rig.core->epoch(), 1);
  rig.reply(second, second.node, Status::ok, 1, second.node, 3);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kOk);
  EXPECT_TRUE(epoch_newer(1, 0) && epoch_newer(40000, 0) && !epoch_newer(0, 65535) && !epoch_newer(0, 1));
  EXPECT_TRUE(epoch_newer(1, 65535) && !epoch_newer(65535, 1) && epoch_newer(32768, 1) && !epoch_newer(1, 1));
}

TEST(KvClientCore, Busy_PausesGrowAndTheSameIsSentAgain) {
  Rig rig(lanes(1));
  rig.start();
  ASSERT_TRUE(rig.put(1, "x"));
  Cycles shortest = kNever, longest = 0;
  for (int i = 0; i < 20; ++i) {
    const Sent sent = rig.take();
    rig.reply(sent, sent.node, Status::busy, 1, sent.node);
    rig.reply(sent, sent.node, Status::busy, 1, sent.node);  // repeated
    const Cycles before = rig.now;
    rig.pass();
    ASSERT_EQ(rig.sent.size(), 1);
    EXPECT_EQ(rig.sent.front().node, sent.node);
    EXPECT_EQ(rig.sent.front().header, sent.header);
    shortest = std::min(shortest, rig.now - before);
    longest = std::max(longest, rig.now - before);
  }
  EXPECT_LE(shortest, rig.options.first_pause + 1);
  EXPECT_GT(longest, rig.options.pause_cap / 2);
  EXPECT_LE(longest, rig.options.pause_cap + 1);
}

TEST(KvClientCore, NotServing_ReadsAskAnother) {
  Rig rig(lanes(0));
  ASSERT_TRUE(rig.get(1));
  const Sent first = rig.take();
  rig.reply(first, first.node, Status::not_serving, 0, 0);
  const Sent second = rig.take();
  EXPECT_NE(second.node, first.node);
  rig.reply(second, second.node, Status::ok, 1, 0, 6, "value");
  const Ended end = rig.take_end();
  EXPECT_EQ(end.value, bytes("value"));
  EXPECT_EQ(end.version, 6);
}

TEST(KvClientCore, Pending_ReadAsksTheLeader) {
  Rig rig(lanes(0));
  ASSERT_TRUE(rig.get(1));
  const Sent first = rig.take();
  const auto leader = static_cast<std::uint8_t>((first.node + 2) % 3);
  rig.reply(first, first.node, Status::pending, 1, leader);
  const Sent second = rig.take();
  EXPECT_EQ(second.node, leader);
  EXPECT_EQ(second.header.request, first.header.request);
  rig.reply(second, leader, Status::no_such_key, 1, leader);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kNoSuchKey);
}

TEST(KvClientCore, LostRequests_SentAgainWithDoubledTimeouts) {
  ClientCore::Options o = lanes(1);
  o.timeout_cap = 16 * kMillisecond;
  Rig rig(o);
  rig.start();
  ASSERT_TRUE(rig.put(1, "x"));
  const Sent first = rig.take();
  Cycles last = rig.now;
  int scattered = 0;  // a quarter at random, so that clients do not come back together
  for (const Cycles expected :
       {2 * kMillisecond, 4 * kMillisecond, 8 * kMillisecond, 16 * kMillisecond, 16 * kMillisecond}) {
    rig.pass();
    EXPECT_GE(rig.now - last, expected);
    EXPECT_LE(rig.now - last, expected + expected / 4);
    if (rig.now - last != expected) ++scattered;
    last = rig.now;
    const Sent again = rig.take();
    EXPECT_EQ(again.header.request, first.header.request);
  }
  EXPECT_GE(scattered, 3);
}

TEST(KvClientCore, LeaderDies_WriteFindsTheNewOne) {
  Rig rig(lanes(1));
  rig.start();
  ASSERT_TRUE(rig.put(1, "x"));
  const std::uint8_t dead = rig.sent.front().node;
  const auto heir = static_cast<std::uint8_t>((dead + 2) % 3);
  for (int i = 0; i < 100 && rig.ended.empty(); ++i) {
    if (rig.sent.empty()) rig.pass();
    if (rig.sent.empty()) break;
    const Sent sent = rig.take();
    if (sent.node == dead) continue;
    const bool moved = rig.now > 100 * kMillisecond;  // the keeper takes its time
    if (!moved) {
      rig.reply(sent, sent.node, Status::not_leader, 1, dead);
    } else if (sent.header.epoch != 2) {
      rig.reply(sent, sent.node, Status::stale_epoch, 2, heir);
    } else {
      rig.reply(sent, sent.node, sent.node == heir ? Status::ok : Status::not_leader, 2, heir, 1);
    }
  }
  EXPECT_EQ(rig.take_end().outcome, Outcome::kOk);
}

TEST(KvClientCore, AllNodesDead_UnknownAtTheDeadline) {
  Rig rig(lanes(1));
  rig.start();
  const Cycles deadline = rig.now + 300 * kMillisecond;
  ASSERT_TRUE(rig.put(1, "x", 5, deadline));
  ASSERT_TRUE(rig.get(1, 6, deadline));
  while (rig.ended.size() < 2) {
    rig.sent.clear();
    rig.pass();
    ASSERT_LE(rig.now, deadline);
    if (rig.ended.size() == 1) rig.core->tick(rig.now);
  }
  EXPECT_EQ(rig.now, deadline);
  for (const Ended& end : rig.ended) EXPECT_EQ(end.outcome, end.tag == 5 ? Outcome::kUnknown : Outcome::kNoAnswer);
  EXPECT_EQ(rig.core->in_flight(), 0);
}

TEST(KvClientCore, NobodyEverAnswers_WriteWasNotSentForCertain) {
  Rig rig(lanes(1));
  ASSERT_TRUE(rig.put(1, "x", 5, rig.now + 300 * kMillisecond));
  while (rig.ended.empty()) {
    for (const Sent& sent : rig.sent) EXPECT_EQ(sent.kind(), Kind::lane);
    rig.sent.clear();
    rig.pass();
  }
  EXPECT_EQ(rig.take_end().outcome, Outcome::kNoAnswer);
}

TEST(KvClientCore, GivenUpWrite_ItsLateReplyIsIgnoredAndTheLaneGoesOn) {
  Rig rig(lanes(1));
  rig.start();
  ASSERT_TRUE(rig.put(1, "x", 5, rig.now + kMillisecond));
  const Sent first = rig.take();
  rig.pass();
  EXPECT_EQ(rig.take_end().outcome, Outcome::kUnknown);
  ASSERT_TRUE(rig.put(1, "y", 6));
  const Sent second = rig.take();
  EXPECT_EQ(second.header.request, first.header.request + 1);
  rig.reply(first, first.node, Status::ok, 1, first.node, 3);
  EXPECT_TRUE(rig.ended.empty());
  rig.reply(second, second.node, Status::ok, 1, second.node, 4);
  EXPECT_EQ(rig.take_end().tag, 6);
}

}  // namespace
}  // namespace wherry::kv
