// SPDX-License-Identifier: Apache-2.0
// Host, link, card and the card's driver, for tests and measurements. One thread.
#pragma once

#include <cstdint>
#include <memory>

#include "dma/engine.hpp"
#include "sim/card/card_function.hpp"
#include "sim/card/simulated_device.hpp"
#include "sim/pcie/fabric.hpp"

namespace wherry::sim::card {

struct RigOptions {
  CardOptions card{};
  DeviceOptions device{};
  pcie::FabricOptions fabric{};
  pcie::LinkOptions link{.generation = 3, .lanes = 16};
  bool with_switch = true;  ///< between root port and card; its links are like the card's
};

class Rig {
 public:
  explicit Rig(const RigOptions& options);
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  pcie::EventQueue queue;
  pcie::Fabric fabric;
  CardFunction card;
  pcie::NodeId slot = 0;  ///< the card's
  SimulatedDevice device;
};

/// The time from a 64-byte read request of the card to its data, on an idle fabric. Builds its own fabric.
[[nodiscard]] pcie::Time round_trip(const RigOptions& options);
/// Sets RootOptions::memory_latency so that round_trip() is `wanted`. Precondition: links and switches alone take less.
void set_round_trip(RigOptions& options, pcie::Time wanted);

}  // namespace wherry::sim::card
