// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/machine.hpp"

#include <algorithm>
#include <utility>

namespace wherry::kv::sim {

Machine::Machine(Network& network, Port port, const NodeOptions& node, const DriverOptions& driver, std::uint64_t seed,
                 std::int32_t drift, ToKeeperFunction to_keeper)
    : network_(network),
      port_(port),
      random_(seed),
      to_keeper_(std::move(to_keeper)),
      clock_{.rate = 1 + drift * 1e-6, .origin = random_.next() >> 32},
      node_(node, *this),
      driver_((node_.set_now(local()), driver), node_, *this, local()) {}

void Machine::control(const FromControl& event) {
  inbox_.push_back(event);
  network_.wake_at(network_.now(), port_, kControl);
}

void Machine::receive(Cycles, const Packet& packet) {
  if (packet.bytes.size() < Kv::kBytes) return;
  node_.receive(packet.from, {Kv::unpack(packet.bytes.first<Kv::kBytes>()), packet.bytes.subspan(Kv::kBytes)}, local());
  work();
}

void Machine::wake(Cycles, std::uint64_t tag) {
  if (tag != kControl && !alarm_.rings(tag)) return;
  node_.set_now(local());
  if (tag == kControl) {
    const FromControl event = std::move(inbox_.front());
    inbox_.pop_front();
    if (std::holds_alternative<Connected>(event)) driver_.connected(local());
    if (std::holds_alternative<Disconnected>(event)) driver_.disconnected();
    if (const auto* message = std::get_if<FromKeeper>(&event)) driver_.on_message(*message, local());
  }
  work();
}

void Machine::work() {
  if (driver_.next_time() <= local()) driver_.on_time(local());
  const Cycles next = std::min(node_.tick(local()), driver_.next_time());
  if (next != ~Cycles{0}) alarm_.ask(network_, port_, clock_.truth(std::max(next, local() + 1)));
}

void Machine::send(const Endpoint& to, const Message& message) {
  std::array<std::byte, Kv::kBytes + kMaxValueBytes> datagram;
  message.header.pack(std::span(datagram).first<Kv::kBytes>());
  std::copy(message.value.begin(), message.value.end(), datagram.begin() + Kv::kBytes);
  network_.send(port_, to, ByteView(datagram).first(Kv::kBytes + message.value.size()));
}

}  // namespace wherry::kv::sim
