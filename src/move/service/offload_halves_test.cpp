// SPDX-License-Identifier: Apache-2.0
// Tests frames in two posts: the first half's memory is free early, readers see only whole frames, and no half remains.
#include "move/service/engine_testing.hpp"

#include <chrono>

namespace wherry::move {
namespace {

using namespace std::chrono_literals;

/// Tests with UCX's gets and with vectored reads, on a stream with two columns: x is posted first, v later.
class Halves : public OffloadEngineTest, public testing::WithParamInterface<bool> {
 protected:
  static constexpr std::size_t kBytes = 8 * kMiB;  // two turns of the engine
  bool vectored() const override { return GetParam(); }
  void SetUp() override {
    make(256 * kMiB);
    client_ = &join();
    stream_ = *open(*client_, {.name = "s"}, {field<double>("x"), field<double>("v")});
    x_ = std::make_unique<Source>(*client_->context, kBytes, 1);
    v_ = std::make_unique<Source>(*client_->context, kBytes, 2);
  }
  static BufferRef not_now(std::size_t bytes) { return {0, bytes, 0, 0, 0}; }
  void half(std::uint64_t ticket, Half which, const BufferRef& x, const BufferRef& v) {
    const std::vector<NewRegion> news{x_->news(), v_->news()};
    const auto rows = static_cast<std::int64_t>(x.bytes / 8);
    post(*client_, stream_, ticket, {{{rows, 0}, {rows, 0}}, {x, v}}, news, {}, 0, which);
  }
  void first(std::uint64_t ticket) { half(ticket, Half::kFirst, x_->ref(), not_now(kBytes)); }
  void rest(std::uint64_t ticket) { half(ticket, Half::kRest, not_now(kBytes), v_->ref()); }
  [[nodiscard]] StatusCode code(std::uint64_t ticket) const { return client_->outcomes.at(ticket).code; }
  /// The number of bytes of frame `sequence` that equal `value`; -1: there is no such frame.
  std::ptrdiff_t count(std::uint64_t sequence, std::byte value) {
    const auto frame = catalogue_.next("s", sequence, 0ms).frame;
    if (!frame) return -1;
    const std::span<const std::byte> ipc = frame->ipc();
    return std::count(ipc.begin(), ipc.end(), value);
  }

