// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/software_machine.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace wherry::kv::sim {

SoftwareMachine::SoftwareMachine(Network& network, Port port, const MachineOptions& options, ToKeeperFunction to_keeper)
    : Machine(network, port, options, std::move(to_keeper)),
      node_({.lane_bits = options.lane_bits, .faults = options.faults}, *this) {
  catch_up();
  drive(node_, [this](Cycles time) {
    node_.set_now(local());
    return node_.silent_members(time);
  });
}

void SoftwareMachine::receive(Cycles, const Packet& packet) {
  if (packet.bytes.size() < Kv::kBytes) return;
  node_.receive(packet.from, {Kv::unpack(packet.bytes.first<Kv::kBytes>()), packet.bytes.subspan(Kv::kBytes)}, local());
  work();
}

void SoftwareMachine::send(const Endpoint& to, const Message& message) {
  std::array<std::byte, Kv::kBytes + kMaxValueBytes> datagram;
  message.header.pack(std::span(datagram).first<Kv::kBytes>());
  std::copy(message.value.begin(), message.value.end(), datagram.begin() + Kv::kBytes);
  network_.send(port_, to, ByteView(datagram).first(Kv::kBytes + message.value.size()));
}

}  // namespace wherry::kv::sim
