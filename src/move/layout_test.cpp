// SPDX-License-Identifier: Apache-2.0
// Checks frames with Arrow's own reader.
#include "move/layout.hpp"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/message.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "move/random_arrow.hpp"

namespace wherry::move::test {
namespace {

constexpr std::uint32_t kAlignments[] = {64, 4096};

void expect_trip(const std::shared_ptr<arrow::RecordBatch>& batch, std::uint32_t alignment, bool forget_nulls = false) {
  ASSERT_TRUE(batch->ValidateFull().ok()) << batch->ValidateFull().ToString();
  Result<Delivered> delivered = deliver(*batch, alignment, forget_nulls);
  ASSERT_TRUE(delivered) << delivered.status().to_string() << "\n" << batch->schema()->ToString();
  expect_delivered(*delivered, *batch);
}

class EachType : public testing::TestWithParam<std::shared_ptr<arrow::DataType>> {};

TEST_P(EachType, ArrivesWholeAndSliced) {
  RandomArrow random(7);
  const auto schema = arrow::schema({arrow::field("first", arrow::float64(), false), arrow::field("x", GetParam())});
  for (const std::uint32_t alignment : kAlignments) {
    for (int repeat = 0; repeat < 4; ++repeat) {
      const auto batch = random.batch(schema, 90);
      expect_trip(batch, alignment);
      for (const std::int64_t offset : {1, 7, 8, 13}) {
        for (const std::int64_t rows : {0, 1, 8, 77})
          expect_trip(batch->Slice(offset, rows), alignment, repeat % 2 == 1);
      }
    }
    expect_trip(random.batch(schema, 0), alignment);
    expect_trip(random.batch(schema, 0), alignment);
  }
}

TEST_P(EachType, ArrivesWithoutAnyAndWithOnlyNulls) {
  RandomArrow random(8);
  const auto schema = arrow::schema({arrow::field("x", GetParam())});
  for (const double share : {0.0, 1.0}) {
    random.null_share = share;
    for (int repeat = 0; repeat < 8; ++repeat)
      expect_trip(random.batch(schema, 33)->Slice(repeat), 64, repeat % 2 == 1);
  }
}

std::string type_name(const testing::TestParamInfo<std::shared_ptr<arrow::DataType>>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param->name();
  return name;
}
INSTANTIATE_TEST_SUITE_P(Plain, EachType, testing::ValuesIn(plain_types()), type_name);
INSTANTIATE_TEST_SUITE_P(Nested, EachType, testing::ValuesIn(nested_types()), type_name);

TEST(Frame, SurvivesRandomSchemasAndSlices) {
  for (std::uint32_t seed = 1; seed <= 400 && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomArrow random(seed);
    const auto schema = random.schema(6, 5);
    const auto batch = random.batch(schema, random.below(60));
    const std::int64_t offset = random.below(batch->num_rows() + 1);
    expect_trip(batch->Slice(offset, random.below(batch->num_rows() - offset + 1)), kAlignments[seed % 2],
                seed % 3 == 0);
  }
}

TEST(Frame, IsAStreamOfMessagesAsTheSpecificationHasThem) {
  const auto words = arrow::dictionary(arrow::int8(), arrow::utf8());
  const auto schema = arrow::schema(
      {arrow::field("d", arrow::dictionary(arrow::int16(), arrow::list(words))), arrow::field("w", words)});
  RandomArrow random(5);
  Result<Delivered> delivered = deliver(*random.batch(schema, 20), 4096);
  ASSERT_TRUE(delivered) << delivered.status().to_string();
  const std::span<std::byte> frame = delivered->frame();
  arrow::io::BufferReader input(std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(frame.data()),
                                                                static_cast<std::int64_t>(frame.size())));
  using enum arrow::ipc::MessageType;
  std::size_t section = 0;
  for (const auto type : {SCHEMA, DICTIONARY_BATCH, DICTIONARY_BATCH, DICTIONARY_BATCH, RECORD_BATCH}) {
    auto message = arrow::ipc::ReadMessage(&input);
    ASSERT_TRUE(message.ok()) << message.status().ToString();
    EXPECT_EQ((*message)->type(), type);
    EXPECT_EQ((*message)->metadata_version(), arrow::ipc::MetadataVersion::V5);
    EXPECT_TRUE((*message)->Verify());
    if (type == SCHEMA) continue;
    EXPECT_EQ(static_cast<std::uint64_t>((*message)->body_length()), delivered->layout.body_bytes[section++]);
  }
  EXPECT_EQ(input.Tell().ValueOrDie(), static_cast<std::int64_t>(frame.size()) - 8);
}

TEST(Frame, TakesAStructArrayThatIsSlicedAsAWhole) {
  RandomArrow random(3);
  for (int repeat = 0; repeat < 50; ++repeat) {
    const auto schema = random.schema(5, 4);
    const auto batch = random.batch(schema, 50);
    const auto rows = std::static_pointer_cast<arrow::StructArray>(batch->ToStructArray().ValueOrDie());
    const auto slice = std::static_pointer_cast<arrow::StructArray>(rows->Slice(13, 21));
    Result<Delivered> delivered = deliver(*slice, 64, repeat % 2 == 0);
    ASSERT_TRUE(delivered) << delivered.status().to_string();
    expect_delivered(*delivered, *batch->Slice(13, 21));
  }
}

TEST(Frame, KeepsFieldMetadataAndExtensionTypes) {
  const auto metadata = arrow::key_value_metadata({"unit", "", "größe"}, {"m/s", "empty key", ""});
  const auto schema =
      arrow::schema({arrow::field("v", arrow::float64(), false)->WithMetadata(metadata),
                     arrow::field("flag", arrow::list(arrow::field("entry", arrow::int8(), true, metadata)))});
  RandomArrow random(1);
  expect_trip(random.batch(schema, 20), 64);
  Schema fields = {field("id", "w:16")};
  fields[0].metadata = std::string("\x01\0\0\0\x14\0\0\0ARROW:extension:name\x0a\0\0\0arrow.uuid", 42);
  const Plan plan = *make_plan(fields);
  EXPECT_TRUE(IpcTemplate::make(fields, plan, 64)) << "a known extension type travels as its storage";
  fields[0].format = "w:15";
  Result<std::shared_ptr<const IpcTemplate>> refused = IpcTemplate::make(fields, *make_plan(fields), 64);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << "a uuid has 16 bytes, says Arrow";
}

TEST(Frame, TouchesNothingOfUnslicedColumns) {
  std::vector<double> values(100, 1.5);
  const Schema schema = {field<double>("x")};
  const Plan plan = *make_plan(schema);
  FlatOffload offload;
  const Column columns[] = {values};
  ASSERT_TRUE(flatten(schema, plan, columns, offload));
  EXPECT_EQ(offload.bytes, 800u);
  const auto ipc = *IpcTemplate::make(schema, plan, 4096);
  FrameLayout layout;
  ipc->place(offload.nodes, offload.buffers, layout);
  EXPECT_EQ(layout.body_offset[0] % 4096, 0u);
  EXPECT_EQ(layout.buffers[0].bytes, 0u);
  EXPECT_EQ(layout.total_bytes, layout.body_offset[0] + layout.body_bytes[0] + 8);
  const auto memory = page_aligned(layout.total_bytes);
  const std::span<std::byte> frame(memory.get(), layout.total_bytes);
  ASSERT_TRUE(finish_buffers(plan, offload.nodes, offload.buffers, layout, frame));
  for (const std::byte byte : frame) ASSERT_EQ(byte, std::byte{0xA5});
}

TEST(Frame, HasTheOneOffsetOfAnArrayWithoutRowsAlsoWhenNobodySentIt) {
  const Schema schema = {utf8("s"), large_list("l", field<int>("item"))};
  const Plan plan = *make_plan(schema);
  const auto ipc = *IpcTemplate::make(schema, plan, 64);
  HotVector<NodeRef> nodes = {{0, 0}, {0, 0}, {0, 0}};
  const HotVector<BufferRef> buffers(4);
  ASSERT_TRUE(check_offload(plan, 0, nodes, buffers));
  FrameLayout layout;
  ipc->place(nodes, buffers, layout);
  const auto memory = page_aligned(layout.total_bytes);
  const std::span<std::byte> frame(memory.get(), layout.total_bytes);
  for (int again = 0; again < 2; ++again) {  // also where the metadata of such a frame stands already
    std::memset(frame.data() + layout.body_offset[0], 0xA5, layout.body_bytes[0]);
    ASSERT_TRUE(finish_buffers(plan, nodes, buffers, layout, frame));
    for (const auto& [buffer, width] : {std::pair{1, 4}, std::pair{4, 8}}) {
      const Placement& offsets = layout.buffers[static_cast<std::size_t>(buffer)];
      ASSERT_EQ(offsets.bytes, static_cast<std::uint64_t>(width));
      for (const std::byte byte : frame.subspan(offsets.offset, offsets.bytes)) EXPECT_EQ(byte, std::byte{0});
    }
  }
}

TEST(Frame, RefusesANullThatItsFieldDoesNotAllow) {
  const std::uint8_t bits = 0b1011;
  const std::vector<double> values(4, 1.0);
  for (const bool nullable : {true, false}) {
    for (const std::int64_t nulls : {std::int64_t{-1}, std::int64_t{1}}) {
      const Schema schema = {field<int>("i"), struct_("s", {field<double>("x", nullable)})};
      const Plan plan = *make_plan(schema);
      const std::vector<int> ints(4);
      HotVector<NodeRef> nodes = {{4, 0}, {4, 0}, {4, nulls}};
      const auto at = [](const void* p) { return reinterpret_cast<std::uint64_t>(p); };
      const HotVector<BufferRef> buffers = {
          {at(ints.data()), 16, 0, 0, 0}, {at(&bits), 1, 0, 0, 0}, {at(values.data()), 32, 0, 0, 0}};
      ASSERT_TRUE(check_offload(plan, 4, nodes, buffers));
      const auto ipc = *IpcTemplate::make(schema, plan, 64);
      FrameLayout layout;
      ipc->place(nodes, buffers, layout);
      const auto memory = page_aligned(layout.total_bytes);
      const std::span<std::byte> frame(memory.get(), layout.total_bytes);
      get_all(plan, nodes, buffers, layout, frame);
      std::uint64_t at_fault = 0;
      const Status s = finish_buffers(plan, nodes, buffers, layout, frame, &at_fault);
      if (nullable) {
        EXPECT_TRUE(s) << s.to_string();
        continue;
      }
      EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
      EXPECT_NE(s.message().find("node 2"), std::string::npos) << s.message();
      EXPECT_EQ(at_fault, 1u);
    }
  }
}

TEST(Frame, CarriesTheLargestFormatsThatAPlanTakes) {
  for (const char* format : {"w:268435455", "d:9,2147483647,32", "d:18,-2147483648,64", "tsn:no/such zone"}) {
    const Schema schema = {field("x", format), fixed_size_list("l", 2147483647, field("y", format))};
    Result<Plan> plan = make_plan(schema);
    ASSERT_TRUE(plan) << plan.status().to_string();
    EXPECT_TRUE(IpcTemplate::make(schema, *plan, 64)) << format;
  }
  Field deep = field<int>("leaf");
  for (std::size_t i = 1; i < kMaxDepth; ++i)
    deep = i % 2 == 0 ? dictionary("d", "c", list("l", deep)) : struct_("s", {deep});
  while (!make_plan({deep})) {
    Field inner = deep.dictionary.empty() ? deep.children[0] : deep.dictionary[0];
    deep = std::move(inner);
  }
  EXPECT_TRUE(IpcTemplate::make({deep}, *make_plan({deep}), 64))
      << IpcTemplate::make({deep}, *make_plan({deep}), 64).status().to_string();
  const Schema wide(kMaxNodes, utf8("x"));
  EXPECT_TRUE(IpcTemplate::make(wide, *make_plan(wide), 64));
}

TEST(Frame, RefusesAnAlignmentThatIsNone) {
  const Schema schema = {field<double>("x")};
  const Plan plan = *make_plan(schema);
  for (const std::uint32_t alignment : {0u, 1u, 4u, 48u, 1u << 31}) {
    EXPECT_EQ(IpcTemplate::make(schema, plan, alignment).status().code(), StatusCode::kInvalidArgument) << alignment;
  }
  for (const std::uint32_t alignment : {8u, 16u, 512u, 2u << 20}) {
    const auto ipc = *IpcTemplate::make(schema, plan, alignment);
    EXPECT_EQ(ipc->alignment(), alignment);
  }
}

/// A list of strings and a struct with a bool: this covers almost all kinds of node.
class Check : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(flatten(schema_, plan_, columns(), good_));
    ASSERT_TRUE(check(good_)) << check(good_).to_string();
  }
  [[nodiscard]] std::array<Column, 2> columns() const {
    std::array<Column, 2> all = {Column::list(list_offsets_, words_), Column::struct_(4, members_)};
    all[0].offset = 1;
    all[0].length = 4;
    return all;
  }
  [[nodiscard]] Status check(const FlatOffload& offload, std::uint64_t rows = 4) const {
    return check_offload(plan_, rows, offload.nodes, offload.buffers);
  }
  void expect_refused(const auto& change) const {
    FlatOffload bad = good_;
    change(bad);
    EXPECT_EQ(check(bad).code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(check(bad).message().empty());
  }

  const Schema schema_ = {list("words", utf8("word", true), true),
                          struct_("both", {field<bool>("flag"), fixed_size_list("xyz", 3, field<float>("", true))})};
  const Plan plan_ = *make_plan(schema_);
  const std::int32_t list_offsets_[6] = {0, 1, 2, 2, 3, 5};
  const std::int32_t word_offsets_[6] = {2, 3, 5, 5, 6, 7};
  const char* text_ = "abcdefgh";
  const std::uint8_t bits_[2] = {0x5A, 0xFF};
  const std::vector<float> floats_ = std::vector<float>(12, 1.0F);
  const Column words_ = Column::utf8(word_offsets_, text_).with_validity(bits_);
  const Column item_ = floats_;
  const Column members_[2] = {Column::bits(bits_, 4), Column::fixed_list(4, item_)};
  FlatOffload good_;
};

