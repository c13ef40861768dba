// SPDX-License-Identifier: Apache-2.0
// A hardware node behind a NIC (nic_node.hpp) on the simulated network.
#pragma once

#include "kv/sim/machine.hpp"
#include "sim/nic_node.hpp"

namespace wherry::kv::rtl {

/// Like RtlMachine. The seed chooses the NIC's family, and the behaviour of PCIe and of the bypass core's ports.
class NicMachine final : public sim::Machine {
 public:
  NicMachine(sim::Network& network, sim::Port port, const sim::MachineOptions& options, ToKeeperFunction to_keeper);

  void receive(Cycles, const sim::Packet& packet) override;

 private:
  static constexpr Cycles kLook = 32;

  void catch_up() override;
  Cycles tick() override;
  void preset(const sim::Versions& versions) override { node_.core().preset_versions(versions); }
  using DriverOutput::send;

  NicNode node_;
  Cycles caught_up_;
};

/// For ClusterOptions::hardware.
[[nodiscard]] sim::MachineFactory nic_machine_factory();

}  // namespace wherry::kv::rtl
