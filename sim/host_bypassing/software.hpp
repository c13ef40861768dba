// SPDX-License-Identifier: Apache-2.0
// The baselines of paper 002 as models. Scenario 1: a thread polls the NIC and sends each packet back (DPDK). Scenario
// 2: the same thread gives an FPGA a pointer to each packet; the FPGA reads the packet from host memory and writes it
// back. Single-threaded. NIC, FPGA and host memory come from sim/nic and sim/pcie.
//
// The processor is modelled as a clock: each step costs a stated time. Not modelled are caches, the DRAM's refresh (the
// paper's peaks every 2 s), the operating system and other threads.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/host_bypassing/testbed.hpp"

namespace wherry::sim::host_bypassing {

struct SoftwareOptions {
  bool fpga = false;                ///< scenario 2
  std::uint32_t descriptors = 256;  ///< given: hb_ring_sw (IV)
  std::uint32_t burst = 32;         ///< chosen: what DPDK's examples take at once
  std::uint32_t rx_free = 32;       ///< chosen: DPDK ixgbe RTE_PMD_IXGBE_RX default: a tail write for so many
  std::uint32_t report_every = 32;  ///< chosen: DPDK ixgbe tx_rs_thresh
  pcie::Time poll = 50'000;         ///< chosen, ps: a look at the ring that finds nothing
  pcie::Time per_burst = 50'000;    ///< chosen, ps
  pcie::Time per_packet = 60'000;   ///< chosen, ps: some 125 cycles at 2.1 GHz, received and sent
  /// fitted, ps: scenario 2 first loses packets between 2.35 and 2.4 Gbit/s (hb_s2_first_loss): 304 x 8 / 2.375. It
  /// covers a write to the FPGA's register, a look for its completion, and all other work of the thread for a packet.
  pcie::Time per_packet_fpga = 1'024'000;
};

/// NIC, processor and, for scenario 2, the FPGA, all at the host's root complex.
class SoftwareTestbed {
 public:
  SoftwareTestbed(const SoftwareOptions& options, const nic::NicOptions& nic, pcie::Time slice = 0);
  [[nodiscard]] bool ready() const noexcept { return ready_; }
  /// As Testbed::run().
  Interval run(std::uint64_t warm_up, std::uint64_t frames, std::uint32_t bytes, std::uint32_t load_per_mille);
  [[nodiscard]] const Meter& meter() const noexcept { return meter_; }
  /// Packets that the thread dropped because the transmit ring was full.
  [[nodiscard]] std::uint64_t thread_dropped() const noexcept { return thread_.dropped; }

 private:
  static constexpr std::uint32_t kBufferBytes = 2048;
  struct Packet {
    std::uint64_t buffer = 0;
    std::uint32_t bytes = 0;
  };
  /// Reads a packet, writes it back in place, and counts it in host memory.
  struct Fpga final : pcie::Function {
    void on_write(const pcie::InboundWrite& write) override;
    void on_read(const pcie::InboundRead& read) override;
    void on_read_done(pcie::Token token, pcie::CompletionStatus status) override;
    struct Work {
      Packet packet;
      std::vector<std::byte> data;
    };
    pcie::Port* port = nullptr;
    std::uint64_t completions_at = 0, done = 0;
    std::deque<Work> work;  ///< oldest first; reads are answered in order here
    std::uint64_t first = 0;
  };
  /// The processor's port, which only writes.
  struct Processor final : pcie::Function {
    void on_write(const pcie::InboundWrite& write) override { static_cast<void>(write); }
    void on_read(const pcie::InboundRead& read) override { static_cast<void>(read); }
  };
  struct Thread final : pcie::EventHandler {
    explicit Thread(SoftwareTestbed& owner) : bed(owner) {}
    void on_event(std::uint64_t argument) override;
    void look();
    void act();
    [[nodiscard]] bool take_one();
    void send(const Packet& packet);
    void tail(bool tx, std::uint32_t value);
    SoftwareTestbed& bed;
    std::vector<std::uint64_t> free;                    ///< buffers
    std::vector<std::uint64_t> rx_buffers, tx_buffers;  ///< by descriptor: its buffer
    std::vector<Packet> received, ready;                ///< of this step: from the NIC, and to it
    std::deque<Packet> at_fpga;
    std::uint64_t completed = 0;
    std::uint32_t rx_next = 0, rx_held = 0, tx_next = 0, tx_done = 0, tx_used = 0;
    std::uint64_t sent = 0, dropped = 0;
    bool stopped = false;
  };

  [[nodiscard]] bypass::Descriptor descriptor(std::uint64_t at) const;
  void set_descriptor(std::uint64_t at, const bypass::Descriptor& descriptor);
  [[nodiscard]] Interval counted() const;

  const SoftwareOptions options_;
  pcie::EventQueue queue_;
  pcie::Fabric fabric_;
  nic::Nic nic_;
  Processor processor_;
  Fpga fpga_;
  Meter meter_;
  Thread thread_{*this};
  pcie::Port* host_ = nullptr;
  std::uint64_t rx_ring_ = 0, tx_ring_ = 0;
  bool ready_ = false;
};

}  // namespace wherry::sim::host_bypassing