// nodes: 0 words, 1 word, 2 both, 3 flag, 4 xyz, 5 float; buffers: 0 list offsets, 1 word validity, 2 word offsets, 3
// text, 4 flag, 5 floats
TEST_F(Check, TakesWhatFlattenMakes) {
  ASSERT_EQ(good_.nodes.size(), 6u);
  ASSERT_EQ(good_.buffers.size(), 6u);
  EXPECT_EQ(good_.nodes[1], (NodeRef{4, -1}));
  EXPECT_EQ(good_.buffers[0].rebase, 1);
  EXPECT_EQ(good_.buffers[1].rebase, 1);
  EXPECT_EQ(good_.buffers[2].rebase, 3);
  EXPECT_EQ(good_.buffers[3].bytes, 4u);
}

TEST_F(Check, RefusesWrongCounts) {
  expect_refused([](FlatOffload& o) { o.nodes.pop_back(); });
  expect_refused([](FlatOffload& o) { o.nodes.push_back({4, 0}); });
  expect_refused([](FlatOffload& o) { o.nodes.clear(); });
  expect_refused([](FlatOffload& o) { o.buffers.pop_back(); });
  expect_refused([](FlatOffload& o) { o.buffers.push_back({}); });
  expect_refused([](FlatOffload& o) { o.buffers.clear(); });
  expect_refused([](FlatOffload& o) { o.nodes[0].null_count = 1; });  // then a validity buffer is missing
  for (std::size_t keep = 0; keep < 6; ++keep) {
    expect_refused([&](FlatOffload& o) { o.buffers.resize(keep); });
  }
}

