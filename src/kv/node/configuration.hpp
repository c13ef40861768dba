// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's options, the content of its staged registers, and its counters.
#include <array>
#include <cstddef>
#include <cstdint>

#include "kv/generated/registers.hpp"
#include "kv/message.hpp"

namespace wherry::kv {

struct NodeOptions {
  unsigned lane_bits = 12;
  unsigned max_followers = kMaxNodes - 1;
  unsigned channels = 1;  ///< as the register `capability` reports
  std::size_t max_leftovers = 1024;
  unsigned most_doublings = 6;  ///< of retry_cycles, each time that something is sent again; 0: as hardware does
};

/// Takes effect when `epoch` is written.
struct NodeConfiguration {
  std::uint8_t node = 0;
  std::uint8_t members = 0;  ///< must acknowledge
  std::uint8_t serving = 0;  ///< may answer clients
  std::uint16_t udp_port = registers::kUdpPortReset;
  std::array<std::uint8_t, kSlots> leaders{};
  std::array<Endpoint, kMaxNodes> peers{};
};

/// The reason why a frame for the node was dropped before the node saw it.
enum class NodeDrop : std::uint8_t { kChecksum, kLength, kSource };

/// Counters like those in registers. Each frame for the core counts once: as dropped, refused, answered or taken.
struct NodeCounters {
  std::uint32_t frames_kv = 0;
  std::uint32_t dropped = 0;   ///< without effect: the dropped_* and what no node receives
  std::uint32_t refused = 0;   ///< answered with: ask again
  std::uint32_t answered = 0;  ///< answered for good
  std::uint32_t taken = 0;     ///< all else
  std::uint32_t passed_rx = 0;
  std::uint32_t passed_tx = 0;
  std::uint32_t dropped_checksum = 0;
  std::uint32_t dropped_length = 0;
  std::uint32_t dropped_epoch = 0;
  std::uint32_t dropped_duplicate = 0;
  std::uint32_t dropped_source = 0;
  std::uint32_t retries = 0;
  std::uint32_t rolled_back = 0;  ///< writes that the end of an epoch undid; no register tells
  std::uint32_t completed = 0;    ///< leftovers that this leader completed; no register tells
  std::uint32_t refreshed = 0;    ///< locations whose version lagged; no register tells
  std::array<std::uint32_t, registers::kRepliesCount> replies{};
  std::array<std::uint32_t, registers::kReceivedCount> received{};
  std::array<std::uint32_t, registers::kSentCount> sent{};
};

}  // namespace wherry::kv
