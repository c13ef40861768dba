// SPDX-License-Identifier: Apache-2.0
// Thousands of operations over lossy networks, with nodes that die, lose the keeper and return. Every history must be
// linearizable. With each deliberate fault, at least one history must fail this check.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "kv/node/random_testing.hpp"

namespace wherry::kv::testing {
namespace {

/// The number of seeds to run: a third if FEW_SEEDS is set (cmake/Tests.cmake, WHERRY_ALL_SEEDS).
unsigned seeds_of(unsigned all) { return std::getenv("FEW_SEEDS") != nullptr ? all / 3 : all; }

TEST(KvRandom, WhateverHappens_ExpectLinearizableHistories) {
  Story all;
  const unsigned seeds = seeds_of(60);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Story story = tell_story(seed, 2 + seed % 4, 400);
    ASSERT_TRUE(story.linearizable()) << "seed " << seed;
    ASSERT_TRUE(story.same_tables) << "seed " << seed;
    for (const auto& [status, count] : story.statuses) all.statuses[status] += count;
    all.unknown += story.unknown;
    all.epochs += story.epochs;
    all.returns += story.returns;
    all.takeovers += story.takeovers;
  }
  // Check that the stories contain enough of each situation.
  for (const Status s : {Status::ok, Status::no_such_key, Status::version_mismatch, Status::table_full}) {
    EXPECT_GT(all.statuses[s], seeds * 5 / 6) << name_of(s);
    RecordProperty(std::string(name_of(s)), static_cast<int>(all.statuses[s]));
  }
  EXPECT_GT(all.statuses[Status::ok], 10U * all.unknown);
  EXPECT_GT(all.takeovers, seeds);
  EXPECT_GT(all.returns, seeds * 2 / 3);
  RecordProperty("unknown", static_cast<int>(all.unknown));
  RecordProperty("epochs", static_cast<int>(all.epochs));
}

/// One location is about to pass `turn`. One is nearly 2^31 older, and must still compare after one or two refreshes.
/// One begins to lag a few writes later. One was never written.
using Versions = std::array<std::uint32_t, kWays>;
Versions old_versions(std::uint64_t seed) {
  const std::uint32_t turn = seed % 3 == 0 ? 0U : seed % 3 == 1 ? 1U << 31 : 1U << 30;
  const auto few = static_cast<std::uint32_t>(seed % 20);
  std::array<std::uint32_t, kWays> versions{turn - 1 - few, turn + (1U << 31) + 16 + few % 3,
                                            turn - 3 * (1U << 29) + 1 + few, 0};
  std::ranges::rotate(versions, versions.begin() + static_cast<std::ptrdiff_t>(seed % kWays));
  return versions;
}

TEST(KvRandom, VersionsThatWrapAndLag_ExpectLinearizableHistories) {
  unsigned returns = 0, takeovers = 0;
  const unsigned seeds = seeds_of(60);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Story story = tell_story(seed, 2 + seed % 4, 400, {}, old_versions(seed));
    ASSERT_TRUE(story.linearizable()) << "seed " << seed;
    returns += story.returns;
    takeovers += story.takeovers;
  }
  EXPECT_GT(takeovers, seeds);
  EXPECT_GT(returns, seeds * 2 / 3);
}

TEST(KvRandom, KeepLaggingVersions_ExpectCaught) {
  bool caught = false;
  for (std::uint64_t seed = 1; seed <= 200 && !caught; ++seed)
    caught =
        !tell_story(seed, 2 + seed % 4, 400, {NodeFault::keep_lagging_versions}, old_versions(seed)).linearizable();
  EXPECT_TRUE(caught);
}

TEST(KvRandom, KeysWithSeveralBuckets_ExpectLinearizableHistoriesAndEachKeyOnce) {
  unsigned elsewhere = 0, returns = 0, takeovers = 0;
  const unsigned seeds = seeds_of(120);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Story story = tell_story(seed, 2 + seed % 4, 400, {}, seed % 4 == 0 ? old_versions(seed) : Versions{},
                                   seed % 3 == 0 ? 9 : 11);
    ASSERT_TRUE(story.linearizable()) << "seed " << seed;
    ASSERT_TRUE(story.same_tables) << "seed " << seed;
    elsewhere += story.elsewhere;
    returns += story.returns;
    takeovers += story.takeovers;
  }
  EXPECT_GT(elsewhere, seeds);
  EXPECT_GT(takeovers, seeds);
  EXPECT_GT(returns, seeds * 2 / 3);
}

bool is_caught_elsewhere(const NodeFaults& faults, unsigned seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    if (tell_story(seed, 2 + seed % 4, 400, faults, {}, 11).caught()) return true;
  return false;
}

TEST(KvRandom, IgnoreOtherFlights_ExpectCaught) {
  EXPECT_TRUE(is_caught_elsewhere({NodeFault::ignore_other_flights}, 400));
}

bool is_caught(const NodeFaults& faults) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    if (!tell_story(seed, 2 + seed % 4, 400, faults).linearizable()) return true;
  return false;
}

TEST(KvRandom, ServePendingReads_ExpectCaught) { EXPECT_TRUE(is_caught({NodeFault::serve_pending_reads})); }
TEST(KvRandom, SkipLaneCheck_ExpectCaught) { EXPECT_TRUE(is_caught({NodeFault::skip_lane_check})); }
TEST(KvRandom, CommitBeforeAll_ExpectCaught) { EXPECT_TRUE(is_caught({NodeFault::commit_before_all})); }
TEST(KvRandom, ForgetFence_ExpectCaught) { EXPECT_TRUE(is_caught({NodeFault::forget_fence})); }
TEST(KvRandom, KeepLeftovers_ExpectCaught) { EXPECT_TRUE(is_caught({NodeFault::keep_leftovers})); }
TEST(KvRandom, IgnoreLease_ExpectCaught) { EXPECT_TRUE(is_caught({NodeFault::ignore_lease})); }
TEST(KvRandom, ForgetRefusals_ExpectCaught) { EXPECT_TRUE(is_caught({NodeFault::forget_refusals})); }
TEST(KvRandom, KeepRolledBackLanes_ExpectCaught) { EXPECT_TRUE(is_caught({NodeFault::keep_rolled_back_lanes})); }

}  // namespace
}  // namespace wherry::kv::testing