TEST_F(Check, RefusesWrongLengths) {
  for (std::size_t node = 0; node < 6; ++node) {
    for (const std::int64_t length : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{5}, std::int64_t{1} << 48,
                                      std::int64_t{1} << 62, std::int64_t{INT64_MAX}, std::int64_t{INT64_MIN}}) {
      if (good_.nodes[node].length == length) continue;
      if (node == 0 && length == 3) continue;
      expect_refused([&](FlatOffload& o) { o.nodes[node].length = length; });
    }
  }
  EXPECT_FALSE(check(good_, 5));
  EXPECT_FALSE(check(good_, std::uint64_t{1} << 62));
  EXPECT_FALSE(check(good_, UINT64_MAX));
}

TEST_F(Check, RefusesHugeRowsEvenWhenTheyNeedNoBytes) {
  const Schema schema = {field("n", "n", true), fixed_size_list("l", 2147483647, field("n", "n", true)),
                         fixed_size_binary("e", 0)};
  const Plan plan = *make_plan(schema);
  const std::int64_t rows = std::int64_t{1} << 62;
  const HotVector<BufferRef> buffers(1);
  const HotVector<NodeRef> huge = {{rows, rows}, {rows, 0}, {rows, 0}, {rows, 0}};
  EXPECT_EQ(check_offload(plan, std::uint64_t{1} << 62, huge, buffers).code(), StatusCode::kInvalidArgument);
  const HotVector<NodeRef> wraps = {
      {1 << 30, 0}, {1 << 30, 0}, {(std::int64_t{1} << 30) * 2147483647, 0}, {1 << 30, 0}};
  EXPECT_EQ(check_offload(plan, std::uint64_t{1} << 30, wraps, buffers).code(), StatusCode::kInvalidArgument);
}

