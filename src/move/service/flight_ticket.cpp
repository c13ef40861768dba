// SPDX-License-Identifier: Apache-2.0
#include "move/service/flight_ticket.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_nesting.hpp"
#include "move/message.hpp"

namespace wherry::move {
namespace {

constexpr std::size_t kMaxNesting = 64;  ///< more than any condition may have

bool is_names(const nlohmann::json& value) {
  return value.is_array() && value.size() <= kMaxTicketColumns &&
         std::ranges::all_of(value, [](const auto& one) { return one.is_string(); });
}

}  // namespace

Result<FlightTicket> parse_ticket(std::string_view bytes) {
  const auto wrong = [](const std::string& what) {
    return Status(
        StatusCode::kInvalidArgument,
        "ticket: " + what +
            R"(; a ticket is a stream's name or {"stream": name, "from": 0, "until": m, "count": n, "part": k, )"
            R"("follow": false, "columns": ["x"], "filter": [">", "x", 3]})");
  };
  if (bytes.empty() || bytes.size() > kMaxTicketBytes) return wrong(bytes.empty() ? "no bytes" : "more than 64 KiB");
  FlightTicket ticket;
  if (bytes.front() != '{') {
    if (!valid_stream_name(bytes)) return wrong("neither a JSON object nor a stream's name");
    ticket.stream = bytes;
    return ticket;
  }
  if (json_nesting(bytes) > kMaxNesting) return wrong("nested too deep");
  const nlohmann::json json = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return wrong("not JSON");
  for (const auto& [key, value] : json.items()) {
    if (key == "stream") {
      if (!value.is_string()) return wrong(R"("stream" must be a string)");
      ticket.stream = value.get<std::string>();
    } else if (key == "from" || key == "until" || key == "count" || key == "part" || key == "tag") {
      if (!value.is_number_unsigned()) return wrong("\"" + key + "\" must be a number from 0 on, without a fraction");
      const auto number = value.get<std::uint64_t>();
      if (key == "from")
        ticket.from = number;
      else
        (key == "until"   ? ticket.until
         : key == "count" ? ticket.count
         : key == "tag"   ? ticket.tag
                          : ticket.part) = number;
    } else if (key == "follow") {
      if (!value.is_boolean()) return wrong(R"("follow" must be true or false)");
      ticket.follow = value.get<bool>();
    } else if (key == "version") {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() != kTicketVersion)
        return wrong("version " + value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
                     "; this agent knows version 1");
    } else if (key == "columns") {
      if (!is_names(value)) return wrong(R"("columns" must be a list of at most 4096 names)");
      ticket.columns = value.get<std::vector<std::string>>();
    } else if (key == "compression") {
      if (value != "lz4" && value != "zstd") return wrong(R"("compression" must be "lz4" or "zstd")");
      ticket.compression = value == "lz4" ? FlightTicket::Compression::kLz4 : FlightTicket::Compression::kZstd;
    } else if (key == "filter") {
      if (!value.is_array() && !value.is_object()) return wrong(R"("filter" must be a list or an object)");
      ticket.filter = value.dump();
    } else {
      return wrong("unknown key " + nlohmann::json(key).dump());
    }
  }
  if (ticket.stream.empty()) return wrong(R"("stream" is missing)");
  return ticket;
}

}  // namespace wherry::move
