// SPDX-License-Identifier: Apache-2.0
#include "sim/card/rig.hpp"

#include <array>

namespace wherry::sim::card {
namespace {

/// A device that reads.
class Reader final : public pcie::Function {
 public:
  void on_write(const pcie::InboundWrite& write) override { static_cast<void>(write); }
  void on_read(const pcie::InboundRead& read) override { static_cast<void>(read); }
  void on_read_done(pcie::Token token, pcie::CompletionStatus status) override {
    static_cast<void>(token), static_cast<void>(status);
    done = true;
  }
  bool done = false;
};

pcie::NodeId add_slot(pcie::Fabric& fabric, const RigOptions& options) {
  pcie::NodeId above = pcie::kRoot;
  if (options.with_switch) above = fabric.add_switch(above, options.link).value();
  return fabric
      .add_endpoint(
          above, options.link,
          {.receive_latency = CardFunction::kHardBlockLatency, .send_latency = CardFunction::kHardBlockLatency})
      .value();
}

}  // namespace

Rig::Rig(const RigOptions& options)
    : fabric(queue, options.fabric),
      card(queue, options.card),
      slot(add_slot(fabric, options)),
      device(fabric, card, options.device) {
  card.attach(*fabric.add_function(slot, card, CardFunction::function_options()).value());
  if (const Status status = fabric.enumerate(); !status)
    static_cast<void>(Result<int>(status).value());  // says why, and ends
}

pcie::Time round_trip(const RigOptions& options) {
  constexpr std::uint64_t kPlace = std::uint64_t{4} << 30;
  constexpr std::uint32_t kBytes = 64;
  pcie::EventQueue queue;
  pcie::FabricOptions fabric_options = options.fabric;
  fabric_options.root.memory_jitter = 0;
  pcie::Fabric fabric(queue, fabric_options);
  Reader reader;
  pcie::FunctionOptions function{.name = "reader"};
  function.bars[0] = {.bytes = pcie::kPageBytes};
  pcie::Port* const port = fabric.add_function(add_slot(fabric, options), reader, function).value();
  if (const Status status = fabric.enumerate(); !status) static_cast<void>(Result<int>(status).value());
  port->set_bus_master(true);
  std::array<std::byte, kBytes> into;
  const pcie::Time begin = queue.now();
  port->post_read({.address = kPlace, .bytes = kBytes, .into = into.data()});
  while (!reader.done && queue.step()) {
  }
  return queue.now() - begin;
}

void set_round_trip(RigOptions& options, pcie::Time wanted) {
  options.fabric.root.memory_latency = 0;
  options.fabric.root.memory_latency = wanted - round_trip(options);
}

}  // namespace wherry::sim::card
