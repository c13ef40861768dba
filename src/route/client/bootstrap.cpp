// SPDX-License-Identifier: Apache-2.0
#include "route/client/bootstrap.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>

#include "route/client/bootstrap_parts.hpp"

namespace wherry::route {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == 0) return std::nullopt;
  return value;
}

Result<std::uint32_t> parse_number(const char* name, const std::string& text, std::uint32_t least, std::uint32_t most) {
  std::uint32_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value < least || value > most) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} is '{}': want a whole number from {} to {}", name, text, least, most));
  }
  return value;
}

Result<std::uint32_t> number_variable(const char* name, std::uint32_t least, std::uint32_t most) {
  const auto text = variable(name);
  if (!text) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("WHERRY_BOOTSTRAP is set, but {} is not: start the program by `wherry run`, or unset both", name));
  }
  return parse_number(name, *text, least, most);
}

Result<std::unique_ptr<Bootstrap>> find_bootstrap(const Deadline& deadline) {
  if (const auto path = variable("WHERRY_BOOTSTRAP")) return join_launcher(*path, deadline);
  if (const auto launcher = find_mpi_launcher()) return join_mpi(*launcher, deadline);
  return std::unique_ptr<Bootstrap>();
}

}  // namespace wherry::route
