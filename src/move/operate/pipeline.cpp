// SPDX-License-Identifier: Apache-2.0
#include "move/operate/pipeline.hpp"

#include <arrow/acero/options.h>
#include <arrow/array/array_dict.h>
#include <arrow/array/util.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>
#include <arrow/datum.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/config.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json_nesting.hpp"
#include "base/try.hpp"
#include "move/arrow_status.hpp"
#include "move/message.hpp"
#include "move/operate/compute.hpp"
#include "move/operate/predicate.hpp"
#include "move/operate/query.hpp"

namespace wherry::move {
namespace {

using Json = nlohmann::json;
namespace acero = arrow::acero;
namespace compute = arrow::compute;
using compute::Expression;

constexpr std::size_t kMaxNesting = 64;  ///< more than any condition may have

Status wrong(std::string what) {
  std::ranges::replace(what, '\n', ' ');  // in what Arrow says
  return {StatusCode::kInvalidArgument, std::move(what)};
}

/// The JSON text for an error.
std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 100) text = text.substr(0, 100) + "...";
  return text;
}

bool is_names(const Json& json, std::size_t most) {
  return json.is_array() && json.size() <= most &&
         std::ranges::all_of(json, [](const Json& one) { return one.is_string(); });
}

Status check_keys(const Json& json, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(known, key) == known.end()) return wrong("unknown key " + shown(Json(key)));
  }
  return ok_status();
}

compute::ExecContext context(arrow::MemoryPool* pool) {
  compute::ExecContext made(pool, /*executor=*/nullptr);
  made.set_use_threads(false);
  return made;
}

bool can_sort(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) || arrow::is_temporal(type.id()) ||
         arrow::is_base_binary_like(type.id()) || arrow::is_decimal(type.id()) ||
         type.id() == arrow::Type::FIXED_SIZE_BINARY || type.id() == arrow::Type::BOOL;
}

acero::Declaration projected(std::vector<Expression> columns, std::vector<std::string> names) {
  return {"project", acero::ProjectNodeOptions(std::move(columns), std::move(names))};
}

Expression reference(int column) { return compute::field_ref(arrow::FieldRef(column)); }

std::vector<Expression> references(const std::vector<int>& columns) {
  std::vector<Expression> all;
  for (const int column : columns) all.push_back(reference(column));
  return all;
}

std::vector<int> first(int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  return all;
}

std::shared_ptr<arrow::DataType> values_of(const std::shared_ptr<arrow::DataType>& type) {
  return type->id() == arrow::Type::DICTIONARY ? static_cast<const arrow::DictionaryType&>(*type).value_type() : type;
}

/// The column, decoded if it has a dictionary type, because sort and group kernels support few such types.
Expression decoded(const arrow::Schema& schema, int column) {
  const auto& type = schema.field(column)->type();
  if (type->id() != arrow::Type::DICTIONARY) return reference(column);
  return compute::call("cast", {reference(column)}, compute::CastOptions::Safe(values_of(type)));
}

arrow::Result<std::shared_ptr<arrow::Table>> run(const std::shared_ptr<arrow::Table>& table,
                                                 const std::vector<acero::Declaration>& nodes,
                                                 arrow::MemoryPool* pool) {
  std::vector<acero::Declaration> all = {{"table_source", acero::TableSourceNodeOptions(table)}};
  all.insert(all.end(), nodes.begin(), nodes.end());
  acero::QueryOptions options;
  options.use_threads = false;  // the agent's threads stay where they were put
  options.memory_pool = pool;
  return acero::DeclarationToTable(acero::Declaration::Sequence(std::move(all)), std::move(options));
}

}  // namespace

/// Builds a Pipeline over the columns `read` of the source. Without `read`, finds the columns that it needs.
class PipelineBuilder {
 public:
  explicit PipelineBuilder(std::shared_ptr<arrow::Schema> source) : now_(std::move(source)) {
    origin_ = first(now_->num_fields());
  }

