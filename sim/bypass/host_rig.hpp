// SPDX-License-Identifier: Apache-2.0
// Rings in the host's memory, simulated: a NIC model and a card at two ports of a root complex that does not forward
// between them. The card has two functions, the Verilated bypass core and the Verilated DMA engine, whose memory is the
// core's window. The host's own code (src/bypass/host_rings.cpp, card.cpp, src/dma) runs between simulation events.
// docs/design/bypass-host-rings.md
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "bypass/engine_mover.hpp"
#include "bypass/host_rings.hpp"
#include "dma/engine.hpp"
#include "sim/bypass/rig.hpp"
#include "sim/bypass/window_bus.hpp"
#include "sim/card/card_function.hpp"
#include "sim/card/simulated_device.hpp"

namespace wherry::sim {

struct HostRigOptions {
  std::string_view nic = "ixgbe";
  std::uint32_t mbits = 10'000;
  pcie::LinkOptions nic_link{.generation = 2, .lanes = 8};
  pcie::LinkOptions card_link{.generation = 3, .lanes = 8};
  pcie::PeerToPeer peer_to_peer = pcie::PeerToPeer::kRefused;
  bool in_place = true;
  std::uint64_t seed = 1;
  std::uint32_t pauses = 0;  ///< of the core's ports
  pcie::Reordering reordering{};
  std::uint32_t frame_bytes = 9022;
  /// chosen: the host's polling period. Its instructions take no other time.
  pcie::Time turn = 100 * pcie::kNanosecond;
};

class HostRig final : bypass::HostRingsAccess {
 public:
  HostRig(const HostRigOptions& options, InPlaceFunction* in_place, StreamFunction* stream);
  HostRig(const HostRig&) = delete;
  HostRig& operator=(const HostRig&) = delete;

  /// Hands the rings over again. `ready` is the first result.
  Status start();
  /// Stops the card and the NIC, and waits until nothing is in flight. The host polls meanwhile.
  Status stop();
  /// Lets time pass while the host polls.
  void run_until(pcie::Time end);
  /// The same, until nothing has been done for `quiet`.
  void run_dry(pcie::Time quiet);
  [[nodiscard]] const bypass::HostRings& rings() const noexcept { return *rings_; }
  [[nodiscard]] std::uint64_t core_counter(std::string_view name);
  [[nodiscard]] bypass::Card& host() noexcept { return *host_; }
  [[nodiscard]] card::CardFunction& engine_card() noexcept { return engine_card_; }

  pcie::EventQueue queue;
  pcie::Fabric fabric;
  nic::Nic nic;
  RtlFunction card;
  Meter meter;
  WindowBus window;
  pcie::NodeId nic_node = 0, card_node = 0;
  Status ready;
  Status health;  ///< the first error of the host's turns, which ends them

 private:
  Status build();
  // bypass::HostRingsAccess: posted writes of the processor.
  void write_window(std::uint32_t offset, std::span<const std::byte> bytes) override;
  void write_rx_tail(std::uint32_t pair, std::uint32_t value) override { write_tail(nic.rx_tail_address(pair), value); }
  void write_tx_tail(std::uint32_t pair, std::uint32_t value) override { write_tail(nic.tx_tail_address(pair), value); }
  void write_tail(std::uint64_t address, std::uint32_t value);

  HostRigOptions options_;
  card::CardFunction engine_card_;
  card::SimulatedDevice device_;
  pcie::Port* nic_port_ = nullptr;
  pcie::Port* card_port_ = nullptr;
  std::unique_ptr<wherry::dma::Engine> engine_;
  pci::DmaMemory mirror_, mailbox_;
  std::unique_ptr<bypass::EngineMover> mover_;
  std::unique_ptr<bypass::HostRings> rings_;
  std::optional<bypass::Card> host_;
};

}  // namespace wherry::sim
