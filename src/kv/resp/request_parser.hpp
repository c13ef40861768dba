// SPDX-License-Identifier: Apache-2.0
// Parses a Redis client's input: an array of bulk strings, or a line of words ("Redis serialization protocol
// specification", sections "Sending commands to a Redis server" and "Inline commands").
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::kv::resp {

/// The longest request of a client, far more than the store's values of 1 KiB need.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 10;
inline constexpr std::size_t kMaxArguments = 4096;

/// Parses the first request of `input`. Returns its number of bytes, or 0 if it is not complete. `arguments` become
/// views into `input`; they are empty for an empty line or array. kProtocol: these bytes cannot become a request, so
/// the connection cannot continue.
Result<std::size_t> parse_request(std::string_view input, std::vector<std::string_view>& arguments);

}  // namespace wherry::kv::resp
