// SPDX-License-Identifier: Apache-2.0
// A node in hardware on the simulated network: the Verilated core, driven over its registers as a card would be.
#pragma once

#include <vector>

#include "kv/sim/machine.hpp"
#include "sim/core.hpp"

namespace wherry::kv::rtl {

/// Streams and memory of a core as the seed says: some nodes have a smooth life, some do not.
[[nodiscard]] CoreOptions core_options(const sim::MachineOptions& machine);
/// A kv frame for a node, as a network card would hand it over; with or without a checksum, as chance says. Empty: that
/// is no datagram of kv.
[[nodiscard]] std::vector<std::byte> frame_of(const sim::Packet& packet, sim::Random& random);
/// What a node's core put out goes to the network, as its receiver would read it, who must not find fault with it:
/// otherwise the process ends with a sentence.
void send_frame(sim::Network& network, sim::Port port, ByteView frame);

/// The network's time is the core's, at the speed of the machine's clock. What the core sends leaves it at the next
/// look, at most `kLook` cycles later. A register access takes the core's cycles and none of the network's, so that the
/// core's clock runs ahead of the others' with each: its leases end earlier than they might, never later.
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
