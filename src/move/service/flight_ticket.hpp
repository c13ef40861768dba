// SPDX-License-Identifier: Apache-2.0
// What a Flight client asks DoGet for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry::move {

/// The bytes of a Flight ticket, as JSON: {"stream": name, "from": sequence, "until": sequence, "count": n,
/// "follow": bool, "part": k}; all but "stream" may be absent. A plain stream name stands for {"stream": name}.
struct FlightTicket {
  std::string stream;
  std::uint64_t from = 0;              ///< 0: the oldest frame held
  std::optional<std::uint64_t> until;  ///< the first sequence that is not wanted; absent: no limit
  std::optional<std::uint64_t> count;  ///< frames (steps) at most; absent: no limit
  std::optional<std::uint64_t> part;   ///< of a stream in parts: of each step that part alone; absent: all of them
  bool follow = false;  ///< false: only what is held now; true: also what is still to come, until the stream closes
};
/// Takes anything; kInvalidArgument, naming the key, for what is not a ticket.
Result<FlightTicket> parse_ticket(std::string_view bytes);

}  // namespace wherry::move
