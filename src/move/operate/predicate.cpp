// SPDX-License-Identifier: Apache-2.0
#include "move/operate/predicate.hpp"

#include <arrow/array/builder_base.h>
#include <arrow/buffer.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/engine/substrait/relation.h>
#include <arrow/engine/substrait/serde.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/base64.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "move/arrow_status.hpp"
#include "move/operate/compute.hpp"

namespace wherry::move {
namespace {

using Json = nlohmann::json;
namespace compute = arrow::compute;
using compute::Expression;

Status wrong(std::string what) {
  std::ranges::replace(what, '\n', ' ');  // in what Arrow says
  return {StatusCode::kInvalidArgument, "filter: " + what};
}

/// The JSON text for an error.
std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 100) text = text.substr(0, 100) + "...";
  return text;
}

struct Named {
  std::string_view name, function;
};
constexpr std::array kCompare = {Named{"==", "equal"},  Named{"!=", "not_equal"},  Named{"<", "less"},
                                 Named{">", "greater"}, Named{"<=", "less_equal"}, Named{">=", "greater_equal"}};
constexpr std::array kUnary = {Named{"is_null", "is_null"}, Named{"is_valid", "is_valid"}, Named{"is_nan", "is_nan"}};
/// Functions that a Substrait expression may call. Their results are not larger than their arguments.
constexpr std::array<std::string_view, 35> kAllowed = {"abs",
                                                       "abs_checked",
                                                       "add",
                                                       "add_checked",
                                                       "and_kleene",
                                                       "cast",
                                                       "ceil",
                                                       "divide",
                                                       "equal",
                                                       "divide_checked",
                                                       "ends_with",
                                                       "exp",
                                                       "floor",
                                                       "greater",
                                                       "greater_equal",
                                                       "invert",
                                                       "is_finite",
                                                       "is_in",
                                                       "is_inf",
                                                       "is_nan",
                                                       "is_null",
                                                       "is_valid",
                                                       "less",
                                                       "less_equal",
                                                       "match_substring",
                                                       "multiply",
                                                       "multiply_checked",
                                                       "negate",
                                                       "negate_checked",
                                                       "not_equal",
                                                       "or_kleene",
                                                       "sqrt",
                                                       "starts_with",
                                                       "subtract",
                                                       "subtract_checked"};

std::string_view function_of(std::span<const Named> table, const std::string& name) {
  for (const Named& one : table) {
    if (one.name == name) return one.function;
  }
  return {};
}

const arrow::DataType& value_type(const arrow::DataType& type) {
  return type.id() == arrow::Type::DICTIONARY ? *static_cast<const arrow::DictionaryType&>(type).value_type() : type;
}

/// Builds the expression of one tree. Each field reference is the name of an existing column.
class Tree {
 public:
  explicit Tree(const arrow::Schema& schema) : schema_(schema) {}

  Result<Expression> condition(const Json& json, int depth) {
    if (depth > kMaxPredicateDepth) return wrong(fmt::format("it is nested deeper than {}", kMaxPredicateDepth));
    if (++nodes_ > kMaxPredicateNodes) return wrong(fmt::format("it has more than {} parts", kMaxPredicateNodes));
    if (json.is_object()) return substrait(json);
    if (!json.is_array() || json.empty() || !json[0].is_string())
      return wrong(R"(want ["and", ...], ["<", "column", value] or the like, not )" + shown(json));
    const auto name = json[0].get<std::string>();
    if (name == "and" || name == "or") return joined(json, name, depth);
    if (name == "not") {
      if (json.size() != 2) return wrong("\"not\" takes one condition: " + shown(json));
      WHERRY_ASSIGN(Expression one, condition(json[1], depth + 1));
      return compute::call("invert", {std::move(one)});
    }
    if (const auto unary = function_of(kUnary, name); !unary.empty()) {
      if (json.size() != 2) return wrong("\"" + name + "\" takes one column: " + shown(json));
      WHERRY_ASSIGN(const int column, column_at(json[1]));
      return compute::call(std::string(unary), {reference(column)});
    }
    if (const auto comparison = function_of(kCompare, name); !comparison.empty()) {
      if (json.size() != 3) return wrong("\"" + name + "\" takes a column and a value: " + shown(json));
      WHERRY_ASSIGN(const int column, column_at(json[1]));
      WHERRY_ASSIGN(Expression value, operand(json[2], *schema_.field(column)->type()));
      return compute::call(std::string(comparison), {reference(column), std::move(value)});
    }
    if (name == "in") return one_of(json);
    return wrong("unknown condition " + shown(json[0]));
  }

