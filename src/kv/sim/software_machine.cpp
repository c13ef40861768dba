// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/software_machine.hpp"

#include <utility>

#include "kv/net/datagram.hpp"

namespace wherry::kv::sim {

SoftwareMachine::SoftwareMachine(Network& network, Port port, const MachineOptions& options, ToKeeperFunction to_keeper)
    : Machine(network, port, options, std::move(to_keeper)),
      node_(testing::make_node({.lane_bits = options.lane_bits}, *this, options.faults)) {
  catch_up();
  drive(*node_, [this](Cycles time) {
    node_->set_now(local());
    return node_->silent_members(time);
  });
}

void SoftwareMachine::receive(Cycles, const Packet& packet) {
  const auto message = unpack_datagram(packet.bytes);
  if (!message) return;
  node_->receive(packet.from, *message, local());
  work();
}

void SoftwareMachine::send(const Endpoint& to, const Message& message) {
  Datagram datagram;
  const std::size_t bytes = pack_datagram(message, datagram);
  if (bytes == 0) return;  // longer than a datagram may be
  network_.send(port_, to, ByteView(datagram).first(bytes));
}

}  // namespace wherry::kv::sim
