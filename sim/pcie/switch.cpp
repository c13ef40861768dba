// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/switch.hpp"

#include "sim/pcie/strike.hpp"

namespace wherry::sim::pcie {

Switch::Switch(Context& context, NodeId id, const SwitchOptions& o) : Node(id), options(o), context_(context) {
  arrival_latency = o.latency;
  cut_through = o.cut_through;
}

DownPort* Switch::find_address(std::uint64_t address) noexcept {
  for (DownPort& port : down) {
    if (port.claims(address)) return &port;
  }
  return nullptr;
}

DownPort* Switch::find_id(FunctionId id) noexcept {
  for (DownPort& port : down) {
    if (port.leads_to(id)) return &port;
  }
  return nullptr;
}

void Switch::arrive(Packet* packet, std::uint32_t port) {
  switch (apply_fault(context_, packet, node_id)) {
    case Struck::kNot:
      break;
    case Struck::kGone:
      return;
    case Struck::kRefuse:
      refuse(packet, port);
      return;
    case Struck::kAbort:
      pass(error_completion(context_, packet, CompletionStatus::kCompleterAbort, id_), out_of(port), port);
      return;
  }
  if (packet->kind == TlpKind::kCompletion) {
    completion(packet, port);
  } else {
    request(packet, port);
  }
}

void Switch::request(Packet* packet, std::uint32_t port) {
  DownPort* const target = find_address(packet->address);
  if (port == 0) {  // from above
    if (target == nullptr) return refuse(packet, port);
    return pass(packet, *target->out, port);
  }
  DownPort& from = down[port - 1];
  if (from.acs.source_validation && !from.leads_to(packet->requester)) {
    ++context_.counters.acs_violations;
    return refuse(packet, port);
  }
  if (target == nullptr) return pass(packet, *up_, port);
  if (target == &from) {
    // It was sent up by a redirect further down (Spec 6.12, upstream forwarding). Otherwise it is lost.
    if (packet->redirected && from.acs.upstream_forwarding) return pass(packet, *up_, port);
    ++context_.counters.acs_violations;
    return refuse(packet, port);
  }
  if (from.acs.request_redirect) {
    packet->redirected = true;
    return pass(packet, *up_, port);
  }
  pass(packet, *target->out, port);
}

void Switch::completion(Packet* packet, std::uint32_t port) {
  DownPort* const target = find_id(packet->requester);
  if (port == 0) {
    if (target == nullptr) {
      ++context_.counters.lost_completions;
      return context_.drop(packet);
    }
    return pass(packet, *target->out, port);
  }
  DownPort& from = down[port - 1];
  const bool redirect = from.acs.completion_redirect && !packet->attributes.relaxed_ordering;
  if (target == nullptr || redirect || target == &from) return pass(packet, *up_, port);
  pass(packet, *target->out, port);
}

void Switch::refuse(Packet* packet, std::uint32_t port) {
  if (packet->kind == TlpKind::kRead) {
    ++context_.counters.unsupported_reads;
    return pass(error_completion(context_, packet, CompletionStatus::kUnsupportedRequest, id_), out_of(port), port);
  }
  ++context_.counters.unsupported_writes;
  context_.drop(packet);
}

void Switch::pass(Packet* packet, Transmitter& out, std::uint32_t port) {
  if (out.up()) [[likely]] {
    out.send(packet);
    return;
  }
  ++context_.counters.link_down;
  if (packet->kind != TlpKind::kRead || !out_of(port).up()) {
    context_.drop(packet);
    return;
  }
  // A port whose link is down treats requests as unsupported (Spec 2.9.1).
  Packet* const answer = error_completion(context_, packet, CompletionStatus::kUnsupportedRequest, id_);
  out_of(port).send(answer);
}

}  // namespace wherry::sim::pcie
