// SPDX-License-Identifier: Apache-2.0
// Tests Stream::post_rest against an agent: when the application may overwrite each column, and the errors of calls in
// the wrong order.
#include "agent/flight_reading.hpp"
#include "agent/testing.hpp"
#include "base/testing.hpp"

namespace wherry {
namespace {

using testing_support::kPatience;
using testing_support::read_frames;
using testing_support::ThreadAgent;

class HalfFrames : public testing::Test {
 protected:
  std::vector<testing_support::ReadFrame> frames() {
    return read_frames(session_.info().flight_uri, agent_.agent().token(), "s");
  }
  ThreadAgent agent_;
  Session session_ = agent_.open();
  std::vector<double> x_ = std::vector<double>(3 * 1000, 1.5), v_ = std::vector<double>(3 * 1000, 2.5);
  std::vector<std::int32_t> id_ = std::vector<std::int32_t>(1000, 7);
  Stream stream_ = *Stream::open(session_, {.name = "s"},
                                 {field<std::int32_t>("id"), fixed_size_list("v", 3, field<double>("item")),
                                  fixed_size_list("x", 3, field<double>("item"))});
  const Column early_[3] = {id_, Column::given_later(1000, 3), Column::fixed_list<3>(x_)};
  const Column all_[3] = {id_, Column::fixed_list<3>(v_), Column::fixed_list<3>(x_)};
};

TEST_F(HalfFrames, OverwriteWhatIsReady_ExpectTheFrameAsItWas) {
  for (std::uint64_t step = 0; step < 3; ++step) {
    x_.assign(3000, 1.5);
    auto early = stream_.post(early_, {.tag = step});
    ASSERT_TRUE(early) << early.status().message();
    ASSERT_TRUE(early->wait(kPatience));
    EXPECT_EQ(frames().size(), step) << "half a frame is visible";
    x_.assign(3000, -1.0);
    v_.assign(3000, 10.0 + static_cast<double>(step));
    auto rest = stream_.post_rest(all_);
    ASSERT_TRUE(rest) << rest.status().message();
    ASSERT_TRUE(rest->wait(kPatience));
    EXPECT_EQ(rest->sequence(), step);
  }
  const auto read = frames();
  ASSERT_EQ(read.size(), 3u);
  for (std::size_t step = 0; step < 3; ++step) {
    EXPECT_EQ(read[step].tag, step);
    const auto values = [&](int column) {
      const auto list = std::static_pointer_cast<arrow::FixedSizeListArray>(read[step].batch->column(column));
      return std::static_pointer_cast<arrow::DoubleArray>(list->values());
    };
    for (const std::int64_t i : {0, 1234, 2999}) {
      EXPECT_EQ(values(1)->Value(i), 10.0 + static_cast<double>(step));
      EXPECT_EQ(values(2)->Value(i), 1.5);
    }
  }
}

TEST_F(HalfFrames, CallsOutOfOrder_ExpectErrorsThatSaySo) {
  EXPECT_EQ(stream_.post_rest(all_).status().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(stream_.post(early_));
  EXPECT_EQ(stream_.post(all_).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(stream_.post_rest(early_).status().code(), StatusCode::kInvalidArgument) << "v is still missing";
  const std::vector<std::int32_t> fewer(999);
  const std::vector<double> short_list(999 * 3);
  const Column other[3] = {fewer, Column::fixed_list<3>(short_list), Column::fixed_list<3>(short_list)};
  EXPECT_EQ(stream_.post_rest(other).status().code(), StatusCode::kInvalidArgument);
  auto rest = stream_.post_rest(all_);
  ASSERT_TRUE(rest) << rest.status().message();
  EXPECT_TRUE(rest->wait(kPatience));
  EXPECT_TRUE(stream_.post(all_));
  EXPECT_TRUE(session_.drain(kPatience));
}

TEST_F(HalfFrames, BindColumnsThatAreGivenLater_ExpectRefusalThatNamesTheRemedy) {
  const Status refused = stream_.bind(early_).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("post_rest"), std::string::npos) << refused.message();
}

TEST_F(HalfFrames, PostABoundStepBetweenTheHalves_ExpectRefusalUntilTheRestIsPosted) {
  auto step = stream_.bind(all_);
  ASSERT_TRUE(step) << step.status().message();
  ASSERT_TRUE(step->post(1));
  ASSERT_TRUE(stream_.post(early_, {.tag = 2}));
  const Status refused = step->post(3).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("post_rest comes first"), std::string::npos) << refused.message();
  ASSERT_TRUE(stream_.post_rest(all_));
  auto last = step->post(3);
  ASSERT_TRUE(last) << last.status().message();
  ASSERT_TRUE(last->wait(kPatience));
  const auto read = frames();
  ASSERT_EQ(read.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(read[i].tag, i + 1);
}

TEST_F(HalfFrames, TheRestOfAHalfThatFailed_ExpectErrorThatNamesTheFirst) {
  Session other = agent_.open();
  const StreamOptions options{.name = "parts", .part = 0, .parts = 2};
  const Schema schema = stream_.schema();
  auto mine = *Stream::open(session_, options, schema);
  StreamOptions second = options;
  second.part = 1;
  auto theirs = *Stream::open(other, second, schema);
  ASSERT_TRUE(theirs.close());
  auto first = mine.post(early_, {.tag = 1});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->wait(kPatience).code(), StatusCode::kUnavailable);
  auto rest = mine.post_rest(all_);
  ASSERT_TRUE(rest) << rest.status().message();
  const Status why = rest->wait(kPatience);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(why.message().find("the first half of its frame failed"), std::string::npos) << why.message();
}

TEST_F(HalfFrames, CloseWithHalfAFrame_ExpectTheStreamToEndWithoutIt) {
  auto early = stream_.post(early_);
  ASSERT_TRUE(early);
  ASSERT_TRUE(early->wait(kPatience));
  EXPECT_TRUE(stream_.close());
  EXPECT_TRUE(frames().empty());
}

TEST_F(HalfFrames, TextGivenLater_ExpectRefusalThatNamesTheColumn) {
  auto stream = *Stream::open(session_, {.name = "t"}, {utf8("name")});
  const Column column = Column::given_later(10);
  const Status refused = stream.post({column}).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("'name'"), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace wherry
