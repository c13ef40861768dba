// SPDX-License-Identifier: Apache-2.0
#include "sim/nic_machine.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/machine.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::array<std::string_view, 6> kNics{"e1000e", "igb", "ixgbe", "i40e", "ice", "iavf"};

NicNodeOptions node_options(const sim::MachineOptions& machine) {
  sim::Random random(~machine.seed);
  NicNodeOptions options{
      .nic = kNics[random.below(kNics.size())], .seed = random.next(), .core = core_options(machine)};
  options.pauses = random.below(2) * 200'000;
  options.reordering = random.below(2) == 0;
  return options;
}

}  // namespace

NicMachine::NicMachine(sim::Network& network, sim::Port port, const sim::MachineOptions& options,
                       ToKeeperFunction to_keeper)
    : Machine(network, port, options, std::move(to_keeper)), node_(node_options(options)), caught_up_(local()) {
  drive(node_.core());
}

void NicMachine::catch_up() {
  const Cycles now = local();
  node_.run(now - caught_up_);
  caught_up_ = now;
  while (const auto frame = node_.take()) send_frame(network_, port_, frame->bytes);
}

Cycles NicMachine::tick() {
  const auto next = node_.next();
  return next ? local() + std::max(*next, kLook) : ~Cycles{0};
}

void NicMachine::receive(Cycles, const sim::Packet& packet) {
  catch_up();
  const std::vector<std::byte> frame = frame_of(packet, random_);
  if (frame.empty()) return;
  node_.put(frame);
  work();
}

sim::MachineFactory nic_machine_factory() {
  return [](sim::Network& network, sim::Port port, const sim::MachineOptions& options,
            sim::Machine::ToKeeperFunction to_keeper) {
    return std::make_unique<NicMachine>(network, port, options, std::move(to_keeper));
  };
}

}  // namespace wherry::kv::rtl
