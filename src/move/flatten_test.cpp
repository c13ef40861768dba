// SPDX-License-Identifier: Apache-2.0
#include "move/flatten.hpp"

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <list>
#include <string>
#include <vector>

#include "move/c_import.hpp"

namespace wherry::move {
namespace {

std::uint64_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

Status flatten_one(const Field& field, const Column& column, FlatOffload& out) {
  const Schema schema = {field};
  Result<Plan> plan = make_plan(schema);
  if (!plan) return plan.status();
  return flatten(schema, *plan, std::span(&column, 1), out);
}

/// Expects that flatten refuses the column, with `words` in its message.
void expect_refused(const Field& field, const Column& column, const char* words) {
  FlatOffload out;
  out.nodes.resize(3);
  const Status status = flatten_one(field, column, out);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  EXPECT_TRUE(out.nodes.empty());
  EXPECT_TRUE(out.buffers.empty());
}

// A temporary source of a Column must not compile, because the source must outlive the call.
static_assert(std::is_constructible_v<Column, std::vector<double>&>);
static_assert(std::is_constructible_v<Column, const std::vector<float>&>);
static_assert(std::is_constructible_v<Column, std::array<int, 3>&>);
static_assert(std::is_constructible_v<Column, double (&)[4]>);
static_assert(std::is_constructible_v<Column, std::span<const std::int64_t>>);
static_assert(!std::is_constructible_v<Column, std::vector<double>>);
static_assert(!std::is_constructible_v<Column, std::vector<bool>&>);
static_assert(!std::is_constructible_v<Column, std::span<bool>>);
static_assert(!std::is_constructible_v<Column, std::string&>);
static_assert(!std::is_constructible_v<Column, std::vector<std::string>&>);
static_assert(!std::is_constructible_v<Column, std::list<double>&>);
static_assert(std::is_nothrow_copy_constructible_v<Column>);

TEST(Flatten, SendsPlainColumnsAsTheyAre) {
  const std::vector<double> x = {1, 2, 3};
  const std::array<float, 3> y = {4, 5, 6};
  const Schema schema = {field<double>("x"), field<float>("y")};
  const Plan plan = *make_plan(schema);
  FlatOffload out;
  const Column columns[] = {x, y};
  ASSERT_TRUE(flatten(schema, plan, columns, out));
  EXPECT_EQ(out.nodes, (HotVector<NodeRef>{{3, 0}, {3, 0}}));
  EXPECT_EQ(out.buffers, (HotVector<BufferRef>{{address(x.data()), 24, 0, 0, 0}, {address(y.data()), 12, 0, 0, 0}}));
  EXPECT_EQ(out.bytes, 36u);
}

TEST(Flatten, FixedListOfPlainNumbers_ExpectWhatItsItemsAsAChildGive) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6};
  const Schema schema = {fixed_size_list("x", 3, field<double>("item"))};
  const Plan plan = *make_plan(schema);
  const Column item(x);
  FlatOffload with_child, without;
  for (const std::int64_t offset : {0, 1}) {
    Column columns[] = {Column::fixed_list(2, item), Column::fixed_list<3>(x)};
    for (Column& column : columns) {
      column.offset = offset;
      column.length -= offset;
    }
    ASSERT_TRUE(flatten(schema, plan, std::span(columns).first(1), with_child));
    ASSERT_TRUE(flatten(schema, plan, std::span(columns).last(1), without));
    ASSERT_EQ(without.buffers.size(), with_child.buffers.size());
    for (std::size_t i = 0; i < without.buffers.size(); ++i) {
      EXPECT_EQ(without.buffers[i].address, with_child.buffers[i].address);
      EXPECT_EQ(without.buffers[i].bytes, with_child.buffers[i].bytes);
    }
    EXPECT_EQ(without.nodes[1].length, 3 * (2 - offset));
  }
}

TEST(Flatten, FixedListThatDoesNotFit_ExpectWhy) {
  const std::vector<double> seven(7);
  const std::vector<float> six(6);
  const Field three = fixed_size_list("x", 3, field<double>("item"));
  expect_refused(three, Column::fixed_list<3>(seven), "its values do not fill the last row of 3");
  expect_refused(three, Column::fixed_list<2>(six), "rows of 2 values were given where the field has 3");
  expect_refused(three, Column::fixed_list<3>(six), "values of 4 bytes each were given where the field's type has 8");
  expect_refused(fixed_size_list("x", 3, field("item", "u")), Column::fixed_list<3>(six), "offsets is a null pointer");
}

