// SPDX-License-Identifier: Apache-2.0
#include "base/time_share.hpp"

#include <gtest/gtest.h>

namespace wherry {
namespace {

constexpr std::uint64_t kMs = 1'000'000, kSecond = 1'000 * kMs;

/// For ten seconds, works for `each` ns as soon as it is allowed. Returns the total working time.
std::uint64_t worked(std::uint64_t each) {
  TimeShare share;
  std::uint64_t now = kSecond, sum = 0;
  while (now < 11 * kSecond) {
    now += each;
    sum += each;
    if (const std::uint64_t next = share.charge(each, now); next != 0) {
      EXPECT_GT(next, now);
      now = next;
    }
  }
  return sum;
}

TEST(TimeShares, WorkNeverEnds_ExpectATenthOfTheTimeWhateverAPieceTakes) {
  for (const std::uint64_t each : {kMs / 100, kMs, 4 * kMs, 50 * kMs}) {
    EXPECT_LT(worked(each), kSecond + each + 10 * kMs) << each;
    EXPECT_GT(worked(each), kSecond / 2) << each << " is not held back more than needed";
  }
}

TEST(TimeShares, LittleWork_ExpectNoWait) {
  TimeShare share;
  for (std::uint64_t now = kSecond; now < 11 * kSecond; now += 100 * kMs) EXPECT_EQ(share.charge(kMs, now), 0u);
}

TEST(TimeShares, LongPause_ExpectNoMoreThanABurstSaved) {
  TimeShare share;
  EXPECT_EQ(share.charge(4 * kMs, 3600 * kSecond), 0u);
  EXPECT_NE(share.charge(4 * kMs, 3600 * kSecond + 4 * kMs), 0u);
}

}  // namespace
}  // namespace wherry