  TestClient* client_ = nullptr;
  std::uint32_t stream_ = 0;
  std::unique_ptr<Source> x_, v_;
};

TEST_P(Halves, ReceiveTheRestAfterTheFirstHalfIsPlaced_ExpectOneFrame) {
  first(1);
  ASSERT_TRUE(done(*client_, 1));
  EXPECT_EQ(code(1), StatusCode::kOk);
  EXPECT_EQ(count(0, std::byte{1}), -1) << "half a frame is visible";
  x_->fill(77);  // the application goes on: that memory is its own again
  rest(2);
  ASSERT_TRUE(done(*client_, 2));
  EXPECT_EQ(code(2), StatusCode::kOk);
  EXPECT_EQ(client_->outcomes.at(2).sequence, 0u);
  EXPECT_GE(count(0, std::byte{1}), std::ptrdiff_t{kBytes});
  EXPECT_GE(count(0, std::byte{2}), std::ptrdiff_t{kBytes});
  EXPECT_LT(count(0, std::byte{77}), 100);
}

TEST_P(Halves, ReceiveBothAtOnceManyTimes_ExpectEveryFrameInOrder) {
  for (std::uint64_t frame = 0; frame < 8; ++frame) {
    first(2 * frame + 1);
    rest(2 * frame + 2);
  }
  ASSERT_TRUE(done(*client_, 16));
  for (std::uint64_t frame = 0; frame < 8; ++frame) {
    EXPECT_EQ(code(2 * frame + 1), StatusCode::kOk);
    EXPECT_EQ(client_->outcomes.at(2 * frame + 2).sequence, frame);
    EXPECT_GE(count(frame, std::byte{2}), std::ptrdiff_t{kBytes});
  }
}

TEST_P(Halves, TheFirstHalfCannotBeRead_ExpectBothToFailAndTheStreamToGoOn) {
  x_->forbid();
  first(1);
  rest(2);
  ASSERT_TRUE(done(*client_, 2));
  EXPECT_EQ(code(1), StatusCode::kSourceFault);
  EXPECT_EQ(code(2), StatusCode::kFailedPrecondition);
  EXPECT_EQ(client_->outcomes.at(2).detail, kNoFirstHalf);
  rest(3);  // of no frame
  half(4, Half::kWhole, v_->ref(), v_->ref());
  ASSERT_TRUE(done(*client_, 4));
  EXPECT_EQ(code(3), StatusCode::kFailedPrecondition);
  EXPECT_EQ(client_->outcomes.at(3).detail, kNoFirstHalf);
  EXPECT_EQ(code(4), StatusCode::kOk);
}

TEST_P(Halves, TheRestCannotBeRead_ExpectItToFailAlone) {
  v_->forbid();
  first(1);
  ASSERT_TRUE(done(*client_, 1));
  rest(2);
  ASSERT_TRUE(done(*client_, 2));
  EXPECT_EQ(code(1), StatusCode::kOk);
  EXPECT_EQ(code(2), StatusCode::kSourceFault);
  EXPECT_EQ(count(0, std::byte{1}), -1);
}

TEST_P(Halves, ReceiveARestThatDoesNotMatch_ExpectTheSessionToEnd) {
  first(1);
  half(2, Half::kRest, not_now(4096), v_->ref(0, 4096));
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(client_->failure.code(), StatusCode::kProtocol) << client_->failure.message();
}

TEST_P(Halves, ReceiveABufferInNoneOfTheHalves_ExpectTheSessionToEnd) {
  // Such a frame would show old data of another client from the agent's memory.
  first(1);
  half(2, Half::kRest, not_now(kBytes), not_now(kBytes));
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(client_->failure.code(), StatusCode::kProtocol) << client_->failure.message();
}

TEST_P(Halves, ReceiveAWholeFrameWithABufferOfNoRegion_ExpectRefusal) {
  half(1, Half::kWhole, x_->ref(), not_now(kBytes));
  ASSERT_TRUE(done(*client_, 1));
  EXPECT_EQ(code(1), StatusCode::kInvalidArgument);
}

TEST_P(Halves, TheStreamIsClosedWithHalfAFrame_ExpectItToEnd) {
  first(1);
  ASSERT_TRUE(done(*client_, 1));
  close(*client_, stream_, 1);
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(metric("wherry_move_streams"), 0);
  EXPECT_EQ(metric("wherry_move_queued"), 0);
}

TEST_P(Halves, TheAgentDrainsWithHalfAFrame_ExpectItToEnd) {
  first(1);
  ASSERT_TRUE(done(*client_, 1));
  service_->start_draining();
  const Deadline deadline(kPatience);
  while (!service_->drained() && !deadline.passed()) step();
  EXPECT_TRUE(service_->drained());
  rest(2);
  ASSERT_TRUE(done(*client_, 2));
  EXPECT_EQ(code(2), StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Ways, Halves, testing::Bool(),
                         [](const auto& way) { return way.param ? "Vectored" : "Gets"; });

/// Two ranks that post their frames in halves.
class HalvesOfParts : public OffloadEngineTest {
 protected:
  struct Rank {
    TestClient* client;
    std::uint32_t stream;
    std::unique_ptr<Source> x, v;
    std::uint64_t tickets = 0;
  };
  static constexpr std::size_t kBytes = 64 << 10;

  void SetUp() override {
    make(64 * kMiB);
    for (std::uint32_t part = 0; part < 2; ++part) {
      Rank rank{&join(), 0, nullptr, nullptr};
      rank.stream =
          *open(*rank.client, {.name = "s", .part = part, .parts = 2}, {field<double>("x"), field<double>("v")});
      rank.x = std::make_unique<Source>(*rank.client->context, kBytes, 1);
      rank.v = std::make_unique<Source>(*rank.client->context, kBytes, 2);
      ranks_.push_back(std::move(rank));
    }
  }
  /// Posts one half, and expects its ticket to end with `expected`.
  void half(std::size_t number, Half which, std::uint64_t tag, StatusCode expected = StatusCode::kOk) {
    Rank& rank = ranks_[number];
    const std::vector<NewRegion> news{rank.x->news(), rank.v->news()};
    const BufferRef later{0, kBytes, 0, 0, 0};
    const auto rows = static_cast<std::int64_t>(kBytes / 8);
    post(*rank.client, rank.stream, ++rank.tickets,
         {{{rows, 0}, {rows, 0}},
          {which == Half::kRest ? later : rank.x->ref(), which == Half::kFirst ? later : rank.v->ref()}},
         news, {}, 0, which, tag);
    ASSERT_TRUE(done(*rank.client, rank.tickets));
    EXPECT_EQ(rank.client->outcomes.at(rank.tickets).code, expected);
  }
  FramePtr step_at(std::uint64_t sequence) { return catalogue_.next("s", sequence, 0ms).frame; }

  std::vector<Rank> ranks_;
};

TEST_F(HalvesOfParts, ReceiveAllFourHalves_ExpectTheStepOnlyThen) {
  for (std::uint64_t n = 0; n < 3; ++n) {
    const std::uint64_t tag = 10 * (n + 1);
    half(0, Half::kFirst, tag);
    half(1, Half::kFirst, tag);
    half(1, Half::kRest, 0);  // the tag is that of the first half
    EXPECT_EQ(step_at(n), nullptr);
    half(0, Half::kRest, 0);
    const FramePtr step = step_at(n);
    ASSERT_NE(step, nullptr);
    EXPECT_EQ(step->tag, tag);
    EXPECT_EQ(step->frames(), 2U);
  }
  EXPECT_EQ(metric("wherry_move_steps_total"), 3);
}

TEST_F(HalvesOfParts, OneIsLostBetweenItsHalves_ExpectNoStepAndTheOtherToLearnOfIt) {
  half(0, Half::kFirst, 1);
  half(1, Half::kFirst, 1);
  leave(*ranks_[1].client);
  half(0, Half::kRest, 1, StatusCode::kUnavailable);
  EXPECT_EQ(ranks_[0].client->outcomes.at(2).detail, 2U) << "part 1, plus one";
  half(0, Half::kFirst, 2, StatusCode::kUnavailable);
  half(0, Half::kRest, 2, StatusCode::kFailedPrecondition);
  EXPECT_EQ(ranks_[0].client->outcomes.at(4).detail, kNoFirstHalf);
  EXPECT_EQ(step_at(0), nullptr);
  EXPECT_EQ(metric("wherry_move_queued"), 0);
}

TEST_F(HalvesOfParts, OneLeavesAStepOut_ExpectItToBeDiscardedAndTheNextToAppear) {
  half(0, Half::kFirst, 1);
  half(0, Half::kRest, 1);
  half(1, Half::kFirst, 2);
  half(1, Half::kRest, 2);
  half(0, Half::kFirst, 2);
  half(0, Half::kRest, 2);
  const FramePtr step = step_at(0);
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->tag, 2U);
  EXPECT_EQ(metric("wherry_move_discarded_steps_total"), 1);
}

}  // namespace
}  // namespace wherry::move
