// SPDX-License-Identifier: Apache-2.0
// Tests that seeded runs are repeatable, and that the reference store's runs reach their intended situations.
// python/tests/test_kv_history.py checks the histories.
#include <gtest/gtest.h>

#include "kv/sim/reference_testing.hpp"

namespace wherry::kv::sim {
namespace {

/// A hash of all events.
struct Digest final : Tap {
  void see(Cycles now, Fate fate, const Packet& packet) override {
    add(now);
    add(static_cast<std::uint64_t>(fate));
    add(packet.from.ip);
    add(packet.to.ip);
    for (const std::byte byte : packet.bytes) add(std::to_integer<std::uint64_t>(byte));
  }
  void add(std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3U; }
  std::uint64_t hash = 0xcbf29ce484222325U;
};

struct Run {
  std::uint64_t trace;
  std::string history;
  friend bool operator==(const Run&, const Run&) = default;
};

Run run(std::uint64_t seed) {
  ReferenceCluster cluster(Flaw::kNone, seed, {});
  Digest digest;
  cluster.network().set_tap(&digest);
  std::string history = cluster.run().to_json_lines();
  return {digest.hash, std::move(history)};
}

TEST(KvReference, SameSeed_SameTraceAndHistory) {
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5).trace, run(6).trace);
  EXPECT_NE(run(5).history, run(6).history);
}

TEST(KvReference, Runs_MeetEveryOutcomeAndFault) {
  std::array<std::size_t, 6> outcomes{};
  std::array<std::uint64_t, kFates> fates{};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ReferenceCluster cluster(Flaw::kNone, seed, {});
    const History& history = cluster.run();
    EXPECT_EQ(history.size(), 400);
    for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i] += history.count(static_cast<Outcome>(i));
    for (std::size_t i = 0; i < fates.size(); ++i) fates[i] += cluster.network().count(static_cast<Fate>(i));
  }
  for (const Outcome one : {Outcome::kOk, Outcome::kNoSuchKey, Outcome::kVersionMismatch, Outcome::kUnknown})
    EXPECT_GT(outcomes[static_cast<std::size_t>(one)], 100) << name_of(one);
  EXPECT_LT(outcomes[static_cast<std::size_t>(Outcome::kUnknown)], 2000);
  for (const Fate one : {Fate::kDelivered, Fate::kLost, Fate::kCut})
    EXPECT_GT(fates[static_cast<std::size_t>(one)], 100);
}

}  // namespace
}  // namespace wherry::kv::sim
