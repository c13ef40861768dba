// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/root_complex.hpp"

#include <algorithm>

#include "sim/pcie/strike.hpp"

namespace wherry::sim::pcie {
namespace {
std::uint64_t end_of_memory(std::uint64_t bytes) {
  return bytes <= kLowMemoryEnd ? kHighMemoryBegin : kHighMemoryBegin + (bytes - kLowMemoryEnd);
}
}  // namespace

RootComplex::RootComplex(Context& context)
    : Node(kRoot),
      memory(end_of_memory(context.options.memory_bytes)),
      iommu(context.options.root),
      context_(context),
      options_(context.options.root),
      peers_(context, down),
      splitter_{context.options.mps, options_.completion_bytes, options_.rcb,
                context.options.reordering.split_anywhere},
      random_(splitmix64(context.options.seed, std::uint64_t{3} << 32)) {}

void RootComplex::start() {
  order_.resize(down.size());
  peers_.start();
}

bool RootComplex::is_memory(const Tlp& tlp) const noexcept {
  const std::uint64_t end = tlp.address + tlp.bytes;
  const std::uint64_t size = context_.options.memory_bytes;
  if (tlp.address < kLowMemoryEnd) return end <= std::min(kLowMemoryEnd, size);
  if (tlp.kind == TlpKind::kWrite && tlp.address >= kInterruptBegin && end <= kInterruptEnd) return true;
  return tlp.address >= kHighMemoryBegin && end <= memory.size();
}

std::uint32_t RootComplex::find_address(std::uint64_t address) const noexcept {
  for (std::uint32_t port = 0; port < down.size(); ++port) {
    if (down[port].claims(address)) return port;
  }
  return kNoPort;
}

std::uint32_t RootComplex::find_id(FunctionId id) const noexcept {
  for (std::uint32_t port = 0; port < down.size(); ++port) {
    if (down[port].leads_to(id)) return port;
  }
  return kNoPort;
}

void RootComplex::later(Packet* packet, Stage stage, Time at) {
  packet->stage = stage;
  context_.queue.schedule(at, *this, reinterpret_cast<std::uintptr_t>(packet));
}

void RootComplex::arrive(Packet* packet, std::uint32_t port) {
  packet->port = port;
  switch (apply_fault(context_, packet, node_id)) {
    case Struck::kNot:
      break;
    case Struck::kGone:
      return;
    case Struck::kRefuse:
      return refuse(packet);
    case Struck::kAbort:
      return answer(error_completion(context_, packet, CompletionStatus::kCompleterAbort, kHostId), port);
  }
  if (packet->kind != TlpKind::kCompletion) return request(packet);
  // D2a: a completion must not pass the writes that came before it.
  const Time ready = order_[port].writes_until;
  if (ready > context_.queue.now()) return later(packet, kDispatch, ready);
  dispatch(packet);
}

void RootComplex::request(Packet* packet) {
  const DownPort& from = down[packet->port];
  if (from.acs.source_validation && !from.leads_to(packet->requester)) {
    ++context_.counters.acs_violations;
    return refuse(packet);
  }
  const Time now = context_.queue.now();
  Order& order = order_[packet->port];
  Time ready = now;
  const bool interrupt = packet->kind == TlpKind::kWrite && packet->address >= kInterruptBegin &&
                         packet->address + packet->bytes <= kInterruptEnd;
  if (iommu.enabled() && !interrupt) {
    const Iommu::Translation translation = iommu.translate(*packet);
    if (!translation.ok) {
      if (packet->kind == TlpKind::kWrite) {
        ++context_.counters.iommu_writes;
        return context_.drop(packet);
      }
      ++context_.counters.iommu_reads;
      const std::uint32_t port = packet->port;
      return answer(error_completion(context_, packet, CompletionStatus::kUnsupportedRequest, kHostId), port);
    }
    packet->address = translation.address;
    packet->translated = true;
    ready += translation.latency;
  }
  ready = std::max(ready, order.writes_until);  // A2a, B2a
  if (packet->kind == TlpKind::kWrite) order.writes_until = ready;
  if (ready > now) return later(packet, kDispatch, ready);
  dispatch(packet);
}

void RootComplex::dispatch(Packet* packet) {
  if (packet->kind == TlpKind::kCompletion) {
    if (packet->requester == kPeerProxyId) return peers_.gather(packet);
    if (packet->requester == kHostId && host != nullptr) {
      context_.see(Point::kDelivered, kHostId, *packet);
      packet->holds->release(*packet);
      host->receive_completion(*packet);
      return context_.pool.give(packet);
    }
    const std::uint32_t target = find_id(packet->requester);
    if (target == kNoPort) {
      ++context_.counters.lost_completions;
      return context_.drop(packet);
    }
    packet->target = target;
    return peers_.enter(packet);
  }
  const std::uint32_t target = find_address(packet->address);
  if (target != kNoPort) return to_peer(packet, target);
  if (!is_memory(*packet)) return refuse(packet);
  if (packet->kind == TlpKind::kWrite) return write_memory(packet);
  context_.see(Point::kDelivered, kHostId, *packet);
  ++counters.reads_received;
  counters.read_bytes_wanted += packet->bytes;
  packet->holds->release(*packet);
  packet->holds = nullptr;
  const auto jitter = static_cast<std::uint64_t>(options_.memory_jitter) + 1;
  const Time more = jitter == 1 ? 0 : static_cast<Time>(random_() % jitter);
  later(packet, kReadMemory, context_.queue.now() + options_.memory_latency + more);
}

void RootComplex::to_peer(Packet* packet, std::uint32_t target) {
  // It may go down to the port from which it came only if it had to come up.
  if (target == packet->port && !packet->translated && !packet->redirected) return refuse(packet);
  switch (options_.peer_to_peer) {
    case PeerToPeer::kRefused:
      ++context_.counters.peer_refused;
      return refuse(packet);
    case PeerToPeer::kReadsVanish:
      if (packet->kind == TlpKind::kRead) {
        ++context_.counters.peer_reads_vanished;
        return context_.drop(packet);
      }
      break;
    case PeerToPeer::kForwarded:
    case PeerToPeer::kReadsWrong:
      break;
  }
  packet->redirected = false;
  packet->target = target;
  peers_.enter(packet);
}

void RootComplex::write_memory(Packet* packet) {
  context_.see(Point::kDelivered, kHostId, *packet);
  ++counters.writes_received;
  counters.write_bytes_received += packet->bytes;
  if (packet->poisoned) ++counters.poisoned_received;
  packet->holds->release(*packet);
  memory.device_write(packet->address, packet->data());
  context_.pool.give(packet);
}

void RootComplex::read_memory(Packet* packet) {
  std::uint32_t offset = 0;
  do {
    const std::uint32_t left = packet->bytes - offset;
    const std::uint32_t bytes = left == 0 ? 0 : splitter_.next(packet->address + offset, left, random_);
    Packet* const completion = context_.pool.take(bytes);
    completion->kind = TlpKind::kCompletion;
    completion->attributes = packet->attributes;
    completion->tag = packet->tag;
    completion->requester = packet->requester;
    completion->completer = kHostId;
    completion->address = packet->address + offset;
    completion->bytes = bytes;
    completion->offset = offset;
    completion->remaining = left;
    completion->last = bytes == left;
    memory.read(completion->address, {completion->payload, bytes});
    ++counters.completions_sent;
    counters.completion_bytes_sent += bytes;
    context_.see(Point::kIssued, kHostId, *completion);
    answer(completion, packet->port);
    offset += bytes;
  } while (offset < packet->bytes);
  context_.pool.give(packet);
}

void RootComplex::answer(Packet* completion, std::uint32_t port) {
  if (port == kHostPort) return later(completion, kAnswerHost, context_.queue.now());
  Transmitter& out = *down[port].out;
  if (out.up()) return out.send(completion);
  ++context_.counters.link_down;
  context_.drop(completion);
}

void RootComplex::refuse(Packet* packet) {
  if (packet->kind != TlpKind::kRead) {
    ++context_.counters.unsupported_writes;
    return context_.drop(packet);
  }
  ++context_.counters.unsupported_reads;
  const std::uint32_t port = packet->port;
  answer(error_completion(context_, packet, CompletionStatus::kUnsupportedRequest, kHostId), port);
}

void RootComplex::issue(Packet* packet) {
  packet->port = kHostPort;
  const std::uint32_t target = find_address(packet->address);
  if (target == kNoPort) return refuse(packet);
  Transmitter& out = *down[target].out;
  if (out.up()) return out.send(packet);
  ++context_.counters.link_down;
  refuse(packet);
}

void RootComplex::on_event(std::uint64_t argument) {
  auto* const packet = reinterpret_cast<Packet*>(static_cast<std::uintptr_t>(argument));
  switch (packet->stage) {
    case kDispatch:
      return dispatch(packet);
    case kReadMemory:
      return read_memory(packet);
    default:
      context_.see(Point::kDelivered, kHostId, *packet);
      host->receive_completion(*packet);
      context_.pool.give(packet);
  }
}

}  // namespace wherry::sim::pcie
