// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/peer_server.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace wherry::sim::pcie {
namespace {
// Arguments of events that do not stand for packets.
constexpr std::uint64_t kServe = 0, kDeadline = 1;
}  // namespace

PeerServer::PeerServer(Context& context, std::vector<DownPort>& ports)
    : context_(context),
      options_(context.options.root),
      ports_(ports),
      parts_(options_.peer_tags),
      deadline_timer_(context.queue, *this, kDeadline) {
  for (std::uint32_t tag = options_.peer_tags; tag != 0; --tag)
    free_parts_.push_back(static_cast<std::uint16_t>(tag - 1));
}

void PeerServer::start() {
  while (ingress_.size() < ports_.size()) ingress_.push_back({OrderedBuffer({}, 0), context_.places++});
}

std::uint32_t PeerServer::pieces(const Packet& packet) const noexcept {
  if (options_.peer_cut == 0 || packet.bytes == 0) return 1;
  const std::uint64_t first = packet.address / options_.peer_cut;
  return static_cast<std::uint32_t>((packet.address + packet.bytes - 1) / options_.peer_cut - first + 1);
}

void PeerServer::enter(Packet* packet) {
  Ingress& ingress = ingress_[packet->port];
  packet->ready = 0;
  packet->turn = turns_++;
  context_.see(Point::kEntered, ingress.place, *packet);
  ingress.waiting.push(packet, context_.queue.now());
  serve();
}

void PeerServer::wake_at(Time at) {
  if (at >= wake_) return;
  wake_ = at;
  context_.queue.schedule(at, *this, kServe);
}

void PeerServer::serve() {
  const Time now = context_.queue.now();
  for (Ingress& ingress : ingress_) {
    // Completions cost no time: they only wait for the writes before them.
    const auto free = [](const Packet& packet) { return packet.kind == TlpKind::kCompletion; };
    Time held = kNever;
    while (Packet* const packet = ingress.waiting.pick(now, &held, free)) {
      ingress.waiting.remove(packet);
      context_.see(Point::kLeft, ingress.place, *packet);
      forward(packet, leave_time(*packet, now));
    }
  }
  for (;;) {
    if (free_at_ > now) {
      for (const Ingress& ingress : ingress_) {
        if (!ingress.waiting.empty()) wake_at(free_at_);
      }
      return;
    }
    const auto served = [this](const Packet& packet) {
      return packet.kind != TlpKind::kRead || options_.peer_cut == 0 || free_parts_.size() >= pieces(packet);
    };
    Packet* first = nullptr;
    Ingress* from = nullptr;
    for (Ingress& ingress : ingress_) {
      Time held = kNever;
      Packet* const packet = ingress.waiting.pick(now, &held, served);
      if (packet != nullptr && (first == nullptr || packet->turn < first->turn)) {
        first = packet;
        from = &ingress;
      }
    }
    if (first == nullptr) return;  // nothing, or reads that wait for tags: advance() goes on with them
    from->waiting.remove(first);
    context_.see(Point::kLeft, from->place, *first);
    serve_request(first);
  }
}

Time PeerServer::leave_time(const Packet& packet, Time at) {
  Ingress& ingress = ingress_[packet.port];
  const Time latency = std::max<Time>(0, options_.peer_latency - packet.duration);
  return ingress.last_sent = std::max(ingress.last_sent, at + latency);
}

void PeerServer::serve_request(Packet* packet) {
  if (packet->kind == TlpKind::kCompletion) return forward(packet, leave_time(*packet, context_.queue.now()));
  const Time now = context_.queue.now();
  const std::uint32_t count = pieces(*packet);
  context_.counters.peer_requests += count;
  free_at_ = now + count * options_.peer_interval;
  if (packet->kind == TlpKind::kRead && options_.peer_cut != 0) {
    cut_read(packet, now);
  } else if (count > 1) {
    cut_write(packet, now);
  } else {
    forward(packet, leave_time(*packet, now));
  }
}

