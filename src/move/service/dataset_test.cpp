// SPDX-License-Identifier: Apache-2.0
#include "move/service/dataset.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/log.hpp"

namespace wherry::move {
namespace {

class DatasetTest : public testing::Test {
 protected:
  DatasetTest() { (void)init_log("off", ""); }
  void make(std::uint32_t parts) {
    OpenRequest request;
    request.options.name = "d";
    request.options.parts = parts;
    request.schema = {field<double>("x")};
    auto info = std::make_shared<StreamInfo>();
    info->name = "d";
    info->parts = parts;
    request_ = request;
    dataset_ = std::make_unique<Dataset>(std::move(info), std::move(request));
    for (std::uint32_t part = 0; part < parts; ++part) open(part);
  }
  void open(std::uint32_t part) {
    const Status s = dataset_->open_part(part, "rank " + std::to_string(part));
    EXPECT_TRUE(s) << s.message();
  }
  Dataset::Added add(std::uint32_t part, std::uint64_t tag) {
    auto frame = std::make_shared<Frame>();
    frame->tag = tag;
    frame->part = part;
    frame->rows = 10 * tag + part;
    frame->extent = *arena_->try_allocate(4096);
    return dataset_->add(part, std::move(frame));
  }
  /// Returns 0 if the frame was accepted, otherwise the detail of its failure.
  std::uint64_t blamed(std::uint32_t part, std::uint64_t tag, StatusCode code) {
    const Dataset::Added added = add(part, tag);
    EXPECT_EQ(added.blame.code, code);
    EXPECT_EQ(added.step, nullptr);
    return added.blame.detail;
  }
  void expect_counts(std::uint64_t incomplete, std::uint64_t discarded) const {
    EXPECT_EQ(dataset_->status().incomplete, incomplete);
    EXPECT_EQ(dataset_->status().discarded, discarded);
    if (incomplete == 0) {
      EXPECT_EQ(dataset_->pending_bytes(), 0U);
    }
  }

  std::shared_ptr<Arena> arena_ = *Arena::create(4 << 20);
  OpenRequest request_;
  std::unique_ptr<Dataset> dataset_;
};

TEST_F(DatasetTest, AllPartsCame_ExpectOneStepWithThemInTheirOrder) {
  make(3);
  EXPECT_EQ(add(2, 5).step, nullptr);
  EXPECT_EQ(add(0, 5).step, nullptr);
  expect_counts(1, 0);
  EXPECT_EQ(dataset_->pending_bytes(), 2U * 4096);
  const FramePtr step = add(1, 5).step;
  ASSERT_NE(step, nullptr);
  ASSERT_EQ(step->frames(), 3U);
  for (std::uint32_t part = 0; part < 3; ++part) {
    EXPECT_EQ(step->frame(part).part, part);
    EXPECT_EQ(step->frame(part).tag, 5U);
    EXPECT_EQ(step->frame(part).sequence, 0U);
  }
  EXPECT_EQ(step->step_rows(), 50U + 51 + 52);
  EXPECT_EQ(step->step_memory(), 3U * 4096);
  expect_counts(0, 0);
}

TEST_F(DatasetTest, PartsRunAhead_ExpectStepsInTheOrderOfTheirTags) {
  make(2);
  for (std::uint64_t tag : {1, 2, 3}) EXPECT_EQ(add(0, tag).step, nullptr);
  EXPECT_FALSE(dataset_->ahead(1));
  EXPECT_TRUE(dataset_->ahead(2));
  for (std::uint64_t tag : {1, 2, 3}) {
    const FramePtr step = add(1, tag).step;
    ASSERT_NE(step, nullptr);
    EXPECT_EQ(step->tag, tag);
    EXPECT_EQ(step->sequence, tag - 1);
  }
  expect_counts(0, 0);
}

TEST_F(DatasetTest, APartLeavesATagOut_ExpectThatStepDiscardedAndLateOnesRefused) {
  make(3);
  add(0, 1), add(0, 2);
  add(1, 2);  // without 1
  expect_counts(1, 1);
  EXPECT_EQ(blamed(2, 1, StatusCode::kFailedPrecondition), 1U);  // some part that has come further, plus one
  const FramePtr step = add(2, 2).step;
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->sequence, 0U);
  EXPECT_EQ(blamed(2, 2, StatusCode::kFailedPrecondition), kStepIsOver);
  expect_counts(0, 1);
}

TEST_F(DatasetTest, APartGoes_ExpectWhatItLacksDiscardedAndTheRestToBecomeComplete) {
  make(3);
  for (std::uint64_t tag : {1, 2, 3}) add(0, tag);
  add(1, 1), add(1, 2);
  add(2, 1);  // complete
  dataset_->close_part(1, true);
  expect_counts(1, 1);  // 2 has what it gave; 3 lacks it
  EXPECT_EQ(blamed(0, 4, StatusCode::kUnavailable), 2U);
  EXPECT_EQ(dataset_->blame(2, 3).code, StatusCode::kUnavailable);
  const FramePtr step = add(2, 2).step;
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->tag, 2U);
  EXPECT_EQ(blamed(2, 3, StatusCode::kUnavailable), 2U);
  expect_counts(0, 1);
}

TEST_F(DatasetTest, APartComesBack_ExpectStepsToBecomeCompleteAgain) {
  make(2);
  add(0, 1), add(1, 1);
  dataset_->close_part(1, true);
  EXPECT_EQ(blamed(0, 2, StatusCode::kUnavailable), 2U);
  open(1);
  EXPECT_EQ(blamed(1, 1, StatusCode::kFailedPrecondition), kStepIsOver);
  EXPECT_EQ(add(0, 3).step, nullptr);
  EXPECT_NE(add(1, 3).step, nullptr);
}

