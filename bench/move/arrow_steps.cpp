// SPDX-License-Identifier: Apache-2.0
#include "arrow_steps.hpp"

#include <arrow/array/builder_primitive.h>
#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/c/abi.h>
#include <arrow/c/bridge.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <array>
#include <deque>
#include <random>
#include <stdexcept>

#include "base/clock.hpp"

namespace wherry::bench {

namespace {

constexpr std::size_t kNameBytes = 64;

void require_arrow(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error("Arrow: " + status.ToString());
}

template <typename T>
T require_arrow(arrow::Result<T> result) {
  require_arrow(result.status());
  return std::move(result).ValueUnsafe();
}

std::int64_t rows_of(ColumnValues columns) { return static_cast<std::int64_t>(columns.front().size()); }

std::vector<std::shared_ptr<arrow::Array>> build_arrays(ColumnValues columns) {
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  arrays.reserve(columns.size());
  for (const auto& column : columns) {
    arrow::DoubleBuilder builder;
    require_arrow(builder.AppendValues(column.data(), static_cast<std::int64_t>(column.size())));
    arrays.push_back(require_arrow(builder.Finish()));
  }
  return arrays;
}

std::shared_ptr<arrow::Schema> make_schema(Names names) {
  arrow::FieldVector fields;
  fields.reserve(names.size());
  for (const std::string& name : names) fields.push_back(arrow::field(name, arrow::float64(), false));
  return arrow::schema(std::move(fields));
}

void write(const arrow::RecordBatch& batch, arrow::io::OutputStream* out) {
  const auto writer = require_arrow(arrow::ipc::MakeStreamWriter(out, batch.schema()));
  require_arrow(writer->WriteRecordBatch(batch));
  require_arrow(writer->Close());
}

/// Table I, step 4: a dummy write that finds the size, a buffer of that size, and the write.
void serialize_as_published(const arrow::RecordBatch& batch) {
  arrow::io::MockOutputStream size;
  write(batch, &size);
  const std::shared_ptr<arrow::Buffer> buffer =
      require_arrow(arrow::AllocateResizableBuffer(size.GetExtentBytesWritten()));
  arrow::io::FixedSizeBufferWriter out(buffer);
  write(batch, &out);
}

/// Exports one record batch as C structs. Arrow uses the children through the parent for as long as the imported batch
/// lives, so the parent array owns them and its release frees them.
struct CStructs {
  std::deque<ArrowArray> arrays;
  std::deque<ArrowSchema> schemas;
  std::vector<ArrowArray*> array_children;
  std::vector<ArrowSchema*> schema_children;
  std::deque<std::array<const void*, 2>> buffers;
  const void* no_validity[1] = {nullptr};
};

void release_child(ArrowArray* array) { array->release = nullptr; }

void release_parent(ArrowArray* array) {
  for (std::int64_t i = 0; i < array->n_children; ++i) {
    if (array->children[i]->release != nullptr) array->children[i]->release(array->children[i]);
  }
  array->release = nullptr;
  delete static_cast<CStructs*>(array->private_data);
}

void release_schema(ArrowSchema* schema) {
  for (std::int64_t i = 0; i < schema->n_children; ++i) {
    if (schema->children[i]->release != nullptr) schema->children[i]->release(schema->children[i]);
  }
  schema->release = nullptr;
}

/// The result owns `structs`.
ArrowArray array_structs(ColumnValues columns, CStructs& structs) {
  for (const auto& column : columns) {
    auto& buffers = structs.buffers.emplace_back(std::array<const void*, 2>{nullptr, column.data()});
    ArrowArray& child = structs.arrays.emplace_back();
    child = {};
    child.length = static_cast<std::int64_t>(column.size());
    child.n_buffers = 2;
    child.buffers = buffers.data();
    child.release = release_child;
    structs.array_children.push_back(&child);
  }
  ArrowArray parent{};
  parent.length = rows_of(columns);
  parent.n_buffers = 1;
  parent.buffers = structs.no_validity;
  parent.n_children = static_cast<std::int64_t>(columns.size());
  parent.children = structs.array_children.data();
  parent.release = release_parent;
  parent.private_data = &structs;
  return parent;
}

ArrowSchema schema_structs(Names names, CStructs& structs) {
  for (const std::string& name : names) {
    ArrowSchema& child = structs.schemas.emplace_back();
    child = {};
    child.format = "g";
    child.name = name.c_str();
    child.release = release_schema;
    structs.schema_children.push_back(&child);
  }
  ArrowSchema parent{};
  parent.format = "+s";
  parent.name = "";
  parent.n_children = static_cast<std::int64_t>(names.size());
  parent.children = structs.schema_children.data();
  parent.release = release_schema;
  return parent;
}

}  // namespace

StepTimes convert_cpp(ColumnValues columns, Names names) {
  const std::uint64_t start = now_ns();
  auto arrays = build_arrays(columns);
  const std::uint64_t built = now_ns();
  auto schema = make_schema(names);
  const std::uint64_t named = now_ns();
  const auto batch = arrow::RecordBatch::Make(std::move(schema), rows_of(columns), std::move(arrays));
  const std::uint64_t made = now_ns();
  serialize_as_published(*batch);
  const std::uint64_t written = now_ns();
  return {static_cast<double>(built - start), static_cast<double>(named - built), static_cast<double>(made - named),
          static_cast<double>(written - made)};
}

StepTimes convert_c_abi(ColumnValues columns, Names names) {
  const std::uint64_t start = now_ns();
  auto* structs = new CStructs;
  ArrowArray array = array_structs(columns, *structs);
  const std::uint64_t built = now_ns();
  ArrowSchema schema = schema_structs(names, *structs);
  const std::uint64_t named = now_ns();
  const auto batch = require_arrow(arrow::ImportRecordBatch(&array, &schema));
  const std::uint64_t made = now_ns();
  serialize_as_published(*batch);
  const std::uint64_t written = now_ns();
  return {static_cast<double>(built - start), static_cast<double>(named - built), static_cast<double>(made - named),
          static_cast<double>(written - made)};
}

std::shared_ptr<arrow::RecordBatch> build(ColumnValues columns, Names names) {
  return arrow::RecordBatch::Make(make_schema(names), rows_of(columns), build_arrays(columns));
}

std::shared_ptr<arrow::RecordBatch> wrap(ColumnValues columns, Names names) {
  std::vector<std::shared_ptr<arrow::ArrayData>> data;
  data.reserve(columns.size());
  for (const auto& column : columns) {
    const auto rows = static_cast<std::int64_t>(column.size());
    data.push_back(arrow::ArrayData::Make(arrow::float64(), rows,
                                          {nullptr, arrow::Buffer::Wrap(column.data(), column.size())}, 0));
  }
  return arrow::RecordBatch::Make(make_schema(names), rows_of(columns), std::move(data));
}

std::shared_ptr<arrow::RecordBatch> import_c_abi(ColumnValues columns, Names names) {
  auto* structs = new CStructs;
  ArrowArray array = array_structs(columns, *structs);
  ArrowSchema schema = schema_structs(names, *structs);
  return require_arrow(arrow::ImportRecordBatch(&array, &schema));
}

std::size_t serialize_into(const arrow::RecordBatch& batch, std::span<std::byte> to) {
  const auto buffer = std::make_shared<arrow::MutableBuffer>(reinterpret_cast<std::uint8_t*>(to.data()),
                                                             static_cast<std::int64_t>(to.size()));
  arrow::io::FixedSizeBufferWriter out(buffer);
  write(batch, &out);
  return static_cast<std::size_t>(require_arrow(out.Tell()));
}

std::size_t ipc_bound(std::size_t data_bytes, std::size_t columns) {
  // With such names, schema and batch metadata take some 200 bytes a column. Padding takes at most 64 bytes a buffer.
  return data_bytes + 4096 + columns * 1024;
}

std::vector<std::string> random_names(int columns) {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> letter('a', 'z');
  std::vector<std::string> names(static_cast<std::size_t>(columns));
  for (std::string& name : names) {
    for (std::size_t i = 0; i < kNameBytes; ++i) name.push_back(static_cast<char>(letter(random)));
  }
  return names;
}

}  // namespace wherry::bench
