// SPDX-License-Identifier: Apache-2.0
// Why a job has failed, as ranks and agents report it to each other: the reason, its code, and the rank that caused it.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "wherry/route_message.hpp"
#include "wherry/status.hpp"

namespace wherry::route {

struct JobFailure {
  /// No rank is known to have caused it: an agent or a connection was lost, say.
  static constexpr Rank kNobody = ~Rank{0};

  Status why;  ///< ok: the job has not failed
  Rank cause = kNobody;

  [[nodiscard]] bool ok() const noexcept { return why.ok(); }
};

/// The payload of kAbortHandler: u32 code, u32 cause, then the text. The text is cut at the end of a UTF-8 character,
/// so the whole takes at most `max_bytes` (8 or more).
Bytes encode(const JobFailure& failure, std::size_t max_bytes = ~std::size_t{0});
Result<JobFailure> decode_failure(ByteView bytes);
/// The code of an error that another process has sent. A number that is not such a code: kUnavailable.
StatusCode error_code_of(std::uint32_t number) noexcept;
/// Text that another process has sent, on one line: control characters become blanks.
std::string printable(std::string text);

}  // namespace wherry::route
