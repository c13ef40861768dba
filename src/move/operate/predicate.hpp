// SPDX-License-Identifier: Apache-2.0
// Conditions on rows, from readers and streams: a JSON tree, which may contain a Substrait ExtendedExpression.
#pragma once

#include <arrow/compute/expression.h>
#include <arrow/type_fwd.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "wherry/status.hpp"

namespace wherry::move {

inline constexpr std::size_t kMaxPredicateBytes = std::size_t{64} << 10;  ///< of its JSON
inline constexpr int kMaxPredicateDepth = 32;
inline constexpr int kMaxPredicateNodes = 1024;  ///< calls, columns and literals

/// A condition is one of
///   ["and", c, ...]  ["or", c, ...]  ["not", c]         of conditions c
///   [compare, "column", value]                          compare: "==" "!=" "<" "<=" ">" ">="; value: a number, a text,
///                                                       true, false, or {"column": name}
///   ["in", "column", [value, ...]]
///   ["is_null", "column"]  ["is_valid", "column"]  ["is_nan", "column"]
///   {"substrait": base64}                               an ExtendedExpression with one expression; the names of its
///                                                       base schema are columns, whose types are the stream's own
/// Values of temporal and decimal columns may also be texts, as Arrow writes them ("2026-11-26 12:00:00").
/// A comparison with a null is null, and a row is kept if the condition is true (the rule of SQL and of Arrow).
///
/// The result is bound to `schema` and is a boolean. kInvalidArgument, with the wrong part and the reason: wrong
/// format; too large; an unknown or ambiguous column name; a comparison that Arrow does not support for these types; a
/// function that is not in the list (docs/guide/move-operators.md). Accepts any input.
Result<arrow::compute::Expression> parse_predicate(const nlohmann::json& json, const arrow::Schema& schema);

/// The only column of that name. kInvalidArgument: no column or several columns have that name.
Result<int> column_of(const arrow::Schema& schema, const std::string& name);

}  // namespace wherry::move
