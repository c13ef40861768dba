// SPDX-License-Identifier: Apache-2.0
#include "sim/core.hpp"

#include <gtest/gtest.h>

#include "kv/generated/registers.hpp"

namespace wherry::kv::rtl {
namespace {

std::vector<std::byte> foreign(std::size_t bytes, std::uint8_t mark) {
  std::vector<std::byte> frame(bytes);
  for (std::size_t i = 0; i < bytes; ++i) frame[i] = static_cast<std::byte>(mark + i);
  return frame;
}

TEST(KvCore, Registers_ExpectTheIdAndWhatWasWritten) {
  Core core({});
  EXPECT_EQ(core.read(registers::kIdOffset), registers::kIdReset);
  core.write(registers::kRetryCyclesOffset, 12345);
  EXPECT_EQ(core.read(registers::kRetryCyclesOffset), 12345U);
}

TEST(KvCore, ForeignFramesBothWays_ExpectThemUnchangedAndInOrder) {
  for (const StreamOptions& stream : {StreamOptions{}, StreamOptions{.gaps = 300'000, .stalls = 300'000}}) {
    Core core({.seed = 7, .net = stream, .host = stream});
    for (const Side in : {Side::kNet, Side::kHost}) {
      for (std::uint8_t i = 0; i < 40; ++i) core.put(in, foreign(60 + 37U * i, i));
    }
    core.step(5000);
    for (const Side out : {Side::kNet, Side::kHost}) {
      for (std::uint8_t i = 0; i < 40; ++i) {
        const auto frame = core.take(out);
        ASSERT_TRUE(frame);
        EXPECT_EQ(frame->bytes, foreign(60 + 37U * i, i));
        EXPECT_EQ(frame->user, 60 + 37U * i);
      }
      EXPECT_FALSE(core.take(out));
    }
    EXPECT_TRUE(core.idle());
  }
}

TEST(KvCore, IdleTimeSkipped_ExpectTheClockGoneOn) {
  using namespace registers;
  Core core({});
  core.run(1'000'000);
  EXPECT_EQ(core.now(), 1'000'000U);
  EXPECT_GT(core.skipped(), 900'000U);
  const std::uint32_t before = core.read(cycles_offset(0));
  core.run(5000);
  const Cycles passed = core.read(cycles_offset(0)) - before;
  EXPECT_GE(passed, 5000U);
  EXPECT_LE(passed, 5010U);
}

TEST(KvCore, FrameForAnIdleCore_ExpectItTakenAtOnceAndNotWithTheNextTimer) {
  Core core({});
  core.write(registers::kRetryCyclesOffset, 1'000'000);
  core.run(10'000);
  ASSERT_TRUE(core.idle());
  for (const Side in : {Side::kNet, Side::kHost}) {
    core.put(in, foreign(100, 1));
    EXPECT_FALSE(core.idle());
    core.run(500);
    const auto frame = core.take(in == Side::kNet ? Side::kHost : Side::kNet);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->bytes, foreign(100, 1));
    EXPECT_TRUE(core.idle());
  }
}

}  // namespace
}  // namespace wherry::kv::rtl
