// SPDX-License-Identifier: Apache-2.0
// ClientCore: its reports, the start and numbers of its lanes, the replies that it accepts, and its limits.
#include "kv/client/core.hpp"

#include <gtest/gtest.h>

#include <string>

#include "kv/client/core_rig_testing.hpp"

namespace wherry::kv {
namespace {

using namespace testing;

TEST(KvClientCore, EveryFinalStatus_IsReportedWithItsVersion) {
  const std::pair<Status, Outcome> all[] = {
      {Status::ok, Outcome::kOk},
      {Status::no_such_key, Outcome::kNoSuchKey},
      {Status::version_mismatch, Outcome::kVersionMismatch},
      {Status::table_full, Outcome::kTableFull},
      {Status::too_long, Outcome::kTooLong},
      {Status::bad_frame, Outcome::kBadFrame},
      {Status::bad_lane, Outcome::kBadLane},
  };
  Rig rig(lanes(1));
  rig.start();
  for (const auto& [status, outcome] : all) {
    for (const Kind kind : {Kind::write, Kind::write_if, Kind::remove, Kind::remove_if, Kind::read}) {
      ASSERT_TRUE(rig.core->submit({.kind = kind, .key = 5, .version = 3, .tag = 77}, rig.now));
      const Sent sent = rig.take();
      EXPECT_EQ(sent.kind(), kind);
      EXPECT_EQ(sent.header.version, kind == Kind::read ? 0 : 3);
      rig.reply(sent, sent.node, status, 1, sent.node, 9);
      const Ended end = rig.take_end();
      EXPECT_EQ(end.outcome, outcome);
      EXPECT_EQ(end.version, 9);
      EXPECT_EQ(end.tag, 77);
    }
  }
  EXPECT_EQ(rig.core->in_flight(), 0);
}

TEST(KvClientCore, LaneStart_TakesNewestRecordAndGap) {
  Rig rig(lanes(1));
  rig.core->start(rig.now);
  ASSERT_TRUE(rig.put(1, "x"));
  ASSERT_EQ(rig.sent.size(), 3);
  const std::uint32_t records[] = {0xfffffff0, 7, 0xffff0000};  // 7 is newest: numbers wrap around
  for (const std::uint32_t r : records) {
    EXPECT_EQ(rig.sent.front().kind(), Kind::lane);
    rig.record(rig.take(), r);
  }
  const Sent write = rig.take();
  EXPECT_EQ(write.kind(), Kind::write);
  EXPECT_EQ(write.header.request, 7 + 65536);
  EXPECT_EQ(write.value, bytes("x"));
}

TEST(KvClientCore, LaneNumbers_WrapAround) {
  Rig rig(lanes(1));
  rig.start(0xfffffffe - 65536);
  for (const std::uint32_t expected : {0xfffffffeU, 0xffffffffU, 0U, 1U}) {
    ASSERT_TRUE(rig.put(1, "x"));
    const Sent write = rig.take();
    EXPECT_EQ(write.header.request, expected);
    rig.reply(write, write.node, Status::ok, 1, write.node, 1);
    EXPECT_EQ(rig.take_end().outcome, Outcome::kOk);
  }
}

TEST(KvClientCore, SilentNode_LaneStartsAfterGraceAndAsksThatNodeBeforeItWrites) {
  Rig rig(lanes(1));
  rig.core->start(rig.now);
  ASSERT_TRUE(rig.put(1, "x", 0, rig.now + 4000 * kMillisecond));
  while (!rig.sent.empty()) {
    const Sent question = rig.take();
    if (question.node != 2) rig.record(question, 100);
  }
  std::optional<Sent> write;
  while (!write) {  // repeated questions to node 2, then the write
    rig.pass(1000 * kMillisecond);
    const Sent sent = rig.take();
    if (sent.kind() == Kind::write) write = sent;
  }
  EXPECT_GE(rig.now, 1000 + rig.options.lane_grace);
  const std::uint32_t number = write->header.request;
  if (write->node == 2) GTEST_FAIL() << "written to a node that had not answered";
  EXPECT_EQ(number, 100 + 65536);
  rig.reply(*write, write->node, Status::ok, 1, write->node, 1);
  rig.take_end();

  // Node 2 leads now, and has newer records: an earlier client's refused requests.
  ASSERT_TRUE(rig.put(1, "y"));
  rig.reply(rig.take(), write->node, Status::stale_epoch, 2, 2);
  const Sent question = rig.take();
  EXPECT_EQ(question.kind(), Kind::lane);
  EXPECT_EQ(question.node, 2);
  rig.record(question, number + 500, 2);
  // The write was sent under its old number, so it cannot get a new one.
  EXPECT_EQ(rig.take_end().outcome, Outcome::kUnknown);
  ASSERT_TRUE(rig.put(1, "z"));
  const Sent again = rig.take();
  EXPECT_EQ(again.node, 2);
  EXPECT_EQ(again.header.request, number + 500 + 65536);
}

/// The spec's section 7: another client uses the lane only if the record is newer than the write.
TEST(KvClientCore, LateRecordIsOfThisWrite_ExpectItSentAgain) {
  Rig rig(lanes(1));
  rig.core->start(rig.now);
  while (!rig.sent.empty()) {
    const Sent question = rig.take();
    if (question.node != 2) rig.record(question, 100);
  }
  while (!rig.core->ready()) {
    rig.pass(10 * kMillisecond);
    rig.sent.clear();
  }
  ASSERT_TRUE(rig.put(1, "x"));
  Sent write = rig.take();
  if (write.kind() == Kind::lane) {
    rig.record(write, 100);
    write = rig.take();
  }
  ASSERT_EQ(write.kind(), Kind::write);
  // It has reached all nodes, and node 2 leads now.
  rig.reply(write, write.node, Status::stale_epoch, 2, 2);
  const Sent question = rig.take();
  if (question.kind() == Kind::lane) rig.record(question, write.header.request, 2);
  const Sent again = question.kind() == Kind::lane ? rig.take() : question;
  EXPECT_EQ(again.kind(), Kind::write);
  EXPECT_EQ(again.header.request, write.header.request);
  rig.reply(again, again.node, Status::ok, 2, again.node, 1);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kOk);
}

TEST(KvClientCore, LateRecordIsNewer_UnsentWriteTakesNewerNumber) {
  Rig rig(lanes(1));
  rig.core->start(rig.now);
  std::uint64_t key = 0;  // one that node 2 leads at first
  while (slot_of(hash_of(key)) % 3 != 2) ++key;
  while (!rig.sent.empty()) {
    const Sent question = rig.take();
    if (question.node != 2) rig.record(question, 100);
  }
  while (!rig.core->ready()) {
    rig.pass(10 * kMillisecond);
    rig.sent.clear();
  }
  ASSERT_TRUE(rig.put(key, "x"));
  const Sent question = rig.take();
  EXPECT_EQ(question.kind(), Kind::lane);
  rig.record(question, 1'000'000);
  const Sent write = rig.take();
  EXPECT_EQ(write.kind(), Kind::write);
  EXPECT_EQ(write.header.request, 1'000'000 + 65536);
}

TEST(KvClientCore, LaneTooHigh_BadLane) {
  Rig rig(lanes(1));
  rig.core->start(rig.now);
  ASSERT_TRUE(rig.put(1, "x"));
  rig.record(rig.take(), 0, 1, Status::bad_lane);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kBadLane);
  EXPECT_TRUE(rig.core->all_lanes_bad());
  ASSERT_TRUE(rig.put(1, "x"));
  EXPECT_EQ(rig.take_end().outcome, Outcome::kBadLane);
}

