// SPDX-License-Identifier: Apache-2.0
// Messages of eight bytes to random ranks: the traffic of the histogram without its table.
#pragma once

#include "forked_job.hpp"

namespace wherry::bench {

/// What a rank measured. Travels as Results.
struct AllToAll {
  double seconds = 0;         ///< of a turn: the median of all but the first
  double transfer_bytes = 0;  ///< average of this rank's transfers
  double blocked_share = 0;   ///< share of its time from a refused send until the message was taken

  [[nodiscard]] Results pack() const { return {seconds, transfer_bytes, blocked_share}; }
  static AllToAll unpack(const Results& results) { return {results.at(0), results.at(1), results.at(2)}; }
};

/// A rank's part: `messages` of 8 bytes a turn, each to a random rank.
AllToAll all_to_all(route::Runtime& runtime, std::size_t messages, int turns);

/// Of all agents of a job together: average bytes of a transfer, and how often a next hop had no room, per transfer.
double average_transfer(const std::vector<AgentCounts>& agents);
double blocked_per_transfer(const std::vector<AgentCounts>& agents);

}  // namespace wherry::bench
