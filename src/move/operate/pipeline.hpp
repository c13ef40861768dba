// SPDX-License-Identifier: Apache-2.0
// Operators of a stream: the computation that makes a derived stream from each step of its source.
#pragma once

#include <arrow/acero/exec_plan.h>
#include <arrow/compute/expression.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::move {

inline constexpr std::size_t kMaxDerived = 8;           ///< streams derived from one
inline constexpr std::size_t kMaxSteps = 16;            ///< of one of them
inline constexpr std::size_t kMaxOperatorColumns = 64;  ///< that one step sorts or groups by, or computes
inline constexpr std::size_t kMaxPartitions = 64;       ///< values or bounds of a partition

/// The steps of one derived stream. Immutable; several threads may use it at once.
class Pipeline {
 public:
  enum class Compression : std::uint8_t { kNone, kLz4, kZstd };

  /// The schema of the results. The type of a computed column follows from its function.
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const noexcept { return schema_; }
  /// The number of batches that apply() returns, if the last step partitions; otherwise 0, and apply() returns one.
  [[nodiscard]] std::uint32_t parts() const noexcept { return parts_; }
  [[nodiscard]] Compression compression() const noexcept { return compression_; }

  /// Returns the results for a step of the source stream: one batch, or one per part. Offsets and indices of used
  /// columns come from the host, so they are checked before they are followed. Results and intermediate values lie in
  /// `pool` or in the batches. OutOfMemory: the pool has no room. Other errors: the batch is invalid, or a value cannot
  /// be computed.
  [[nodiscard]] arrow::Result<arrow::RecordBatchVector> apply(const arrow::RecordBatchVector& step,
                                                              arrow::MemoryPool* pool) const;

 private:
  friend class PipelineBuilder;
  Pipeline() = default;
  [[nodiscard]] arrow::Result<arrow::RecordBatchVector> split(const std::shared_ptr<arrow::RecordBatch>& rows,
                                                              arrow::MemoryPool* pool) const;

  std::vector<int> read_;                              ///< columns of the source stream
  std::vector<arrow::acero::Declaration> nodes_;       ///< over those
  std::shared_ptr<arrow::Schema> schema_;              ///< of the results
  std::optional<arrow::compute::Expression> part_of_;  ///< bound to schema_: the number of a row's part
  std::uint32_t parts_ = 0;
  Compression compression_ = Compression::kNone;
};

/// One entry of StreamOptions::operators.
struct Derived {
  std::string name;  ///< the stream's is SOURCE.name
  std::shared_ptr<const Pipeline> pipeline;
};

/// Parses StreamOptions::operators for a stream of that schema. docs/guide/move-operators.md describes the format.
/// kInvalidArgument, with the derived stream and the step: wrong format; too long; an unknown column or function; types
/// that do not match. Accepts any input.
Result<std::vector<Derived>> parse_operators(std::string_view json, const std::shared_ptr<arrow::Schema>& schema);

}  // namespace wherry::move
