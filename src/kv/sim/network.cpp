// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/network.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace wherry::kv::sim {
namespace {

std::uint64_t address_of(const Endpoint& at) { return std::uint64_t{at.ip} << 16 | at.port; }

}  // namespace

Port Network::attach(const Endpoint& at, Receiver& receiver) {
  const auto port = static_cast<Port>(ports_.size());
  ports_.push_back({.at = at, .receiver = &receiver});
  [[maybe_unused]] const bool own = by_address_.emplace(address_of(at), port).second;
  assert(own);
  if (at.mac != 0) by_mac_.emplace(at.mac, port);
  for (std::vector<State>& row : links_) row.push_back({.options = default_link_});
  links_.emplace_back(ports_.size(), State{.options = default_link_});
  return port;
}

void Network::set_links(const Link& link) {
  default_link_ = link;
  for (std::vector<State>& row : links_)
    for (State& state : row) state.options = link;
}

void Network::send(Port from, const Endpoint& to, ByteView datagram) {
  Packet packet{.from = ports_[from].at, .to = to, .form = Form::kDatagram, .bytes = datagram};
  const auto found = by_address_.find(address_of(to));
  const bool known = found != by_address_.end();
  if (known) packet.to = ports_[found->second].at;  // with its MAC address, as ARP would find it
  note(Fate::kSent, packet);
  if (!known || datagram.size() > kMaxFrame) return note(Fate::kUnroutable, packet);
  transmit(from, found->second, packet);
}

void Network::send_frame(Port from, ByteView frame) {
  Packet packet{.from = ports_[from].at, .to = {}, .form = Form::kFrame, .bytes = frame};
  std::uint64_t mac = 0;
  for (std::size_t i = 0; i < 6 && i < frame.size(); ++i) mac = mac << 8 | std::to_integer<std::uint64_t>(frame[i]);
  const auto found = by_mac_.find(mac);
  const bool known = found != by_mac_.end();
  if (known) packet.to = ports_[found->second].at;
  note(Fate::kSent, packet);
  if (!known || frame.size() > kMaxFrame) return note(Fate::kUnroutable, packet);
  transmit(from, found->second, packet);
}

void Network::transmit(Port from, Port to, const Packet& packet) {
  if (ports_[from].side != ports_[to].side) return note(Fate::kCut, packet);
  State& link = links_[from][to];
  const Link& options = link.options;
  // Each copy has its own fate: a duplicate may arrive although the frame is lost.
  const bool twice = options.duplicate != 0 && random_.chance(options.duplicate);
  for (int copy = 0; copy <= static_cast<int>(twice); ++copy) {
    const Cycles more = interference_ ? interference_(from, to, packet) : 0;
    if (more == kLose || (options.loss != 0 && random_.chance(options.loss))) {
      note(Fate::kLost, packet);
      continue;
    }
    Cycles when = now_ + more + options.latency + random_.below(static_cast<std::uint32_t>(options.jitter + 1));
    if (copy == 1 || (options.late != 0 && random_.chance(options.late)))
      when += random_.below(static_cast<std::uint32_t>(options.lateness + 1));
    else if (more == 0)
      when = link.last = std::max(when, link.last);
    deliver_at(when, to, packet);
  }
}

void Network::deliver_at(Cycles when, Port to, const Packet& packet) {
  if (free_carried_.empty()) {
    carried_.push_back(std::make_unique_for_overwrite<std::array<Carried, kChunk>>());
    for (std::size_t i = kChunk; i-- > 0;) free_carried_.push_back((carried_.size() - 1) * kChunk + i);
  }
  const std::uint64_t index = free_carried_.back();
  free_carried_.pop_back();
  Carried& copy = carried(index);
  copy.from = packet.from;
  copy.to = packet.to;
  copy.form = packet.form;
  copy.length = static_cast<std::uint16_t>(packet.bytes.size());
  std::copy(packet.bytes.begin(), packet.bytes.end(), copy.bytes.begin());
  push(when, What::kPacket, to, index);
}

void Network::call_at(Cycles when, std::function<void(Cycles)> function) {
  if (free_calls_.empty()) {
    free_calls_.push_back(calls_.size());
    calls_.emplace_back();
  }
  const std::uint64_t index = free_calls_.back();
  free_calls_.pop_back();
  calls_[index] = std::move(function);
  push(when, What::kCall, 0, index);
}

void Network::push(Cycles when, What what, Port port, std::uint64_t tag) {
  const std::uint32_t generation = what == What::kWake ? ports_[port].generation : 0;
  heap_.push_back({std::max(when, now_), sequence_++, tag, generation, port, what});
  std::push_heap(heap_.begin(), heap_.end());
}

void Network::split(const std::vector<Port>& side) {
  for (Attached& port : ports_) port.side = false;
  for (const Port port : side) ports_[port].side = true;
}

void Network::resume(Port port) {
  ports_[port].paused = false;
  for (Event event : std::exchange(ports_[port].held, {})) {
    event.at = now_;
    event.sequence = sequence_++;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end());
  }
}

void Network::kill(Port port) {
  ports_[port].receiver = nullptr;
  ++ports_[port].generation;
  resume(port);  // what waited for it meets a dead process
}

void Network::revive(Port port, Receiver& receiver) { ports_[port].receiver = &receiver; }

bool Network::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end());
  const Event event = heap_.back();
  heap_.pop_back();
  now_ = event.at;
  ++events_;
  happen(event);
  return true;
}

void Network::happen(const Event& event) {
  if (event.what == What::kCall) {
    const std::function<void(Cycles)> function = std::exchange(calls_[event.tag], nullptr);
    free_calls_.push_back(event.tag);
    return function(now_);
  }
  Attached& port = ports_[event.port];
  if (port.paused) return port.held.push_back(event);
  Receiver* const receiver = port.receiver;  // `port` is gone if the receiver attaches another
  if (event.what == What::kWake) {
    if (receiver != nullptr && event.generation == port.generation) receiver->wake(now_, event.tag);
    return;
  }
  const Carried& arrived = carried(event.tag);
  const Packet packet{.from = arrived.from,
                      .to = arrived.to,
                      .form = arrived.form,
                      .bytes = ByteView(arrived.bytes).first(arrived.length)};
  note(receiver == nullptr ? Fate::kDead : Fate::kDelivered, packet);
  if (receiver != nullptr) receiver->receive(now_, packet);
  free_carried_.push_back(event.tag);
}

void Network::run_until(Cycles when) {
  while (!heap_.empty() && heap_.front().at <= when) step();
  now_ = std::max(now_, when);
}

void Network::note(Fate fate, const Packet& packet) {
  ++counts_[static_cast<std::size_t>(fate)];
  if (tap_ != nullptr) tap_->see(now_, fate, packet);
}

}  // namespace wherry::kv::sim
