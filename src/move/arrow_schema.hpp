// SPDX-License-Identifier: Apache-2.0
// Agent side: a Schema as Arrow C++ knows it.
#pragma once

#include <memory>
#include <string>

#include "wherry/schema.hpp"
#include "wherry/status.hpp"

namespace arrow {
class Schema;
}

namespace wherry::move {

/// kInvalidArgument or kUnsupported as make_plan, or when Arrow refuses the types (malformed metadata of an extension
/// type, say).
Result<std::shared_ptr<arrow::Schema>> to_arrow(const Schema& schema, const std::string& metadata = {});

}  // namespace wherry::move
