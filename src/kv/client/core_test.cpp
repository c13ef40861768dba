// SPDX-License-Identifier: Apache-2.0
// ClientCore against nodes whose every answer is written down here.
#include "kv/client/core.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "kv/client/testing.hpp"

namespace wherry::kv {
namespace {

constexpr Cycles kMs = ClientCore::kMillisecond;

struct Sent {
  std::uint8_t node;
  Kv header;
  std::vector<std::byte> value;
  [[nodiscard]] Kind kind() const { return static_cast<Kind>(header.kind); }
};
struct Ended {
  std::uint64_t tag;
  Outcome outcome;
  std::uint32_t version;
  std::vector<std::byte> value;
};

std::vector<std::byte> bytes(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

/// Three nodes that say nothing by themselves.
struct Rig final : Output, Completions {
  explicit Rig(ClientCore::Options o = {}, std::uint8_t nodes = 3) : options(o) {
    for (std::uint8_t n = 0; n < nodes; ++n) options.nodes[n] = {.ip = 0x0a000001U + n, .port = 19286};
    core.emplace(options, *this, *this);
  }
  void send(const Endpoint& to, const Message& message) override {
    for (std::uint8_t n = 0; n < kMaxNodes; ++n) {
      if (!(options.nodes[n] == to)) continue;
      if (static_cast<Kind>(message.header.kind) == Kind::ping) return pings.push_back({n, message.header, {}});
      sent.push_back({n, message.header, {message.value.begin(), message.value.end()}});
    }
  }
  void on_complete(const Completion& c) override {
    ended.push_back({c.tag, c.outcome, c.version, {c.value.begin(), c.value.end()}});
  }

  void reply(const Sent& to, std::uint8_t from, Status status, std::uint16_t epoch, std::uint8_t leader,
             std::uint32_t version = 0, const std::string& value = {}) {
    Kv header = to.header;
    header.kind = static_cast<std::uint8_t>(header.kind + 16);
    header.detail = static_cast<std::uint8_t>(status);
    header.epoch = epoch;
    header.node = leader;
    header.version = version;
    const auto data = bytes(value);
    core->on_message(options.nodes[from], {header, data}, now);
  }
  void record(const Sent& to, std::uint32_t request, std::uint16_t epoch = 1, Status status = Status::ok) {
    Kv header = to.header;
    header.kind = static_cast<std::uint8_t>(Kind::lane_record);
    header.detail = static_cast<std::uint8_t>(status);
    header.epoch = epoch;
    header.key = request;
    core->on_message(options.nodes[to.node], {header, {}}, now);
  }
  /// Starts all lanes: every node answers with this record.
  void start(std::uint32_t request = 0, std::uint16_t epoch = 1) {
    core->start(now);
    while (!sent.empty()) record(take(), request, epoch);
  }
  Sent take() {
    EXPECT_FALSE(sent.empty());
    if (sent.empty()) return {};
    const Sent first = sent.front();
    sent.pop_front();
    return first;
  }
  Ended take_end() {
    EXPECT_FALSE(ended.empty());
    if (ended.empty()) return {};
    const Ended first = ended.front();
    ended.pop_front();
    return first;
  }
  /// Lets time pass until something is sent or has ended, or for so long.
  void pass(Cycles time = 100000 * kMs) {
    const Cycles end = now + time;
    while (sent.empty() && ended.empty() && now < end) {
      now = std::max(now + 1, std::min(end, core->next_wake()));
      core->tick(now);
    }
  }
  bool put(std::uint64_t key, const std::string& value, std::uint64_t tag = 0, Cycles deadline = 0) {
    const auto data = bytes(value);
    return core->submit({.kind = Kind::write, .key = key, .value = data, .tag = tag, .deadline = deadline}, now);
  }
  bool get(std::uint64_t key, std::uint64_t tag = 0, Cycles deadline = 0) {
    return core->submit({.key = key, .tag = tag, .deadline = deadline}, now);
  }

  ClientCore::Options options;
  Cycles now = 1000;
  std::deque<Sent> sent, pings;
  std::deque<Ended> ended;
  std::optional<ClientCore> core;
};

ClientCore::Options lanes(std::uint32_t count) {
  ClientCore::Options o;
  o.lanes = count;
  return o;
}

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
  ASSERT_TRUE(rig.put(1, "x", 0, rig.now + 4000 * kMs));
  while (!rig.sent.empty()) {
    const Sent question = rig.take();
    if (question.node != 2) rig.record(question, 100);
  }
  std::optional<Sent> write;
  while (!write) {  // repeated questions to node 2, then the write
    rig.pass(1000 * kMs);
    const Sent sent = rig.take();
    if (sent.kind() == Kind::write) write = sent;
  }
  EXPECT_GE(rig.now, 1000 + rig.options.lane_grace);
  const std::uint32_t number = write->header.request;
  if (write->node == 2) GTEST_FAIL() << "written to a node that had not answered";
  EXPECT_EQ(number, 100 + 65536);
  rig.reply(*write, write->node, Status::ok, 1, write->node, 1);
  rig.take_end();

  // Node 2 leads now, and knows much newer requests: an earlier client's refusals.
  ASSERT_TRUE(rig.put(1, "y"));
  rig.reply(rig.take(), write->node, Status::stale_epoch, 2, 2);
  const Sent question = rig.take();
  EXPECT_EQ(question.kind(), Kind::lane);
  EXPECT_EQ(question.node, 2);
  rig.record(question, number + 500, 2);
  // The write had been sent under its old number: it cannot get another.
  EXPECT_EQ(rig.take_end().outcome, Outcome::kUnknown);
  ASSERT_TRUE(rig.put(1, "z"));
  const Sent again = rig.take();
  EXPECT_EQ(again.node, 2);
  EXPECT_EQ(again.header.request, number + 500 + 65536);
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
    rig.pass(10 * kMs);
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
  rig.pass(10 * kMs);
  ASSERT_FALSE(rig.pings.empty());
  EXPECT_FALSE(rig.core->ready());
  rig.reply(rig.pings.back(), 2, Status::ok, 1, 0);
  EXPECT_TRUE(rig.core->ready());
  rig.pings.clear();
  rig.pass();
  EXPECT_TRUE(rig.pings.empty()) << "an idle client is quiet";
}

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
  ASSERT_TRUE(rig.put(1, "x", 0, rig.now + 50 * kMs));
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
  // The old leader's refusal was on its way since the first try.
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
  constexpr auto newer_epoch = ClientCore::newer_epoch;
  EXPECT_TRUE(newer_epoch(1, 0) && newer_epoch(40000, 0) && !newer_epoch(0, 65535) && !newer_epoch(0, 1));
  EXPECT_TRUE(newer_epoch(1, 65535) && !newer_epoch(65535, 1) && newer_epoch(32768, 1) && !newer_epoch(1, 1));
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
  o.timeout_cap = 16 * kMs;
  Rig rig(o);
  rig.start();
  ASSERT_TRUE(rig.put(1, "x"));
  const Sent first = rig.take();
  Cycles last = rig.now;
  int scattered = 0;  // a quarter at random, so that clients do not come back together
  for (const Cycles expected : {2 * kMs, 4 * kMs, 8 * kMs, 16 * kMs, 16 * kMs}) {
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
    const bool moved = rig.now > 100 * kMs;  // the keeper takes its time
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
  const Cycles deadline = rig.now + 300 * kMs;
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
  ASSERT_TRUE(rig.put(1, "x", 5, rig.now + 300 * kMs));
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
  ASSERT_TRUE(rig.put(1, "x", 5, rig.now + kMs));
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
      rig->core->tick(rig->now + 100 * kMs);
    }
    ASSERT_EQ(a.sent.size(), b.sent.size());
    for (std::size_t i = 0; i < a.sent.size(); ++i) EXPECT_EQ(a.sent[i].header, b.sent[i].header);
  }
}

}  // namespace
}  // namespace wherry::kv
