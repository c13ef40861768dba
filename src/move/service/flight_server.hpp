// SPDX-License-Identifier: Apache-2.0
// Arrow Flight over the catalogue: any stock Flight client lists and reads streams. Columns go from the frames to gRPC
// uncopied.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "move/service/catalogue.hpp"
#include "move/service/flight_ticket.hpp"

namespace wherry::move {

/// Methods: ListFlights (criteria: a prefix of the name), GetFlightInfo and GetSchema (descriptor: path [stream name]),
/// DoGet, ListActions, DoAction "streams" (stream_json.hpp). Every call must carry the header "authorization: Bearer
/// <token>".
///
/// DoGet sends a batch a frame with app_metadata {"sequence", "tag", "rows", "skipped", "transfer_ns", "source_bytes"}.
/// gRPC carries no message of 2 GiB: a frame of more than max_message_bytes goes out as several batches, each with a
/// further key "first_row", the batch's first row in its frame. A frame that went out in full is marked as read.
class FlightService {
 public:
  /// Serves until stop(). `cores`: where gRPC's threads may run (best effort); empty: anywhere. Port 0: any that is
  /// free. The catalogue must outlive the service. kInvalidArgument for an empty token or a host that cannot be parsed,
  /// kUnavailable when the port cannot be had.
  static Result<std::unique_ptr<FlightService>> start(Catalogue& catalogue, const std::string& host, int port,
                                                      const std::string& token, std::vector<int> cores = {},
                                                      std::uint64_t max_message_bytes = std::uint64_t{1} << 30);
  ~FlightService();
  FlightService(const FlightService&) = delete;
  FlightService& operator=(const FlightService&) = delete;

  [[nodiscard]] int port() const noexcept;
  /// Those of the peers ("address:port") of which a call has shown the token. Those that are not among `connected` are
  /// forgotten, unless they came after the last call: `connected` may be older than they are. Thread-safe.
  std::set<std::string> proven(const std::set<std::string>& connected);
  /// Ends all calls, those of waiting followers too, within about a second. Idempotent.
  void stop();

 private:
  struct Impl;
  explicit FlightService(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::move
