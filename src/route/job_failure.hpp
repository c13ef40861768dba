// SPDX-License-Identifier: Apache-2.0
// Why a job has failed, as ranks and agents report it: the reason, its code, and the rank that caused it.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "wherry/route_message.hpp"
#include "wherry/status.hpp"

namespace wherry::route {

struct JobFailure {
  /// No rank is known as the cause: for example, an agent or a connection was lost.
  static constexpr Rank kNobody = ~Rank{0};

  Status why;  ///< ok: the job has not failed
  Rank cause = kNobody;

  [[nodiscard]] bool ok() const noexcept { return why.ok(); }
};

/// The payload of kAbortHandler: u32 code, u32 cause, then the text. The text is cut at the end of a UTF-8 character,
/// so the whole takes at most `max_bytes` (8 or more).
Bytes encode(const JobFailure& failure, std::size_t max_bytes = ~std::size_t{0});
Result<JobFailure> decode_failure(ByteView bytes);
/// The error code that another process has sent; kUnavailable if the number is not an error code.
StatusCode error_code_of(std::uint32_t number) noexcept;
/// Text from another process, as one line: control characters become blanks.
std::string printable(std::string text);

}  // namespace wherry::route