TEST(KvClientCore, NodesThatDoNotServe_LaneStartsWithTheOthers) {
  Rig rig(lanes(1));
  rig.core->start(rig.now);
  rig.record(rig.take(), 0, 1, Status::not_serving);
  rig.record(rig.take(), 5);
  EXPECT_FALSE(rig.core->ready());
  rig.record(rig.take(), 0, 0, Status::not_serving);
  EXPECT_TRUE(rig.core->ready());
}

TEST(KvClientCore, NoLanesAndNobodyServesYet_PingsComeAgainUntilOneDoes) {
  Rig rig(lanes(0));
  rig.core->start(rig.now);
  ASSERT_EQ(rig.pings.size(), 3U);
  rig.reply(rig.pings.front(), 0, Status::not_serving, 0, 0);
  rig.pings.clear();
  rig.pass(10 * kMillisecond);
  ASSERT_FALSE(rig.pings.empty());
  EXPECT_FALSE(rig.core->ready());
  rig.reply(rig.pings.back(), 2, Status::ok, 1, 0);
  EXPECT_TRUE(rig.core->ready());
  rig.pings.clear();
  rig.pass();
  EXPECT_TRUE(rig.pings.empty()) << "an idle client is quiet";
}

TEST(KvClientCore, RepeatedReplies_CompleteOnce) {
  Rig rig(lanes(1));
  rig.start();
  ASSERT_TRUE(rig.put(1, "x"));
  ASSERT_TRUE(rig.get(2));
  const Sent write = rig.take(), read = rig.take();
  for (int i = 0; i < 3; ++i) {
    rig.reply(write, write.node, Status::ok, 1, write.node, 3);
    rig.reply(read, read.node, Status::ok, 1, 0, 3);
  }
  EXPECT_EQ(rig.ended.size(), 2);
}

