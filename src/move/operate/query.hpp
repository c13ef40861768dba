// SPDX-License-Identifier: Apache-2.0
// A reader's selection from each frame: some columns, and the rows that meet a condition.
#pragma once

#include <arrow/compute/expression.h>
#include <arrow/type_fwd.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::move {

/// Immutable, so several threads may call apply() at once.
class Query {
 public:
  /// `columns`: the wanted columns in this order; absent: all. `filter`: see parse_predicate(); null: all rows.
  /// kInvalidArgument: an unknown column, a column named twice, or an error of parse_predicate().
  static Result<Query> make(const std::shared_ptr<arrow::Schema>& schema,
                            const std::optional<std::vector<std::string>>& columns, const nlohmann::json& filter);

  /// The schema of the answers. It keeps the metadata of fields and schema.
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const noexcept { return schema_; }

  /// Returns the answer for a batch of the stream's schema. Without a condition, its columns are the batch's own. With
  /// a condition, offsets and indices are checked before they are followed, because they come from the host. The answer
  /// then lies in `pool`, which must outlive it. If all rows remain, its columns are also the batch's own. Dictionaries
  /// keep only values that are still used. OutOfMemory: the pool has no room; Invalid: the batch is invalid, or a value
  /// cannot be computed (for example a checked overflow).
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> apply(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                           arrow::MemoryPool* pool) const;

 private:
  Query() = default;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<int> columns_;                         ///< of the stream's schema
  std::vector<int> read_;                            ///< columns_, and those that the condition looks at
  std::optional<arrow::compute::Expression> where_;  ///< bound to the stream's schema
};

/// Returns the batch with smaller dictionaries, which hold only values that its columns use. Applies to unordered
/// dictionary types whose values Arrow's dictionary_encode can compare.
arrow::Result<std::shared_ptr<arrow::RecordBatch>> cut_dictionaries(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                                    arrow::MemoryPool* pool);

}  // namespace wherry::move
