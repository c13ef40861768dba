// SPDX-License-Identifier: Apache-2.0
// Helpers of the C ABI. Its functions return a number and a text, never an exception, and its structs may grow.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/version.hpp"
#include "wherry/status.hpp"
#include "wherry/wherry.h"

namespace wherry::c_abi {

inline Status invalid(std::string what) { return {StatusCode::kInvalidArgument, std::move(what)}; }
inline Status is_null(const char* what) { return invalid(fmt::format("{} is NULL", what)); }

inline int write_error(StatusCode code, std::string_view message, wherry_error* error) noexcept {
  if (error != nullptr && code != StatusCode::kOk) {
    if (message.empty()) message = to_string(code);
    std::size_t length = std::min(message.size(), sizeof error->message - 1);
    if (length < message.size()) {  // not in the middle of a character
      while (length > 0 && (static_cast<unsigned char>(message[length]) & 0xc0U) == 0x80U) --length;
    }
    error->status = static_cast<std::int32_t>(code);
    std::memcpy(error->message, message.data(), length);
    error->message[length] = '\0';
  }
  return static_cast<int>(code);
}

/// Runs `body`, which returns a Status. Converts that Status, or any exception, to a number and a text.
template <typename Body>
int guarded(wherry_error* error, Body&& body) noexcept {
  try {
    const Status s = body();
    return write_error(s.code(), s.message(), error);
  } catch (const std::bad_alloc&) {
    return write_error(StatusCode::kResourceExhausted, "out of memory", error);
  } catch (const std::exception& e) {
    return write_error(StatusCode::kInternal, e.what(), error);
  } catch (...) {
    return write_error(StatusCode::kInternal, "an exception of unknown type", error);
  }
}

// ---------------------------------------------------------------- sized structs

template <typename T>
int give_defaults(T* options, std::size_t size, std::size_t first, const T& defaults) noexcept {
  if (options == nullptr || size < first) return WHERRY_INVALID_ARGUMENT;
  std::memset(options, 0, size);
  std::memcpy(options, &defaults, std::min(size, sizeof defaults));
  options->size = size;
  return WHERRY_OK;
}

/// `out` holds the defaults. If the caller's struct is older, missing fields keep the defaults. If it is newer, its
/// additional fields must be zero.
template <typename T>
Status take_options(const T* given, std::size_t first, const char* name, T& out) {
  if (given == nullptr) return ok_status();
  const std::size_t size = given->size;
  if (size < first)
    return invalid(fmt::format("{0}: size is {1}, at least {2} is expected: call {0}_init first", name, size, first));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof out; i < size; ++i) {
    if (bytes[i] != 0)
      return {StatusCode::kUnsupported,
              fmt::format("{}: a field at byte {} is set that this library ({}) does not know", name, i, kVersion)};
  }
  std::memcpy(&out, given, std::min(size, sizeof out));
  return ok_status();
}

}  // namespace wherry::c_abi
