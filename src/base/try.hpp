// SPDX-License-Identifier: Apache-2.0
// Macros that return a failed status to the caller, in functions that return a Status or a Result.
#pragma once

#include <utility>

#include "wherry/status.hpp"

namespace wherry::detail {
inline Status&& status_of(Status&& status) noexcept { return std::move(status); }
inline const Status& status_of(const Status& status) noexcept { return status; }
template <typename T>
Status status_of(Result<T>&& result) noexcept {
  return std::move(result).status();
}
template <typename T>
const Status& status_of(const Result<T>& result) noexcept {
  return result.status();
}
}  // namespace wherry::detail

/// WHERRY_TRY(expression): if the Status or Result is not ok, returns its status from the enclosing function.
/// Would-block is not ok.
#define WHERRY_TRY(...)                                                                   \
  do {                                                                                    \
    if (auto&& wherry_try = (__VA_ARGS__); !wherry_try)                                   \
      return ::wherry::detail::status_of(std::forward<decltype(wherry_try)>(wherry_try)); \
  } while (false)

/// WHERRY_ASSIGN(auto x, expression): like WHERRY_TRY for a Result, and assigns its value to x. It declares a variable,
/// so it cannot be the body of an if without braces.
#define WHERRY_ASSIGN(target, ...) WHERRY_ASSIGN_AT(__COUNTER__, target, __VA_ARGS__)
#define WHERRY_ASSIGN_AT(number, ...) WHERRY_ASSIGN_AS(number, __VA_ARGS__)
#define WHERRY_ASSIGN_AS(number, target, ...)                                     \
  auto wherry_result_##number = (__VA_ARGS__);                                    \
  if (!wherry_result_##number) return std::move(wherry_result_##number).status(); \
  target = *std::move(wherry_result_##number)
