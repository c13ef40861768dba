// SPDX-License-Identifier: Apache-2.0
#include "route/client/environment.hpp"

#include <fmt/core.h>

#include <cstdlib>

#include "base/settings.hpp"
#include "base/try.hpp"
#include "route/explain.hpp"

namespace wherry::route {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == 0) return std::nullopt;
  return value;
}

Result<std::uint32_t> number_of(const char* name, const std::string& text, std::uint32_t min, std::uint32_t max) {
  WHERRY_ASSIGN(const auto number, explain(fmt::format("{} is '{}'", name, text), parse_number(text, min, max)));
  return static_cast<std::uint32_t>(number);
}

Result<std::uint32_t> number_variable(const char* name, std::uint32_t otherwise, std::uint32_t min, std::uint32_t max) {
  const auto text = variable(name);
  if (!text) return otherwise;
  return number_of(name, *text, min, max);
}

}  // namespace wherry::route