TEST_F(Check, RefusesWidthsThatOverflow) {
  const Schema schema = {fixed_size_binary("wide", 268435455)};
  const Plan plan = *make_plan(schema);
  const std::int64_t rows = std::int64_t{1} << 40;
  const HotVector<NodeRef> nodes = {{rows, 0}};
  const HotVector<BufferRef> buffers = {{4096, static_cast<std::uint64_t>(rows) * 268435455u, 0, 0, 0}};
  EXPECT_EQ(check_offload(plan, static_cast<std::uint64_t>(rows), nodes, buffers).code(), StatusCode::kInvalidArgument);
}

TEST_F(Check, RefusesBuffersOfTheWrongSize) {
  for (std::size_t buffer = 0; buffer < 6; ++buffer) {
    expect_refused([&](FlatOffload& o) { o.buffers[buffer].address = UINT64_MAX; });
    if (buffer == 3) continue;  // the text's size is whatever the offsets turn out to say: finish_buffers knows
    for (const std::uint64_t bytes : {good_.buffers[buffer].bytes - 1, good_.buffers[buffer].bytes + 1,
                                      std::uint64_t{0}, (std::uint64_t{1} << 48) + 1, UINT64_MAX}) {
      expect_refused([&](FlatOffload& o) { o.buffers[buffer].bytes = bytes; });
    }
  }
  expect_refused([](FlatOffload& o) { o.buffers[3].bytes = (std::uint64_t{1} << 48) + 1; });
  expect_refused([](FlatOffload& o) { o.buffers[3].bytes = UINT64_MAX; });
}

