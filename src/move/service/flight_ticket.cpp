// SPDX-License-Identifier: Apache-2.0
#include "move/service/flight_ticket.hpp"

#include <nlohmann/json.hpp>

#include "move/message.hpp"

namespace wherry::move {

Result<FlightTicket> parse_ticket(std::string_view bytes) {
  const auto wrong = [](const std::string& what) {
    return Status(
        StatusCode::kInvalidArgument,
        "ticket: " + what +
            R"(; a ticket is a stream's name or {"stream": name, "from": 0, "until": m, "count": n, "part": k, )"
            R"("follow": false})");
  };
  if (bytes.empty() || bytes.size() > 4096) return wrong(bytes.empty() ? "no bytes" : "more than 4096 bytes");
  FlightTicket ticket;
  if (bytes.front() != '{') {
    if (!valid_stream_name(bytes)) return wrong("neither a JSON object nor a stream's name");
    ticket.stream = bytes;
    return ticket;
  }
  const nlohmann::json json = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return wrong("not JSON");
  for (const auto& [key, value] : json.items()) {
    if (key == "stream") {
      if (!value.is_string()) return wrong(R"("stream" must be a string)");
      ticket.stream = value.get<std::string>();
    } else if (key == "from" || key == "until" || key == "count" || key == "part") {
      if (!value.is_number_unsigned()) return wrong("\"" + key + "\" must be a number from 0 on, without a fraction");
      const auto number = value.get<std::uint64_t>();
      if (key == "from")
        ticket.from = number;
      else
        (key == "until" ? ticket.until : key == "count" ? ticket.count : ticket.part) = number;
    } else if (key == "follow") {
      if (!value.is_boolean()) return wrong(R"("follow" must be true or false)");
      ticket.follow = value.get<bool>();
    } else {
      return wrong("unknown key " + nlohmann::json(key).dump());
    }
  }
  if (ticket.stream.empty()) return wrong(R"("stream" is missing)");
  return ticket;
}

}  // namespace wherry::move
