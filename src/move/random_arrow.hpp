// SPDX-License-Identifier: Apache-2.0
// For tests: makes Arrow arrays of any supported type, which are valid but deliberately unusual (children longer than
// needed, slices of slices, first offsets that are not 0, unknown null counts). Also runs a batch from C structs to a
// frame.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "move/flatten.hpp"
#include "move/layout.hpp"
#include "move/plan.hpp"

namespace wherry::move::test {

class RandomArrow {
 public:
  explicit RandomArrow(std::uint32_t seed) : engine_(seed) {}

  /// 0 to `below` - 1
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(engine_); }
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(engine_) < probability; }

  /// An array of `rows` rows, which is sometimes a slice of a longer array.
  std::shared_ptr<arrow::ArrayData> array(const arrow::Field& field, std::int64_t rows);
  std::shared_ptr<arrow::RecordBatch> batch(const std::shared_ptr<arrow::Schema>& schema, std::int64_t rows);

  /// A type at most `depth` levels deep.
  std::shared_ptr<arrow::DataType> type(int depth);
  std::shared_ptr<arrow::Schema> schema(int most_columns, int depth);

  double null_share = 0.3;

 private:
  std::shared_ptr<arrow::ArrayData> whole(const arrow::Field& field, std::int64_t rows);
  std::shared_ptr<arrow::Buffer> bytes(std::int64_t size);
  std::shared_ptr<arrow::Buffer> values(const arrow::DataType& type, std::int64_t rows);
  std::shared_ptr<arrow::Buffer> offsets(std::int64_t rows, int width, std::int64_t& end);

  std::mt19937 engine_;
};

/// Every type without children that Wherry moves.
std::vector<std::shared_ptr<arrow::DataType>> plain_types();
/// At least one type for each way of nesting.
std::vector<std::shared_ptr<arrow::DataType>> nested_types();

/// A delivered frame. `memory` is page-aligned, and was filled with 0xA5 before the delivery.
struct Delivered {
  Schema schema;
  Plan plan;
  FlatOffload offload;
  FrameLayout layout;
  HotVector<NodeRef> nodes;
  std::shared_ptr<const IpcTemplate> ipc;
  std::shared_ptr<std::byte> memory;

  [[nodiscard]] std::span<std::byte> frame() const { return {memory.get(), layout.total_bytes}; }
};

/// Runs the whole path: export to C structs, columns_from_c_array, flatten, check_offload, place, copy (the gets),
/// finish_buffers, write_metadata. forget_nulls: first sets the null counts of the C structs to unknown.
Result<Delivered> deliver(const arrow::RecordBatch& batch, std::uint32_t alignment, bool forget_nulls = false);
/// Like deliver() for a record batch, for a struct array, which may be a slice.
Result<Delivered> deliver(const arrow::StructArray& batch, std::uint32_t alignment, bool forget_nulls = false);

/// Simulates the gets of an offload whose sources lie in this process.
void get_all(const Plan& plan, std::span<const NodeRef> nodes, std::span<const BufferRef> buffers,
             const FrameLayout& layout, std::span<std::byte> frame);
std::shared_ptr<std::byte> page_aligned(std::size_t bytes);

/// Reads the frame with Arrow's own reader, validates it fully, and compares it. Also checks alignment, zero-copy and
/// zeroed padding.
void expect_delivered(const Delivered& delivered, const arrow::RecordBatch& wanted);

}  // namespace wherry::move::test