TEST(KvClientCore, RepliesToSomethingElse_Ignored) {
  Rig rig(lanes(1));
  rig.start();
  ASSERT_TRUE(rig.put(1, "x"));
  ASSERT_TRUE(rig.get(2));
  const Sent write = rig.take(), read = rig.take();
  const auto ignored = rig.core->statistics().ignored;
  const auto changed = [&](Sent sent, auto&& change) {
    change(sent.header);
    rig.reply(sent, sent.node, Status::ok, 1, 0, 3);
  };
  changed(write, [](Kv& h) { h.key = 9; });
  changed(write, [](Kv& h) { h.request += 1; });
  changed(write, [](Kv& h) { h.client += 1; });
  changed(write, [](Kv& h) { h.kind = static_cast<std::uint8_t>(Kind::remove); });
  changed(read, [](Kv& h) { h.key = 9; });
  changed(read, [&](Kv& h) { h.request += rig.options.operations; });
  Kv header = read.header;
  header.kind = static_cast<std::uint8_t>(Kind::read_done);
  rig.core->on_message({.ip = 0x0a000009, .port = 19286}, {header, {}}, rig.now);  // nobody's node
  EXPECT_TRUE(rig.ended.empty());
  EXPECT_EQ(rig.core->statistics().ignored, ignored + 7);
}

TEST(KvClientCore, ThousandReads_AnsweredInAnyOrder) {
  ClientCore::Options o = lanes(0);
  o.reads = ReadFrom::kRoundRobin;
  Rig rig(o);
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(rig.get(i * 7, i));
  ASSERT_EQ(rig.sent.size(), 1000);
  std::array<int, 3> asked{};
  std::vector<bool> seen(1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    const Sent& sent = rig.sent[i * 389 % 1000];
    ++asked[sent.node];
    rig.reply(sent, sent.node, Status::ok, 1, 0, 1, std::to_string(sent.header.key));
    const Ended end = rig.take_end();
    EXPECT_EQ(end.value, bytes(std::to_string(end.tag * 7)));
    EXPECT_FALSE(seen[end.tag]);
    seen[end.tag] = true;
  }
  EXPECT_EQ(asked[0] + asked[1] + asked[2], 1000);
  for (const int count : asked) EXPECT_NEAR(count, 333, 1);
}

TEST(KvClientCore, SixtyFourLanes_OneWriteEachThenWouldBlock) {
  Rig rig(lanes(64));
  rig.start();
  for (std::uint64_t i = 0; i < 64; ++i) ASSERT_TRUE(rig.put(i, "x", i));
  EXPECT_FALSE(rig.put(64, "x"));
  EXPECT_TRUE(rig.get(64));  // reads need no lane
  std::vector<bool> used(64);
  for (int i = 0; i < 64; ++i) {
    const Sent sent = rig.take();
    EXPECT_FALSE(used[sent.header.client]);
    used[sent.header.client] = true;
    rig.reply(sent, sent.node, Status::ok, 1, sent.node, 1);
  }
  EXPECT_EQ(rig.ended.size(), 64);
  EXPECT_TRUE(rig.put(64, "x"));
}

TEST(KvClientCore, AllOperationsInUse_WouldBlock) {
  ClientCore::Options o = lanes(1);
  o.operations = 4;
  Rig rig(o);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(rig.get(i));
  EXPECT_FALSE(rig.get(4));
  EXPECT_FALSE(rig.put(4, "x"));
}

TEST(KvClientCore, ValueTooLong_RefusedWithoutSending) {
  Rig rig(lanes(1));
  rig.start();
  ASSERT_TRUE(rig.put(1, std::string(1025, 'x'), 3));
  EXPECT_TRUE(rig.sent.empty());
  EXPECT_EQ(rig.take_end().outcome, Outcome::kTooLong);
  ASSERT_TRUE(rig.put(1, std::string(1024, 'x'), 3));
  EXPECT_EQ(rig.take().value.size(), 1024);
}

TEST(KvClientCore, SameSeed_SameFrames) {
  for (int round = 0; round < 2; ++round) {
    Rig a(lanes(4)), b(lanes(4));
    for (Rig* rig : {&a, &b}) {
      rig->start();
      for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(rig->put(i, "x") && rig->get(i));
      rig->core->tick(rig->now + 100 * kMillisecond);
    }
    ASSERT_EQ(a.sent.size(), b.sent.size());
    for (std::size_t i = 0; i < a.sent.size(); ++i) EXPECT_EQ(a.sent[i].header, b.sent[i].header);
  }
}

}  // namespace
}  // namespace wherry::kv