  Status add(const Json& step) {
    if (parts_ != 0) return wrong("a partition is the last step");
    if (!step.is_object()) return wrong("want {\"filter\": ...} or the like, not " + shown(step));
    if (step.contains("filter")) return filter(step);
    if (step.contains("project")) return select(step);
    if (step.contains("sort")) return sort(step);
    if (step.contains("aggregate")) return aggregate(step);
    if (step.contains("partition")) return partition(step);
    return wrong("unknown operator " + shown(step) + ": want filter, project, sort, aggregate or partition");
  }

  /// Columns of the source that the steps read or pass on.
  [[nodiscard]] std::vector<int> needed() const {
    std::set<int> all = needed_;
    all.insert(origin_.begin(), origin_.end());
    all.erase(-1);
    if (all.empty()) all.insert(0);  // a table without columns has no rows either
    return {all.begin(), all.end()};
  }

  /// Finds the types of the results by running the steps on a row of nulls.
  Result<std::shared_ptr<const Pipeline>> finish(const std::shared_ptr<arrow::Schema>& source, std::vector<int> read,
                                                 Pipeline::Compression compression) && {
    arrow::FieldVector fields;
    arrow::ArrayVector nulls;
    for (const int column : read) {
      fields.push_back(source->field(column)->WithNullable(true));
      auto one = arrow::MakeArrayOfNull(fields.back()->type(), 1);
      if (!one.ok()) return wrong("columns of type " + fields.back()->type()->ToString() + " cannot be operated on");
      nulls.push_back(*std::move(one));
    }
    auto ran = run(arrow::Table::Make(arrow::schema(fields), nulls, 1), nodes_, arrow::default_memory_pool());
    if (!ran.ok()) return wrong(with_cause(ran.status()));
    if ((*ran)->num_columns() != now_->num_fields()) return wrong("Arrow gives other columns");
    arrow::FieldVector results;
    for (int i = 0; i < now_->num_fields(); ++i) {
      const auto& type = (*ran)->schema()->field(i)->type();
      // A column that is passed on keeps its metadata and its nullable flag.
      results.push_back(origin_[static_cast<std::size_t>(i)] >= 0 ? now_->field(i)->WithType(type)
                                                                  : arrow::field(now_->field(i)->name(), type));
    }
    std::shared_ptr<Pipeline> made(new Pipeline());
    made->schema_ = arrow::schema(std::move(results), aggregated_ ? nullptr : source->metadata());
    made->read_ = std::move(read);
    made->nodes_ = std::move(nodes_);
    made->part_of_ = std::move(part_of_);
    made->parts_ = parts_;
    made->compression_ = compression;
    return std::shared_ptr<const Pipeline>(std::move(made));
  }

 private:
  Result<int> column(const Json& json) {
    if (!json.is_string()) return wrong("want the name of a column, not " + shown(json));
    WHERRY_ASSIGN(const int found, column_of(*now_, json.get<std::string>()));
    needed_.insert(origin_[static_cast<std::size_t>(found)]);
    return found;
  }

  void note(const Expression& expression) {
    if (const auto* parameter = expression.parameter())
      needed_.insert(origin_[static_cast<std::size_t>(parameter->indices[0])]);
    else if (const auto* call = expression.call())
      for (const Expression& one : call->arguments) note(one);
  }

  [[nodiscard]] std::vector<std::string> names() const { return now_->field_names(); }

  /// Continues with only these of the current columns.
  void take(const std::vector<int>& columns) {
    arrow::FieldVector fields;
    std::vector<int> origin;
    for (const int one : columns) {
      fields.push_back(now_->field(one));
      origin.push_back(origin_[static_cast<std::size_t>(one)]);
    }
    now_ = arrow::schema(std::move(fields), now_->metadata());
    origin_ = std::move(origin);
  }

