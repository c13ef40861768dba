// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/endpoint.hpp"

#include <algorithm>

#include "sim/pcie/strike.hpp"

namespace wherry::sim::pcie {

Endpoint::Endpoint(Context& context, NodeId id, const EndpointOptions& o)
    : Node(id), options(o), context_(context), received_({}, 0) {
  arrival_latency = o.receive_latency;
}

void Endpoint::build_claims() {
  claims_.clear();
  for (const auto& function : functions) {
    for (std::uint32_t bar = 0; bar < kBars; ++bar) {
      const std::uint64_t begin = function->bar_address(bar);
      if (begin != 0) claims_.push_back({begin, begin + function->options().bars[bar].bytes, function.get(), bar});
    }
  }
  std::sort(claims_.begin(), claims_.end(), [](const Claim& a, const Claim& b) { return a.begin < b.begin; });
}

const Endpoint::Claim* Endpoint::claim_of(const Tlp& tlp) {
  if (claims_.empty()) return nullptr;
  const auto within = [&tlp](const Claim& claim) {
    return tlp.address >= claim.begin && tlp.address < claim.end && tlp.bytes <= claim.end - tlp.address;
  };
  if (within(claims_[last_claim_])) return &claims_[last_claim_];
  const auto after = std::upper_bound(claims_.begin(), claims_.end(), tlp.address,
                                      [](std::uint64_t address, const Claim& claim) { return address < claim.begin; });
  if (after == claims_.begin() || !within(*(after - 1))) return nullptr;
  last_claim_ = static_cast<std::size_t>(after - claims_.begin()) - 1;
  return &claims_[last_claim_];
}

bool Endpoint::taken(const Packet& packet) {
  if (packet.kind == TlpKind::kCompletion) return true;
  const Claim* const claim = claim_of(packet);
  return claim == nullptr || claim->function->ready(packet.flow());
}

void Endpoint::arrive(Packet* packet, std::uint32_t port) {
  static_cast<void>(port);
  switch (apply_fault(context_, packet, node_id)) {
    case Struck::kNot:
      break;
    case Struck::kGone:
      return;
    case Struck::kRefuse:
      return answer_error(packet, CompletionStatus::kUnsupportedRequest);
    case Struck::kAbort:
      return answer_error(packet, CompletionStatus::kCompleterAbort);
  }
  if (received_.empty() && taken(*packet)) [[likely]] {
    deliver(packet);
    return;
  }
  packet->ready = 0;
  received_.push(packet, context_.queue.now());
  drain();
}

void Endpoint::drain() {
  for (;;) {
    Time wake = kNever;
    Packet* const packet =
        received_.pick(context_.queue.now(), &wake, [this](const Packet& candidate) { return taken(candidate); });
    if (packet == nullptr) return;
    received_.remove(packet);
    deliver(packet);
  }
}

void Endpoint::ready_changed() {
  if (received_.empty() || drain_scheduled_) return;
  drain_scheduled_ = true;
  context_.queue.schedule(context_.queue.now(), *this, 0);
}

void Endpoint::on_event(std::uint64_t argument) {
  static_cast<void>(argument);
  drain_scheduled_ = false;
  drain();
}

void Endpoint::deliver(Packet* packet) {
  if (packet->kind == TlpKind::kCompletion) {
    const std::size_t number = packet->requester & 0xff;
    if (bus_of(packet->requester) != bus_ || number >= functions.size()) {
      ++context_.counters.lost_completions;
      return context_.drop(packet);
    }
    context_.see(Point::kDelivered, packet->requester, *packet);
    packet->holds->release(*packet);
    functions[number]->receive_completion(*packet);
    context_.pool.give(packet);
    return;
  }
  const Claim* const claim = claim_of(*packet);
  if (claim == nullptr || !claim->function->memory_space()) {
    if (!functions.empty()) (claim != nullptr ? claim->function : functions.front().get())->count_unsupported();
    return answer_error(packet, CompletionStatus::kUnsupportedRequest);
  }
  FunctionPort& function = *claim->function;
  const std::uint32_t bar = claim->bar;
  context_.see(Point::kDelivered, function.id(), *packet);
  packet->holds->release(*packet);
  if (packet->kind == TlpKind::kWrite) {
    function.receive_write(*packet, bar);
  } else {
    function.receive_read(*packet, bar);
  }
  context_.pool.give(packet);
}

void Endpoint::answer_error(Packet* packet, CompletionStatus status) {
  const bool unsupported = status == CompletionStatus::kUnsupportedRequest;
  if (packet->kind != TlpKind::kRead) {
    if (unsupported) ++context_.counters.unsupported_writes;
    return context_.drop(packet);
  }
  if (unsupported) ++context_.counters.unsupported_reads;
  Packet* const answer = error_completion(context_, packet, status, first_id());
  issue(answer);
}

void Endpoint::issue(Packet* packet) {
  if (!out_->up()) {
    ++context_.counters.link_down;
    context_.drop(packet);
    return;
  }
  if (options.send_latency != 0) packet->ready = context_.queue.now() + options.send_latency;
  out_->send(packet);
}

void Endpoint::link_down(std::uint32_t port) {
  static_cast<void>(port);
  while (Packet* const packet = received_.oldest()) {
    received_.remove(packet);
    ++context_.counters.link_down;
    context_.drop(packet);
  }
}

}  // namespace wherry::sim::pcie
