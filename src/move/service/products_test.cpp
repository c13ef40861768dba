// SPDX-License-Identifier: Apache-2.0
#include "move/service/products.hpp"

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/key_value_metadata.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "move/random_arrow.hpp"
#include "move/service/frame_arrow.hpp"

namespace wherry::move {
namespace {

using test::Delivered;
using test::RandomArrow;

constexpr Strategy kWithProduct[] = {Strategy::kArrays, Strategy::kRecordBatch, Strategy::kCAbi};
constexpr std::uint32_t kPage = 4096;

std::shared_ptr<Arena> arena() { return *Arena::create(std::size_t{64} << 20); }

std::shared_ptr<const StreamInfo> stream_of(const Delivered& d, Strategy strategy) {
  auto info = std::make_shared<StreamInfo>();
  info->name = "s";
  info->strategy = strategy;
  info->schema = d.schema;
  info->plan = d.plan;
  info->ipc = d.ipc;
  return info;
}

/// A frame as the data thread leaves it: columns where the gets put them, and noise elsewhere. The noise exposes code
/// that parses metadata or reads padding.
std::shared_ptr<Frame> frame_of(const std::shared_ptr<Arena>& memory, std::shared_ptr<const StreamInfo> info,
                                const Delivered& d) {
  auto frame = std::make_shared<Frame>();
  frame->layout = d.layout;
  frame->extent = *memory->try_allocate(d.layout.total_bytes);
  std::memset(frame->extent.bytes().data(), 0xEE, frame->extent.bytes().size());
  for (const Placement& at : d.layout.buffers) {
    if (at.bytes != 0) std::memcpy(frame->extent.bytes().data() + at.offset, d.frame().data() + at.offset, at.bytes);
  }
  const Status made = make_products(*info, d.nodes, *frame);
  EXPECT_TRUE(made) << made.to_string();
  frame->rows = static_cast<std::uint64_t>(d.nodes[d.plan.sections.back().first_node].length);
  frame->nodes.assign(d.nodes.begin(), d.nodes.end());
  frame->stream = std::move(info);
  return frame;
}

void expect_inside(const arrow::ArrayData& data, const Frame& frame) {
  const auto bytes = std::as_bytes(frame.extent.bytes().first(frame.layout.total_bytes));
  for (const auto& buffer : data.buffers) {
    if (buffer == nullptr || buffer->size() == 0) continue;
    const auto* address = reinterpret_cast<const std::byte*>(buffer->address());
    EXPECT_GE(address, bytes.data()) << "a buffer was copied";
    EXPECT_LE(address + buffer->size(), bytes.data() + bytes.size()) << "a buffer was copied";
    EXPECT_EQ((address - bytes.data()) % kPage, 0);
  }
  for (const auto& child : data.child_data) expect_inside(*child, frame);
  if (data.dictionary != nullptr) expect_inside(*data.dictionary, frame);
}

void expect_batch(const arrow::RecordBatch& got, const arrow::RecordBatch& wanted, const Frame& frame) {
  const arrow::Status valid = got.ValidateFull();
  ASSERT_TRUE(valid.ok()) << valid.ToString() << "\n" << wanted.schema()->ToString();
  EXPECT_TRUE(got.schema()->Equals(*wanted.schema(), true)) << got.schema()->ToString();
  EXPECT_TRUE(got.Equals(wanted)) << got.ToString() << "\nwanted\n" << wanted.ToString();
  for (const auto& column : got.column_data()) expect_inside(*column, frame);
}

/// Checks one frame of each strategy through all interfaces.
void check(const arrow::RecordBatch& wanted) {
  const auto memory = arena();
  const Result<Delivered> d = test::deliver(wanted, kPage);
  ASSERT_TRUE(d) << d.status().to_string();
  for (const Strategy strategy : kWithProduct) {
    SCOPED_TRACE(std::string(to_string(strategy)) + " " + wanted.schema()->ToString());
    const auto info = stream_of(*d, strategy);
    FramePtr frame = frame_of(memory, info, *d);
    ASSERT_NE(frame->products, nullptr);

    // When the ticket is ready, the objects must exist, before the first request.
    const Products& products = *frame->products;
    EXPECT_EQ(products.arrays().size(), strategy == Strategy::kArrays ? wanted.columns().size() : 0u);
    EXPECT_EQ(products.record_batch() != nullptr, strategy == Strategy::kRecordBatch);
    EXPECT_EQ(static_cast<bool>(products.c_abi()), strategy == Strategy::kCAbi);
    for (std::size_t i = 0; i < products.arrays().size(); ++i) {
      EXPECT_TRUE(products.arrays()[i]->ValidateFull().ok());
      EXPECT_TRUE(products.arrays()[i]->Equals(wanted.column(static_cast<int>(i))));
      expect_inside(*products.arrays()[i]->data(), *frame);
    }
    if (products.record_batch() != nullptr) expect_batch(*products.record_batch(), wanted, *frame);

    auto batch = record_batch_of(frame);
    ASSERT_NE(batch, nullptr);
    expect_batch(*batch, wanted, *frame);
    const auto arrays = arrays_of(frame);
    ASSERT_EQ(arrays.size(), wanted.columns().size());
    const auto read = read_frame(frame);
    ASSERT_TRUE(read) << read.status().to_string();
    expect_batch(**read, wanted, *frame);

    // The same frame can still become an IPC stream for readers in other processes.
    const std::span<const std::byte> ipc = frame->ipc();
    ASSERT_EQ(ipc.size(), d->layout.total_bytes);
    EXPECT_EQ(std::memcmp(ipc.data(), d->frame().data(), ipc.size()), 0);
  }
  EXPECT_EQ(memory->in_use(), 0u);
}

TEST(Products, EveryPlainType) {
  RandomArrow random(1);
  for (const auto& type : test::plain_types()) {
    const auto schema =
        arrow::schema({arrow::field("x", type), arrow::field("y", type, type->id() == arrow::Type::NA)});
    for (const std::int64_t rows : {0, 1, 9, 300}) check(*random.batch(schema, rows));
  }
}

TEST(Products, EveryWayToNest) {
  RandomArrow random(2);
  for (const auto& type : test::nested_types()) {
    const auto schema = arrow::schema({arrow::field("x", type), arrow::field("after", arrow::int16())});
    for (const std::int64_t rows : {0, 1, 9, 300}) check(*random.batch(schema, rows));
  }
}

TEST(Products, SchemasAtRandom) {
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    RandomArrow random(1000 + seed);
    const auto schema = random.schema(5, 4);
    check(*random.batch(schema, random.below(70)));
  }
}

TEST(Products, NamesFlagsAndMetadataOfTheStreamAreKept) {
  const auto schema = arrow::schema({arrow::field("größe", arrow::map(arrow::utf8(), arrow::int32(), true), false,
                                                  arrow::key_value_metadata({"unit"}, {"m"})),
                                     arrow::field("kind", arrow::dictionary(arrow::int8(), arrow::utf8(), true))});
  RandomArrow random(3);
  check(*random.batch(schema, 20));
}

TEST(Products, OtherStrategiesHaveNone) {
  const auto memory = arena();
  RandomArrow random(4);
  const auto wanted = random.batch(arrow::schema({arrow::field("x", arrow::float64())}), 10);
  const auto d = *test::deliver(*wanted, kPage);
  for (const Strategy strategy : {Strategy::kRaw, Strategy::kIpc, Strategy::kIpcPageAligned}) {
    const FramePtr frame = frame_of(memory, stream_of(d, strategy), d);
    EXPECT_EQ(frame->products, nullptr);
    EXPECT_EQ(record_batch_of(frame), nullptr);
    EXPECT_TRUE(arrays_of(frame).empty());
    EXPECT_FALSE(c_abi_of(*frame));
    ArrowArray array{};
    ArrowSchema schema{};
    EXPECT_EQ(export_c_abi(frame, array, schema).code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(array.release, nullptr);
    EXPECT_EQ(schema.release, nullptr);
    const auto read = read_frame(frame);
    ASSERT_TRUE(read) << read.status().to_string();
    EXPECT_TRUE((*read)->Equals(*wanted));
  }
}

class Lifetime : public ::testing::Test {
 protected:
  FramePtr frame(Strategy strategy) {
    if (info_ == nullptr || info_->strategy != strategy) info_ = stream_of(d_, strategy);
    return frame_of(memory_, info_, d_);
  }

  std::shared_ptr<arrow::Schema> schema_ = arrow::schema(
      {arrow::field("s", arrow::struct_({arrow::field("w", arrow::dictionary(arrow::int8(), arrow::utf8())),
                                         arrow::field("l", arrow::list(arrow::float64()))})),
       arrow::field("x", arrow::int32())});
  RandomArrow random_{5};
  std::shared_ptr<arrow::RecordBatch> wanted_ = random_.batch(schema_, 50);
  Delivered d_ = *test::deliver(*wanted_, kPage);
  std::shared_ptr<Arena> memory_ = arena();
  std::shared_ptr<const StreamInfo> info_;
};

TEST_F(Lifetime, AProductDoesNotKeepItsFrame) {
  for (const Strategy strategy : kWithProduct) {
    FramePtr one = frame(strategy);
    EXPECT_EQ(one.use_count(), 1) << "a cycle";
    const std::weak_ptr<const Frame> watch = one;
    one.reset();
    EXPECT_TRUE(watch.expired());
    EXPECT_EQ(memory_->in_use(), 0u);
  }
}

TEST_F(Lifetime, TheLastBufferKeepsTheFrame) {
  for (const Strategy strategy : kWithProduct) {
    std::weak_ptr<const Frame> watch;
    std::shared_ptr<arrow::Buffer> last;
    {
      const FramePtr one = frame(strategy);
      watch = one;
      const auto batch = record_batch_of(one);
      const auto column = batch->Slice(10, 20)->column(0);
      last = arrow::SliceBuffer(column->data()->child_data[0]->dictionary->buffers[2], 0, 2);
    }
    EXPECT_FALSE(watch.expired());
    EXPECT_GT(memory_->in_use(), 0u);
    EXPECT_NE(last->ToString()[0], '\xEE');
    last.reset();
    EXPECT_TRUE(watch.expired());
    EXPECT_EQ(memory_->in_use(), 0u);
  }
}

TEST_F(Lifetime, AnArrayKeepsTheFrame) {
  for (const Strategy strategy : kWithProduct) {
    FramePtr one = frame(strategy);
    auto arrays = arrays_of(one);
    const std::weak_ptr<const Frame> watch = std::exchange(one, nullptr);
    const auto x = arrays[1];
    arrays.clear();
    EXPECT_FALSE(watch.expired());
    EXPECT_TRUE(x->Equals(wanted_->column(1)));
  }
  EXPECT_EQ(memory_->in_use(), 0u);
}

TEST_F(Lifetime, LentFramesAreKeptInTheirLentForm) {
  // The catalogue lends frames: the return of a frame's memory must be reported, whichever reader is last.
  bool reported = false;
  FramePtr one = frame(Strategy::kRecordBatch);
  FramePtr lent(one.get(), [one, &reported](const Frame*) { reported = true; });
  auto batch = record_batch_of(lent);
  one.reset();
  lent.reset();
  EXPECT_FALSE(reported);
  batch.reset();
  EXPECT_TRUE(reported);
}

TEST_F(Lifetime, AFrameOutlivesTheDescriptionOfItsStream) {
  for (const Strategy strategy : kWithProduct) {
    std::shared_ptr<arrow::RecordBatch> batch = record_batch_of(frame(strategy));
    info_.reset();
    EXPECT_TRUE(batch->Equals(*wanted_));
  }
}

TEST_F(Lifetime, ReadersOnManyThreads) {
  for (const Strategy strategy : kWithProduct) {
    for (int round = 0; round < 20; ++round) {
      const FramePtr one = frame(strategy);
      std::vector<std::thread> readers;
      for (int i = 0; i < 4; ++i) {
        readers.emplace_back([&, i] {
          if (i == 3) {
            EXPECT_EQ(one->ipc().size(), d_.layout.total_bytes);
          } else {
            EXPECT_TRUE(record_batch_of(one)->Equals(*wanted_));
          }
        });
      }
      for (auto& reader : readers) reader.join();
    }
  }
  EXPECT_EQ(memory_->in_use(), 0u);
}

TEST_F(Lifetime, StructsOfALentPairCanBeImportedByWhoHoldsTheFrame) {
  FramePtr one = frame(Strategy::kCAbi);
  const CAbi lent = c_abi_of(*one);
  ASSERT_TRUE(lent);
  EXPECT_STREQ(lent.schema->format, "+s");
  EXPECT_EQ(lent.array->n_children, 2);
  for (int again = 0; again < 2; ++again) {
    ArrowArray copy = *lent.array;
    const auto batch = arrow::ImportRecordBatch(&copy, schema_);
    ASSERT_TRUE(batch.ok()) << batch.status().ToString();
    EXPECT_TRUE((*batch)->Equals(*wanted_));
  }
  EXPECT_NE(lent.array->release, nullptr);
  one.reset();
  EXPECT_EQ(memory_->in_use(), 0u);
}

TEST_F(Lifetime, StructsAndSchemaOfAStreamAreMadeOnce) {
  FramePtr first = frame(Strategy::kCAbi);
  FramePtr second = frame(Strategy::kCAbi);
  EXPECT_EQ(c_abi_of(*first).schema, c_abi_of(*second).schema);
  EXPECT_NE(c_abi_of(*first).array, c_abi_of(*second).array);
  const ArrowArray* const array = c_abi_of(*first).array;
  first.reset();
  const FramePtr third = frame(Strategy::kCAbi);
  EXPECT_EQ(c_abi_of(*third).array, array) << "structs of a frame that went are filled again";
  EXPECT_TRUE(record_batch_of(third)->Equals(*wanted_));
  EXPECT_TRUE(record_batch_of(second)->Equals(*wanted_));
}

TEST_F(Lifetime, AnExportedPairIsReleasedExactlyOnce) {
  FramePtr one = frame(Strategy::kCAbi);
  const std::weak_ptr<const Frame> watch = one;
  ArrowArray array{};
  ArrowSchema schema{};
  ASSERT_TRUE(export_c_abi(one, array, schema));
  EXPECT_EQ(array.children[1]->buffers[1], c_abi_of(*one).array->children[1]->buffers[1]) << "a copy";
  one.reset();
  EXPECT_FALSE(watch.expired());
  auto batch = arrow::ImportRecordBatch(&array, &schema);
  ASSERT_TRUE(batch.ok()) << batch.status().ToString();
  EXPECT_EQ(array.release, nullptr);
  EXPECT_EQ(schema.release, nullptr);
  EXPECT_TRUE((*batch)->schema()->Equals(*schema_, true));
  EXPECT_TRUE((*batch)->Equals(*wanted_));
  EXPECT_TRUE((*batch)->ValidateFull().ok());
  EXPECT_FALSE(watch.expired());
  *batch = nullptr;
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(memory_->in_use(), 0u);
}

TEST_F(Lifetime, AnExportedPairThatNobodyImports) {
  ArrowArray array{};
  ArrowSchema schema{};
  ASSERT_TRUE(export_c_abi(frame(Strategy::kCAbi), array, schema));
  schema.release(&schema);
  EXPECT_GT(memory_->in_use(), 0u);
  array.release(&array);
  EXPECT_EQ(array.release, nullptr);
  EXPECT_EQ(memory_->in_use(), 0u);
}

TEST_F(Lifetime, ChildrenMayBeMovedOutAndReleasedLast) {
  ArrowArray array{};
  ArrowSchema schema{};
  ASSERT_TRUE(export_c_abi(frame(Strategy::kCAbi), array, schema));
  schema.release(&schema);
  // "Moving child arrays" of the specification: copy the struct, mark the original as released.
  ArrowArray child = *array.children[0];
  array.children[0]->release = nullptr;
  array.release(&array);
  EXPECT_EQ(array.release, nullptr);
  EXPECT_GT(memory_->in_use(), 0u);
  {
    const auto imported = arrow::ImportArray(&child, schema_->field(0)->type());
    ASSERT_TRUE(imported.ok()) << imported.status().ToString();
    EXPECT_TRUE((*imported)->Equals(wanted_->column(0)));
  }
  EXPECT_EQ(memory_->in_use(), 0u);
}

TEST(Products, OffsetsOfNoRowsCanBeReadAllTheSame) {
  // Consumers of the C data interface may read the first offset even of an empty array. Senders may omit it.
  const auto memory = arena();
  RandomArrow random(6);
  const auto schema =
      arrow::schema({arrow::field("a", arrow::utf8()), arrow::field("b", arrow::large_list(arrow::large_binary()))});
  const auto d = *test::deliver(*random.batch(schema, 0), kPage);
  const FramePtr frame = frame_of(memory, stream_of(d, Strategy::kCAbi), d);
  const ArrowArray& array = *c_abi_of(*frame).array;
  EXPECT_EQ(*static_cast<const std::int32_t*>(array.children[0]->buffers[1]), 0);
  EXPECT_EQ(*static_cast<const std::int64_t*>(array.children[1]->buffers[1]), 0);
  EXPECT_EQ(*static_cast<const std::int64_t*>(array.children[1]->children[0]->buffers[1]), 0);
}

TEST(Products, AMapWithNullKeysFailsTheOffloadAndNotTheAgent) {
  // Arrow C++ would abort: MapArray::SetData checks its children with ARROW_CHECK.
  const auto memory = arena();
  RandomArrow random(7);
  const auto schema = arrow::schema({arrow::field("m", arrow::map(arrow::int32(), arrow::int32()))});
  auto d = *test::deliver(*random.batch(schema, 10), kPage);
  for (const std::size_t node : {1, 2}) {  // entries, keys
    auto nodes = d.nodes;
    nodes[node].null_count = nodes[node].length == 0 ? 0 : 1;
    ASSERT_NE(nodes[node].null_count, 0);
    for (const Strategy strategy : kWithProduct) {
      Frame frame;
      frame.layout = d.layout;
      frame.extent = *memory->try_allocate(d.layout.total_bytes);
      const Status made = make_products(*stream_of(d, strategy), nodes, frame);
      EXPECT_EQ(made.code(), StatusCode::kInvalidArgument) << made.to_string();
      EXPECT_EQ(frame.products, nullptr);
    }
  }
}

}  // namespace
}  // namespace wherry::move
