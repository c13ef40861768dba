// SPDX-License-Identifier: Apache-2.0
// Tests ClientCore with lanes that another client uses or a keeper grants (docs/design/kv-protocol.md, section 7).
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kv/client/core_rig_testing.hpp"
#include "kv/client/testing.hpp"
#include "kv/serial.hpp"

namespace wherry::kv {
namespace {

using namespace testing;

/// Two clients and one store. Frames reach the store at once, and answers come back at once.
struct Pair {
  struct One final : Output, Completions {
    One(Pair& whole, std::uint8_t number, ClientCore::Options o) : pair(whole) {
      for (std::uint8_t n = 0; n < 3; ++n) o.nodes[n] = {.ip = 0x0a000001U + n, .port = 19286};
      o.seed = number + 1;
      core.emplace(o, *this, *this);
    }
    void send(const Endpoint& to, const Message& message) override {
      queue.push_back({static_cast<std::uint8_t>(to.ip - 0x0a000001U),
                       message.header,
                       {message.value.begin(), message.value.end()}});
    }
    void on_complete(const Completion& c) override { ended[c.tag] = c.outcome; }
    void turn() {
      while (!queue.empty()) {
        const Sent sent = std::move(queue.front());
        queue.pop_front();
        if (auto reply = pair.store.handle(sent.node, {sent.header, sent.value}))
          core->on_message({.ip = 0x0a000001U + sent.node, .port = 19286}, reply->message(), pair.now);
      }
      if (core->next_wake() <= pair.now) core->tick(pair.now);
    }
    Pair& pair;
    std::deque<Sent> queue;
    std::map<std::uint64_t, Outcome> ended;
    std::optional<ClientCore> core;
  };