 private:
  [[nodiscard]] Expression reference(int column) const { return compute::field_ref(arrow::FieldRef(column)); }

  Result<int> column_at(const Json& json) const {
    if (!json.is_string()) return wrong("want the name of a column, not " + shown(json));
    return column_of(schema_, json.get<std::string>());
  }

  Result<Expression> joined(const Json& json, const std::string& name, int depth) {
    if (json.size() < 2) return wrong("\"" + name + "\" takes one condition at least");
    std::vector<Expression> all;
    for (std::size_t i = 1; i < json.size(); ++i) {
      WHERRY_ASSIGN(Expression one, condition(json[i], depth + 1));
      all.push_back(std::move(one));
    }
    // Make a balanced tree, because functions that walk it recurse.
    while (all.size() > 1) {
      std::vector<Expression> pairs;
      for (std::size_t i = 0; i + 1 < all.size(); i += 2)
        pairs.push_back(compute::call(name + "_kleene", {all[i], all[i + 1]}));
      if (all.size() % 2 == 1) pairs.push_back(all.back());
      all = std::move(pairs);
    }
    return all.front();
  }

  Result<Expression> operand(const Json& json, const arrow::DataType& type) const {
    if (json.is_object()) {
      if (json.size() != 1 || !json.contains("column")) return wrong(R"(want {"column": name}, not )" + shown(json));
      WHERRY_ASSIGN(const int column, column_at(json["column"]));
      return reference(column);
    }
    WHERRY_ASSIGN(auto value, scalar(json, value_type(type)));
    return compute::literal(arrow::Datum(std::move(value)));
  }

