// SPDX-License-Identifier: Apache-2.0
// The content of a Flight client's DoGet ticket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::move {

inline constexpr std::size_t kMaxTicketBytes = std::size_t{64} << 10;
inline constexpr std::uint64_t kTicketVersion = 1;
inline constexpr std::size_t kMaxTicketColumns = 4096;

/// The bytes of a Flight ticket, as JSON: {"version": 1, "stream": name, "from": sequence, "until": sequence, "count":
/// n, "follow": bool, "part": k, "tag": t, "columns": [name, ...], "filter": condition, "compression": codec}; only
/// "stream" is required. A plain stream name means {"stream": name}.
struct FlightTicket {
  std::string stream;
  std::uint64_t from = 0;              ///< 0: the oldest frame held
  std::optional<std::uint64_t> until;  ///< the first sequence that is not wanted; absent: no limit
  std::optional<std::uint64_t> count;  ///< frames (steps) at most; absent: no limit
  std::optional<std::uint64_t> part;   ///< of a stream in parts: of each step that part alone; absent: all of them
  bool follow = false;  ///< false: only what is held now; true: also what is still to come, until the stream closes
  std::optional<std::uint64_t> tag;                 ///< frames with this tag alone; absent: all
  std::optional<std::vector<std::string>> columns;  ///< absent: all; empty: batches say what is known about frames
  std::string filter;  ///< JSON, for parse_predicate() (move/operate/predicate.hpp); empty: all rows
  enum class Compression : std::uint8_t { kNone, kLz4, kZstd } compression = Compression::kNone;  ///< of IPC bodies
};
/// Parses untrusted bytes. kInvalidArgument: they are not a ticket; the message names the key.
Result<FlightTicket> parse_ticket(std::string_view bytes);

}  // namespace wherry::move
