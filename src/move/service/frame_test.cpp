// SPDX-License-Identifier: Apache-2.0
#include "move/service/frame.hpp"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "move/service/frame_arrow.hpp"

namespace wherry::move {
namespace {

/// A frame as the data thread leaves it if the strategy does not write the metadata in transit: it has only the
/// bodies.
std::shared_ptr<Frame> unwritten(const std::shared_ptr<Arena>& arena, const Schema& schema, Strategy strategy,
                                 const std::vector<NodeRef>& nodes, const std::vector<std::vector<std::byte>>& values) {
  auto info = std::make_shared<StreamInfo>();
  info->name = "s";
  info->strategy = strategy;
  info->schema = schema;
  info->plan = *make_plan(schema);
  info->ipc = *IpcTemplate::make(schema, info->plan, 64);
  std::vector<BufferRef> refs;
  for (const auto& one : values) refs.push_back({reinterpret_cast<std::uint64_t>(one.data()), one.size(), 0, 0, 0});
  auto frame = std::make_shared<Frame>();
  frame->stream = info;
  frame->rows = static_cast<std::uint64_t>(nodes[0].length);
  frame->nodes = nodes;
  info->ipc->place(nodes, refs, frame->layout);
  frame->extent = *arena->try_allocate(frame->layout.total_bytes);
  std::memset(frame->extent.bytes().data(), 0xee, frame->extent.bytes().size());  // what was there before
  std::size_t next = 0;
  for (std::size_t i = 0; i < info->plan.buffers.size(); ++i) {
    if (info->plan.buffers[i].kind == BufferKind::kValidity) continue;
    std::memcpy(frame->extent.bytes().data() + frame->layout.buffers[i].offset, values[next].data(),
                values[next].size());
    ++next;
  }
  return frame;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Frame, MetadataIsWrittenOnceHoweverManyAskAtOnce) {
  const auto arena = *Arena::create(1 << 20);
  for (int round = 0; round < 50; ++round) {
    const std::vector<double> x = {1.5, 2.5, -3.0};
    const std::vector<std::int64_t> n = {7, 8, round};
    const FramePtr frame = unwritten(arena, {field<double>("x"), field<std::int64_t>("n")}, Strategy::kArrays,
                                     {{3, 0}, {3, 0}}, {bytes_of(x), bytes_of(n)});
    std::vector<std::thread> readers;
    for (int r = 0; r < 4; ++r) {
      readers.emplace_back([&] {
        const auto batch = read_frame(frame);
        ASSERT_TRUE(batch) << batch.status().to_string();
        ASSERT_EQ((*batch)->num_rows(), 3);
        const auto& xs = static_cast<const arrow::DoubleArray&>(*(*batch)->column(0));
        const auto& ns = static_cast<const arrow::Int64Array&>(*(*batch)->column(1));
        for (std::size_t i = 0; i < 3; ++i) {
          ASSERT_EQ(xs.Value(static_cast<std::int64_t>(i)), x[i]);
          ASSERT_EQ(ns.Value(static_cast<std::int64_t>(i)), n[i]);
        }
      });
    }
    for (auto& reader : readers) reader.join();
    EXPECT_EQ(frame->ipc().size(), frame->layout.total_bytes);
  }
  EXPECT_EQ(arena->in_use(), 0u);
}

TEST(Frame, RawBuffersReadAsOneBinaryColumn) {
  const auto arena = *Arena::create(1 << 20);
  const FramePtr frame =
      unwritten(arena, {field("buffer", "Z")}, Strategy::kRaw, {{2, 0}},
                {bytes_of(std::vector<std::int64_t>{0, 5, 11}),
                 bytes_of(std::vector<char>{'f', 'i', 'r', 's', 't', 's', 'e', 'c', 'o', 'n', 'd'})});
  const auto batch = read_frame(frame);
  ASSERT_TRUE(batch) << batch.status().to_string();
  const auto& rows = static_cast<const arrow::LargeBinaryArray&>(*(*batch)->column(0));
  ASSERT_EQ(rows.length(), 2);
  EXPECT_EQ(rows.GetView(0), "first");
  EXPECT_EQ(rows.GetView(1), "second");
}

TEST(Frame, BytesThatArrowWroteStayAsTheyAre) {
  const auto arena = *Arena::create(1 << 20);
  const auto frame =
      unwritten(arena, {field<double>("x")}, Strategy::kIpc, {{1, 0}}, {bytes_of(std::vector<double>{1.0})});
  frame->set_ipc_written();
  EXPECT_EQ(frame->ipc()[0], std::byte{0xee});
}

}  // namespace
}  // namespace wherry::move
