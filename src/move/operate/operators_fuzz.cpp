// SPDX-License-Identifier: Apache-2.0
// Parses any text as a stream's operators. It must be refused with a cause in one line, or give pipelines that run on a
// step of two parts.
#include <arrow/api.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "move/operate/pipeline.hpp"

using namespace wherry;
using namespace wherry::move;

namespace {

std::shared_ptr<arrow::RecordBatch> batch() {
  arrow::Int64Builder id;
  arrow::DoubleBuilder x;
  arrow::StringDictionaryBuilder kind;
  for (int i = 0; i < 6; ++i) {
    (void)id.Append(i % 4);
    (void)(i == 2 ? x.AppendNull() : x.Append(0.5 * i));
    (void)kind.Append(i % 2 == 0 ? "ion" : "electron");
  }
  const auto kinds = *kind.Finish();
  return arrow::RecordBatch::Make(
      arrow::schema({arrow::field("id", arrow::int64()), arrow::field("x", arrow::float64()),
                     arrow::field("kind", kinds->type())}),
      6, {*id.Finish(), *x.Finish(), kinds});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto rows = batch();
  const auto made = parse_operators({reinterpret_cast<const char*>(data), size}, rows->schema());
  if (!made) {
    const std::string& why = made.status().message();
    if (made.status().code() != StatusCode::kInvalidArgument || why.empty() || why.find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  for (const Derived& one : *made) {
    const auto answer = one.pipeline->apply({rows, rows->Slice(1, 3)}, arrow::default_memory_pool());
    if (!answer.ok()) continue;
    if (answer->size() != std::max<std::size_t>(one.pipeline->parts(), 1)) std::abort();
    std::int64_t total = 0;
    for (const auto& part : *answer) {
      if (!part->ValidateFull().ok() || !part->schema()->Equals(*one.pipeline->schema(), true)) std::abort();
      total += part->num_rows();
    }
    if (total > 9) std::abort();
  }
  return 0;
}
