// SPDX-License-Identifier: Apache-2.0
// Tests the engine with one channel in each direction.
#include <gtest/gtest.h>

#include "sim/card/testing.hpp"

namespace wherry::sim::card {
namespace {

using namespace testing_support;

TEST(SimCardOneChannel, MoveBothWays_ExpectEveryByte) {
  Bench bench;
  ASSERT_EQ(bench.engine->channels(), 1U);
  for (const std::uint32_t bytes : {1U, 64U, 4097U, 30'000U})
    for (const Direction direction : {Direction::kToCard, Direction::kToHost})
      EXPECT_EQ(bench.move(direction, 4099, 8193, bytes).error, driver::Error::kNone);
  ASSERT_TRUE(bench.engine->reset().ok());
  EXPECT_EQ(bench.move(Direction::kToHost, 4099, 8193, 5000).error, driver::Error::kNone);
}

}  // namespace
}  // namespace wherry::sim::card
