// SPDX-License-Identifier: Apache-2.0
// A node in hardware on the simulated network: the Verilated core, driven over its registers as a card would be.
#pragma once

#include "kv/sim/machine.hpp"
#include "sim/core.hpp"

namespace wherry::kv::rtl {

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
  void send_frame(const CoreFrame& frame);
  using DriverOutput::send;

  Core core_;
  Cycles caught_up_;
};

/// For ClusterOptions::hardware.
[[nodiscard]] sim::MachineFactory machine_factory();

}  // namespace wherry::kv::rtl
