// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/node.hpp"

namespace wherry::sim::pcie {

void Context::drop(Packet* packet) {
  see(Point::kDropped, 0, *packet);
  if (packet->holds != nullptr) packet->holds->release(*packet);
  if (packet->queued_by != nullptr) packet->queued_by->left(*packet);
  pool.give(packet);
}

const Fault* Context::strike(const Tlp& tlp, NodeId at, bool delay) {
  for (ActiveFault& active : faults) {
    const Fault& fault = active.fault;
    if ((fault.kind == FaultKind::kDelay) != delay) continue;
    if (fault.at && *fault.at != at) continue;
    if (fault.tlp && *fault.tlp != tlp.kind) continue;
    if (fault.requester && *fault.requester != tlp.requester) continue;
    if (tlp.kind != TlpKind::kCompletion &&
        (tlp.address + tlp.bytes <= fault.address || tlp.address - fault.address >= fault.bytes) &&
        tlp.address != fault.address) {
      continue;
    }
    if (active.matched++ < fault.skip || active.struck >= fault.count) continue;
    if (fault.one_in > 1 && fault_random.below(fault.one_in) != 0) continue;
    ++active.struck;
    ++counters.faults[static_cast<std::size_t>(fault.kind)];
    return &fault;
  }
  return nullptr;
}

Packet* error_completion(Context& context, Packet* request, CompletionStatus status, FunctionId completer) {
  Packet* const packet = context.pool.take(0);
  packet->kind = TlpKind::kCompletion;
  packet->status = status;
  packet->last = true;
  packet->attributes = request->attributes;
  packet->tag = request->tag;
  packet->requester = request->requester;
  packet->completer = completer;
  packet->address = request->address;
  packet->remaining = request->bytes;
  context.drop(request);
  return packet;
}

}  // namespace wherry::sim::pcie
