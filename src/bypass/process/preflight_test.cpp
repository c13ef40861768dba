// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/preflight.hpp"

#include <gtest/gtest.h>

#include "bypass/nic/model_testing.hpp"
#include "bypass/process/card_testing.hpp"

namespace wherry::bypass {
namespace {

using testing_support::CardModel;
using testing_support::GigabitModel;
using testing_support::ModelCardAccess;
using testing_support::RegisterModel;
using testing_support::TenGigabitModel;

constexpr std::uint64_t kWindow = 0x38'0000'0000;

/// A NIC, a card, and a path with faults between them.
struct Bench {
  explicit Bench(const char* name = "ixgbe")
      : personality(*find_personality(name)),
        model(personality.mbits_max > 2500 ? std::unique_ptr<RegisterModel>(new TenGigabitModel(personality))
                                           : std::unique_ptr<RegisterModel>(new GigabitModel(personality))),
        access(card, [this](std::chrono::microseconds time) { model->pause(time); }) {
    model->bus.read = [this](std::uint64_t from, std::span<std::byte> into) {
      if (drop_reads || from < kWindow || from - kWindow >= kWindowBytes) return false;
      if (!card.read_window(from - kWindow, into)) return false;
      if (into.size() >= 60) spoil(into);
      if (ones) std::ranges::fill(into.size() >= 60 || all_ones ? into : into.first(0), std::byte{0xFF});
      return true;
    };
    model->bus.write = [this](std::uint64_t to, std::span<const std::byte> from) {
      if (drop_writes || (drop_short_writes && from.size() == 16)) return true;  // posted: nobody knows
      return card.write_window(to - kWindow, from);
    };
    nic = *make_nic(personality, *model, {});
    EXPECT_TRUE(nic->reset());
  }
  PreflightReport run(std::uint64_t seed = 1) { return run_preflight(*nic, access, {.window = kWindow, .seed = seed}); }
  void spoil(std::span<std::byte> bytes) {
    if (flip && ++frames > 2) bytes[bytes.size() - 1] ^= std::byte{1};
  }

  const Personality& personality;
  CardModel card;
  std::unique_ptr<RegisterModel> model;
  ModelCardAccess access;
  std::unique_ptr<Nic> nic;
  bool drop_reads = false, drop_writes = false, drop_short_writes = false, ones = false, all_ones = false, flip = false;
  int frames = 0;
};

void expect_cause(const PreflightReport& report, Cause cause) {
  EXPECT_EQ(report.finding.cause, cause) << report.finding.what;
  EXPECT_GT(report.finding.what.size(), 20U);
  EXPECT_EQ(report.finding.what.back(), '.');
  EXPECT_FALSE(report.finding.remedy.empty());
}

TEST(Preflight, MoveFrames_ExpectBothDirectionsCounted) {
  for (const char* name : {"e1000e", "igb", "i210", "ixgbe", "x550"}) {
    Bench bench(name);
    const PreflightReport report = bench.run();
    EXPECT_EQ(report.finding.cause, Cause::kNone) << name << ": " << report.finding.what;
    EXPECT_EQ(report.there, 4U);
    EXPECT_EQ(report.back, 4U);
    EXPECT_EQ(report.bytes, 4U * (1514 + 60));
    EXPECT_FALSE(bench.model->moves()) << "the NIC still runs";
    for (const std::string& fault : bench.model->faults) ADD_FAILURE() << name << ": " << fault;
  }
}

TEST(Preflight, DropReads_ExpectReadsDead) {
  Bench bench;
  bench.drop_reads = true;
  const PreflightReport report = bench.run();
  expect_cause(report, Cause::kReadsDead);
  EXPECT_EQ(report.there + report.back, 0U);
}

TEST(Preflight, AnswerReadsOfPayloadWithOnes_ExpectReadsDead) {
  Bench bench;
  bench.ones = true;
  expect_cause(bench.run(), Cause::kReadsDead);
}

TEST(Preflight, AnswerAllReadsWithOnes_ExpectReadsDead) {
  // A NIC never sends a descriptor of ones.
  Bench bench;
  bench.ones = bench.all_ones = true;
  const PreflightReport report = bench.run();
  EXPECT_TRUE(report.finding.cause == Cause::kReadsDead || report.finding.cause == Cause::kLoopback)
      << report.finding.what;
}

TEST(Preflight, DropWrites_ExpectWritesDead) {
  for (const char* name : {"e1000e", "igb", "ixgbe"}) {
    Bench bench(name);
    bench.drop_writes = true;
    expect_cause(bench.run(), Cause::kWritesDead);
  }
}

TEST(Preflight, DropDescriptorWritesOnly_ExpectWrongData) {
  Bench bench;
  bench.drop_short_writes = true;
  expect_cause(bench.run(), Cause::kWrongData);
}

TEST(Preflight, FlipOneBitOfALaterFrame_ExpectWrongDataAndItsPlace) {
  Bench bench;
  bench.flip = true;
  const PreflightReport report = bench.run();
  expect_cause(report, Cause::kWrongData);
  EXPECT_NE(report.finding.what.find("1 of them wrong, the first at 1513"), std::string::npos) << report.finding.what;
  EXPECT_EQ(report.there + report.back, 2U);
}

TEST(Preflight, LoseFramesInTheNic_ExpectLoopback) {
  Bench bench;
  bench.model->loses_loopback = true;
  expect_cause(bench.run(), Cause::kLoopback);
}

TEST(Preflight, CardWithoutMemory_ExpectCardMemory) {
  Bench bench;
  bench.card.has_memory = false;
  expect_cause(bench.run(), Cause::kCardMemory);
}

TEST(Preflight, CardThatGoes_ExpectAFinding) {
  Bench bench;
  bench.card.gone = true;
  EXPECT_NE(bench.run().finding.cause, Cause::kNone);
}

TEST(Preflight, OtherSeed_ExpectOtherBytes) {
  Bench one, two;
  (void)one.run(1);
  (void)two.run(2);
  EXPECT_NE(one.card.slots, two.card.slots);
}

}  // namespace
}  // namespace wherry::bypass