  explicit Pair(const ClientCore::Options& o, bool together = true) {
    for (std::uint8_t number = 0; number < 2; ++number) clients.emplace_back(*this, number, o);
    start(0);
    if (together) start(1);
    pass();
  }
  void start(int client) { clients[static_cast<std::size_t>(client)].core->start(now); }
  void pass(Cycles time = kMillisecond) {
    for (const Cycles end = now + time; now < end; now += kMillisecond / 10)
      for (One& one : clients) one.turn();
  }
  /// Writes, and waits until the operation has ended.
  Outcome put(int client, std::uint64_t key) {
    One& one = clients[static_cast<std::size_t>(client)];
    const std::uint64_t tag = ++tags;
    const auto value = bytes(std::to_string(key));
    EXPECT_TRUE(one.core->submit({.kind = Kind::write, .key = key, .value = value, .tag = tag}, now));
    for (int i = 0; i < 100'000 && !one.ended.contains(tag); ++i) pass(kMillisecond / 10);
    EXPECT_TRUE(one.ended.contains(tag));
    return one.ended.contains(tag) ? one.ended[tag] : Outcome::kUnknown;
  }
  [[nodiscard]] std::size_t lost(const std::set<std::uint64_t>& acknowledged) {
    std::size_t count = 0;
    for (const std::uint64_t key : acknowledged)
      if (!store.table[key].present || store.table[key].value != bytes(std::to_string(key))) ++count;
    return count;
  }

  ReferenceStore store{3};
  Cycles now = 1000;
  std::uint64_t tags = 0;
  std::deque<One> clients;
};

ClientCore::Options one_lane() {
  ClientCore::Options o;
  o.lanes = 1;
  return o;
}

/// Both clients write in turn. The test notes acknowledged writes, and how each client learned about the other.
struct Turns {
  std::set<std::uint64_t> acknowledged;
  std::array<int, 2> told{};
};
Turns write_in_turn(Pair& pair, int rounds) {
  Turns turns;
  for (int i = 0; i < rounds; ++i) {
    for (int client = 0; client < 2; ++client) {
      const std::uint64_t key = static_cast<std::uint64_t>(client + 1) * 1'000'000 + static_cast<std::uint64_t>(i);
      const Outcome outcome = pair.put(client, key);
      if (outcome == Outcome::kOk) turns.acknowledged.insert(key);
      if (outcome == Outcome::kLaneTaken) ++turns.told[static_cast<std::size_t>(client)];
    }
  }
  return turns;
}

TEST(KvClientLanes, TwoClientsOnOneLane_ExpectNothingAcknowledgedLostAndBothTold) {
  for (const std::uint32_t lanes : {1U, 3U}) {
    ClientCore::Options o = one_lane();
    o.lanes = lanes;
    Pair pair(o);
    const Turns turns = write_in_turn(pair, 50);
    EXPECT_EQ(pair.lost(turns.acknowledged), 0U);
    EXPECT_GT(turns.told[0], 0);
    EXPECT_GT(turns.told[1], 0);
  }
}

TEST(KvClientLanes, OldRule_ExpectItToLoseWhatItAcknowledged) {  // that the test above can fail
  ClientCore::Options o = one_lane();
  o.trust_lanes = true;
  Pair pair(o);
  EXPECT_GT(pair.lost(write_in_turn(pair, 50).acknowledged), 40U);
}

TEST(KvClientLanes, OtherClientWroteWhileIdle_ExpectToldBeforeAnythingIsSent) {
  Pair pair(one_lane(), false);
  EXPECT_EQ(pair.put(0, 1), Outcome::kOk);
  pair.start(1);
  EXPECT_EQ(pair.put(1, 2), Outcome::kOk);
  pair.pass(200 * kMillisecond);
  EXPECT_EQ(pair.put(0, 3), Outcome::kLaneTaken);
  EXPECT_FALSE(pair.store.table[3].present);
  EXPECT_EQ(pair.clients[0].core->taken_lanes(), 1U);
  // No lane is left, so the call fails at once, and so does a second call.
  EXPECT_EQ(pair.put(0, 4), Outcome::kLaneTaken);
  // The first client's mark is newer than the second client's numbers. So the second client also gets this outcome, for
  // any key that it writes.
  EXPECT_EQ(pair.put(1, 5), Outcome::kLaneTaken);
}

TEST(KvClientLanes, Mark_ExpectNoEffectOnAnyKey) {
  Pair pair(one_lane(), false);
  EXPECT_EQ(pair.put(0, 1), Outcome::kOk);
  pair.start(1);
  EXPECT_EQ(pair.put(1, 2), Outcome::kOk);
  const auto before = pair.store.table;
  pair.pass(200 * kMillisecond);
  EXPECT_EQ(pair.put(0, 3), Outcome::kLaneTaken);
  pair.pass(200 * kMillisecond);
  for (const auto& [key, entry] : pair.store.table) {
    const auto was = before.find(key);
    EXPECT_EQ(entry.present, was != before.end() && was->second.present);
    EXPECT_EQ(entry.version, was != before.end() ? was->second.version : 0U);
  }
}

TEST(KvClientLanes, IdleAlone_ExpectItGoesOn) {
  Pair pair(one_lane());
  for (std::uint64_t key = 1; key < 20; ++key) {
    EXPECT_EQ(pair.put(0, key), Outcome::kOk);
    pair.pass(150 * kMillisecond);
  }
}

TEST(KvClientLanes, EmptyRecord_ExpectOlderThanAnyNumber) {
  for (const std::uint32_t record : {5U, 0x80000005U, 0xf0000000U}) {  // serially, half of them are older than 0
    Rig rig(lanes(1));
    rig.core->start(rig.now);
    ASSERT_EQ(rig.sent.size(), 3U);
    for (const std::uint32_t r : {0U, record, 0U}) rig.record(rig.take(), r);
    ASSERT_TRUE(rig.put(1, "x"));
    EXPECT_EQ(rig.take().header.request, record + 65536);
  }
}

TEST(KvClientLanes, StartsOfTwoSeeds_ExpectOtherNumbers) {
  std::set<std::uint32_t> numbers;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    ClientCore::Options o = one_lane();
    o.seed = seed;
    Rig rig(o);
    rig.start();
    ASSERT_TRUE(rig.put(1, "x"));
    const std::uint32_t number = rig.take().header.request;
    EXPECT_GE(number, 65536U);
    EXPECT_LT(number, 65536U + o.lane_spread);
    numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), 200U);
}

TEST(KvClientLanes, GrantedLanes_ExpectWritesToWaitForThem) {
  ClientCore::Options o = lanes(2);
  o.granted = true;
  Rig rig(o);
  rig.core->start(rig.now);
  rig.sent.clear();
  EXPECT_FALSE(rig.put(1, "x")) << "no lanes yet";
  EXPECT_TRUE(rig.get(1));
  EXPECT_EQ(rig.take().kind(), Kind::read);
  rig.core->give_lanes(1500, rig.now);
  ASSERT_EQ(rig.sent.size(), 6U);  // three nodes, two lanes
  std::set<std::uint16_t> asked;
  while (!rig.sent.empty()) {
    asked.insert(rig.sent.front().header.client);
    rig.record(rig.take(), 7);
  }
  EXPECT_EQ(asked, (std::set<std::uint16_t>{1500, 1501}));
  ASSERT_TRUE(rig.put(1, "x", 1));
  const Sent write = rig.take();
  EXPECT_EQ(write.header.client, 1500);
  EXPECT_EQ(write.header.request, 7 + 65536U);
  // The grant has ended. The outcome of the write is unknown, and the next write waits.
  rig.core->lose_lanes();
  EXPECT_EQ(rig.take_end().outcome, Outcome::kUnknown);
  EXPECT_FALSE(rig.put(2, "y"));
  rig.core->give_lanes(2000, rig.now);
  while (!rig.sent.empty()) rig.record(rig.take(), 0);
  rig.reply(write, write.node, Status::ok, 1, write.node, 9);  // of the lane before: means nothing
  EXPECT_TRUE(rig.ended.empty());
  ASSERT_TRUE(rig.put(2, "y", 2));
  EXPECT_EQ(rig.take().header.client, 2000);
}

TEST(KvClientLanes, GrantedLaneTaken_ExpectMarkOnlyAfterTheKeeperWasAsked) {
  ClientCore::Options o = lanes(1);
  o.granted = true;
  Rig rig(o);
  rig.core->give_lanes(100, rig.now);
  while (!rig.sent.empty()) rig.record(rig.take(), 7);
  ASSERT_TRUE(rig.put(1, "x"));
  const Sent write = rig.take();
  rig.pass();  // no answer: the lane's record is asked for
  const Sent question = rig.take();
  ASSERT_EQ(question.kind(), Kind::lane);
  rig.record(question, write.header.request + 1'000'000);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kLaneTaken);
  EXPECT_TRUE(rig.core->disputes());
  rig.sent.clear();
  rig.pass(100 * kMillisecond);
  EXPECT_TRUE(rig.sent.empty());
  rig.core->protest(rig.now);
  EXPECT_FALSE(rig.core->disputes());
  ASSERT_EQ(rig.sent.size(), 3U);
  for (int node = 0; node < 3; ++node) {
    const Sent mark = rig.take();
    EXPECT_EQ(mark.kind(), Kind::remove_if);
    EXPECT_EQ(mark.header.version, 0U);
    EXPECT_EQ(mark.header.client, 100);
    EXPECT_TRUE(newer(mark.header.request, write.header.request + 1'000'000));
    EXPECT_EQ(slot_of(hash_of(mark.header.key)) % 3, mark.node) << "each leader records it";
  }
}

