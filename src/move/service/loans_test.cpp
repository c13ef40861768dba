// SPDX-License-Identifier: Apache-2.0
#include "move/service/loans.hpp"

#include <gtest/gtest.h>

#include <list>

namespace wherry::move {
namespace {

/// Readers of an agent with a budget of 100 bytes, of which they may hold 50.
class LoansTest : public ::testing::Test {
 protected:
  LoansTest() { loans.limit(50, 100); }
  const Frame& frame(std::uint64_t bytes) {
    frames.emplace_back().layout.total_bytes = bytes;
    return frames.back();
  }
  Loans loans;
  std::list<Frame> frames;
  Loans::Borrower a, b;
};

TEST_F(LoansTest, ManyFrames_ExpectTheLimitAndASentence) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(loans.lend(frame(10), a)) << i;
  const Status refused = loans.lend(frame(10), a);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      refused.message(),
      "readers hold frames of 50 bytes, this one 5 of 50 bytes: with the next frame, of 10 bytes, it would be more "
      "than the 50 that they may hold (agent.reader_budget); release frames, copy what is to be kept, or raise that "
      "setting");
  EXPECT_EQ(loans.bytes(), 50u);
  loans.give_back(frames.front(), a);
  EXPECT_EQ(loans.bytes(), 40u);
  EXPECT_TRUE(loans.lend(frame(10), a));
}

TEST_F(LoansTest, OneFrameForManyReaders_ExpectItCountedOnce) {
  const Frame& only = frame(30);
  EXPECT_TRUE(loans.lend(only, a));
  EXPECT_TRUE(loans.lend(only, b));
  EXPECT_TRUE(loans.lend(only, b));
  EXPECT_EQ(loans.bytes(), 30u);
  loans.give_back(only, a);
  loans.give_back(only, b);
  EXPECT_EQ(loans.bytes(), 30u);
  loans.give_back(only, b);
  EXPECT_EQ(loans.bytes(), 0u);
  EXPECT_EQ(a.frames + b.frames + a.bytes + b.bytes, 0u);
}

TEST_F(LoansTest, LoopOverLargeFrames_ExpectTheNextOneWhileOneIsHeld) {
  EXPECT_TRUE(loans.lend(frame(40), a));
  EXPECT_TRUE(loans.lend(frame(40), a)) << "as a loop does";
  EXPECT_FALSE(loans.lend(frame(40), a));
}

TEST_F(LoansTest, FrameLargerThanTheLimit_ExpectItReadable) { EXPECT_TRUE(loans.lend(frame(90), a)); }

TEST_F(LoansTest, AnotherReaderHoldsTheLimit_ExpectALoopToGoOnWhileOneMoreFrameFits) {
  EXPECT_TRUE(loans.lend(frame(50), a));
  EXPECT_TRUE(loans.lend(frame(10), b));
  const Frame& second = frame(10);
  EXPECT_TRUE(loans.lend(second, b));
  EXPECT_FALSE(loans.lend(frame(10), b)) << "it holds two";
  loans.give_back(second, b);
  EXPECT_FALSE(loans.lend(frame(30), b)) << "no room for a further one would be left";
}

}  // namespace
}  // namespace wherry::move
