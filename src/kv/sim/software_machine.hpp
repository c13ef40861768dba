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
    return {.rolled_back = node_.counters().rolled_back, .completed = node_.counters().completed};
  }
  void receive(Cycles, const Packet& packet) override;

 private:
  void catch_up() override { node_.set_now(local()); }
  Cycles tick() override { return node_.tick(local()); }
  void send(const Endpoint& to, const Message& message) override;
  using DriverOutput::send;

  Node node_;
};

}  // namespace wherry::kv::sim
