// SPDX-License-Identifier: Apache-2.0
// The four steps from float64 columns to Arrow IPC as an application would write them (paper 004, table I), timed one
// by one, and as a whole. All functions throw std::runtime_error if Arrow reports an error.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace arrow {
class RecordBatch;
}

namespace wherry::bench {

using ColumnValues = std::span<const std::span<const double>>;
using Names = std::span<const std::string>;

struct StepTimes {
  double arrays_ns = 0, schema_ns = 0, batch_ns = 0, ipc_ns = 0;
  [[nodiscard]] double total_ns() const noexcept { return arrays_ns + schema_ns + batch_ns + ipc_ns; }
};

/// NumericBuilder, Field and Schema, RecordBatch::Make, dummy write, allocation, write.
StepTimes convert_cpp(ColumnValues columns, Names names);
/// ArrowArray structs, ArrowSchema structs, ImportRecordBatch, the same IPC.
StepTimes convert_c_abi(ColumnValues columns, Names names);

/// Copies the columns into Arrow arrays: AppendValues with the size known, Finish.
std::shared_ptr<arrow::RecordBatch> build(ColumnValues columns, Names names);
/// Wraps the columns without a copy; they must outlive the batch.
std::shared_ptr<arrow::RecordBatch> wrap(ColumnValues columns, Names names);
/// Wraps them through the C data interface.
std::shared_ptr<arrow::RecordBatch> import_c_abi(ColumnValues columns, Names names);
/// Writes a complete IPC stream into existing memory. Returns the bytes written.
std::size_t serialize_into(const arrow::RecordBatch& batch, std::span<std::byte> to);
/// An upper bound of the bytes that serialize_into writes.
std::size_t ipc_bound(std::size_t data_bytes, std::size_t columns);

/// Random names of 64 bytes, as in the paper. They are the same in every run.
std::vector<std::string> random_names(int columns);

}  // namespace wherry::bench
