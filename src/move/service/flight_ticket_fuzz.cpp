// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a Flight ticket. They must be refused by name, or keep their meaning when written again.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "move/service/flight_ticket.hpp"

using namespace wherry;
using namespace wherry::move;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto ticket = parse_ticket({reinterpret_cast<const char*>(data), size});
  if (!ticket) {
    if (ticket.status().code() != StatusCode::kInvalidArgument || ticket.status().message().empty()) std::abort();
    return 0;
  }
  if (ticket->stream.empty()) std::abort();
  nlohmann::json written{{"stream", ticket->stream}, {"from", ticket->from}, {"follow", ticket->follow}};
  if (ticket->count) written["count"] = *ticket->count;
  if (ticket->tag) written["tag"] = *ticket->tag;
  if (ticket->compression != FlightTicket::Compression::kNone)
    written["compression"] = ticket->compression == FlightTicket::Compression::kLz4 ? "lz4" : "zstd";
  if (ticket->columns) written["columns"] = *ticket->columns;
  if (!ticket->filter.empty()) written["filter"] = nlohmann::json::parse(ticket->filter);
  std::string text = written.dump();
  if (text.size() > kMaxTicketBytes) return 0;  // what was unescaped may need more bytes than it came in
  const auto again = parse_ticket(text);
  if (!again || again->stream != ticket->stream || again->from != ticket->from || again->count != ticket->count ||
      again->follow != ticket->follow || again->columns != ticket->columns || again->tag != ticket->tag ||
      again->compression != ticket->compression || again->filter != ticket->filter)
    std::abort();
  return 0;
}
