// SPDX-License-Identifier: Apache-2.0
// Thousands of operations over lossy networks, nodes that die, are cut off from the keeper and return: every history is
// linearizable; and with any of the deliberate faults, some history is not.
#include <gtest/gtest.h>

#include "kv/node/random_testing.hpp"

namespace wherry::kv::testing {
namespace {

TEST(KvRandom, WhateverHappens_ExpectLinearizableHistories) {
  Story all;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Story story = tell_story(seed, 2 + seed % 4, 400);
    ASSERT_TRUE(story.linearizable()) << "seed " << seed;
    for (const auto& [status, count] : story.statuses) all.statuses[status] += count;
    all.unknown += story.unknown;
    all.epochs += story.epochs;
    all.returns += story.returns;
    all.takeovers += story.takeovers;
  }
  // The stories were worth telling.
  for (const Status s : {Status::ok, Status::no_such_key, Status::version_mismatch, Status::table_full}) {
    EXPECT_GT(all.statuses[s], 50U) << name_of(s);
    RecordProperty(std::string(name_of(s)), static_cast<int>(all.statuses[s]));
  }
  EXPECT_GT(all.statuses[Status::ok], 10U * all.unknown);
  EXPECT_GT(all.takeovers, 60U);
  EXPECT_GT(all.returns, 40U);
  RecordProperty("unknown", static_cast<int>(all.unknown));
  RecordProperty("epochs", static_cast<int>(all.epochs));
}

bool is_caught(const NodeFaults& faults) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    if (!tell_story(seed, 2 + seed % 4, 400, faults).linearizable()) return true;
  return false;
}

TEST(KvRandom, ServePendingReads_ExpectCaught) { EXPECT_TRUE(is_caught({.serve_pending_reads = true})); }
TEST(KvRandom, SkipLaneCheck_ExpectCaught) { EXPECT_TRUE(is_caught({.skip_lane_check = true})); }
TEST(KvRandom, CommitBeforeAll_ExpectCaught) { EXPECT_TRUE(is_caught({.commit_before_all = true})); }
TEST(KvRandom, ForgetFence_ExpectCaught) { EXPECT_TRUE(is_caught({.forget_fence = true})); }
TEST(KvRandom, KeepLeftovers_ExpectCaught) { EXPECT_TRUE(is_caught({.keep_leftovers = true})); }
TEST(KvRandom, IgnoreLease_ExpectCaught) { EXPECT_TRUE(is_caught({.ignore_lease = true})); }
TEST(KvRandom, ForgetRefusals_ExpectCaught) { EXPECT_TRUE(is_caught({.forget_refusals = true})); }
TEST(KvRandom, KeepRolledBackLanes_ExpectCaught) { EXPECT_TRUE(is_caught({.keep_rolled_back_lanes = true})); }

}  // namespace
}  // namespace wherry::kv::testing
