// SPDX-License-Identifier: Apache-2.0
// Tests versions that are far apart in a bucket. A leader refreshes lagging locations while versions still compare:
// docs/design/kv-protocol.md, section 5.
#include <gtest/gtest.h>

#include <set>

#include "kv/node/testing.hpp"
#include "kv/serial.hpp"

namespace wherry::kv::testing {
namespace {

using namespace registers;

class KvVersion : public ::testing::Test {
 protected:
  void start(unsigned nodes, const NodeFaults& faults = {}) {
    cluster = std::make_unique<Cluster>(nodes, NodeOptions{.lane_bits = 8}, Weather{}, 1, Cluster::kBucketBits, faults);
    plan = {.epoch = 1};
    plan.members = plan.serving = static_cast<std::uint8_t>((1U << nodes) - 1);
    cluster->enter_all(plan);
    cluster->settle();
    request = 0;
  }
  void preset(const std::array<std::uint32_t, kWays>& versions) {
    for (unsigned i = 0; i < cluster->size(); ++i) cluster->node(i).preset_versions(versions);
  }
  void next_epoch(std::uint8_t members, unsigned leader) {
    ++plan.epoch;
    plan.serving = static_cast<std::uint8_t>(plan.serving & members);
    plan.members = members;
    plan.lead_all(leader);
    cluster->enter_all(plan);
  }
  /// Repeats a request, like a client, while the leader answers `busy`.
  Frame write(unsigned node, Kind kind, std::uint64_t key, std::string_view value = {}, std::uint32_t expected = 0) {
    const Kv h{.kind = static_cast<std::uint8_t>(kind),
               .epoch = static_cast<std::uint16_t>(plan.epoch),
               .client = 1,
               .request = ++request,
               .version = expected,
               .key = key};
    for (unsigned tries = 0; tries < 20; ++tries) {
      const auto frame = cluster->call(node, h, bytes_of(value));
      if (frame && frame->status() != Status::busy) return *frame;
      cluster->run(cluster->now + 1000);
    }
    ADD_FAILURE() << "no answer but busy";
    return {};
  }
  Frame read(unsigned node, std::uint64_t key) {
    return cluster
        ->call(node, {.kind = static_cast<std::uint8_t>(Kind::read), .client = 1, .request = ++tag, .key = key})
        .value_or(Frame{});
  }
  std::string text(unsigned node, std::uint64_t key) {
    const Frame f = read(node, key);
    if (f.status() != Status::ok) return std::string(name_of(f.status()));
    return {reinterpret_cast<const char*>(f.value.data()), f.value.size()};
  }
  const Way& way(unsigned node, std::uint64_t key) {
    const Table& table = cluster->node(node).table();
    const std::uint32_t hash = hash_of(key);
    return table.way(table.find(bucket_of(hash, Cluster::kBucketBits), first_way_of(hash), key));
  }
  /// Gives the followers the leader's write of `key` with `version`, without the 2^31 writes before it.
  void fast_forward(std::uint64_t key, std::uint32_t version, std::string_view value) {
    const std::uint32_t hash = hash_of(key), bucket = bucket_of(hash, Cluster::kBucketBits);
    const Location at = cluster->node(1).table().find(bucket, first_way_of(hash), key);
    ASSERT_NE(at, Table::kNowhere);
    Kv h{.kind = static_cast<std::uint8_t>(Kind::replicate),
         .node = 0,
         .detail = node_detail(way_at(at), 7),
         .epoch = static_cast<std::uint16_t>(plan.epoch),
         .client = 9,
         .request = 5,
         .version = version,
         .key = key};
    for (unsigned n = 1; n < cluster->size(); ++n) cluster->send(node_at(0), node_at(n), {h, bytes_of(value)});
    cluster->settle();
    h.kind = static_cast<std::uint8_t>(Kind::commit);
    for (unsigned n = 1; n < cluster->size(); ++n) cluster->send(node_at(0), node_at(n), {h, {}});
    cluster->settle();
  }
  std::uint32_t refreshed() {
    std::uint32_t sum = 0;
    for (unsigned i = 0; i < cluster->size(); ++i)
      if (cluster->alive(i)) sum += cluster->node(i).counters().refreshed;
    return sum;
  }

