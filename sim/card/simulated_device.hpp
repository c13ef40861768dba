// SPDX-License-Identifier: Apache-2.0
// The card as a driver sees it (pci::Device), in simulated time. Register and doorbell accesses are TLPs of the
// simulated processor. DMA memory belongs to this process and to the simulated host. An MSI-X message increments an
// eventfd. Time advances only during calls.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "pci/device.hpp"
#include "sim/card/card_function.hpp"
#include "sim/pcie/fabric.hpp"

namespace wherry::sim::card {

struct DeviceOptions {
  bool has_reset = true;
  /// The duration of a function-level reset, which the host waits for. The specification's 100 ms (PCIe 5.0, 6.6.2) are
  /// not needed here.
  pcie::Time reset_time = 20 * pcie::kMicrosecond;
  std::uint64_t memory_from = std::uint64_t{4} << 30;  ///< DMA memory begins there
  std::uint64_t guard = 4096;                          ///< bytes between two pieces of memory, that nobody has
};

class SimulatedDevice final : public pci::Device, pcie::Function, pcie::MemoryWatcher {
 public:
  /// Construct it before Fabric::enumerate(), because the processor is a port of the fabric, too.
  SimulatedDevice(pcie::Fabric& fabric, CardFunction& card, const DeviceOptions& options = {});

  [[nodiscard]] std::uint32_t read32(unsigned bar, std::uint64_t offset) override;
  void write32(unsigned bar, std::uint64_t offset, std::uint32_t value) override;
  void write_line(unsigned bar, std::uint64_t offset, std::span<const std::byte> data) override;
  Status set_bus_master(bool on) override;
  Status reset() override;
  Result<pci::DmaMemory> allocate(std::size_t bytes) override;
  Status set_vectors(std::span<const int> eventfds) override;
  [[nodiscard]] std::chrono::nanoseconds now() const override;
  void pause(std::chrono::nanoseconds most) override;
  [[nodiscard]] bool wait(int eventfd, std::chrono::nanoseconds most) override;

  /// A posted write of the processor to another function of the same driver. Posted.
  void write_bus(std::uint64_t address, std::span<const std::byte> data) { host_->post_write(address, data); }

  /// The number of messages that came, by vector.
  [[nodiscard]] const std::vector<std::uint64_t>& messages() const noexcept { return messages_; }

 private:
  void on_write(const pcie::InboundWrite& write) override { static_cast<void>(write); }
  void on_read(const pcie::InboundRead& read) override { static_cast<void>(read); }
  void on_read_done(pcie::Token token, pcie::CompletionStatus status) override;
  void on_memory_write(std::uint64_t address, std::uint32_t bytes) override;
  void run_until(pcie::Time end, const bool& done);
  void write_table();

  pcie::Fabric& fabric_;
  CardFunction& card_;
  DeviceOptions options_;
  pcie::Port* host_;
  std::uint64_t next_;
  std::deque<std::vector<std::byte>> memories_;
  std::vector<int> eventfds_;
  std::vector<std::uint64_t> messages_;
  bool read_done_ = false, read_ok_ = false;
  std::uint64_t reads_ = 0;
};

}  // namespace wherry::sim::card
