// SPDX-License-Identifier: Apache-2.0
// What a Redis client sends: an array of bulk strings, or a line of words ("Redis serialization protocol
// specification", sections "Sending commands to a Redis server" and "Inline commands").
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::kv::resp {

/// More is not taken from a client: far beyond what the store's values of 1 KiB need.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 10;
inline constexpr std::size_t kMaxArguments = 4096;

/// The first request of `input`: how many bytes it has, 0 if it is not complete yet. `arguments` become views into
/// `input`; none: nothing was asked (an empty line or array). kProtocol: these bytes are no request, nor will be; the
/// connection has no way on.
Result<std::size_t> parse_request(std::string_view input, std::vector<std::string_view>& arguments);

}  // namespace wherry::kv::resp
