// SPDX-License-Identifier: Apache-2.0
// The content of an epoch: members, serving nodes, each slot's leader (docs/design/kv-protocol.md, section 2).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "kv/message.hpp"
#include "kv/node_mask.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// One part in this number of a lease, or of a mandate in etcd, is left unused, because clocks differ.
inline constexpr std::uint64_t kLeaseMargin = 6;

/// When members acknowledge a write: see docs/design/kv-protocol.md, section 11.
enum class AckPolicy : std::uint8_t { store, accept, mixed };

using Leaders = std::array<std::uint8_t, kSlots>;

struct Configuration {
  std::uint64_t epoch = 0;  ///< 0: none; frames and registers carry the low 16 bits, which are never 0 otherwise
  NodeMask members = 0;     ///< must acknowledge
  NodeMask serving = 0;     ///< of them, may answer clients
  std::uint32_t bucket_bits = 8;
  Leaders leaders{};
  std::array<Endpoint, kMaxNodes> peers{};
  /// Boot number of each member, so that a restarted node never enters an epoch meant for its former life. For a node
  /// that is not a member: its boot number when it last was one. This boot must never be a member again, because it may
  /// hold data from before its removal. 0 in a static configuration.
  std::array<std::uint64_t, kMaxNodes> boots{};
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

/// The epoch after this one. Skips epochs whose low 16 bits are 0.
[[nodiscard]] constexpr std::uint64_t next_epoch(std::uint64_t epoch) noexcept {
  return (epoch + 1) % 65536 == 0 ? epoch + 2 : epoch + 1;
}

/// Checks a configuration. The error names exactly what is wrong.
wherry::Status check(const Configuration& configuration);

/// Assigns every slot to one of `serving` (not 0), as evenly as possible, and moves as few slots as possible.
void spread_leaders(Leaders& leaders, NodeMask serving);
/// The start of a cluster: slot s is led by the (s mod n)-th of the n serving nodes.
[[nodiscard]] Leaders first_leaders(NodeMask serving);

}  // namespace wherry::kv
