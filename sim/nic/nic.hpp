// SPDX-License-Identifier: Apache-2.0
// A network card: one engine whose behaviour a bypass::Personality defines. docs/design/nic-model.md lists the modelled
// and the missing features, and the source of each constant.
//
// It is a PCIe function with registers in BAR 0 and an Ethernet port. If ring addresses are handed over by messages
// (admin queue, virtchnl), start_rx() and start_tx() replace the messages. Both calls work for every personality. Tails
// are always registers. Use it on one thread only, the thread of the event queue.
//
// Ordering: payload is written before its write-back. Write-backs follow ring order. All writes are posted and in
// order. Reads complete in any order.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "sim/nic/receive.hpp"
#include "sim/nic/transmit.hpp"
#include "wherry/status.hpp"

namespace wherry::sim::nic {

class Nic final : public pcie::Function, public WireEnd {
 public:
  Nic(pcie::EventQueue& queue, const NicOptions& options);
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  /// For Fabric::add_function(): BAR 0, and one tag for each read that the personality allows.
  [[nodiscard]] static pcie::FunctionOptions function_options(const NicOptions& options);
  /// `port` comes from Fabric::add_function(). Call it once, before anything else.
  void attach(pcie::Port& port) noexcept;
  /// `peer` receives the sent frames. Null: sent frames are only counted.
  void connect(WireEnd* peer) noexcept { peer_ = peer; }

  /// Gives the NIC a ring, which it owns from now on. Errors: no such queue; a base, length or buffer that the
  /// personality does not allow. Head and tail are 0.
  Status start_rx(std::uint32_t queue, std::uint64_t base, std::uint32_t descriptors, std::uint32_t buffer_bytes);
  /// `head_writeback`: the address to which the head is written instead of descriptors, or 0.
  Status start_tx(std::uint32_t queue, std::uint64_t base, std::uint32_t descriptors, std::uint64_t head_writeback = 0);
  void stop_rx(std::uint32_t queue) { receive_.stop(queue); }
  void stop_tx(std::uint32_t queue) { transmit_.stop(queue); }
  [[nodiscard]] const Ring& rx_ring(std::uint32_t queue) const { return receive_.ring(queue); }
  [[nodiscard]] const Ring& tx_ring(std::uint32_t queue) const { return transmit_.ring(queue); }

  /// Off: nothing is received. Frames on the wire are lost, and all others wait.
  void set_link(bool up);
  /// Sent frames come back at the MAC, and the wire is not used.
  void set_loopback(bool on) noexcept { loopback_ = on; }
  /// Switches the port's bus mastering, and continues where it stopped. (The command register notifies a device at
  /// once; the port's own switch does not.)
  void set_bus_master(bool on);
  /// Replaces NicOptions::hostile from now on.
  void set_hostile(const Hostile& hostile) noexcept { context_.hostile = hostile; }
  /// Stops all rings, and drops and counts all frames inside. Bus mastering stays.
  void reset();

  [[nodiscard]] const NicCounters& counters() const noexcept { return context_.counters; }
  [[nodiscard]] const NicOptions& options() const noexcept { return context_.options; }
  /// Frames inside.
  [[nodiscard]] std::uint64_t rx_waiting() const noexcept { return receive_.waiting(); }
  [[nodiscard]] std::uint64_t tx_waiting() const noexcept { return transmit_.waiting(); }
  /// Bus address of a tail register. Precondition: attached and enumerated.
  [[nodiscard]] std::uint64_t rx_tail_address(std::uint32_t queue) const noexcept;
  [[nodiscard]] std::uint64_t tx_tail_address(std::uint32_t queue) const noexcept;

  // WireEnd: from the wire.
  void on_frame(std::span<const std::byte> frame, bool fcs_good) override;

  // pcie::Function.
  void on_write(const pcie::InboundWrite& write) override;
  void on_read(const pcie::InboundRead& read) override;
  void on_read_done(pcie::Token token, pcie::CompletionStatus status) override { context_.reads.done(token, status); }
  void on_room() override;
  void on_reset(pcie::ResetKind kind) override;

 private:
  /// Where transmitted frames go.
  struct Out final : WireEnd {
    explicit Out(Nic& owner) : nic(owner) {}
    void on_frame(std::span<const std::byte> frame, bool fcs_good) override;
    Nic& nic;
  };
  void write_register(std::uint32_t offset, std::uint32_t value);
  [[nodiscard]] std::uint32_t read_register(std::uint32_t offset) const;
  void control(bool tx, std::uint32_t queue);
  [[nodiscard]] std::uint32_t value(std::uint32_t offset) const;

  Context context_;
  Out out_;
  Receive receive_;
  Transmit transmit_;
  WireEnd* peer_ = nullptr;
  bool link_up_ = true;
  bool loopback_ = false;
  bool transmit_first_ = false;                                 ///< had the port's room first the last time
  std::unordered_map<std::uint32_t, std::uint32_t> registers_;  ///< those that only keep what is written
};

}  // namespace wherry::sim::nic
