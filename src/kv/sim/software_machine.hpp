// SPDX-License-Identifier: Apache-2.0
// A software node on the simulated network.
#pragma once

#include "kv/node/node.hpp"
#include "kv/sim/machine.hpp"

namespace wherry::kv::sim {

class SoftwareMachine final : public Machine, Output {
 public:
  SoftwareMachine(Network& network, Port port, const MachineOptions& options, ToKeeperFunction to_keeper);

  [[nodiscard]] Settled settled() const noexcept override {
    const NodeCounters& c = node_.counters();
    return {.rolled_back = c.rolled_back, .completed = c.completed, .refreshed = c.refreshed};
  }
  [[nodiscard]] const Node* node() const noexcept override { return &node_; }
  void receive(Cycles, const Packet& packet) override;

 private:
  void catch_up() override { node_.set_now(local()); }
  Cycles tick() override { return node_.tick(local()); }
  void preset(const Versions& versions) override { node_.preset_versions(versions); }
  void send(const Endpoint& to, const Message& message) override;
  using DriverOutput::send;

  Node node_;
};

}  // namespace wherry::kv::sim