  std::unique_ptr<Cluster> cluster;
  Plan plan;
  std::uint32_t request = 0;
  std::uint32_t tag = 1000;
};

TEST_F(KvVersion, HotKeyPast2To31BesideAColdOne_ExpectEveryNodeToFollow) {
  for (const std::uint32_t number : {0x60000001U, 0x7ffffffaU, 0x7ffffffeU}) {
    start(3);
    const auto keys = keys_of_one_bucket(5, 2);
    const auto cold = keys[0], hot = keys[1];
    ASSERT_EQ(write(0, Kind::write, cold, "cold").status(), Status::ok);
    ASSERT_EQ(write(0, Kind::write, hot, "hot").status(), Status::ok);
    cluster->settle();
    fast_forward(hot, number, "late");
    cluster->kill(0);
    next_epoch(0b110, 1);
    cluster->settle();
    std::uint32_t before = number;
    for (unsigned i = 0; i < 12; ++i) {
      const std::string value = "new" + std::to_string(i);
      const Frame done = write(1, Kind::write, hot, value);
      EXPECT_TRUE(version_newer(done.header.version, before)) << std::hex << before << ' ' << done.header.version;
      before = done.header.version;
      cluster->settle();
      for (const unsigned node : {1U, 2U}) EXPECT_EQ(text(node, hot), value);
    }
    for (const unsigned node : {1U, 2U}) EXPECT_EQ(text(node, cold), "cold");
    EXPECT_EQ(way(1, cold).version, way(2, cold).version);
    EXPECT_EQ(refreshed(), 1U);
  }
}

TEST_F(KvVersion, LaggingLocations_ExpectEachRefreshedOnceAndNoVersionTwice) {
  for (const std::uint32_t top : {0x3ffffffcU, 0x7ffffffcU, 0xfffffffcU, 0xffffffffU}) {
    start(3);
    preset({top - 0x7ffffffaU, top, top - 0x40000000, 0});
    const auto keys = keys_of_one_bucket(77, 2);
    std::set<std::uint32_t> seen;
    std::uint32_t last = top;
    for (unsigned i = 0; i < 24; ++i) {
      const bool removes = i % 3 == 2;
      const Frame done =
          write(0, removes ? Kind::remove : Kind::write, keys[i % 3 == 0 ? 0 : 1], removes ? "" : "value");
      ASSERT_EQ(done.status(), Status::ok) << i;
      EXPECT_TRUE(seen.insert(done.header.version).second) << "a version came twice";
      EXPECT_TRUE(version_newer(done.header.version, last));
      EXPECT_NE(done.header.version, 0U);
      last = done.header.version;
      cluster->settle();
      for (const unsigned node : {1U, 2U})
        for (std::uint32_t w = 0; w < kWays; ++w)
          EXPECT_EQ(cluster->node(node).table().way(location_of(77, w)).version,
                    cluster->node(0).table().way(location_of(77, w)).version);
    }
    EXPECT_LE(refreshed(), 3U);
    EXPECT_GE(refreshed(), 1U) << std::hex << top;
  }
}

TEST_F(KvVersion, KeyMadeAnewAfter2To31Writes_ExpectAnOldVersionToMatchNothing) {
  start(3);
  const auto keys = keys_of_one_bucket(9, 2);
  ASSERT_EQ(write(0, Kind::write, keys[0], "cold").header.version, 1U);
  ASSERT_EQ(write(0, Kind::write, keys[1], "A").header.version, 2U);  // what a client has seen
  cluster->settle();
  fast_forward(keys[1], 0x7ffffffeU, "B");
  cluster->kill(0);
  next_epoch(0b110, 1);
  cluster->settle();
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_EQ(write(1, Kind::remove, keys[1]).status(), Status::ok);
    ASSERT_NE(write(1, Kind::write, keys[1], "C").header.version, 2U);
    EXPECT_EQ(write(1, Kind::write_if, keys[1], "lost", 2).status(), Status::version_mismatch);
  }
}

TEST_F(KvVersion, RefreshUnderWay_ExpectReadsAndWritesOfTheBucketToWait) {
  start(3);
  preset({0x7ffffff0, 1, 0, 0});
  const auto keys = keys_of_one_bucket(40, 1);
  cluster->drop = [](const Frame& f) { return f.kind() == Kind::replicated_remove; };
  const Kv h{.kind = static_cast<std::uint8_t>(Kind::write), .epoch = 1, .client = 1, .request = 9, .key = keys[0]};
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(cluster->call(0, h, bytes_of("x"))->status(), Status::busy);
  EXPECT_EQ(text(0, keys[0]), "busy");
  EXPECT_EQ(text(1, keys[0]), "pending");
  EXPECT_EQ(refreshed(), 1U);
  cluster->drop = nullptr;
  cluster->settle();
  EXPECT_EQ(cluster->call(0, h, bytes_of("x"))->header.version, 0x7ffffff2U);
  cluster->settle();
  for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(text(node, keys[0]), "x");
}

TEST_F(KvVersion, LeaderDiesDuringARefresh_ExpectItCompletedOrTakenBack) {
  for (const unsigned reached : {0U, 0b010U, 0b100U, 0b110U})
    for (const unsigned leader : {1U, 2U}) {
      start(3);
      const auto keys = keys_of_one_bucket(40, 2);
      ASSERT_EQ(write(0, Kind::write, keys[0], "cold").status(), Status::ok);
      ASSERT_EQ(write(0, Kind::write, keys[1], "hot").status(), Status::ok);
      cluster->settle();
      fast_forward(keys[1], 0x7ffffff0, "late");
      cluster->kill(0);
      next_epoch(0b110, leader);
      cluster->settle();
      cluster->restart(0);
      // Node 0 returns and leads. Its refresh reaches only these nodes.
      ++plan.epoch;
      plan.members = 0b111;
      cluster->enter_all(plan);
      AnyNode& n = cluster->node(0);
      n.write(kSyncFromOffset, 0);
      n.write(kSyncCountOffset, 1U << Cluster::kBucketBits);
      n.write(kSyncLanesOffset, 1U << 8);
      cluster->run(cluster->now + 3000 * Cluster::kRetry);
      ASSERT_EQ(n.read(kSyncCountOffset) + n.read(kSyncLanesOffset), 0U);
      ++plan.epoch;
      plan.serving = 0b111;
      plan.lead_all(0);
      cluster->enter_all(plan);
      cluster->settle();
      cluster->drop = [reached](const Frame& f) {
        if (f.kind() == Kind::replicated || f.kind() == Kind::commit) return true;
        return f.kind() == Kind::replicate && (reached >> (f.to.ip - node_at(0).ip) & 1) == 0;
      };
      const Kv h{.kind = static_cast<std::uint8_t>(Kind::write),
                 .epoch = static_cast<std::uint16_t>(plan.epoch),
                 .client = 3,
                 .request = 900,
                 .key = keys[1]};
      EXPECT_EQ(cluster->call(0, h, bytes_of("mine"))->status(), Status::busy);
      EXPECT_EQ(refreshed(), 1U);
      cluster->kill(0);
      cluster->drop = nullptr;
      next_epoch(0b110, leader);
      cluster->settle();
      EXPECT_EQ(way(1, keys[0]).version, way(2, keys[0]).version);
      EXPECT_EQ(way(1, keys[0]).version != 1, (reached >> leader & 1) != 0) << "the new leader's word counts";
      for (const unsigned node : {1U, 2U}) {
        EXPECT_EQ(text(node, keys[0]), "cold");
        EXPECT_EQ(text(node, keys[1]), "late");
      }
      for (unsigned i = 0; i < 20; ++i) {
        ASSERT_EQ(write(leader, Kind::write, keys[1], std::to_string(i)).status(), Status::ok);
        cluster->settle();
        for (const unsigned node : {1U, 2U}) EXPECT_EQ(text(node, keys[1]), std::to_string(i));
      }
    }
}

TEST_F(KvVersion, LaggingLocationOfANodeAlone_ExpectItsWritesToGoOn) {
  start(1);
  preset({0xfffffff9, 0x80000001, 0xbfffffff, 0});
  const auto keys = keys_of_one_bucket(40, 2);
  std::uint32_t last = 0xfffffff9;
  for (unsigned i = 0; i < 20; ++i) {
    const Frame done = write(0, Kind::write, keys[i % 2], std::to_string(i));
    ASSERT_EQ(done.status(), Status::ok);
    EXPECT_TRUE(version_newer(done.header.version, last));
    last = done.header.version;
    EXPECT_EQ(text(0, keys[i % 2]), std::to_string(i));
  }
}

/// Shows that the tests above can fail: without the refresh, a follower acknowledges a write that it does not
/// store.
TEST_F(KvVersion, NoRefresh_ExpectAFollowerThatStaysBehind) {
  start(3, {NodeFault::keep_lagging_versions});
  preset({0x7ffffffe, 1, 0, 0});
  const auto keys = keys_of_one_bucket(40, 1);
  for (unsigned i = 0; i < 8; ++i) {
    ASSERT_EQ(write(0, Kind::write, keys[0], std::to_string(i)).status(), Status::ok);
    cluster->settle();
  }
  EXPECT_EQ(text(0, keys[0]), "7");
  EXPECT_NE(text(1, keys[0]), "7");
}

}  // namespace
}  // namespace wherry::kv::testing
