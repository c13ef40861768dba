// SPDX-License-Identifier: Apache-2.0
// A hardware node on the simulated network: the Verilated core, driven over its registers like a card.
#pragma once

#include <vector>

#include "kv/sim/machine.hpp"
#include "sim/core.hpp"

namespace wherry::kv::rtl {

/// Stream and memory settings of a core, from the seed: some nodes run smoothly, others do not.
[[nodiscard]] CoreOptions core_options(const sim::MachineOptions& machine);
/// A kv frame for a node, in the form of a network card. Chance decides whether it has a checksum. Empty: the packet is
/// not a kv datagram.
[[nodiscard]] std::vector<std::byte> frame_of(const sim::Packet& packet, sim::Random& random);
/// Sends a core's frame to the network, in the form that its receiver reads. A wrong frame ends the process with a
/// message.
void send_frame(sim::Network& network, sim::Port port, ByteView frame);

/// The core runs in the network's time, at the speed of the machine's clock. The core's frames leave it at the next
/// look, at most `kLook` cycles later. A register access takes cycles of the core but no time of the network, so each
/// one moves the core's clock ahead of the others'. Its leases end earlier than necessary, never later.
class RtlMachine final : public sim::Machine {
 public:
  RtlMachine(sim::Network& network, sim::Port port, const sim::MachineOptions& options, ToKeeperFunction to_keeper);

  void receive(Cycles, const sim::Packet& packet) override;

 private:
  static constexpr Cycles kLook = 32;

  void catch_up() override;
  Cycles tick() override;
  void preset(const sim::Versions& versions) override { core_.preset_versions(versions); }
  void run(Cycles cycles);
  using DriverOutput::send;

  Core core_;
  Cycles caught_up_;
};

/// For ClusterOptions::hardware.
[[nodiscard]] sim::MachineFactory machine_factory();

}  // namespace wherry::kv::rtl