TEST(Flatten, TurnsSlicesIntoAddresses) {
  const std::vector<std::int32_t> values(40);
  const std::uint8_t bitmap[5] = {};
  Column column = Column(values).with_validity(bitmap, 4);
  FlatOffload out;
  ASSERT_TRUE(flatten_one(field<std::int32_t>("x", true), column, out));
  EXPECT_EQ(out.nodes[0], (NodeRef{40, 4})) << "exact, because it is the whole column";
  EXPECT_EQ(out.buffers[0], (BufferRef{address(bitmap), 5, 0, 0, 0}));

  column.offset = 13;
  column.length = 20;
  ASSERT_TRUE(flatten_one(field<std::int32_t>("x", true), column, out));
  EXPECT_EQ(out.nodes[0], (NodeRef{20, 4}));
  EXPECT_EQ(out.buffers[0], (BufferRef{address(bitmap + 1), 4, 0, 0, 5}));
  EXPECT_EQ(out.buffers[1], (BufferRef{address(&values[13]), 80, 0, 0, 0}));
}

TEST(Flatten, PassesTheSlicesOfParentsOn) {
  const std::vector<std::int32_t> values(100);
  const std::uint8_t bitmap[13] = {};
  Column item = Column(values).with_validity(bitmap, 50);
  item.offset = 2;
  item.length = 90;
  const Column lists = Column::fixed_list(30, item);
  Column rows = Column::struct_(10, std::span(&lists, 1));
  rows.offset = 5;
  FlatOffload out;
  ASSERT_TRUE(flatten_one(struct_("s", {fixed_size_list("l", 3, field<std::int32_t>("", true))}), rows, out));
  EXPECT_EQ(out.nodes, (HotVector<NodeRef>{{10, 0}, {10, 0}, {30, -1}}))
      << "of a part of the item nobody knows the nulls";
  EXPECT_EQ(out.buffers[0], (BufferRef{address(bitmap + 2), 4, 0, 0, 1}));  // row 2 + 5 * 3 = 17
  EXPECT_EQ(out.buffers[1], (BufferRef{address(&values[17]), 120, 0, 0, 0}));
}

TEST(Flatten, ReadsOnlyTheEndsOfOffsets) {
  const std::int64_t offsets[] = {7, 10, -99, 22, 30};
  const char* text = "abc";
  Column column = Column::large_utf8(offsets, text);
  column.offset = 1;
  column.length = 2;
  FlatOffload out;
  ASSERT_TRUE(flatten_one(field("s", "U"), column, out));
  EXPECT_EQ(out.buffers,
            (HotVector<BufferRef>{{address(&offsets[1]), 24, 0, 0, 10}, {address(text) + 10, 12, 0, 0, 0}}));
}

TEST(Flatten, SendsNothingForNoRows) {
  FlatOffload out;
  ASSERT_TRUE(flatten_one(utf8("s", true), Column().with_validity(nullptr), out));
  EXPECT_EQ(out.nodes[0], (NodeRef{0, 0}));
  EXPECT_EQ(out.buffers, (HotVector<BufferRef>(2)));
  const Column empty;
  ASSERT_TRUE(flatten_one(list("l", field<int>("")), Column::list({}, empty), out));
  EXPECT_EQ(out.nodes, (HotVector<NodeRef>(2)));
  EXPECT_EQ(out.bytes, 0u);
  ASSERT_TRUE(flatten_one(field<bool>("b"), Column::bits(nullptr, 0), out));
  ASSERT_TRUE(flatten_one(fixed_size_binary("e", 0), Column::fixed_size_binary(nullptr, 5), out));
  EXPECT_EQ(out.nodes[0], (NodeRef{5, 0}));
}

TEST(Flatten, SendsUnknownNullsWithoutValidityAsNone) {
  const std::vector<double> x(5);
  FlatOffload out;
  ASSERT_TRUE(flatten_one(field<double>("x"), Column(x).with_validity(nullptr, -1), out));
  EXPECT_EQ(out.nodes[0], (NodeRef{5, 0}));
  EXPECT_EQ(out.buffers.size(), 1u);
}