/// Node 2 leads the key. It is slow, and alone knows the lane's newest number: that of an earlier client's refused
/// write. So the client sends its write to another node.
struct SlowLeader {
  static constexpr std::uint32_t kNewest = 1'000'000;
  SlowLeader() {
    while (slot_of(hash_of(key)) % 3 != 2) ++key;
    rig.core->start(rig.now);
    while (!rig.sent.empty()) {
      const Sent question = rig.take();
      if (question.node != 2) rig.record(question, 100);
    }
    while (!rig.core->ready()) next();
    EXPECT_TRUE(rig.put(key, "x", 0, deadline));
    Sent last = next();
    for (; last.kind() != Kind::write; last = next()) {
      EXPECT_EQ(last.node, 2);
      slow = last;
    }
    EXPECT_NE(last.node, 2);
    EXPECT_EQ(last.header.request, 100 + 65536);
    elsewhere = last;
  }
  Sent next() {
    if (rig.sent.empty()) rig.pass(10 * kMillisecond);
    return rig.sent.empty() ? Sent{} : rig.take();
  }
  /// The next write, also an empty one if none comes before the deadline or the end of the operation.
  Sent next_write() {
    while (rig.now < deadline && rig.ended.empty())
      if (const Sent sent = next(); sent.kind() == Kind::write) return sent;
    return {};
  }
  void not_leader(const Sent& to, std::uint16_t epoch = 1) { rig.reply(to, to.node, Status::not_leader, epoch, 2); }
  void expect_under_a_newer_number() {
    Sent write = next_write();
    while (write.kind() == Kind::write && write.node != 2) write = next_write();
    EXPECT_EQ(write.header.request, kNewest + 65536);
    EXPECT_EQ(write.value, bytes("x"));
    rig.reply(write, 2, Status::ok, 1, 2, 8);
    EXPECT_EQ(rig.take_end().outcome, Outcome::kOk);
  }
  Rig rig{lanes(1)};
  std::uint64_t key = 0;
  const Cycles deadline = 4000 * kMillisecond;
  Sent slow{}, elsewhere{};  ///< the question for the leader's record; the write to another node
};

