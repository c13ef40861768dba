// SPDX-License-Identifier: Apache-2.0
// Settings from environment variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wherry/status.hpp"

namespace wherry::route {

/// Nullopt: the variable is unset or empty.
std::optional<std::string> variable(const char* name);
/// Converts a variable's text to a whole number from `min` to `max`. The error names the variable.
Result<std::uint32_t> number_of(const char* name, const std::string& text, std::uint32_t min, std::uint32_t max);
/// The number in a variable, or `otherwise` if it is unset or empty.
Result<std::uint32_t> number_variable(const char* name, std::uint32_t otherwise, std::uint32_t min = 0,
                                      std::uint32_t max = ~std::uint32_t{0});

}  // namespace wherry::route
