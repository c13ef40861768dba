// SPDX-License-Identifier: Apache-2.0
// The kv card's memory as the DMA engine's port sees it. Both have AXI4 of 512 bits in one clock of 250 MHz, so wires
// join them. Between them is what an interconnect adds: an address beyond the card's memory is answered with DECERR.
//
// Each step() is a cycle of the kv core, which does its own work meanwhile. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "sim/core.hpp"
#include "sim/memory/axi.hpp"

namespace wherry::kv::rtl {

class KvPort final : public wherry::sim::memory::AxiBus {
 public:
  /// `core` outlives it. While a transaction of this port is in flight, the core's memory has no other reader.
  explicit KvPort(Core& core) : core_(core) { present(); }

  [[nodiscard]] const wherry::sim::memory::AxiAnswer& answer(std::uint32_t port) const override;
  void step(std::span<const wherry::sim::memory::AxiRequest> in) override;
  void managers_reset() override;

  /// Nothing is under way.
  [[nodiscard]] bool quiet() const noexcept { return reads_ == 0 && writes_ == 0 && !lost_read_ && !lost_write_; }
  /// Cycles of the core that this port ran.
  [[nodiscard]] std::uint64_t cycles() const noexcept { return cycles_; }

 private:
  using Answer = wherry::sim::memory::AxiAnswer;
  using Request = wherry::sim::memory::AxiRequest;

  /// A burst beyond the memory: it waits until earlier bursts are answered, and blocks later ones.
  struct Lost {
    std::uint32_t id = 0;
    std::uint32_t beats = 0;  ///< of a read: to be answered. Of a write: to be taken
  };

  void present();

  Core& core_;
  Answer inner_, out_;
  std::uint32_t reads_ = 0, writes_ = 0;  ///< bursts at the core that are not answered
  std::uint32_t write_data_ = 0;          ///< of writes_: bursts whose data are not all taken
  std::optional<Lost> lost_read_, lost_write_;
  std::uint64_t cycles_ = 0;
};

}  // namespace wherry::kv::rtl
