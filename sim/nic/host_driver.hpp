// SPDX-License-Identifier: Apache-2.0
// A plain driver for a NIC model: rings and buffers in host memory, one queue pair, no interrupts. It polls its rings
// whenever the NIC writes to them, like a polling driver without delay. For tests and as a baseline.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "sim/nic/nic.hpp"
#include "sim/pcie/fabric.hpp"

namespace wherry::sim::nic {

struct DriverOptions {
  std::uint32_t queue = 0;
  std::uint32_t rx_descriptors = 512;
  std::uint32_t tx_descriptors = 512;
  std::uint32_t buffer_bytes = 2048;
  std::uint32_t rx_tail_batch = 8;  ///< one tail write for so many descriptors
  std::uint32_t tx_tail_batch = 1;
  std::uint32_t report_every = 1;  ///< RS in one of so many frames
  bool head_writeback = false;
  std::uint64_t memory = 1 << 20;  ///< where its rings and buffers begin
};

class HostDriver final : pcie::MemoryWatcher {
 public:
  /// `host`: the processor's port. All outlive the driver.
  HostDriver(pcie::Fabric& fabric, Nic& nic, pcie::Port& host, const DriverOptions& options);
  /// Sets up the rings again, and hands them over.
  Status start();
  /// Called for each received frame, in order. The frame is valid during the call.
  void receive(std::function<void(std::span<const std::byte>)> handler) { handler_ = std::move(handler); }
  /// Called when a full transmit ring has room again.
  void on_space(std::function<void()> handler) { space_ = std::move(handler); }
  /// False: the ring is full.
  [[nodiscard]] bool send(std::span<const std::byte> frame);
  /// Sends the NIC the tails that tx_tail_batch has held back.
  void flush();
  /// Descriptors that may not be done yet.
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return tx_used_; }
  std::uint64_t bad_lengths = 0;  ///< write-backs that tell more than a buffer holds: the frame is dropped

 private:
  void on_memory_write(std::uint64_t address, std::uint32_t bytes) override;
  void poll_rx();
  void poll_tx();
  void refill(std::uint32_t index);
  void tail(bool tx, std::uint32_t value);
  [[nodiscard]] bypass::Descriptor read(std::uint64_t address) const;
  void write(std::uint64_t address, const bypass::Descriptor& descriptor);
  [[nodiscard]] std::uint64_t rx_descriptor(std::uint32_t index) const;
  [[nodiscard]] std::uint64_t tx_descriptor(std::uint32_t index) const;
  [[nodiscard]] std::uint64_t buffer(bool tx, std::uint32_t index) const;

  pcie::Fabric& fabric_;
  Nic& nic_;
  pcie::Port& host_;
  const DriverOptions options_;
  std::uint64_t rx_ring_, tx_ring_, head_at_, buffers_;
  std::function<void(std::span<const std::byte>)> handler_;
  std::function<void()> space_;
  std::vector<std::byte> frame_;
  bool spoilt_ = false;
  std::uint32_t rx_next_ = 0, rx_tail_ = 0, rx_held_ = 0;
  std::uint32_t tx_next_ = 0, tx_done_ = 0, tx_used_ = 0, tx_held_ = 0, tx_since_report_ = 0;
  std::deque<std::uint32_t> reports_;  ///< descriptors with RS, oldest first
};

}  // namespace wherry::sim::nic
