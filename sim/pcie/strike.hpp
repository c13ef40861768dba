// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: makes a fault strike a packet that has just arrived.
#pragma once

#include "sim/pcie/node.hpp"

namespace wherry::sim::pcie {

enum class Struck : std::uint8_t {
  kNot,     ///< go on with it: it is unharmed, poisoned, or became an error completion
  kGone,    ///< it does not exist any more
  kRefuse,  ///< a request: treat it as one that nobody claims
  kAbort,   ///< a read: answer it with a completer abort
};

[[nodiscard]] Struck strike_arrival(Context& context, Packet* packet, NodeId at);

[[nodiscard]] inline Struck apply_fault(Context& context, Packet* packet, NodeId at) {
  return context.faults.empty() ? Struck::kNot : strike_arrival(context, packet, at);
}

}  // namespace wherry::sim::pcie
