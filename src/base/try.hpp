// SPDX-License-Identifier: Apache-2.0
// Passing a failure up: the caller returns a Status or a Result, the callee's status becomes its own.
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

/// WHERRY_TRY(expression): returns from the calling function with the status of a Status or Result that is not ok.
/// Would-block is not ok.
#define WHERRY_TRY(...)                                                                   \
  do {                                                                                    \
    if (auto&& wherry_try = (__VA_ARGS__); !wherry_try)                                   \
      return ::wherry::detail::status_of(std::forward<decltype(wherry_try)>(wherry_try)); \
  } while (false)

/// WHERRY_ASSIGN(auto x, expression): as WHERRY_TRY for a Result, whose value becomes x. Declares a variable: not for
/// the body of an if without braces.
#define WHERRY_ASSIGN(target, ...) WHERRY_ASSIGN_AT(__COUNTER__, target, __VA_ARGS__)
#define WHERRY_ASSIGN_AT(number, ...) WHERRY_ASSIGN_AS(number, __VA_ARGS__)
#define WHERRY_ASSIGN_AS(number, target, ...)                                     \
  auto wherry_result_##number = (__VA_ARGS__);                                    \
  if (!wherry_result_##number) return std::move(wherry_result_##number).status(); \
  target = *std::move(wherry_result_##number)