  Status filter(const Json& step) {
    WHERRY_TRY(check_keys(step, {"filter"}));
    WHERRY_ASSIGN(Expression condition, parse_predicate(step["filter"], *now_));
    note(condition);
    nodes_.emplace_back("filter", acero::FilterNodeOptions(std::move(condition)));
    return ok_status();
  }

  Status select(const Json& step) {
    WHERRY_TRY(check_keys(step, {"project"}));
    const Json& wanted = step["project"];
    if (!is_names(wanted, kMaxNodes) || wanted.empty())
      return wrong("\"project\" takes a list of columns, not " + shown(wanted));
    std::vector<int> columns;
    for (const Json& one : wanted) {
      WHERRY_ASSIGN(const int found, column(one));
      if (std::ranges::find(columns, found) != columns.end()) return wrong(shown(one) + " is named twice");
      columns.push_back(found);
    }
    take(columns);
    nodes_.push_back(projected(references(columns), names()));
    return ok_status();
  }

  Status sort(const Json& step) {
    WHERRY_TRY(check_keys(step, {"sort"}));
    const Json& keys = step["sort"];
    if (!keys.is_array() || keys.empty() || keys.size() > kMaxOperatorColumns)
      return wrong(fmt::format("\"sort\" takes a list of 1 to {} columns, not {}", kMaxOperatorColumns, shown(keys)));
    const int width = now_->num_fields();
    std::vector<Expression> columns = references(first(width));
    std::vector<std::string> with_keys = names();
    std::vector<compute::SortKey> by;
    for (const Json& key : keys) {
      Json name = key;
      auto order = compute::SortOrder::Ascending;
      if (key.is_object()) {
        WHERRY_TRY(check_keys(key, {"column", "order"}));
        if (!key.contains("column")) return wrong("a sort column has no \"column\": " + shown(key));
        name = key["column"];
        const Json wanted = key.value("order", Json("ascending"));
        if (wanted != "ascending" && wanted != "descending")
          return wrong(R"("order" is "ascending" or "descending", not )" + shown(wanted));
        if (wanted == "descending") order = compute::SortOrder::Descending;
      }
      WHERRY_ASSIGN(const int found, column(name));
      const auto& type = now_->field(found)->type();
      if (!can_sort(*values_of(type)))
        return wrong(fmt::format("column {} of type {} has no order", shown(name), type->ToString()));
      int at = found;
      if (type->id() == arrow::Type::DICTIONARY) {
        at = static_cast<int>(columns.size());
        columns.push_back(decoded(*now_, found));
        with_keys.push_back(fmt::format("key {}", at));
      }
      by.emplace_back(arrow::FieldRef(at), order);
    }
    const bool more = static_cast<int>(columns.size()) > width;
    if (more) nodes_.push_back(projected(std::move(columns), std::move(with_keys)));
#if ARROW_VERSION_MAJOR >= 25
    nodes_.emplace_back("order_by", acero::OrderByNodeOptions(compute::Ordering(std::move(by))));
#else
    nodes_.emplace_back("order_by",
                        acero::OrderByNodeOptions(compute::Ordering(std::move(by), compute::NullPlacement::AtEnd)));
#endif
    if (more) nodes_.push_back(projected(references(first(width)), names()));
    return ok_status();
  }