TEST(Flatten, SendsDictionariesInPlanOrder) {
  const std::int32_t offsets[] = {0, 1, 3};
  const Column words = Column::utf8(offsets, "abc");
  const std::vector<std::int8_t> inner_indices = {0, 1, 1};
  Column inner = inner_indices;
  inner.dictionary = &words;
  const Column entries = Column::struct_(3, std::span(&inner, 1));
  const std::vector<std::int16_t> indices = {2, 2, 0, 1};
  Column column = indices;
  column.dictionary = &entries;
  FlatOffload out;
  const Field f = dictionary("d", "s", struct_("", {dictionary("w", "c", utf8(""))}));
  ASSERT_TRUE(flatten_one(f, column, out));
  EXPECT_EQ(out.nodes, (HotVector<NodeRef>{{2, 0}, {3, 0}, {3, 0}, {4, 0}}));
  ASSERT_EQ(out.buffers.size(), 4u);
  EXPECT_EQ(out.buffers[0].address, address(offsets));
  EXPECT_EQ(out.buffers[1].bytes, 3u);
  EXPECT_EQ(out.buffers[2].address, address(inner_indices.data()));
  EXPECT_EQ(out.buffers[3].address, address(indices.data()));
  EXPECT_EQ(out.bytes, 12u + 3 + 3 + 8);

  inner.dictionary = nullptr;
  expect_refused(f, column, "'d.dictionary.w': dictionary is a null pointer");
}

