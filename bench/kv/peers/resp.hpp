// SPDX-License-Identifier: Apache-2.0
// Replies of Redis, as far as GET, SET and WAIT make them (RESP version 2).
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"

namespace wherry::kv::bench {

struct RespReply {
  char kind = 0;            ///< '+' text, '-' error, ':' number, '$' bytes; 0: this is no reply
  std::int64_t number = 0;  ///< of ':'; of '$' how many bytes, -1: there is no such key
  std::string_view text;    ///< of '+' and '-'
  std::size_t bytes = 0;    ///< of the whole reply
};

/// The first reply in the received bytes, or nullopt if it is not complete yet.
inline std::optional<RespReply> first_reply(ByteView arrived) noexcept {
  const std::string_view all(reinterpret_cast<const char*>(arrived.data()), arrived.size());
  const std::size_t end = all.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = all.substr(0, end);
  RespReply reply{.kind = line.empty() ? '\0' : line[0], .bytes = end + 2};
  if (reply.kind == '+' || reply.kind == '-') {
    reply.text = line.substr(1);
    return reply;
  }
  const bool known = reply.kind == ':' || reply.kind == '$';
  const char* const stop = line.data() + line.size();
  if (!known || std::from_chars(line.data() + 1, stop, reply.number).ptr != stop) return RespReply{};
  if (reply.kind == '$' && reply.number >= 0) {
    reply.bytes += static_cast<std::size_t>(reply.number) + 2;
    if (all.size() < reply.bytes) return std::nullopt;
  }
  return reply;
}

}  // namespace wherry::kv::bench
