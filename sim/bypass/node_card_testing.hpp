// SPDX-License-Identifier: Apache-2.0
// For tests: the Verilated hdl/cards/bypass_node_dma.sv. It is a card as a PCIe bridge sees it: the bypass core with
// its functions, and the DMA engine beside it. The bridge is modelled by its two AXI4 ports. A violation (of an RTL
// assertion, or of AXI) ends the process with a message. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "sim/bypass/rtl_window.hpp"

namespace wherry::sim {

/// What the card reaches as a bus master. False: nobody answers.
struct HostMemory {
  std::function<bool(std::uint64_t, std::span<std::byte>)> read;
  std::function<bool(std::uint64_t, std::span<const std::byte>)> write;
};

class NodeCard {
 public:
  /// Addresses of the card's BARs at the bridge (hdl/cards/bypass_bridge.sv).
  static constexpr std::uint32_t kWindow = 0, kRegisters = 0x100'0000, kEngine = 0x200'0000;

  /// Out of reset. `pauses`: of all ports, in parts per million.
  explicit NodeCard(HostMemory memory, std::uint64_t seed = 0, std::uint32_t pauses = 0);
  NodeCard(const NodeCard&) = delete;
  NodeCard& operator=(const NodeCard&) = delete;
  ~NodeCard();

  // Accesses of the host. The clock runs until the access has ended.
  [[nodiscard]] std::uint32_t read32(std::uint32_t address);
  void write32(std::uint32_t address, std::uint32_t value);
  void read(std::uint32_t address, std::span<std::byte> data);
  void write(std::uint32_t address, std::span<const std::byte> data);
  /// A posted write within a line. The clock does not run.
  void post(std::uint32_t address, std::span<const std::byte> data);

  void tick();
  [[nodiscard]] std::uint64_t cycles() const noexcept { return now_; }

 private:
  struct Pins;
  class HostPort;
  template <typename Condition>
  void run_until(const char* what, const Condition& condition);
  [[noreturn]] void fail(const std::string& why) const;

  std::uint64_t now_ = 0;
  Pauses pauses_;
  RtlWindow bars_;
  std::unique_ptr<HostPort> host_;
  std::unique_ptr<Pins> pins_;
};

}  // namespace wherry::sim