  Status aggregate(const Json& step) {
    WHERRY_TRY(check_keys(step, {"aggregate", "by"}));
    const Json& values = step["aggregate"];
    const Json by = step.value("by", Json::array());
    if (!values.is_array() || values.size() > kMaxOperatorColumns)
      return wrong(fmt::format(R"("aggregate" takes a list of at most {} like ["mean", "x"], not {})",
                               kMaxOperatorColumns, shown(values)));
    if (!is_names(by, kMaxOperatorColumns))
      return wrong(fmt::format("\"by\" takes a list of at most {} columns, not {}", kMaxOperatorColumns, shown(by)));
    if (values.empty() && by.empty()) return wrong("\"aggregate\" computes nothing");
    std::vector<Expression> columns;
    std::vector<std::string> inner;  // names between the nodes
    const auto add_input = [&](Expression input) {
      columns.push_back(std::move(input));
      inner.push_back(fmt::format("in {}", inner.size()));
      return arrow::FieldRef(static_cast<int>(columns.size()) - 1);
    };
    std::vector<arrow::FieldRef> keys;
    arrow::FieldVector results;
    for (const Json& key : by) {
      WHERRY_ASSIGN(const int found, column(key));
      keys.push_back(add_input(decoded(*now_, found)));
      results.push_back(arrow::field(key.get<std::string>(), values_of(now_->field(found)->type())));
    }
    std::vector<compute::Aggregate> aggregates;
    for (const Json& value : values) {
      if (!is_names(value, 3) || value.empty())
        return wrong(R"(want ["count"], ["mean", "x"] or ["mean", "x", "name"], not )" + shown(value));
      const auto function = value[0].get<std::string>();
      static constexpr std::array<std::string_view, 5> kFunctions = {"sum", "min", "max", "mean", "count"};
      if (std::ranges::find(kFunctions, function) == kFunctions.end())
        return wrong("unknown function " + shown(value[0]) + ": want sum, min, max, mean or count");
      const std::string prefix = by.empty() ? "" : "hash_";
      const std::string name = "out " + std::to_string(aggregates.size());
      if (value.size() == 1) {
        if (function != "count") return wrong("\"" + function + "\" takes a column: " + shown(value));
        aggregates.emplace_back(prefix + "count_all", name);
        results.push_back(arrow::field("count", arrow::int64()));
        continue;
      }
      WHERRY_ASSIGN(const int found, column(value[1]));
      const auto type = values_of(now_->field(found)->type());
      const bool numbers = arrow::is_numeric(type->id()) || arrow::is_decimal(type->id());
      if ((function == "sum" || function == "mean") && !numbers)
        return wrong(fmt::format("\"{}\" takes numbers, and column {} is of type {}", function, shown(value[1]),
                                 now_->field(found)->type()->ToString()));
      if ((function == "min" || function == "max") && !can_sort(*type))
        return wrong(
            fmt::format("column {} of type {} has no order", shown(value[1]), now_->field(found)->type()->ToString()));
      std::shared_ptr<compute::FunctionOptions> options;
      if (function == "count")
        options = std::make_shared<compute::CountOptions>(compute::CountOptions::ONLY_VALID);
      else
        options = std::make_shared<compute::ScalarAggregateOptions>(/*skip_nulls=*/true, /*min_count=*/1);
      aggregates.emplace_back(prefix + function, std::move(options), add_input(decoded(*now_, found)), name);
      const std::string given = value.size() == 3 ? value[2].get<std::string>() : std::string();
      results.push_back(arrow::field(given.empty() ? value[1].get<std::string>() + "_" + function : given, type));
    }
    if (columns.empty()) add_input(reference(0));  // rows are counted, whatever the column
    std::set<std::string> seen;
    for (const auto& field : results) {
      if (!seen.insert(field->name()).second) return wrong(shown(Json(field->name())) + " would be two columns");
    }
    nodes_.push_back(projected(std::move(columns), std::move(inner)));
    nodes_.emplace_back("aggregate", acero::AggregateNodeOptions(std::move(aggregates), std::move(keys)));
    now_ = arrow::schema(std::move(results));
    origin_.assign(static_cast<std::size_t>(now_->num_fields()), -1);
    nodes_.push_back(projected(references(first(now_->num_fields())), names()));
    aggregated_ = true;
    return ok_status();
  }

