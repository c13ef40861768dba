// SPDX-License-Identifier: Apache-2.0
#pragma once
// Puts the failed action in front of the reason of an error.
#include <string>
#include <string_view>
#include <utility>

#include "wherry/status.hpp"

namespace wherry::route {

/// "what: why". Ok stays ok.
inline Status explain(std::string_view what, Status status) {
  if (status) return status;
  return {status.code(), std::string(what) + ": " + status.message()};
}
template <typename T>
Result<T> explain(std::string_view what, Result<T> result) {
  if (result) return result;
  return explain(what, std::move(result).status());
}

}  // namespace wherry::route
