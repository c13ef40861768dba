// SPDX-License-Identifier: Apache-2.0
// Tests how operators run with a catalogue. python/tests/test_operators.py compares their results with pyarrow and
// pandas.
#include "move/service/operators.hpp"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "move/arrow_schema.hpp"
#include "move/operate/pipeline.hpp"
#include "move/service/derived_frame.hpp"
#include "move/service/frame_arrow.hpp"

namespace wherry::move {
namespace {

using namespace std::chrono_literals;
using What = Catalogue::Next::What;
using WhenFull = Retention::WhenFull;

constexpr auto kLong = std::chrono::milliseconds(60'000);  // far more than anything here takes

std::shared_ptr<arrow::Schema> schema() {
  return arrow::schema({arrow::field("n", arrow::int64()), arrow::field("s", arrow::utf8())});
}

std::shared_ptr<arrow::RecordBatch> batch(std::int64_t from, std::int64_t rows) {
  arrow::Int64Builder n;
  arrow::StringBuilder s;
  for (std::int64_t i = 0; i < rows; ++i) {
    EXPECT_TRUE(n.Append(from + i).ok());
    EXPECT_TRUE((i % 3 == 2 ? s.AppendNull() : s.Append(std::to_string(i))).ok());
  }
  return arrow::RecordBatch::Make(schema(), rows, {*n.Finish(), *s.Finish()});
}

std::vector<Derived> parsed(const std::string& json) {
  auto made = parse_operators(json, schema());
  EXPECT_TRUE(made) << made.status().message();
  return made ? *std::move(made) : std::vector<Derived>();
}

class OperatorsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Arena> arena = *Arena::create(16 << 20);
  Catalogue catalogue;
  std::shared_ptr<const Pipeline> as_it_is = parsed(R"([{"name":"all"}])").front().pipeline;

  /// Opens a stream "source" with these derived streams.
  std::shared_ptr<const StreamInfo> opened(const std::string& json, Retention retention = {}) {
    auto source = std::make_shared<StreamInfo>();
    source->name = "source";
    source->retention = retention;
    source->pipeline = as_it_is;  // frames of this test are made as derived ones are
    for (Derived& one : parsed(json)) {
      auto made = std::make_shared<StreamInfo>();
      made->name = "source." + one.name;
      made->source = source->name;
      made->retention = retention;
      made->parts = one.pipeline->parts();
      made->schema = *from_arrow_schema(*one.pipeline->schema(), made->schema_metadata);
      made->pipeline = std::move(one.pipeline);
      source->derived.push_back(std::move(made));
    }
    EXPECT_TRUE(catalogue.open(source));
    return source;
  }

  void publish(const std::shared_ptr<const StreamInfo>& stream, std::uint64_t sequence,
               const arrow::RecordBatch& rows) {
    auto frame = make_derived_frame(stream, rows, *arena, arrow::default_memory_pool(), [] { return false; });
    ASSERT_TRUE(frame.ok()) << frame.status();
    (*frame)->sequence = sequence;
    (*frame)->tag = 100 + sequence;
    catalogue.publish(*std::move(frame));
  }

  std::shared_ptr<arrow::RecordBatch> result(const std::string& name, std::uint64_t sequence) {
    const auto next = catalogue.next(name, sequence, kLong);
    if (next.what != What::kFrame) return nullptr;
    EXPECT_EQ(next.frame->sequence, sequence);
    EXPECT_EQ(next.frame->tag, 100 + sequence);
    auto read = read_frame(next.frame);
    EXPECT_TRUE(read);
    return read ? *read : nullptr;
  }

  bool waits_for(auto condition) {
    for (const auto until = std::chrono::steady_clock::now() + kLong; std::chrono::steady_clock::now() < until;) {
      if (condition(*catalogue.find("source"))) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }
};

TEST_F(OperatorsTest, ReceiveFrames_ExpectADerivedOneOfEachForEachOperator) {
  Operators operators(catalogue, arena);
  const auto source = opened(
      R"([{"name":"big","steps":[{"filter":[">=","n",5]},{"project":["n"]}],"compression":"zstd"},
          {"name":"sum","steps":[{"aggregate":[["sum","n"],["count"],["max","s"]]}]}])");
  publish(source, 0, *batch(0, 10));
  publish(source, 1, *batch(5, 3));
  publish(source, 2, *batch(0, 0));
  const std::int64_t rows[] = {5, 3, 0};
  const std::int64_t sums[] = {45, 18, 0};
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto big = result("source.big", i);
    ASSERT_NE(big, nullptr);
    EXPECT_TRUE(big->ValidateFull().ok());
    EXPECT_EQ(big->num_rows(), rows[i]);
    EXPECT_EQ(big->schema()->field_names(), std::vector<std::string>{"n"});
    const auto sum = result("source.sum", i);
    ASSERT_EQ(sum->num_rows(), 1);
    EXPECT_EQ(sum->schema()->field_names(), (std::vector<std::string>{"n_sum", "count", "s_max"}));
    const auto& value = static_cast<const arrow::Int64Array&>(*sum->column(0));
    EXPECT_EQ(value.IsNull(0), i == 2);
    if (i != 2) {
      EXPECT_EQ(value.Value(0), sums[i]);
    }
  }
  catalogue.close("source");
  EXPECT_EQ(catalogue.next("source.big", 3, kLong).what, What::kEnd);
  EXPECT_EQ(catalogue.find("source")->operator_errors, 0U);
}

TEST_F(OperatorsTest, ReceiveAPartition_ExpectAStepOfItsParts) {
  Operators operators(catalogue, arena);
  const auto source = opened(R"([{"name":"by","steps":[{"partition":"n","bounds":[3,4]}]}])");
  publish(source, 0, *batch(0, 10));
  const auto next = catalogue.next("source.by", 0, kLong);
  ASSERT_EQ(next.what, What::kFrame);
  ASSERT_EQ(next.frame->frames(), 4U);
  const std::int64_t rows[] = {3, 1, 6, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(next.frame->frame(i).part, i);
    const auto part = read_frame(frame_of(next.frame, i));
    ASSERT_TRUE(part);
    EXPECT_EQ((*part)->num_rows(), rows[i]);
  }
}

TEST_F(OperatorsTest, ReceiveABrokenFrame_ExpectAnErrorAGapAndTheOriginal) {
  Operators operators(catalogue, arena);
  const auto source = opened(R"([{"name":"sorted","steps":[{"sort":["s"]}]}])", {.when_full = WhenFull::kWait});
  const std::int32_t offsets[] = {0, 1000, 2};
  const auto broken = arrow::RecordBatch::Make(
      schema(), 2,
      {batch(0, 2)->column(0),
       std::make_shared<arrow::StringArray>(2, arrow::Buffer::Wrap(offsets, 3), arrow::Buffer::FromString("ab"))});
  publish(source, 0, *broken);
  publish(source, 1, *batch(0, 4));
  const auto next = catalogue.next("source.sorted", 0, kLong);
  ASSERT_EQ(next.what, What::kFrame);
  EXPECT_EQ(next.frame->sequence, 1U);
  EXPECT_EQ(next.skipped, 1U);
  EXPECT_TRUE(waits_for([](const StreamStatus& s) { return s.operator_lag == 0; }));
  const auto status = catalogue.find("source");
  EXPECT_EQ(status->held_frames, 2U);
  EXPECT_EQ(status->operator_errors, 1U);
  EXPECT_TRUE(status->operator_error.starts_with("stream \"source.sorted\": ")) << status->operator_error;
}

TEST_F(OperatorsTest, UnderWaitWithNoReader_ExpectOperatorsToWaitAndNothingToBeLost) {
  Operators operators(catalogue, arena);
  const auto source =
      opened(R"([{"name":"all","steps":[{"filter":[">=","n",0]}]}])", {.frames = 2, .when_full = WhenFull::kWait});
  std::uint64_t posted = 0;
  for (std::uint64_t at = 0; at < 20; ++at) {
    while (catalogue.make_room(*source)) publish(source, posted++, *batch(0, 100));
    EXPECT_LE(posted, at + 5) << "two results, two frames, and one at work";
    const auto next = catalogue.next("source.all", at, kLong);
    ASSERT_EQ(next.what, What::kFrame);
    EXPECT_EQ(next.frame->sequence, at);
    catalogue.mark_read(*next.frame);
  }
}

TEST_F(OperatorsTest, AFullArena_ExpectOperatorsToGoOnWhenThereIsRoom) {
  Operators operators(catalogue, arena);
  std::vector<Extent> taken;
  const auto source = opened(R"([{"name":"some","steps":[{"filter":["<","n",3]}]}])");
  publish(source, 0, *batch(0, 1));
  ASSERT_NE(result("source.some", 0), nullptr);
  auto rows = batch(0, 10);
  auto frame = make_derived_frame(source, *rows, *arena, arrow::default_memory_pool(), [] { return false; });
  ASSERT_TRUE(frame.ok());
  while (auto extent = arena->try_allocate(4096)) taken.push_back(*std::move(extent));
  const auto reader = catalogue.next("source", 0, kLong), other = catalogue.next("source.some", 0, kLong);
  (*frame)->sequence = 1;
  (*frame)->tag = 101;
  catalogue.publish(*std::move(frame));
  EXPECT_EQ(catalogue.next("source.some", 1, 50ms).what, What::kTimeout);
  taken.clear();
  EXPECT_EQ(result("source.some", 1)->num_rows(), 3);
}

TEST_F(OperatorsTest, OpenedAnewWhileFramesWait_ExpectTheOldResultsToEnd) {
  Operators operators(catalogue, arena);
  for (int i = 0; i < 50; ++i) {
    const auto source = opened(R"([{"name":"all"}])");
    for (std::uint64_t at = 0; at < 3; ++at) publish(source, at, *batch(i, 1));
    const auto first = result("source.all", 0);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(static_cast<const arrow::Int64Array&>(*first->column(0)).Value(0), i);
    catalogue.close("source");
  }
}

TEST_F(OperatorsTest, DrainAndStop_ExpectEverythingWorkedOffBetweenThem) {
  Operators operators(catalogue, arena);
  const auto source = opened(R"([{"name":"all","steps":[{"sort":["n"]}]}])", {.frames = 0});
  for (std::uint64_t at = 0; at < 50; ++at) publish(source, at, *batch(0, 1000));
  EXPECT_TRUE(operators.drain(kLong));
  EXPECT_EQ(catalogue.find("source.all")->held_frames, 50U);
  catalogue.shut_down();
  operators.stop();
  operators.stop();
}

}  // namespace
}  // namespace wherry::move