TEST_F(DatasetTest, APartComesBackAndDeliversAgain_ExpectTheNewFrameInTheStep) {
  make(2);
  add(1, 1);
  dataset_->close_part(1, true);
  open(1);
  auto frame = std::make_shared<Frame>();
  frame->tag = 1;
  frame->rows = 777;
  frame->extent = *arena_->try_allocate(4096);
  EXPECT_EQ(dataset_->add(1, std::move(frame)).step, nullptr);
  EXPECT_EQ(dataset_->pending_bytes(), 4096U);
  const FramePtr step = add(0, 1).step;
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->frame(1).rows, 777U);
}

TEST_F(DatasetTest, OpenedTwiceOrAgain_ExpectOnlyOneOwner) {
  make(2);
  const Status s = dataset_->open_part(1, "a stranger");
  EXPECT_EQ(s.code(), StatusCode::kAlreadyExists);
  EXPECT_NE(s.message().find("rank 1"), std::string::npos) << s.message();
  dataset_->close_part(1, false);
  open(1);
}

TEST_F(DatasetTest, FirstPartsEndBeforeOthersCame_ExpectTheirStepsToWait) {
  make(2);
  dataset_->close_part(0, false);
  dataset_->close_part(1, false);
  EXPECT_TRUE(dataset_->over());
  auto info = std::make_shared<StreamInfo>();
  info->parts = 2;
  Dataset early(info, request_);
  EXPECT_TRUE(early.open_part(0, "early"));
  auto frame = std::make_shared<Frame>();
  frame->extent = *arena_->try_allocate(4096);
  early.add(0, std::move(frame));
  early.close_part(0, false);
  EXPECT_TRUE(early.idle());
  EXPECT_FALSE(early.over());
  EXPECT_TRUE(early.awaited(1));
  EXPECT_TRUE(early.open_part(1, "late"));
  frame = std::make_shared<Frame>();
  frame->extent = *arena_->try_allocate(4096);
  EXPECT_NE(early.add(1, std::move(frame)).step, nullptr);
  early.close_part(1, false);
  EXPECT_TRUE(early.over());
}

TEST_F(DatasetTest, RequestsThatDiffer_ExpectTheDifferenceNamed) {
  make(2);
  const auto expect = [&](const std::string& words, auto change) {
    OpenRequest other = request_;
    change(other);
    const Status s = dataset_->check_agrees(other);
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
  };
  OpenRequest same = request_;
  same.options.part = 1;
  same.options.announced_bytes = {7};
  EXPECT_TRUE(dataset_->check_agrees(same));
  expect("number of parts is 3 here, and 2", [](OpenRequest& r) { r.options.parts = 3; });
  expect("strategy is arrays", [](OpenRequest& r) { r.options.strategy = Strategy::kArrays; });
  expect("retention", [](OpenRequest& r) { r.options.retention.frames = 3; });
  expect("retention", [](OpenRequest& r) { r.options.retention.when_full = Retention::WhenFull::kWait; });
  expect("sink", [](OpenRequest& r) { r.options.sink.directory = "/elsewhere"; });
  expect("number of columns is 2", [](OpenRequest& r) { r.schema.push_back(field<float>("y")); });
  expect("column 0 is 'y' here, and 'x'", [](OpenRequest& r) { r.schema[0].name = "y"; });
  expect("type of column 'x' is 'f' here, and 'g'", [](OpenRequest& r) { r.schema[0].format = "f"; });
  expect("column 'x'", [](OpenRequest& r) { r.schema[0].nullable = true; });
  expect("metadata of the schema", [](OpenRequest& r) { r.options.schema_metadata = std::string(4, '\0'); });
}

/// Compares the dataset with a simple model: a step is complete if all parts have posted its
/// tag.
TEST_F(DatasetTest, RandomPartsThatComeAndGo_ExpectEveryPublishedStepWholeAndNoMemoryLeft) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto parts = static_cast<std::uint32_t>(1 + random() % 4);
    make(parts);
    std::vector<std::uint64_t> next(parts, 1);
    std::vector<bool> is_open(parts, true);
    std::vector<std::set<std::uint64_t>> gave(parts);
    std::uint64_t published = 0;
    std::uint64_t last = 0;
    for (int i = 0; i < 200; ++i) {
      const auto part = static_cast<std::uint32_t>(random() % parts);
      if (random() % 40 == 0 && is_open[part]) {
        dataset_->close_part(part, random() % 2 == 0);
        is_open[part] = false;
      } else if (!is_open[part]) {
        if (random() % 3 != 0) continue;
        open(part);
        is_open[part] = true;
        next[part] = *std::max_element(next.begin(), next.end());
      } else {
        const std::uint64_t tag = next[part];
        next[part] += random() % 20 == 0 ? 2 : 1;
        const Dataset::Added added = add(part, tag);
        if (added.blame.code == StatusCode::kOk) gave[part].insert(tag);
        if (added.step == nullptr) continue;
        ASSERT_EQ(added.step->frames(), parts);
        ASSERT_EQ(added.step->sequence, published++);
        ASSERT_GT(added.step->tag, last);
        last = added.step->tag;
        for (std::uint32_t p = 0; p < parts; ++p) {
          ASSERT_EQ(added.step->frame(p).part, p);
          ASSERT_EQ(added.step->frame(p).tag, last);
          ASSERT_TRUE(gave[p].contains(last));
        }
      }
    }
    dataset_->give_up();
    expect_counts(0, dataset_->status().discarded);
    dataset_.reset();
    ASSERT_EQ(arena_->in_use(), 0U) << seed;
    // If no part leaves or skips a tag, no step is lost. Check this if all parts posted the same tags.
    ASSERT_LE(published, *std::max_element(next.begin(), next.end()));
  }
}

}  // namespace
}  // namespace wherry::move
