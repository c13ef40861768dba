// SPDX-License-Identifier: Apache-2.0
// Faults that a test requests. They strike TLPs on arrival at the far end of a link.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/pcie/tlp.hpp"

namespace wherry::sim::pcie {

/// Switches, endpoints and the root complex are numbered as they are added; the root is 0.
using NodeId = std::uint32_t;
inline constexpr NodeId kRoot = 0;

enum class FaultKind : std::uint8_t {
  kVanish,              ///< lost without a trace: a read then times out
  kPoison,              ///< data are marked as wrong (EP) and one bit of them is flipped; without data: no effect
  kUnsupportedRequest,  ///< a request is taken for one that nobody claims; a completion becomes one with that status
  kCompleterAbort,      ///< a read is answered, a completion replaced, by a completer abort; a write is dropped
  kDelay,               ///< comes Fault::delay later; what may pass it does
};

struct Fault {
  FaultKind kind = FaultKind::kVanish;
  // Which TLPs the fault strikes; unset fields match all.
  std::optional<NodeId> at{};  ///< arriving at this node
  std::optional<TlpKind> tlp{};
  std::optional<FunctionId> requester{};
  std::uint64_t address = 0;  ///< of requests: touching [address, address + bytes)
  std::uint64_t bytes = ~std::uint64_t{0};
  // How often.
  std::uint64_t skip = 0;                   ///< so many that match go unharmed first
  std::uint64_t count = ~std::uint64_t{0};  ///< at most so many are struck
  std::uint32_t one_in = 1;                 ///< of the others, one in so many, by chance
  Time delay = 0;
};

}  // namespace wherry::sim::pcie
