// SPDX-License-Identifier: Apache-2.0
// Serves the catalogue over Arrow Flight: any stock Flight client can list and read streams. Columns go from frames to
// gRPC without a copy.
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
/// DoGet sends one batch for each frame with app_metadata {"sequence", "tag", "rows", "skipped", "transfer_ns",
/// "source_bytes"}. gRPC cannot send a message of 2 GiB, so a frame of more than max_message_bytes is sent as
/// several batches. Each batch then also has the key "first_row", its first row in the frame. A frame that
/// was sent in full is marked as read. A ticket may name columns and a condition. Then batches hold the
/// selected rows and columns. They are computed on the call's own thread, in arena memory that counts as
/// held by readers. "rows" is still the frame's number. A frame without selected rows gives a batch without
/// rows.
class FlightService {
 public:
  /// Serves until stop(). `cores`: where gRPC's threads may run (best effort); empty: anywhere. Port 0: any free port.
  /// The catalogue must outlive the service. kInvalidArgument: an empty token or an invalid host. kUnavailable: the
  /// port is in use.
  static Result<std::unique_ptr<FlightService>> start(Catalogue& catalogue, std::shared_ptr<Arena> arena,
                                                      const std::string& host, int port, const std::string& token,
                                                      std::vector<int> cores = {},
                                                      std::uint64_t max_message_bytes = std::uint64_t{1} << 30);
  ~FlightService();
  FlightService(const FlightService&) = delete;
  FlightService& operator=(const FlightService&) = delete;

  [[nodiscard]] int port() const noexcept;
  /// Returns the peers ("address:port") that have shown the token in a call. Removes peers that are not in `connected`,
  /// but not those that were added after the last call, because `connected` may be older than they are. Thread-safe.
  std::set<std::string> proven(const std::set<std::string>& connected);
  /// Ends all calls within about a second, including those of waiting followers. Idempotent.
  void stop();

 private:
  struct Impl;
  explicit FlightService(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::move
