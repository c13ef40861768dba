// SPDX-License-Identifier: Apache-2.0
// The simulated paths: each moves every byte in simulated time, and detects a flipped byte.
#include <gtest/gtest.h>

#include <atomic>

#include "probe/driver.hpp"
#include "probe/simulated/paths.hpp"
#include "probe/suite.hpp"

namespace wherry::probe {
namespace {

double move(Path& path, const Shape& shape, std::uint64_t transfers) {
  const auto bound = path.open(shape);
  EXPECT_TRUE(bound);
  path.prepare(7);
  MachineClock clock;
  const std::atomic<bool> go{false};
  Driver driver(clock, path, path.work(shape), go);
  const auto ns = driver.closed_loop(transfers, nullptr);
  EXPECT_TRUE(ns) << ns.status().message();
  return ns ? static_cast<double>(*ns) / static_cast<double>(transfers) : 0;
}

TEST(SimulatedPaths, MoveAndNotice) {
  const Paths paths = simulated_paths();
  ASSERT_EQ(paths.size(), 8U);
  for (const auto& path : paths) {
    EXPECT_EQ(path->info().provenance, Provenance::kSimulated);
    for (Shape shape : {Shape{.bytes = 64}, Shape{.bytes = 70'016, .channels = 4, .notice = Notice::kInterrupt}}) {
      shape.flow = path->info().id.ends_with("h2c") ? Flow::kH2C : Flow::kC2H;
      ASSERT_TRUE(path->accepts(shape)) << path->info().id;
      EXPECT_GT(move(*path, shape, 5), 0);
      EXPECT_TRUE(path->verify(7)) << path->info().id << ": " << path->verify(7).message();
      EXPECT_FALSE(path->verify(8)) << "another round's data";
      ASSERT_TRUE(path->spoil(123'456'789));
      EXPECT_FALSE(path->verify(7));
      path->close();
    }
    EXPECT_FALSE(path->accepts({.bytes = 100}));
    EXPECT_FALSE(path->accepts({.depth = 2}));
    EXPECT_FALSE(cells_of(*path, {.quick = true}).empty());
  }
}

/// An interrupt takes the preset's time, which shows in the simulated time.
TEST(SimulatedPaths, TellInterruptsFromPolling) {
  const Paths paths = simulated_paths();
  Path& path = *paths.front();
  const double polled = move(path, {.bytes = 64, .flow = Flow::kH2C, .notice = Notice::kPolled}, 4);
  path.close();
  const double interrupt = move(path, {.bytes = 64, .flow = Flow::kH2C, .notice = Notice::kInterrupt}, 4);
  path.close();
  EXPECT_NEAR(interrupt - polled, 6'000, 200);
}

}  // namespace
}  // namespace wherry::probe
