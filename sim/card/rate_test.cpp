// SPDX-License-Identifier: Apache-2.0
// The targets of the engine behind sim/pcie, and the breakdown of its time. All times are simulated, so every machine
// gives the same ones.
#include "sim/card/rate.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace wherry::sim::card {
namespace {

using wherry::dma::Bell;
using wherry::dma::Direction;

double sum(const StageReport& report) { return std::accumulate(report.mean_ns.begin(), report.mean_ns.end(), 0.0); }

// At depth 1, no doorbell or completion waits, so every stage is visible alone.
TEST(SimCardRate, OneTransferAtATime_ExpectStagesThatAddUpAndNoQueue) {
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    for (const Bell bell : {Bell::kTail, Bell::kDescriptor}) {
      const RateResult found =
          measure({.direction = direction, .depth = 1, .bell = bell, .transfers = 40, .jitter_ns = 0, .stages = true});
      ASSERT_EQ(found.error, "");
      ASSERT_TRUE(found.stages);
      const StageReport& report = *found.stages;
      EXPECT_NEAR(sum(report), found.latency_us * 1000, 1);
      const auto of = [&](Stage stage) { return report.mean_ns[static_cast<std::size_t>(stage)]; };
      EXPECT_LE(of(Stage::kBellLeft), 1);
      EXPECT_LE(of(Stage::kFetchLeft), 1);
      EXPECT_DOUBLE_EQ(report.per_bell, 1);
      if (bell == Bell::kTail) {
        // A request and its data take 800 ns, less what the engine and the port need for both.
        EXPECT_NEAR(of(Stage::kFetchAnswered) + of(Stage::kFetchLeft) + of(Stage::kFetchCame), 800, 10);
        EXPECT_DOUBLE_EQ(report.per_fetch, 1);
      } else {
        EXPECT_EQ(of(Stage::kFetchCame), 0);
        EXPECT_EQ(report.per_fetch, 0);
      }
    }
  }
}

TEST(SimCardRate, ManyTransfers_ExpectTheLinksBytesToBeItsTime) {
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    const RateResult found = measure({.direction = direction, .depth = 16, .transfers = 300, .stages = true});
    ASSERT_EQ(found.error, "");
    const StageReport& report = *found.stages;
    EXPECT_NEAR(sum(report), found.latency_us * 1000, 1);
    const auto share = [](const LinkUse& use) {
      return static_cast<double>(use.used()) / static_cast<double>(use.all);
    };
    EXPECT_NEAR(share(report.down), found.down_use, 0.002);
    EXPECT_NEAR(share(report.up), found.up_use, 0.002);
    const LinkUse& data = direction == Direction::kToCard ? report.down : report.up;
    EXPECT_NEAR(static_cast<double>(data.payload) / static_cast<double>(data.all), found.gbytes / 15.71,
                0.02);  // what is under way at the ends
    // Headers and framing take 20 bytes of 276, or 24 of 280.
    EXPECT_NEAR(static_cast<double>(data.headers) / static_cast<double>(data.payload),
                direction == Direction::kToCard ? 20.0 / 256 : 24.0 / 256, 0.001);
    EXPECT_EQ(report.down.others, 0U);
  }
}

// The bars dma_h2c_4k_depth16, dma_c2h_4k_depth16, dma_h2c_4k_rtt2us and dma_64b_mps.
TEST(SimCardRate, TheBars_ExpectThem) {
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    const RateResult near = measure({.direction = direction, .depth = 16, .transfers = 500});
    EXPECT_EQ(near.error, "");
    EXPECT_GE(near.share, 0.98);
    EXPECT_LE(near.share, 1);
    const RateResult far = measure({.direction = direction, .depth = 32, .transfers = 500, .rtt_ns = 2000});
    EXPECT_EQ(far.error, "");
    EXPECT_GE(far.share, 0.98);
    EXPECT_LE(far.share, 1);
  }
  const RateResult small = measure({.bytes = 64, .depth = 480, .batch = 16, .transfers = 6000});
  EXPECT_EQ(small.error, "");
  EXPECT_GE(small.millions, 100);
}

}  // namespace
}  // namespace wherry::sim::card
