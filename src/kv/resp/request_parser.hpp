// SPDX-License-Identifier: Apache-2.0
// The input of a Redis client: an array of bulk strings, or a line of words ("Redis serialization protocol
// specification", sections "Sending commands to a Redis server" and "Inline commands").
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::kv::resp {

/// The limit of a client's request: far beyond the needs of the store's values of 1 KiB.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 10;
inline constexpr std::size_t kMaxArguments = 4096;

/// The first request of `input`: its number of bytes, or 0 if it is not complete yet. `arguments` become views into
/// `input`. None: the request was empty (an empty line or array). kProtocol: these bytes are not a request and cannot
/// become one, so the connection cannot continue.
Result<std::size_t> parse_request(std::string_view input, std::vector<std::string_view>& arguments);

}  // namespace wherry::kv::resp