TEST(Flatten, RefusesColumnsThatDoNotMatch) {
  const std::vector<double> x(5);
  const std::vector<double> four(4);
  const Schema schema = {field<double>("x"), field<double>("y")};
  const Plan plan = *make_plan(schema);
  FlatOffload out;
  const Column three[] = {x, x, x};
  const Column unequal[] = {x, four};
  EXPECT_EQ(flatten(schema, plan, std::span(three), out).message(), "got 3 columns for a schema of 2 fields");
  EXPECT_EQ(flatten(schema, plan, std::span(three, 1), out).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(flatten(schema, plan, std::span<const Column>(), out).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(flatten(schema, plan, unequal, out).message(), "column 'y': has 4 rows where the first column has 5");
}

TEST(Flatten, RefusesNumbersOfAnotherSize) {
  const std::vector<float> floats(5);
  expect_refused(field<double>("x"), floats, "'x': values of 4 bytes each were given where the field's type has 8");
  expect_refused(field<bool>("x"), floats, "use Column::bits");
}

TEST(Flatten, RefusesLengthsThatLie) {
  const std::vector<double> x(5);
  for (const std::int64_t bad : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    Column c = x;
    c.length = bad;
    expect_refused(field<double>("x"), c, "negative");
    c = x;
    c.offset = bad;
    expect_refused(field<double>("x"), c, "negative");
  }
  for (const std::int64_t bad :
       {std::int64_t{1} << 62, (std::int64_t{1} << 48) + 1, std::numeric_limits<std::int64_t>::max()}) {
    Column c = x;
    c.length = bad;
    expect_refused(field<double>("x"), c, "overflow");
    c = x;
    c.offset = bad;
    expect_refused(field<double>("x"), c, "overflow");
  }
  Column c = x;
  c.value_bytes = 0;
  c.length = std::int64_t{1} << 40;
  expect_refused(fixed_size_binary("x", 268435455), c, "overflow");
  const Column item = x;
  expect_refused(fixed_size_list("l", 2147483647, field<double>("")), Column::fixed_list(std::int64_t{1} << 40, item),
                 "overflow");
  const std::int64_t huge[] = {0, std::numeric_limits<std::int64_t>::max()};
  expect_refused(field("s", "U"), Column::large_utf8(huge, "x"), "overflow");
}

TEST(Flatten, RefusesChildrenShorterThanTheirParentNeeds) {
  const std::vector<double> x(5);
  const Column item = x;
  expect_refused(fixed_size_list("l", 3, field<double>("")), Column::fixed_list(2, item),
                 "'l.item': has 5 rows where its parent needs 6");
  expect_refused(struct_("s", {field<double>("m")}), Column::struct_(6, std::span(&item, 1)),
                 "'s.m': has 5 rows where its parent needs 6");
  const std::int32_t offsets[] = {0, 6};
  expect_refused(list("l", field<double>("")), Column::list(offsets, item), "'l.item': has 5 rows");
  Column sliced = Column::struct_(5, std::span(&item, 1));
  sliced.offset = 1;
  expect_refused(struct_("s", {field<double>("m")}), sliced, "needs 6");
}

TEST(Flatten, RefusesNullPointersWhereBytesAreNeeded) {
  Column c;
  c.length = 3;
  expect_refused(field<double>("x"), c, "values is a null pointer");
  expect_refused(field<bool>("x"), c, "values is a null pointer");
  expect_refused(utf8("x"), c, "offsets is a null pointer");
  const std::int32_t offsets[] = {0, 1};
  expect_refused(utf8("x"), Column::utf8(offsets, nullptr), "data is a null pointer");
  const std::vector<double> x(3);
  expect_refused(field<double>("x", true), Column(x).with_validity(nullptr, 1), "no validity bitmap");
  const std::vector<int> indices(3);
  expect_refused(dictionary("x", "i", utf8("")), indices, "dictionary is a null pointer");
}

TEST(Flatten, RefusesNullsWhereTheFieldHasNone) {
  const std::vector<double> x(20);
  const std::uint8_t bits[3] = {};
  Column column = Column(x).with_validity(bits, 2);
  expect_refused(field<double>("x"), column, "'x': 2 of its 20 rows are null, and its field is not nullable");
  expect_refused(struct_("s", {field<double>("m")}), Column::struct_(20, std::span(&column, 1)), "'s.m': 2 of its 20");
  FlatOffload out;
  ASSERT_TRUE(flatten_one(struct_("s", {field<double>("m")}), Column::struct_(19, std::span(&column, 1)), out))
      << "the nulls may be in the part that is not used";
  EXPECT_EQ(out.nodes[1], (NodeRef{19, -1})) << "so the agent counts";
  column.null_count = -1;
  ASSERT_TRUE(flatten_one(field<double>("x"), column, out));
  EXPECT_EQ(out.nodes[0], (NodeRef{20, -1}));
  // Arrow has no nullable flag for dictionary values, even if their Field has one.
  const std::int32_t offsets[] = {0, 1, 3};
  const Column words = Column::utf8(offsets, "abc").with_validity(bits, 2);
  const std::vector<std::int8_t> indices(4);
  Column encoded = indices;
  encoded.dictionary = &words;
  EXPECT_TRUE(flatten_one(dictionary("d", "c", utf8("")), encoded, out));
}

TEST(Flatten, RefusesBadOffsetsNullCountsAndChildCounts) {
  const std::int32_t falling[] = {5, 3};
  const std::int32_t negative[] = {-1, 3};
  expect_refused(utf8("x"), Column::utf8(falling, "abcdef"), "fall");
  expect_refused(utf8("x"), Column::utf8(negative, "abcdef"), "fall");
  const std::vector<double> x(3);
  const std::uint8_t bits[] = {0xFF};
  expect_refused(field<double>("x", true), Column(x).with_validity(bits, 4), "null_count is 4");
  expect_refused(field<double>("x", true), Column(x).with_validity(bits, -2), "null_count is -2");
  const Column members[] = {x, x, x};
  const Field pair = struct_("s", {field<double>("a"), field<double>("b")});
  expect_refused(pair, Column::struct_(3, members), "has 3 children");
  expect_refused(pair, Column::struct_(3, std::span(members, 1)), "has 1 children");
  expect_refused(pair, Column::struct_(3, {}), "has 0 children");
  Column childless = Column::struct_(3, {});
  expect_refused(fixed_size_list("l", 1, field<double>("")), childless, "has 0 children");
}

/// A record batch as C structs, which a test may corrupt.
class FromC : public testing::Test {
 protected:
  void SetUp() override {
    arrow::Int32Builder numbers;
    ASSERT_TRUE(numbers.AppendValues({1, 2, 3, 4}).ok());
    arrow::StringBuilder words;
    ASSERT_TRUE(words.AppendValues({"a", "bb", "", "dddd"}).ok());
    const auto type = arrow::schema({arrow::field("number", arrow::int32()), arrow::field("word", arrow::utf8())});
    const auto batch = arrow::RecordBatch::Make(type, 4, {*numbers.Finish(), *words.Finish()});
    ASSERT_TRUE(arrow::ExportRecordBatch(*batch, &array_, &c_schema_).ok());
    schema_ = *from_c_schema(c_schema_);
  }
  void TearDown() override {
    array_.release(&array_);
    c_schema_.release(&c_schema_);
  }
  void expect_refused(const char* words) {
    const Status status = columns_from_c_array(schema_, array_, tree_);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    EXPECT_TRUE(tree_.columns().empty());
  }

  Schema schema_;
  ArrowSchema c_schema_{};
  ArrowArray array_{};
  ColumnTree tree_;
};

TEST_F(FromC, ReadsASchemaAndColumns) {
  ASSERT_EQ(schema_.size(), 2u);
  EXPECT_EQ(schema_[1].name, "word");
  EXPECT_EQ(schema_[1].format, "u");
  EXPECT_TRUE(schema_[1].nullable);
  ASSERT_TRUE(columns_from_c_array(schema_, array_, tree_));
  ASSERT_EQ(tree_.columns().size(), 2u);
  EXPECT_EQ(tree_.columns()[1].length, 4);
  EXPECT_EQ(tree_.columns()[0].values, array_.children[0]->buffers[1]);
  const Column* before = tree_.columns().data();
  ASSERT_TRUE(columns_from_c_array(schema_, array_, tree_));
  EXPECT_EQ(tree_.columns().data(), before) << "a warm call reuses the nodes";
}

TEST_F(FromC, RefusesBuffersThatAreNotThoseOfTheType) {
  array_.children[1]->n_buffers = 2;
  expect_refused("'word': has 2 buffers where format 'u' has 3");
  array_.children[1]->n_buffers = 3;
  const void** buffers = std::exchange(array_.children[0]->buffers, nullptr);
  expect_refused("'number': has 2 buffers");
  array_.children[0]->buffers = buffers;
}

TEST_F(FromC, RefusesChildrenThatAreNotThoseOfTheType) {
  array_.n_children = 1;
  expect_refused("1 children");
  array_.n_children = 2;
  array_.children[0]->n_children = 1;
  expect_refused("'number': has 1 children");
  array_.children[0]->n_children = 0;
  ArrowArray* child = std::exchange(array_.children[1], nullptr);
  expect_refused("null pointer");
  array_.children[1] = child;
  array_.children[0]->dictionary = child;
  expect_refused("'number': has a dictionary");
  array_.children[0]->dictionary = nullptr;
}

TEST_F(FromC, RefusesLengthsThatDoNotFit) {
  array_.length = 5;
  expect_refused("'number': has 4 rows where the batch selects 5 from 0");
  array_.length = 2;
  array_.offset = 3;
  expect_refused("selects 2 from 3");
  array_.offset = -1;
  expect_refused("bad length");
  array_.offset = std::numeric_limits<std::int64_t>::max();
  expect_refused("bad length");
  array_.offset = 0;
  array_.length = 4;
  array_.children[0]->offset = -5;
  expect_refused("'number': has a bad length");
  array_.children[0]->offset = 0;
}

TEST_F(FromC, RefusesRowsThatAreNull) {
  const std::uint8_t bits[] = {0xFD};
  const void* old = std::exchange(array_.buffers[0], bits);
  array_.null_count = -1;
  expect_refused("null rows");
  array_.offset = 2;
  array_.length = 2;
  EXPECT_TRUE(columns_from_c_array(schema_, array_, tree_)) << "the null row is not among those selected";
  array_.buffers[0] = old;
}

TEST_F(FromC, RefusesReleasedStructsAndTypesThatAreNoBatch) {
  const auto release = std::exchange(array_.release, nullptr);
  expect_refused("released");
  array_.release = release;
  EXPECT_EQ(from_c_schema(*c_schema_.children[0]).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(from_c_field(*c_schema_.children[0])->name, "number");
}

}  // namespace
}  // namespace wherry::move
