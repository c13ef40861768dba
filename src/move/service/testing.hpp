// SPDX-License-Identifier: Apache-2.0
// Frames for tests of readers, with bytes that Arrow's own writer made. Not part of any library.
#pragma once

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "move/arrow_schema.hpp"
#include "move/service/catalogue.hpp"

namespace wherry::move::testing {

inline Schema particle_schema() {
  return {field<std::int64_t>("id"), field<double>("x", true), utf8("label", true),
          list("near", field<float>("item", true)), dictionary("kind", "c", utf8("values"))};
}

inline std::shared_ptr<const StreamInfo> stream(std::string name, Retention retention = {}, Sink sink = {},
                                                Schema schema = particle_schema()) {
  auto info = std::make_shared<StreamInfo>();
  info->name = std::move(name);
  info->retention = retention;
  info->sink = std::move(sink);
  info->schema = std::move(schema);
  return info;
}

/// A batch of the particle schema whose values depend on `seed`.
inline std::shared_ptr<arrow::RecordBatch> particles(std::int64_t rows, std::int64_t seed) {
  arrow::Int64Builder id;
  arrow::DoubleBuilder x;
  arrow::StringBuilder label, kinds;
  arrow::ListBuilder near(arrow::default_memory_pool(), std::make_shared<arrow::FloatBuilder>());
  auto& near_items = static_cast<arrow::FloatBuilder&>(*near.value_builder());
  arrow::Int8Builder kind;
  const auto must = [](const arrow::Status& status) { ASSERT_TRUE(status.ok()) << status.ToString(); };
  for (const char* text : {"electron", "ion"}) must(kinds.Append(text + std::to_string(seed)));
  for (std::int64_t i = 0; i < rows; ++i) {
    must(id.Append(seed * 1'000'000 + i));
    must(i % 7 == 3 ? x.AppendNull() : x.Append(static_cast<double>(seed) + 0.5 * static_cast<double>(i)));
    must(i % 5 == 1 ? label.AppendNull() : label.Append("p" + std::to_string(seed + i)));
    must(near.Append());
    for (std::int64_t k = 0; k < i % 3; ++k) must(near_items.Append(static_cast<float>(i * k)));
    must(kind.Append(static_cast<std::int8_t>(i % 2)));
  }
  const auto schema = *to_arrow(particle_schema());
  const auto list_values = near.Finish().ValueOrDie();
  const auto named = std::make_shared<arrow::ListArray>(
      schema->field(3)->type(), rows, std::static_pointer_cast<arrow::ListArray>(list_values)->value_offsets(),
      std::static_pointer_cast<arrow::ListArray>(list_values)->values());
  const auto dictionary = arrow::DictionaryArray::FromArrays(schema->field(4)->type(), kind.Finish().ValueOrDie(),
                                                             kinds.Finish().ValueOrDie());
  return arrow::RecordBatch::Make(
      schema, rows,
      {id.Finish().ValueOrDie(), x.Finish().ValueOrDie(), label.Finish().ValueOrDie(), named, dictionary.ValueOrDie()});
}

/// The frame that the data thread would make of `batch`.
inline FramePtr frame(const std::shared_ptr<Arena>& arena, std::shared_ptr<const StreamInfo> info,
                      std::uint64_t sequence, const arrow::RecordBatch& batch) {
  arrow::ipc::IpcWriteOptions options;
  options.alignment = 64;
  const auto out = arrow::io::BufferOutputStream::Create().ValueOrDie();
  const auto writer = arrow::ipc::MakeStreamWriter(out, batch.schema(), options).ValueOrDie();
  EXPECT_TRUE(writer->WriteRecordBatch(batch).ok());
  EXPECT_TRUE(writer->Close().ok());
  const auto bytes = out->Finish().ValueOrDie();
  auto extent = arena->try_allocate(static_cast<std::size_t>(bytes->size()));
  EXPECT_TRUE(extent) << extent.status().to_string();
  auto made = std::make_shared<Frame>();
  made->stream = std::move(info);
  made->sequence = sequence;
  made->tag = 100 + sequence;
  made->rows = static_cast<std::uint64_t>(batch.num_rows());
  made->source_bytes = 1000 + sequence;
  made->transfer_ns = 2000 + sequence;
  made->extent = *std::move(extent);
  made->layout.total_bytes = static_cast<std::uint64_t>(bytes->size());
  std::memcpy(made->extent.bytes().data(), bytes->data(), static_cast<std::size_t>(bytes->size()));
  made->set_ipc_written();
  return made;
}

}  // namespace wherry::move::testing
