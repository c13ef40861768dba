// SPDX-License-Identifier: Apache-2.0
// A request of a reader on the same machine: one line of JSON (local_reader.hpp has describes the protocol).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry::move {

inline constexpr std::size_t kMaxLocalLine = 64 * 1024;  ///< bytes, without the newline
inline constexpr std::uint64_t kLocalVersion = 2;
inline constexpr std::chrono::milliseconds kMaxLocalWait = std::chrono::hours(24);

struct LocalRequest {
  enum class Op : std::uint8_t { kHello, kList, kNext, kRelease } op = Op::kList;
  std::string token;                     ///< kHello
  std::uint64_t version = 0;             ///< kHello
  std::string stream;                    ///< kNext
  std::uint64_t sequence = 0;            ///< kNext; absent: 0
  std::uint64_t generation = 0;          ///< kNext; absent: 0, whichever stream has the name now
  std::optional<std::uint64_t> part;     ///< kNext; absent: all parts of the step, of a stream that has any
  std::chrono::milliseconds timeout{0};  ///< kNext, at most kMaxLocalWait; absent: 0
  std::uint64_t lease = 0;               ///< kRelease
};

/// Parses untrusted bytes. kInvalidArgument: the line is not a request; the message names the key. Unknown keys are
/// ignored, so that newer clients work with older agents.
Result<LocalRequest> parse_request(std::string_view line);

}  // namespace wherry::move
