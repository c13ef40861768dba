// SPDX-License-Identifier: Apache-2.0
// Tests messages that a node repeats because other nodes do not answer. The interval doubles each time. node_test.cpp
// tests this for `replicate`.
#include <gtest/gtest.h>

#include "kv/node/testing.hpp"

namespace wherry::kv::testing {
namespace {

using namespace registers;

class KvBackOff : public ::testing::Test {
 protected:
  void enter(std::uint8_t members, unsigned leader) {
    ++plan.epoch;
    plan.members = members;
    plan.serving = members;
    plan.lead_all(leader);
    cluster.enter_all(plan);
  }
  Status write(unsigned node, std::uint64_t key) {
    const Kv h{.kind = static_cast<std::uint8_t>(Kind::write),
               .epoch = static_cast<std::uint16_t>(plan.epoch),
               .client = 1,
               .request = ++number,
               .key = key};
    const auto answer = cluster.call(node, h, bytes_of("x"));
    return answer ? answer->status() : Status::not_serving;
  }
  /// Drops the frames that `which` selects from now on, and notes when they were sent.
  void lose(const std::function<bool(const Frame&)>& which) {
    sent_at.clear();
    cluster.drop = [this, which](const Frame& f) {
      if (!which(f)) return false;
      sent_at.push_back(cluster.now);
      return true;
    };
  }
  /// Drops them for a thousand retry times, and then no more.
  void expect_back_off() {
    cluster.run(cluster.now + 1000 * Cluster::kRetry);
    ASSERT_GT(sent_at.size(), 8U);
    EXPECT_LT(sent_at.size(), 25U) << "a thousand without back-off";
    for (std::size_t i = 2; i < sent_at.size(); ++i) {
      const Cycles gap = sent_at[i] - sent_at[i - 1];
      EXPECT_GE(gap + 1, std::min(2 * (sent_at[i - 1] - sent_at[i - 2]), 64 * Cluster::kRetry)) << i;
      EXPECT_LE(gap, 65 * Cluster::kRetry) << "bounded";
    }
    cluster.drop = nullptr;
    cluster.run(cluster.now + 65 * Cluster::kRetry);
  }
  /// Node 2 is empty and fetches everything from node 0.
  void return_of_node_2() {
    cluster.restart(2);
    ++plan.epoch;
    plan.members = 0b111;
    cluster.enter_all(plan);
    cluster.node(2).write(kSyncFromOffset, 0);
    cluster.node(2).write(kSyncCountOffset, 1U << Cluster::kBucketBits);
    cluster.node(2).write(kSyncLanesOffset, 256);
    cluster.wake(2);
  }
  [[nodiscard]] bool has_all() {
    return cluster.node(2).read(kSyncCountOffset) == 0 && cluster.node(2).read(kSyncLanesOffset) == 0;
  }

  Cluster cluster{3, {.lane_bits = 8}};
  Plan plan;
  std::uint32_t number = 0;
  std::vector<Cycles> sent_at;
};

TEST_F(KvBackOff, MemberDoesNotHearThatAnEpochBegan_ExpectItToldAfterTwiceAsLongEachTime) {
  lose([](const Frame& f) { return f.kind() == Kind::enter && f.to == node_at(2); });
  enter(0b111, 0);
  expect_back_off();
  EXPECT_EQ(write(0, 5), Status::ok) << "it is open";
}

TEST_F(KvBackOff, NewLeaderDoesNotAnswerForALeftover_ExpectItAskedAfterTwiceAsLongEachTime) {
  enter(0b111, 0);
  cluster.settle();
  cluster.drop = [](const Frame& f) {  // a write that reaches node 2 alone
    return f.kind() == Kind::replicated || (f.kind() == Kind::replicate && !(f.to == node_at(2)));
  };
  EXPECT_EQ(write(0, 5), Status::not_serving) << "nobody answers";
  cluster.kill(0);
  lose([](const Frame& f) { return f.kind() == Kind::fetch && f.from == node_at(2); });
  enter(0b110, 1);
  expect_back_off();
  EXPECT_EQ(write(1, 5), Status::ok) << "it is open";
}

TEST_F(KvBackOff, NodeReturnsAndNoBucketComes_ExpectEachAskedForAfterTwiceAsLongEachTime) {
  enter(0b011, 0);
  cluster.settle();
  lose([](const Frame& f) { return f.kind() == Kind::fetch && f.header.key == location_of(3, 0); });
  return_of_node_2();
  expect_back_off();
  EXPECT_TRUE(has_all());
}

TEST_F(KvBackOff, NodeReturnsAndNoLaneComes_ExpectEachAskedForAfterTwiceAsLongEachTime) {
  enter(0b011, 0);
  cluster.settle();
  lose([](const Frame& f) { return f.kind() == Kind::lane && f.header.client == 3 && f.to == node_at(1); });
  return_of_node_2();
  expect_back_off();
  EXPECT_TRUE(has_all());
}

}  // namespace
}  // namespace wherry::kv::testing
