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
/// DoGet sends one batch for each frame with app_metadata {"sequence", "tag", "rows", "skipped", "transfer_ns",
/// "source_bytes"}. gRPC carries no message of 2 GiB, so a frame of more than max_message_bytes goes out as several
/// batches. Each then has a further key "first_row", the batch's first row in its frame. A frame that went out in full
/// is marked as read.
/// A ticket may name columns and a condition. Then batches hold the selected rows and columns. They are computed on the
/// call's own thread, in memory of the arena that counts as held by readers. "rows" stays the frame's, and a frame
/// without selected rows comes as a batch without rows.
class FlightService {
 public:
  /// Serves until stop(). `cores`: where gRPC's threads may run (best effort); empty: anywhere. Port 0: any that is
  /// free. The catalogue must outlive the service. kInvalidArgument for an empty token or a host that cannot be parsed,
  /// kUnavailable if the port is in use.
  static Result<std::unique_ptr<FlightService>> start(Catalogue& catalogue, std::shared_ptr<Arena> arena,
                                                      const std::string& host, int port, const std::string& token,
                                                      std::vector<int> cores = {},
                                                      std::uint64_t max_message_bytes = std::uint64_t{1} << 30);
  ~FlightService();
  FlightService(const FlightService&) = delete;
  FlightService& operator=(const FlightService&) = delete;

  [[nodiscard]] int port() const noexcept;
  /// The peers ("address:port") that have shown the token in a call. Peers that are not in `connected` are forgotten,
  /// unless they are newer than the last call of this function: `connected` may be older than they are. Thread-safe.
  std::set<std::string> proven(const std::set<std::string>& connected);
  /// Ends all calls within about a second, also those of waiting followers. Idempotent.
  void stop();

 private:
  struct Impl;
  explicit FlightService(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::move
