// SPDX-License-Identifier: Apache-2.0
#pragma once
// Agent side: converts a Schema to Arrow C++'s, and back.
#include <memory>
#include <string>

#include "wherry/schema.hpp"
#include "wherry/status.hpp"

namespace arrow {
class Schema;
}

namespace wherry::move {

/// kInvalidArgument or kUnsupported as from make_plan, or if Arrow refuses the types (for example malformed metadata of
/// an extension type).
Result<std::shared_ptr<arrow::Schema>> to_arrow(const Schema& schema, const std::string& metadata = {});
/// The reverse. `metadata` gets the metadata of the schema. kUnsupported for a type that streams cannot have.
Result<Schema> from_arrow_schema(const arrow::Schema& schema, std::string& metadata);

}  // namespace wherry::move