void PeerServer::cut_write(Packet* packet, Time begin) {
  std::uint32_t offset = 0;
  Time at = begin;
  while (offset < packet->bytes) {
    const std::uint64_t address = packet->address + offset;
    const auto bytes =
        std::min(packet->bytes - offset, static_cast<std::uint32_t>(options_.peer_cut - address % options_.peer_cut));
    Packet* const piece = context_.pool.take(bytes);
    piece->kind = TlpKind::kWrite;
    piece->poisoned = packet->poisoned;
    piece->attributes = packet->attributes;
    piece->requester = packet->requester;
    piece->translated = true;
    piece->address = address;
    piece->bytes = bytes;
    piece->port = packet->port;
    piece->target = packet->target;
    std::memcpy(piece->payload, packet->payload + offset, bytes);
    offset += bytes;
    if (offset == packet->bytes) {
      // The last piece keeps the room in the receive buffer until it leaves.
      piece->holds = std::exchange(packet->holds, nullptr);
      piece->holds_epoch = packet->holds_epoch;
      piece->held_data = packet->held_data;
    }
    forward(piece, leave_time(*packet, at));
    at += options_.peer_interval;
  }
  context_.pool.give(packet);
}

void PeerServer::cut_read(Packet* packet, Time begin) {
  if (free_parents_.empty()) {
    free_parents_.push_back(static_cast<std::uint32_t>(parents_.size()));
    parents_.emplace_back();
  }
  const std::uint32_t index = free_parents_.back();
  free_parents_.pop_back();
  Parent& parent = parents_[index];
  parent = Parent{
      .tag = packet->tag, .requester = packet->requester, .bytes = packet->bytes, .port = packet->port, .front = kNone};
  std::uint16_t last = kNone;
  std::uint32_t offset = 0;
  Time at = begin;
  do {
    const std::uint64_t address = packet->address + offset;
    const auto bytes =
        std::min(packet->bytes - offset, static_cast<std::uint32_t>(options_.peer_cut - address % options_.peer_cut));
    const std::uint16_t number = free_parts_.back();
    free_parts_.pop_back();
    parts_[number] = Part{.used = true,
                          .parent = index,
                          .offset = offset,
                          .next = kNone,
                          .older = youngest_,
                          .younger = kNone,
                          .deadline = context_.queue.now() + options_.peer_timeout};
    (youngest_ == kNone ? oldest_ : parts_[youngest_].younger) = number;
    youngest_ = number;
    if (!deadline_timer_.armed()) deadline_timer_.set(parts_[oldest_].deadline);
    (last == kNone ? parent.front : parts_[last].next) = number;
    last = number;
    ++parent.open;
    Packet* const piece = context_.pool.take(0);
    piece->kind = TlpKind::kRead;
    piece->attributes = packet->attributes;
    piece->requester = kPeerProxyId;
    piece->tag = number;
    piece->translated = true;
    piece->address = address;
    piece->bytes = bytes;
    piece->port = packet->port;
    piece->target = packet->target;
    offset += bytes;
    if (offset == packet->bytes) {
      piece->holds = std::exchange(packet->holds, nullptr);
      piece->holds_epoch = packet->holds_epoch;
      piece->held_data = packet->held_data;
    }
    forward(piece, leave_time(*packet, at));
    at += options_.peer_interval;
  } while (offset < packet->bytes);
  context_.pool.give(packet);
}

void PeerServer::forward(Packet* packet, Time at) {
  if (options_.peer_to_peer == PeerToPeer::kReadsWrong && packet->kind == TlpKind::kCompletion) {
    for (std::uint32_t i = 0; i < packet->bytes; ++i) packet->payload[i] = ~packet->payload[i];
  }
  context_.queue.schedule(at, *this, reinterpret_cast<std::uintptr_t>(packet));
}

