// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/strike.hpp"

namespace wherry::sim::pcie {
namespace {

/// Makes a completion an error completion: it has no data and is the last.
void become_error(Packet& packet, CompletionStatus status) {
  packet.status = status;
  packet.last = true;
  packet.bytes = 0;
}

}  // namespace

Struck strike_arrival(Context& context, Packet* packet, NodeId at) {
  const Fault* const fault = context.strike(*packet, at, false);
  if (fault == nullptr) return Struck::kNot;
  switch (fault->kind) {
    case FaultKind::kVanish:
      context.drop(packet);
      return Struck::kGone;
    case FaultKind::kPoison:
      if (packet->has_data()) {
        packet->poisoned = true;
        packet->payload[context.fault_random.below(packet->bytes)] ^= std::byte{1};
      }
      return Struck::kNot;
    case FaultKind::kUnsupportedRequest:
      if (packet->kind != TlpKind::kCompletion) return Struck::kRefuse;
      become_error(*packet, CompletionStatus::kUnsupportedRequest);
      return Struck::kNot;
    case FaultKind::kCompleterAbort:
      if (packet->kind == TlpKind::kRead) return Struck::kAbort;
      if (packet->kind == TlpKind::kCompletion) {
        become_error(*packet, CompletionStatus::kCompleterAbort);
        return Struck::kNot;
      }
      context.drop(packet);
      return Struck::kGone;
    case FaultKind::kDelay:
      break;  // strikes in the buffer before the link
  }
  return Struck::kNot;
}

}  // namespace wherry::sim::pcie