  /// Part i holds the rows with the i-th value, or the rows that are below the i-th bound but not below earlier bounds.
  /// The last part holds all others. Each row is in one part, because case_when takes the first true condition.
  Status partition(const Json& step) {
    WHERRY_TRY(check_keys(step, {"partition", "values", "bounds"}));
    if (step.contains("values") == step.contains("bounds"))
      return wrong("\"partition\" takes \"values\" or \"bounds\", one of them");
    const bool bounds = step.contains("bounds");
    const Json& limits = step[bounds ? "bounds" : "values"];
    if (!limits.is_array() || limits.empty() || limits.size() > kMaxPartitions)
      return wrong(fmt::format("\"{}\" takes a list of 1 to {}, not {}", bounds ? "bounds" : "values", kMaxPartitions,
                               shown(limits)));
    WHERRY_TRY(column(step["partition"]));
    std::vector<Expression> conditions;
    const auto add_condition = [&](const Json& condition) -> Status {
      WHERRY_ASSIGN(Expression one, parse_predicate(condition, *now_));
      conditions.push_back(std::move(one));
      return ok_status();
    };
    for (const Json& limit : limits) WHERRY_TRY(add_condition({bounds ? "<" : "==", step["partition"], limit}));
    if (bounds) WHERRY_TRY(add_condition({">=", step["partition"], limits.back()}));
    std::vector<Expression> arguments = {compute::call("make_struct", conditions, compute::MakeStructOptions([&] {
                                                         std::vector<std::string> names;
                                                         for (std::size_t i = 0; i < conditions.size(); ++i)
                                                           names.push_back(std::to_string(i));
                                                         return names;
                                                       }()))};
    for (std::size_t i = 0; i <= conditions.size(); ++i)
      arguments.push_back(compute::literal(arrow::Datum(static_cast<std::int32_t>(i))));
    auto bound = compute::call("case_when", std::move(arguments)).Bind(*now_);
    if (!bound.ok()) return wrong(with_cause(bound.status()));
    part_of_ = *std::move(bound);
    parts_ = static_cast<std::uint32_t>(conditions.size()) + 1;
    return ok_status();
  }

  std::shared_ptr<arrow::Schema> now_;  ///< what the steps so far give; names are right, types of sums are not yet
  std::vector<int> origin_;             ///< of each of its columns: the source's column, or -1
  std::set<int> needed_;                ///< columns of the source that steps looked at
  std::vector<acero::Declaration> nodes_;
  std::optional<Expression> part_of_;
  std::uint32_t parts_ = 0;
  bool aggregated_ = false;
};

namespace {

Result<std::shared_ptr<const Pipeline>> parse_steps(const Json& steps, Pipeline::Compression compression,
                                                    const std::shared_ptr<arrow::Schema>& schema) {
  std::vector<int> read;
  std::shared_ptr<arrow::Schema> source = schema;
  // Build twice: the first pass finds the needed columns, the second uses only those.
  for (const bool last : {false, true}) {
    PipelineBuilder builder(source);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (Status s = builder.add(steps[i]); !s) return wrong(fmt::format("step {}: {}", i, s.message()));
    }
    if (last) return std::move(builder).finish(schema, std::move(read), compression);
    read = builder.needed();
    arrow::FieldVector fields;
    for (const int column : read) fields.push_back(schema->field(column));
    source = arrow::schema(std::move(fields), schema->metadata());
  }
  return Status(StatusCode::kInternal, "");
}

Result<Derived> parse_one(const Json& json, const std::shared_ptr<arrow::Schema>& schema) {
  if (!json.is_object()) return wrong("want {\"name\": ..., \"steps\": [...]}, not " + shown(json));
  WHERRY_TRY(check_keys(json, {"name", "steps", "compression"}));
  if (!json.contains("name") || !json["name"].is_string() || !valid_stream_name(json["name"].get<std::string>()))
    return wrong("\"name\" is a text of A-Z a-z 0-9 . _ -: " + shown(json));
  const auto name = json["name"].get<std::string>();
  const auto within = [&](const Status& s) { return wrong("\"" + name + "\": " + s.message()); };
  const Json steps = json.value("steps", Json::array());
  if (!steps.is_array() || steps.size() > kMaxSteps)
    return within(wrong(fmt::format("\"steps\" is a list of at most {}, not {}", kMaxSteps, shown(steps))));
  auto compression = Pipeline::Compression::kNone;
  if (json.contains("compression")) {
    if (json["compression"] != "lz4" && json["compression"] != "zstd")
      return within(wrong(R"("compression" is "lz4" or "zstd", not )" + shown(json["compression"])));
    compression = json["compression"] == "lz4" ? Pipeline::Compression::kLz4 : Pipeline::Compression::kZstd;
  }
  auto made = parse_steps(steps, compression, schema);
  if (!made) return within(made.status());
  return Derived{name, *std::move(made)};
}

}  // namespace