TEST_F(Check, RefusesRebasesOutOfRange) {
  for (const std::size_t bits : {std::size_t{1}, std::size_t{4}}) {
    for (const std::int64_t rebase :
         {std::int64_t{-1}, std::int64_t{8}, std::int64_t{INT64_MAX}, std::int64_t{INT64_MIN}}) {
      expect_refused([&](FlatOffload& o) { o.buffers[bits].rebase = rebase; });
    }
  }
  for (const std::size_t offsets : {std::size_t{0}, std::size_t{2}}) {
    for (const std::int64_t rebase :
         {std::int64_t{-1}, std::int64_t{INT32_MAX}, std::int64_t{INT32_MAX} - 3, std::int64_t{INT64_MAX}}) {
      expect_refused([&](FlatOffload& o) { o.buffers[offsets].rebase = rebase; });
    }
  }
  for (const std::size_t plain : {std::size_t{3}, std::size_t{5}}) {
    expect_refused([&](FlatOffload& o) { o.buffers[plain].rebase = 1; });
  }
}

TEST_F(Check, RefusesWrongNullCounts) {
  for (const std::int64_t nulls :
       {std::int64_t{-2}, std::int64_t{5}, std::int64_t{INT64_MAX}, std::int64_t{INT64_MIN}}) {
    expect_refused([&](FlatOffload& o) { o.nodes[1].null_count = nulls; });
  }
}