TEST(KvClientLanes, SlowLeaderAndTheOtherNodeDoesNotLead_ExpectTheWriteUnderANewerNumber) {
  SlowLeader one;
  Rig& rig = one.rig;
  one.not_leader(one.elsewhere);
  rig.record(one.slow, SlowLeader::kNewest);
  one.expect_under_a_newer_number();
  EXPECT_EQ(rig.core->statistics().unknown, 0U);
}

TEST(KvClientLanes, SlowLeaderAnswersFirst_ExpectTheOtherNodesAnswerToSettleIt) {
  SlowLeader one;
  Rig& rig = one.rig;
  rig.record(one.slow, SlowLeader::kNewest);
  EXPECT_TRUE(rig.ended.empty());
  one.not_leader(one.elsewhere);
  one.expect_under_a_newer_number();
}

TEST(KvClientLanes, SlowLeaderAndTheOtherAnswerIsLost_ExpectThatNodeAskedAgain) {
  SlowLeader one;
  Rig& rig = one.rig;
  rig.sent.clear();
  rig.record(one.slow, SlowLeader::kNewest);
  const Sent again = one.next_write();
  EXPECT_EQ(again.node, one.elsewhere.node);
  EXPECT_EQ(again.header.request, one.elsewhere.header.request);
  one.not_leader(again);
  one.expect_under_a_newer_number();
}

/// That a node does not lead in one epoch says nothing about a try of another epoch.
TEST(KvClientLanes, SlowLeaderAndANewEpoch_ExpectUnknown) {
  SlowLeader one;
  Rig& rig = one.rig;
  rig.reply(one.elsewhere, one.elsewhere.node, Status::stale_epoch, 2, 2);
  rig.record(one.slow, SlowLeader::kNewest, 2);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kUnknown);
}

TEST(KvClientLanes, SlowLeaderAndRefusalOfAnEarlierEpoch_ExpectUnknown) {
  SlowLeader one;
  Rig& rig = one.rig;
  rig.record(one.slow, SlowLeader::kNewest, 2);
  one.not_leader(one.elsewhere, 3);
  while (rig.ended.empty()) one.next();
  EXPECT_EQ(rig.take_end().outcome, Outcome::kUnknown);
}

TEST(KvClientLanes, SlowLeaderAndNothingSettlesIt_ExpectUnknownAtTheDeadline) {
  SlowLeader one;
  Rig& rig = one.rig;
  rig.record(one.slow, SlowLeader::kNewest);
  for (Sent write = one.next_write(); rig.ended.empty(); write = one.next_write())
    EXPECT_EQ(write.node, one.elsewhere.node);
  EXPECT_EQ(rig.now, one.deadline);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kUnknown);
}

TEST(KvClientLanes, SlowLeaderAndSilenceElsewhere_ExpectOthersAskedForANewEpoch) {
  SlowLeader one;
  Rig& rig = one.rig;
  rig.record(one.slow, SlowLeader::kNewest);
  while (rig.ended.empty()) {
    const Sent sent = one.next();
    if (sent.kind() == Kind::lane && sent.node != one.elsewhere.node) rig.record(sent, 100, 2);
  }
  EXPECT_LT(rig.now, one.deadline / 2);
  EXPECT_EQ(rig.take_end().outcome, Outcome::kUnknown);
}

TEST(KvClientLanes, SlowLeaderAndTriesAtTwoNodes_ExpectBothAskedAgain) {
  SlowLeader one;
  Rig& rig = one.rig;
  std::set<std::uint8_t> tried{one.elsewhere.node};
  while (tried.size() < 2 && rig.ended.empty()) tried.insert(one.next_write().node);
  rig.sent.clear();
  rig.record(one.slow, SlowLeader::kNewest);
  std::map<std::uint8_t, Sent> again;
  while (again.size() < 2 && rig.ended.empty()) {
    const Sent write = one.next_write();
    again[write.node] = write;
  }
  ASSERT_TRUE(rig.ended.empty());
  for (const auto& [node, write] : again) {
    EXPECT_TRUE(tried.contains(node));
    one.not_leader(write);
  }
  one.expect_under_a_newer_number();
}

/// An answer of a node that does not lead cannot come from a try that took effect.
TEST(KvClientLanes, NobodyLeadsUntilTheDeadline_ExpectNothingWasChanged) {
  SlowLeader one;
  Rig& rig = one.rig;
  one.not_leader(one.elsewhere);
  while (rig.ended.empty()) {
    const Sent sent = one.next();
    if (sent.kind() == Kind::write) one.not_leader(sent);
  }
  EXPECT_EQ(rig.take_end().outcome, Outcome::kNoAnswer);
}

}  // namespace
}  // namespace wherry::kv