arrow::Result<arrow::RecordBatchVector> Pipeline::apply(const arrow::RecordBatchVector& step,
                                                        arrow::MemoryPool* pool) const {
  ARROW_ASSIGN_OR_RAISE(auto table, arrow::Table::FromRecordBatches(step));
  ARROW_ASSIGN_OR_RAISE(table, table->SelectColumns(read_));
  ARROW_RETURN_NOT_OK(table->ValidateFull());
  if (step.size() > 1) {
    ARROW_ASSIGN_OR_RAISE(table, arrow::DictionaryUnifier::UnifyTable(*table, pool));
  }
  if (!nodes_.empty()) {
    ARROW_ASSIGN_OR_RAISE(table, run(table, nodes_, pool));
  }
  ARROW_ASSIGN_OR_RAISE(const auto whole, table->CombineChunksToBatch(pool));
  const auto rows = arrow::RecordBatch::Make(schema_, whole->num_rows(), whole->columns());
  if (part_of_) return split(rows, pool);
  ARROW_ASSIGN_OR_RAISE(auto cut, cut_dictionaries(rows, pool));
  return arrow::RecordBatchVector{std::move(cut)};
}

arrow::Result<arrow::RecordBatchVector> Pipeline::split(const std::shared_ptr<arrow::RecordBatch>& rows,
                                                        arrow::MemoryPool* pool) const {
  auto in_pool = context(pool);
  ARROW_ASSIGN_OR_RAISE(const auto part_of,
                        compute::ExecuteScalarExpression(*part_of_, compute::ExecBatch(*rows), &in_pool));
  arrow::RecordBatchVector parts;
  for (std::uint32_t i = 0; i < parts_; ++i) {
    ARROW_ASSIGN_OR_RAISE(
        const auto mask,
        compute::CallFunction("equal", {part_of, arrow::Datum(static_cast<std::int32_t>(i))}, &in_pool));
    ARROW_ASSIGN_OR_RAISE(const auto kept, compute::Filter(rows, mask, compute::FilterOptions::Defaults(), &in_pool));
    ARROW_ASSIGN_OR_RAISE(parts.emplace_back(), cut_dictionaries(kept.record_batch(), pool));
  }
  return parts;
}

Result<std::vector<Derived>> parse_operators(std::string_view text, const std::shared_ptr<arrow::Schema>& schema) {
  const auto within = [](const Status& s) { return wrong("operators: " + s.message()); };
  if (text.size() > kMaxOperatorsBytes) return within(wrong("more than 64 KiB"));
  if (json_nesting(text) > kMaxNesting) return within(wrong("nested too deep"));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array() || json.empty() || json.size() > kMaxDerived)
    return within(wrong(fmt::format(
        R"(want a list of 1 to {} like {{"name": "hot", "steps": [{{"filter": [">", "x", 3]}}]}})", kMaxDerived)));
  WHERRY_TRY(start_compute());
  std::vector<Derived> all;
  for (const Json& one : json) {
    auto made = parse_one(one, schema);
    if (!made) return within(made.status());
    if (std::ranges::find(all, made->name, &Derived::name) != all.end())
      return within(wrong("two are called \"" + made->name + "\""));
    all.push_back(*std::move(made));
  }
  return all;
}

}  // namespace wherry::move