  static Result<std::shared_ptr<arrow::Scalar>> scalar(const Json& json, const arrow::DataType& type) {
    using Scalar = std::shared_ptr<arrow::Scalar>;
    if (json.is_boolean()) return Scalar(std::make_shared<arrow::BooleanScalar>(json.get<bool>()));
    if (json.is_number_float()) return Scalar(std::make_shared<arrow::DoubleScalar>(json.get<double>()));
    if (json.is_number_unsigned() &&
        json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return Scalar(std::make_shared<arrow::UInt64Scalar>(json.get<std::uint64_t>()));
    if (json.is_number_integer()) return Scalar(std::make_shared<arrow::Int64Scalar>(json.get<std::int64_t>()));
    if (!json.is_string())
      return wrong("want a number, a text, true or false, not " + shown(json) +
                   (json.is_null() ? R"( (["is_null", "column"] finds nulls))" : ""));
    const auto text = json.get<std::string>();
    if (arrow::is_base_binary_like(type.id()) || type.id() == arrow::Type::STRING_VIEW)
      return Scalar(std::make_shared<arrow::StringScalar>(text));
    auto parsed = arrow::Scalar::Parse(type.GetSharedPtr(), text);
    if (!parsed.ok()) return wrong(fmt::format("{} is not a value of type {}", shown(json), type.ToString()));
    return *std::move(parsed);
  }

  Result<Expression> one_of(const Json& json) {
    if (json.size() != 3 || !json[2].is_array() || json[2].empty())
      return wrong(R"("in" takes a column and a list of values: )" + shown(json));
    WHERRY_ASSIGN(const int column, column_at(json[1]));
    const auto type = value_type(*schema_.field(column)->type()).GetSharedPtr();
    std::unique_ptr<arrow::ArrayBuilder> builder;
    WHERRY_TRY(from_arrow(arrow::MakeBuilder(arrow::default_memory_pool(), type, &builder), "filter"));
    for (const Json& one : json[2]) {
      WHERRY_ASSIGN(auto value, scalar(one, *type));
      auto same = value->CastTo(type);
      if (!same.ok()) return wrong(fmt::format("{} is not a value of type {}", shown(one), type->ToString()));
      WHERRY_TRY(from_arrow(builder->AppendScalar(**same), "filter"));
    }
    auto values = builder->Finish();
    if (!values.ok()) return from_arrow(values.status(), "filter");
    return compute::call("is_in", {reference(column)}, compute::SetLookupOptions(*values));
  }

  Result<Expression> substrait(const Json& json) {
    if (json.size() != 1 || !json.contains("substrait") || !json["substrait"].is_string())
      return wrong(R"(want {"substrait": text in base64}, not )" + shown(json));
    auto bytes = arrow::util::base64_decode(json["substrait"].get<std::string>());
    if (!bytes.ok()) return wrong("\"substrait\" is not base64: " + bytes.status().message());
    const auto buffer = arrow::Buffer::FromString(*std::move(bytes));
    auto parsed = arrow::engine::DeserializeExpressions(*buffer);
    if (!parsed.ok()) return wrong("not a Substrait ExtendedExpression: " + with_cause(parsed.status()));
    if (parsed->named_expressions.size() != 1) {
      return wrong(
          fmt::format("want a Substrait message with one expression, not {}", parsed->named_expressions.size()));
    }
    return translated(parsed->named_expressions.front().expression, *parsed->schema, 0);
  }

  /// Translates an expression over the columns of `base` to one over the stream's own columns.
  Result<Expression> translated(const Expression& from, const arrow::Schema& base, int depth) {
    if (depth > kMaxPredicateDepth) return wrong(fmt::format("it is nested deeper than {}", kMaxPredicateDepth));
    if (++nodes_ > kMaxPredicateNodes) return wrong(fmt::format("it has more than {} parts", kMaxPredicateNodes));
    if (const arrow::Datum* literal = from.literal()) {
      if (!literal->is_scalar()) return wrong("a literal is not one value");
      return from;
    }
    if (const arrow::FieldRef* field = from.field_ref()) {
      auto path = field->FindOne(base);
      if (!path.ok() || path->indices().size() != 1)
        return wrong("only columns themselves can be compared, not members of them: " + field->ToString());
      WHERRY_ASSIGN(const int column, column_of(schema_, base.field(path->indices()[0])->name()));
      return reference(column);
    }
    const Expression::Call& call = *from.call();
    if (std::ranges::find(kAllowed, call.function_name) == kAllowed.end())
      return wrong("the function \"" + call.function_name + "\" is not one of those that a filter may call");
    std::vector<Expression> arguments;
    for (const Expression& one : call.arguments) {
      WHERRY_ASSIGN(Expression argument, translated(one, base, depth + 1));
      arguments.push_back(std::move(argument));
    }
    return compute::call(call.function_name, std::move(arguments), call.options);
  }

  const arrow::Schema& schema_;
  int nodes_ = 0;
};

}  // namespace

Result<int> column_of(const arrow::Schema& schema, const std::string& name) {
  const std::vector<int> found = schema.GetAllFieldIndices(name);
  if (found.size() == 1) return found.front();
  const std::string quoted = shown(Json(name));
  return Status(StatusCode::kInvalidArgument, found.empty()
                                                  ? "there is no column " + quoted
                                                  : fmt::format("{} columns are called {}", found.size(), quoted));
}

Result<Expression> parse_predicate(const Json& json, const arrow::Schema& schema) {
  WHERRY_TRY(start_compute());
  Tree tree(schema);
  WHERRY_ASSIGN(const Expression made, tree.condition(json, 0));
  auto bound = made.Bind(schema);
  if (!bound.ok()) return wrong(with_cause(bound.status()));
  if (!bound->IsScalarExpression() || bound->type() == nullptr || bound->type()->id() != arrow::Type::BOOL)
    return wrong(fmt::format("it is not a condition, but {}",
                             bound->type() == nullptr ? "nothing" : "a value of type " + bound->type()->ToString()));
  return *std::move(bound);
}

}  // namespace wherry::move