TEST_F(Check, TakesZeroRowsWithAndWithoutOffsets) {
  const Schema schema = {utf8("s"), list("l", field<int>(""))};
  const Plan plan = *make_plan(schema);
  const HotVector<NodeRef> nodes = {{0, 0}, {0, 0}, {0, 0}};
  HotVector<BufferRef> buffers(4);
  EXPECT_TRUE(check_offload(plan, 0, nodes, buffers));
  buffers[0].bytes = 4;
  EXPECT_TRUE(check_offload(plan, 0, nodes, buffers)) << "the lone offset";
  buffers[1].bytes = 1;
  EXPECT_FALSE(check_offload(plan, 0, nodes, buffers)) << "text of no rows";
  buffers[1].bytes = 0;
  buffers[0].bytes = 8;
  EXPECT_FALSE(check_offload(plan, 0, nodes, buffers));
  const HotVector<NodeRef> child = {{0, 0}, {0, 0}, {1, 0}};
  buffers[0].bytes = 4;
  buffers[3].bytes = 4;
  EXPECT_FALSE(check_offload(plan, 0, child, buffers)) << "a child of no rows";
}

TEST_F(Check, CatchesOffsetsThatChangedInFlight) {
  const auto ipc = *IpcTemplate::make(schema_, plan_, 64);
  FrameLayout layout;
  ipc->place(good_.nodes, good_.buffers, layout);
  const auto memory = page_aligned(layout.total_bytes);
  const std::span<std::byte> frame(memory.get(), layout.total_bytes);
  const auto finish_with = [&](std::size_t plan_buffer, std::size_t entry, std::int32_t value) {
    HotVector<NodeRef> nodes = good_.nodes;
    get_all(plan_, nodes, good_.buffers, layout, frame);
    std::memcpy(frame.data() + layout.buffers[plan_buffer].offset + entry * 4, &value, 4);
    return finish_buffers(plan_, nodes, good_.buffers, layout, frame);
  };
  constexpr std::size_t kListOffsets = 1, kWordOffsets = 3;  // in the plan every node has its validity
  EXPECT_TRUE(finish_with(kListOffsets, 0, 1));
  EXPECT_TRUE(finish_with(kListOffsets, 4, 5));
  for (const std::int32_t lie : {-1, 0, 2, 6, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(finish_with(kListOffsets, 0, lie).code(), StatusCode::kSourceFault) << lie;
    EXPECT_EQ(finish_with(kListOffsets, 4, lie).code(), StatusCode::kSourceFault) << lie;
    EXPECT_EQ(finish_with(kWordOffsets, 0, lie).code(), StatusCode::kSourceFault) << lie;
    EXPECT_EQ(finish_with(kWordOffsets, 4, lie).code(), StatusCode::kSourceFault) << lie;
  }
}

}  // namespace
}  // namespace wherry::move::test
