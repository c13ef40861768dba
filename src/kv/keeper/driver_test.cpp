// SPDX-License-Identifier: Apache-2.0
// What a node's driver says of the core's counters.
#include "kv/keeper/driver.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kv/keeper/testing.hpp"

namespace wherry::kv {
namespace {

struct Heard final : DriverOutput {
  void send(const ToKeeper& message) override {
    if (const auto* report = std::get_if<Report>(&message)) reports.push_back(*report);
  }
  std::uint64_t draw_boot() override { return 7; }
  std::vector<Report> reports;
};

TEST(Driver, Report_ExpectWhateverTheCoreDropped) {
  using namespace registers;
  const Cycles truth = 0;
  FakeCore core(truth, DriftingClock{}, 0);
  core.write(kFramesKvOffset, 100);
  core.write(kRetriesOffset, 9);
  const std::uint32_t reasons[] = {kDroppedChecksumOffset, kDroppedLengthOffset, kDroppedEpochOffset,
                                   kDroppedDuplicateOffset, kDroppedBusyOffset};
  for (std::uint32_t i = 0; i < std::size(reasons); ++i) core.write(reasons[i], 1U << i);
  Heard heard;
  Driver driver({.cluster = "c", .bucket_bits = 10, .lanes = 64}, core, heard, truth);
  driver.connected(truth);
  driver.on_message(Ping{.ping = 5}, truth);
  ASSERT_FALSE(heard.reports.empty());
  const Counters& counters = heard.reports.back().counters;
  EXPECT_EQ(counters.frames, 100U);
  EXPECT_EQ(counters.dropped, 0b11111U);
  EXPECT_EQ(counters.retries, 9U);
}

}  // namespace
}  // namespace wherry::kv
