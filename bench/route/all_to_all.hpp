// SPDX-License-Identifier: Apache-2.0
// Sends messages of eight bytes to random ranks: the traffic of the histogram, but without its table.
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

/// One rank's work: sends `messages` messages of 8 bytes per turn, each to a random rank.
AllToAll all_to_all(route::Runtime& runtime, std::size_t messages, int turns);

/// Over all agents of a job: average bytes per transfer, and how many times per transfer a next hop had no room.
double average_transfer(const std::vector<AgentCounts>& agents);
double blocked_per_transfer(const std::vector<AgentCounts>& agents);

}  // namespace wherry::bench
