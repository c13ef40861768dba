// SPDX-License-Identifier: Apache-2.0
// Why a job cannot go on, as ranks and agents tell each other: the reason, its code, and the rank that caused it.
#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.hpp"
#include "wherry/route_message.hpp"
#include "wherry/status.hpp"

namespace wherry::route {

struct Breakdown {
  /// No rank is known to have caused it: an agent or a connection was lost, say.
  static constexpr Rank kNobody = ~Rank{0};

  Status why;  ///< ok: nothing has happened
  Rank cause = kNobody;

  [[nodiscard]] bool ok() const noexcept { return why.ok(); }
};

/// The payload of kAbortHandler: u32 code, u32 cause, then the text, cut short so that all of it takes at most `most`
/// bytes (8 or more), at the end of a character of UTF-8.
Bytes encode(const Breakdown& breakdown, std::size_t most = ~std::size_t{0});
Result<Breakdown> decode_breakdown(ByteView bytes);
/// What others say is not believed to be a success: kUnavailable for what is not the code of an error.
StatusCode error_code_of(std::uint32_t number) noexcept;

}  // namespace wherry::route