void PeerServer::on_event(std::uint64_t argument) {
  if (argument == kDeadline) return forget_unanswered();
  if (argument == kServe) {
    if (context_.queue.now() < wake_) return;
    wake_ = kNever;
    serve();
    return;
  }
  auto* const packet = reinterpret_cast<Packet*>(static_cast<std::uintptr_t>(argument));
  Transmitter& out = *ports_[packet->target].out;
  if (out.up()) {
    out.send(packet);
    return;
  }
  ++context_.counters.link_down;
  if (packet->kind != TlpKind::kRead) return context_.drop(packet);
  const std::uint32_t port = packet->port;
  Packet* const answer = error_completion(context_, packet, CompletionStatus::kUnsupportedRequest, kHostId);
  answer->port = port;
  answer->target = port;
  if (answer->requester == kPeerProxyId) {
    gather(answer);
  } else if (ports_[port].out->up()) {
    ports_[port].out->send(answer);
  } else {
    context_.drop(answer);
  }
}

// --- Completions of reads that were cut ---

void PeerServer::gather(Packet* packet) {
  if (packet->tag >= parts_.size() || !parts_[packet->tag].used || parts_[packet->tag].done) {
    ++context_.counters.lost_completions;
    return context_.drop(packet);
  }
  Part& part = parts_[packet->tag];
  const std::uint32_t index = part.parent;
  if (packet->last) part.done = true;
  packet->next = nullptr;
  (part.held == nullptr ? part.held : part.held_last->next) = packet;
  part.held_last = packet;
  advance(index);
}

void PeerServer::advance(std::uint32_t index) {
  Parent& parent = parents_[index];
  while (parent.front != kNone) {
    const std::uint16_t number = parent.front;
    while (Packet* const packet = parts_[number].held) {
      parts_[number].held = packet->next;
      packet->next = nullptr;
      pass_on(parent, packet, parts_[number].offset, parts_[number].next == kNone);
    }
    if (!parts_[number].done) return;
    parent.front = parts_[number].next;
    free_part(number);
    --parent.open;
  }
  free_parents_.push_back(index);
  serve();  // there are tags again
}

void PeerServer::pass_on(Parent& parent, Packet* packet, std::uint32_t part_offset, bool last_part) {
  if (parent.failed) {
    ++context_.counters.lost_completions;  // the requester was told of the failure
    return context_.drop(packet);
  }
  const bool success = packet->status == CompletionStatus::kSuccess;
  parent.failed = !success;
  // For the requester, the root is the completer. Its ID says nothing of the device's writes that must stay before it.
  packet->completer = kHostId;
  packet->attributes.id_ordering = false;
  packet->requester = parent.requester;
  packet->tag = parent.tag;
  packet->offset += part_offset;
  packet->remaining = success ? parent.bytes - packet->offset : parent.bytes;
  packet->last = !success || (packet->last && last_part);
  packet->target = parent.port;
  enter(packet);
}

void PeerServer::free_part(std::uint16_t number) {
  Part& part = parts_[number];
  (part.older == kNone ? oldest_ : parts_[part.older].younger) = part.younger;
  (part.younger == kNone ? youngest_ : parts_[part.younger].older) = part.older;
  part.used = false;
  free_parts_.push_back(number);
  if (oldest_ == kNone) deadline_timer_.cancel();
}

/// An unanswered part ends its read. The requester's own time is over, too, or the requester is gone.
void PeerServer::forget_unanswered() {
  while (oldest_ != kNone && parts_[oldest_].deadline <= context_.queue.now()) {
    const std::uint32_t index = parts_[oldest_].parent;
    parents_[index].failed = true;
    for (std::uint16_t number = parents_[index].front; number != kNone; number = parts_[number].next) {
      parts_[number].done = true;
    }
    advance(index);
  }
  if (oldest_ != kNone) deadline_timer_.set(parts_[oldest_].deadline);
}

}  // namespace wherry::sim::pcie
