// SPDX-License-Identifier: Apache-2.0
// A software node on the simulated network.
#pragma once

#include <memory>

#include "kv/node/any_node_testing.hpp"
#include "kv/sim/machine.hpp"

namespace wherry::kv::sim {

class SoftwareMachine final : public Machine, Output {
 public:
  SoftwareMachine(Network& network, Port port, const MachineOptions& options, ToKeeperFunction to_keeper);

  [[nodiscard]] Settled settled() const noexcept override {
    const NodeCounters& c = node_->counters();
    return {.rolled_back = c.rolled_back, .completed = c.completed, .refreshed = c.refreshed};
  }
  [[nodiscard]] const testing::AnyNode* node() const noexcept override { return node_.get(); }
  void receive(Cycles, const Packet& packet) override;

 private:
  void catch_up() override { node_->set_now(local()); }
  Cycles tick() override { return node_->tick(local()); }
  void preset(const Versions& versions) override { node_->preset_versions(versions); }
  void send(const Endpoint& to, const Message& message) override;
  using DriverOutput::send;

  std::unique_ptr<testing::AnyNode> node_;
};

}  // namespace wherry::kv::sim
