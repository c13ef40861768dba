// SPDX-License-Identifier: Apache-2.0
#include "move/operate/query.hpp"

#include <arrow/array/array_dict.h>
#include <arrow/array/array_primitive.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>
#include <arrow/datum.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/try.hpp"
#include "move/operate/predicate.hpp"

namespace wherry::move {
namespace {

namespace compute = arrow::compute;

void collect_columns(const compute::Expression& expression, std::vector<int>& out) {
  if (const auto* parameter = expression.parameter()) {
    out.push_back(parameter->indices[0]);
  } else if (const auto* call = expression.call()) {
    for (const compute::Expression& one : call->arguments) collect_columns(one, out);
  }
}

compute::ExecContext context(arrow::MemoryPool* pool) {
  compute::ExecContext made(pool, /*executor=*/nullptr);
  made.set_use_threads(false);  // the agent's threads stay where they were put
  return made;
}

arrow::Result<std::shared_ptr<arrow::Array>> cut_dictionary(const std::shared_ptr<arrow::Array>& column,
                                                            arrow::MemoryPool* pool) {
  if (column->type_id() != arrow::Type::DICTIONARY) return column;
  const auto& array = static_cast<const arrow::DictionaryArray&>(*column);
  const auto& type = static_cast<const arrow::DictionaryType&>(*column->type());
  if (array.dictionary()->length() <= array.length() || type.ordered() || arrow::is_nested(type.value_type()->id()))
    return column;
  auto in_pool = context(pool);
  ARROW_ASSIGN_OR_RAISE(const auto values, compute::Take(*array.dictionary(), *array.indices(),
                                                         compute::TakeOptions::NoBoundsCheck(), &in_pool));
  ARROW_ASSIGN_OR_RAISE(const auto encoded,
                        compute::DictionaryEncode(values, compute::DictionaryEncodeOptions::Defaults(), &in_pool));
  const auto encoded_array = encoded.make_array();
  const auto& smaller = static_cast<const arrow::DictionaryArray&>(*encoded_array);
  ARROW_ASSIGN_OR_RAISE(const auto indices,
                        compute::Cast(*smaller.indices(), type.index_type(), compute::CastOptions::Safe(), &in_pool));
  return arrow::DictionaryArray::FromArrays(column->type(), indices, smaller.dictionary());
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::RecordBatch>> cut_dictionaries(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                                    arrow::MemoryPool* pool) {
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (const auto& column : batch->columns()) {
    ARROW_ASSIGN_OR_RAISE(columns.emplace_back(), cut_dictionary(column, pool));
  }
  return arrow::RecordBatch::Make(batch->schema(), batch->num_rows(), std::move(columns));
}

Result<Query> Query::make(const std::shared_ptr<arrow::Schema>& schema,
                          const std::optional<std::vector<std::string>>& columns, const nlohmann::json& filter) {
  Query query;
  if (!columns) {
    for (int i = 0; i < schema->num_fields(); ++i) query.columns_.push_back(i);
  } else {
    for (const std::string& name : *columns) {
      WHERRY_ASSIGN(const int column, column_of(*schema, name));
      if (std::ranges::find(query.columns_, column) != query.columns_.end())
        return Status(StatusCode::kInvalidArgument, "columns: \"" + name + "\" is named twice");
      query.columns_.push_back(column);
    }
  }
  arrow::FieldVector fields;
  for (const int column : query.columns_) fields.push_back(schema->field(column));
  query.schema_ = arrow::schema(std::move(fields), schema->metadata());
  query.read_ = query.columns_;
  if (!filter.is_null()) {
    WHERRY_ASSIGN(query.where_, parse_predicate(filter, *schema));
    collect_columns(*query.where_, query.read_);
    std::ranges::sort(query.read_);
    query.read_.erase(std::ranges::unique(query.read_).begin(), query.read_.end());
  }
  return query;
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> Query::apply(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                                arrow::MemoryPool* pool) const {
  std::vector<std::shared_ptr<arrow::Array>> wanted;
  for (const int column : columns_) wanted.push_back(batch->column(column));
  const auto all = arrow::RecordBatch::Make(schema_, batch->num_rows(), std::move(wanted));
  if (!where_) return all;
  for (const int column : read_) ARROW_RETURN_NOT_OK(batch->column(column)->ValidateFull());
  auto in_pool = context(pool);
  ARROW_ASSIGN_OR_RAISE(const auto mask,
                        compute::ExecuteScalarExpression(*where_, compute::ExecBatch(*batch), &in_pool));
  if (mask.is_scalar()) {
    const auto& holds = mask.scalar_as<arrow::BooleanScalar>();
    return holds.is_valid && holds.value ? all : all->Slice(0, 0);
  }
  const auto rows = mask.make_array();
  if (static_cast<const arrow::BooleanArray&>(*rows).true_count() == rows->length()) return all;
  ARROW_ASSIGN_OR_RAISE(const auto kept, compute::Filter(all, rows, compute::FilterOptions::Defaults(), &in_pool));
  return cut_dictionaries(kept.record_batch(), pool);
}

}  // namespace wherry::move
