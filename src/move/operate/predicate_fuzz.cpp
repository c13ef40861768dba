// SPDX-License-Identifier: Apache-2.0
// Parses any JSON as a reader's filter. It must be refused with a cause, or give a condition that a batch can use.
#include <arrow/api.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/json_nesting.hpp"
#include "move/operate/predicate.hpp"
#include "move/operate/query.hpp"

using namespace wherry;
using namespace wherry::move;

namespace {

std::shared_ptr<arrow::RecordBatch> batch() {
  arrow::Int64Builder id;
  arrow::DoubleBuilder x;
  arrow::StringBuilder s;
  for (int i = 0; i < 5; ++i) {
    (void)id.Append(i);
    (void)(i == 2 ? x.AppendNull() : x.Append(0.5 * i));
    (void)s.Append(std::string(static_cast<std::size_t>(i), 'a'));
  }
  return arrow::RecordBatch::Make(
      arrow::schema(
          {arrow::field("id", arrow::int64()), arrow::field("x", arrow::float64()), arrow::field("s", arrow::utf8())}),
      5, {*id.Finish(), *x.Finish(), *s.Finish()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto rows = batch();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > kMaxPredicateBytes || json_nesting(text) > 64) return 0;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || json.is_null()) return 0;
  const auto query = Query::make(rows->schema(), std::nullopt, json);
  if (!query) {
    if (query.status().code() != StatusCode::kInvalidArgument || query.status().message().empty()) std::abort();
    return 0;
  }
  const auto answer = query->apply(rows, arrow::default_memory_pool());
  if (answer.ok() && (!(*answer)->ValidateFull().ok() || (*answer)->num_rows() > 5)) std::abort();
  return 0;
}
