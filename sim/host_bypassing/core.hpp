// SPDX-License-Identifier: Apache-2.0
// A model of the core of paper 002, "Host Bypassing": rings and slots in FPGA memory, a polled receive ring, and a tail
// write per packet or per batch. It is the comparison for hdl/bypass, in the same fabric and behind the same NIC
// models.
//
// Given by the paper (section), or measured on its published RTL (research, section 3):
//   64 descriptors a ring (IV); slots of 2 KiB; 250 MHz (III-A); rx handler: 7 + bytes / 8 cycles a packet, tx handler:
//   2 + bytes / 8, nothing overlaps; a tail write after `batch` packets, or `timeout` after the last one (III-C);
//   the receive tail stays two short of the descriptor that is polled; without `writeback` the transmit ring is written
//   without asking whether the NIC has read it, so that it may be overrun (III-C, IV-D).
// The network function works between the handlers. Here a packet is sent back unchanged (scenario 3), or packets leave
// and enter by the FPGA's own Ethernet port (scenario 4, connect()).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/nic/fifo.hpp"
#include "sim/nic/nic.hpp"

namespace wherry::sim::host_bypassing {

struct CoreOptions {
  std::uint32_t descriptors = 64;
  std::uint32_t batch = 1;  ///< packets a tail write
  pcie::Time timeout = 0;   ///< 0: none
  bool writeback = false;   ///< RS on every packet, and the ring waits for it ("congestion control")
  /// true: the receive handler streams directly into the transmit handler, which takes each beat as it comes. false: a
  /// packet is stored between them, so the times of both handlers add up (research, section 4).
  bool joined = false;
};

/// Counts of bytes between NIC and FPGA memory. Table II counts `received` payload and write-backs as ingoing. It
/// counts `sent` payload, transmit descriptors and tails as outgoing, but not rx_descriptors.
struct CoreCounters {
  std::uint64_t packets_in = 0, packets_out = 0;
  std::uint64_t received_payload = 0, received_writebacks = 0, received_tx_writebacks = 0;
  std::uint64_t sent_payload = 0, sent_tx_descriptors = 0, sent_rx_descriptors = 0, sent_tails = 0;
  std::uint64_t tail_writes = 0;
  std::uint64_t port_dropped = 0;  ///< frames of the FPGA's Ethernet port that found the transmit side full
};

class Core final : public pcie::Function, public nic::WireEnd, pcie::EventHandler {
 public:
  /// Offsets in its BAR 2.
  static constexpr std::uint64_t kRxRing = 0, kTxRing = 0x10000, kRxSlots = 0x80000, kTxSlots = 0x100000;
  static constexpr std::uint64_t kBarBytes = 0x200000;
  static constexpr std::uint32_t kSlotBytes = 2048;

  Core(pcie::EventQueue& queue, const CoreOptions& options);
  [[nodiscard]] static pcie::FunctionOptions function_options();
  void attach(pcie::Port& port) noexcept { port_ = &port; }
  /// Scenario 4: the FPGA's own Ethernet port of `mbits`. Frames that the NIC receives leave there towards `peer`.
  /// Frames that come in by on_frame() are sent by the NIC. The port's MAC adds no time (chosen: not published).
  void connect(nic::WireEnd& peer, std::uint32_t mbits) noexcept {
    peer_ = &peer;
    mbits_ = mbits;
  }
  /// Hands the core's rings to the NIC, and starts it. Precondition: both are attached and enumerated.
  Status start(nic::Nic& nic);
  [[nodiscard]] const CoreCounters& counters() const noexcept { return counters_; }

  void on_write(const pcie::InboundWrite& write) override;
  void on_read(const pcie::InboundRead& read) override;
  void on_frame(std::span<const std::byte> frame, bool fcs_good) override;

 private:
  static constexpr pcie::Time kCycle = 4 * pcie::kNanosecond;
  enum Event : std::uint8_t { kRxDone, kTxDone, kRxTail, kTxTail, kPortSent };
  /// Models tailpointer_delay of the published RTL: the timer runs from the last write.
  struct Doorbell {
    std::uint32_t pending = 0;
    std::uint32_t value = 0;
    pcie::Time last = -pcie::kSecond;
    bool armed = false;
  };
  void on_event(std::uint64_t argument) override;
  void poll_rx();
  void begin_tx();
  void send_to_port(std::span<const std::byte> frame);
  void ring_bell(Doorbell& bell, std::uint32_t value, bool tx);
  void write_tail(Doorbell& bell, bool tx);
  [[nodiscard]] bypass::Descriptor descriptor(std::uint64_t at) const;
  void set_descriptor(std::uint64_t at, const bypass::Descriptor& descriptor);

  pcie::EventQueue& queue_;
  const CoreOptions options_;
  pcie::Port* port_ = nullptr;
  const bypass::Personality* personality_ = nullptr;
  std::uint64_t rx_tail_at_ = 0, tx_tail_at_ = 0;
  std::vector<std::byte> memory_;
  std::uint32_t rx_next_ = 0, tx_next_ = 0;
  bool rx_busy_ = false, tx_busy_ = false;
  nic::Fifo<std::vector<std::byte>> between_;  ///< what the network function holds
  nic::WireEnd* peer_ = nullptr;
  std::uint32_t mbits_ = 0;
  nic::Fifo<std::vector<std::byte>> port_out_;
  pcie::Time port_free_ = 0;  ///< the port's wire may carry the next frame's first bit
  Doorbell rx_bell_, tx_bell_;
  CoreCounters counters_;
};

}  // namespace wherry::sim::host_bypassing
