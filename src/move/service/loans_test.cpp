// SPDX-License-Identifier: Apache-2.0
#include "move/service/loans.hpp"

#include <gtest/gtest.h>

#include <list>

namespace wherry::move {
namespace {

constexpr std::uint64_t kPage = 4096;

/// Readers of an agent with a budget of 100 pages, of which they may hold 50.
class LoansTest : public ::testing::Test {
 protected:
  LoansTest() { loans.limit(50 * kPage, 100 * kPage); }
  /// A frame with `pages` pages of content, in the agent's memory. All page numbers here are class sizes.
  const Frame& frame(std::uint64_t pages) { return frame_of_bytes(pages * kPage); }
  const Frame& frame_of_bytes(std::uint64_t bytes) {
    auto extent = arena->try_allocate(bytes);
    EXPECT_TRUE(extent) << extent.status().message();
    Frame& made = frames.emplace_back();
    made.extent = *std::move(extent);
    made.layout.total_bytes = bytes;
    return made;
  }
  std::shared_ptr<Arena> arena = *Arena::create(1000 * kPage);
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
      "readers hold frames that take 204800 bytes of the budget, this one 5 that take 204800: with the next frame, "
      "which takes 40960, it would be more than the 204800 that they may hold (agent.reader_budget); release frames, "
      "copy what is to be kept, or raise that setting");
  EXPECT_EQ(loans.bytes(), 50 * kPage);
  loans.give_back(frames.front(), a);
  EXPECT_EQ(loans.bytes(), 40 * kPage);
  EXPECT_TRUE(loans.lend(frame(10), a));
}

TEST_F(LoansTest, TinyFrames_ExpectTheirWholePagesCounted) {
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(loans.lend(frame_of_bytes(1), a)) << i;
  EXPECT_FALSE(loans.lend(frame_of_bytes(1), a));
  EXPECT_EQ(loans.bytes(), arena->in_use() - kPage);
}

TEST_F(LoansTest, ExtentsLargerThanTheirFrames_ExpectWhatTheyTakeCounted) {
  {
    const Extent larger = *arena->try_allocate(12 * kPage);
  }  // free now: the next one gets it
  EXPECT_TRUE(loans.lend(frame_of_bytes(8 * kPage + 1), a));
  EXPECT_EQ(loans.bytes(), 12 * kPage);
  EXPECT_EQ(loans.bytes(), arena->in_use());
  loans.give_back(frames.front(), a);
  EXPECT_EQ(loans.bytes(), 0u);
}

TEST_F(LoansTest, ReadersHoldAllThatTheyMay_ExpectRoomForAFurtherFrameInTheArena) {
  for (const std::uint64_t content : {kPage / 2, 5 * kPage + 1, 9 * kPage, 17 * kPage - 1}) {
    const auto budget = *Arena::create(100 * kPage);
    std::list<Frame> held;
    std::list<Loans::Borrower> readers;
    Loans lent;
    lent.limit(50 * kPage, 100 * kPage);
    const auto may_read_another = [&] {
      auto extent = budget->try_allocate(content);
      if (!extent) return false;
      held.emplace_back().extent = *std::move(extent);
      held.back().layout.total_bytes = content;
      if (lent.lend(held.back(), readers.back())) return true;
      held.pop_back();
      return false;
    };
    do {
      readers.emplace_back();
      if (!may_read_another()) break;
      while (may_read_another()) continue;
    } while (readers.size() < 1000);
    EXPECT_GE(lent.bytes(), 50 * kPage) << "more than the limit, by readers of up to two frames each";
    EXPECT_TRUE(budget->try_allocate(content)) << "readers hold " << lent.bytes() << " in frames of " << content;
  }
}

TEST_F(LoansTest, OneFrameForManyReaders_ExpectItCountedOnce) {
  const Frame& only = frame(32);
  EXPECT_TRUE(loans.lend(only, a));
  EXPECT_TRUE(loans.lend(only, b));
  EXPECT_TRUE(loans.lend(only, b));
  EXPECT_EQ(loans.bytes(), 32 * kPage);
  loans.give_back(only, a);
  loans.give_back(only, b);
  EXPECT_EQ(loans.bytes(), 32 * kPage);
  loans.give_back(only, b);
  EXPECT_EQ(loans.bytes(), 0u);
  EXPECT_EQ(a.frames + b.frames + a.bytes + b.bytes, 0u);
}

TEST_F(LoansTest, LoopOverLargeFrames_ExpectTheNextOneWhileOneIsHeld) {
  EXPECT_TRUE(loans.lend(frame(40), a));
  EXPECT_TRUE(loans.lend(frame(40), a)) << "as a loop does";
  EXPECT_FALSE(loans.lend(frame(40), a));
}

TEST_F(LoansTest, FrameLargerThanTheLimit_ExpectItReadable) { EXPECT_TRUE(loans.lend(frame(96), a)); }

TEST_F(LoansTest, AnotherReaderHoldsTheLimit_ExpectALoopToGoOnWhileOneMoreFrameFits) {
  EXPECT_TRUE(loans.lend(frame(48), a));
  EXPECT_TRUE(loans.lend(frame(10), b));
  const Frame& second = frame(10);
  EXPECT_TRUE(loans.lend(second, b));
  EXPECT_FALSE(loans.lend(frame(10), b)) << "it holds two";
  loans.give_back(second, b);
  EXPECT_FALSE(loans.lend(frame(32), b)) << "no room for a further one would be left";
}

TEST_F(LoansTest, ResultsForReaders_ExpectThemCountedAndAnEighthBeyondTheLimit) {
  EXPECT_TRUE(loans.take_bytes(18 * kPage));
  EXPECT_EQ(loans.bytes(), 18 * kPage);
  EXPECT_TRUE(loans.lend(frame(32), a));
  EXPECT_FALSE(loans.take_bytes(kPage)) << "the limit is 50, and results take more than an eighth of it";
  loans.return_bytes(18 * kPage);
  EXPECT_TRUE(loans.lend(frame(16), a));
  EXPECT_TRUE(loans.take_bytes(2 * kPage));
  EXPECT_EQ(loans.bytes(), 50 * kPage);
  EXPECT_FALSE(loans.take_bytes(5 * kPage));
  EXPECT_TRUE(loans.take_bytes(4 * kPage)) << "six pages of results beside frames at the limit";
  EXPECT_FALSE(loans.take_bytes(kPage));
  loans.return_bytes(6 * kPage);
  EXPECT_EQ(loans.bytes(), 48 * kPage);
}

}  // namespace
}  // namespace wherry::move
