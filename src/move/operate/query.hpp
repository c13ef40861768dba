// SPDX-License-Identifier: Apache-2.0
// A reader's selection from each frame: some columns, and the rows for which a condition holds.
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

/// Immutable. Any thread; one thread at a time for each call of apply() is not required.
class Query {
 public:
  /// `columns`: the wanted ones, in this order; absent: all. `filter`: see parse_predicate(); null: all rows.
  /// kInvalidArgument: an unknown column, a column that is named twice, or an error of parse_predicate().
  static Result<Query> make(const std::shared_ptr<arrow::Schema>& schema,
                            const std::optional<std::vector<std::string>>& columns, const nlohmann::json& filter);

  /// The schema of the answers. It keeps the metadata of fields and schema.
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const noexcept { return schema_; }

  /// The answer for a batch of the stream's schema. Columns without a condition are the batch's own. With a condition,
  /// offsets and indices are checked before any code follows them, because they come from the host. The answer lies in
  /// `pool`, which the caller keeps for as long as the answer lives. If all rows remain, the columns are the batch's
  /// own again. Dictionaries of columns are cut to the values that remain. OutOfMemory: the pool has no room; Invalid:
  /// the batch is broken, or a value cannot be computed (for example a checked overflow).
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> apply(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                           arrow::MemoryPool* pool) const;

 private:
  Query() = default;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<int> columns_;                         ///< of the stream's schema
  std::vector<int> read_;                            ///< columns_, and those that the condition looks at
  std::optional<arrow::compute::Expression> where_;  ///< bound to the stream's schema
};

/// The batch with smaller dictionaries, which hold only values that its columns refer to. This is done for dictionary
/// types whose order has no meaning and whose values Arrow's dictionary_encode can compare.
arrow::Result<std::shared_ptr<arrow::RecordBatch>> cut_dictionaries(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                                    arrow::MemoryPool* pool);

}  // namespace wherry::move
