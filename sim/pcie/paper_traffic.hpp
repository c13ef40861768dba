// SPDX-License-Identifier: Apache-2.0
// The traffic of paper 002 without a NIC model. One device makes the PCIe accesses of the paper's NIC for each packet,
// and another answers like its FPGA. It serves tests of the fabric and its benchmark; sim/nic has real NIC models.
//
// To receive a packet and send it again takes the accesses that research/bypass.md section 4 counts: payload (posted),
// rx write-back (16 bytes), rx tail and tx tail (4 bytes each, from the FPGA), rx and tx descriptor fetch (16 bytes
// each), payload read; optionally a tx write-back (16 bytes).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "sim/pcie/fabric.hpp"

namespace wherry::sim::pcie::paper {

struct Traffic {
  /// Bytes of a packet, without FCS: Table II has 300 bytes of payload on PCIe (hb_test_packet).
  std::uint32_t bytes = 300;
  Time gap = 259'200 * kPicosecond;  ///< from packet to packet: (300 + FCS 4 + 20) bytes at 10 Gbit/s
  std::uint64_t packets = 10'000;
  std::uint32_t ring = 64;             ///< descriptors (hb_ring_fpga)
  std::uint32_t nic_buffer = 524'288;  ///< bytes; 82599 datasheet: 512 KiB of receive buffer
  bool tx_writeback = false;
  std::uint32_t tail_batch = 1;   ///< packets a tail write
  Time tail_timeout = kNever;     ///< since the last tail write (hb_batch_example_timeout: 2500 ns)
  Time handler = 0;               ///< in the FPGA, from the write-back to the tail writes
  std::uint64_t check_every = 1;  ///< compare the payload of one packet in so many
};

// The FPGA's BAR 2.
inline constexpr std::uint64_t kRxRing = 0, kTxRing = 0x10000, kSlots = 0x400000, kSlotBytes = 2048;
// The NIC's BAR 0, as in the 82599.
inline constexpr std::uint64_t kRxTail = 0x1018, kTxTail = 0x6018;

class Nic final : public Function, EventHandler {
 public:
  Nic(EventQueue& queue, const Traffic& traffic) : queue_(queue), traffic_(traffic), frame_(traffic.bytes) {}

  void start(Port& port, std::uint64_t fpga) {
    port_ = &port;
    fpga_ = fpga;
    in_.resize(traffic_.ring * traffic_.bytes);
    queue_.schedule(queue_.now(), *this);
  }

  void on_write(const InboundWrite& write) override {
    std::uint32_t tail = 0;
    std::memcpy(&tail, write.data.data(), sizeof tail);
    if (write.offset == kRxTail) {
      for (; rx_asked_ != tail; ++rx_asked_) fetch(kRxRing, rx_asked_, kFetchRx);
    } else if (write.offset == kTxTail) {
      for (; tx_asked_ != tail; ++tx_asked_) fetch(kTxRing, tx_asked_, kFetchTx);
    }
  }
  void on_read(const InboundRead& read) override { port_->complete(read, {}, CompletionStatus::kUnsupportedRequest); }
  void on_read_done(Token token, CompletionStatus status) override {
    failed += status != CompletionStatus::kSuccess ? 1 : 0;
    const std::uint64_t number = token >> 2;
    switch (token & 3) {
      case kFetchRx:
        ++rx_known_;
        receive();
        break;
      case kFetchTx:
        port_->post_read(
            {.address = slot(number), .bytes = traffic_.bytes, .into = place(number), .token = number << 2 | kPayload});
        break;
      default:
        sent(number);
    }
  }
  void on_room() override { receive(); }
  /// A packet arrives.
  void on_event(std::uint64_t) override {
    if (arrived == traffic_.packets) return;
    ++arrived;
    if ((waiting_ + 1) * traffic_.bytes > traffic_.nic_buffer) {
      ++dropped;
    } else {
      ++waiting_;
      receive();
    }
    queue_.schedule(queue_.now() + traffic_.gap, *this);
  }

  std::uint64_t arrived = 0, dropped = 0, transmitted = 0, wrong = 0, failed = 0;

 private:
  static constexpr Token kFetchRx = 0, kFetchTx = 1, kPayload = 2;

  [[nodiscard]] std::uint64_t slot(std::uint64_t number) const {
    return fpga_ + kSlots + number % traffic_.ring * kSlotBytes;
  }
  [[nodiscard]] std::byte* place(std::uint64_t number) { return in_.data() + number % traffic_.ring * traffic_.bytes; }
  void fetch(std::uint64_t ring, std::uint32_t number, Token what) {
    port_->post_read({.address = fpga_ + ring + number % traffic_.ring * 16,
                      .bytes = 16,
                      .token = std::uint64_t{number} << 2 | what});
  }
  void fill(std::uint64_t number) {
    for (std::size_t i = 0; i + 8 <= frame_.size(); i += 8) {
      const std::uint64_t value = number * 0x9e3779b97f4a7c15U + i;
      std::memcpy(frame_.data() + i, &value, sizeof value);
    }
  }
  void receive() {
    while (waiting_ != 0 && rx_used_ != rx_known_) {
      fill(rx_used_);
      if (!port_->try_write(slot(rx_used_), frame_)) return;  // on_room() comes
      const std::array<std::byte, 16> done{std::byte{1}};
      port_->post_write(fpga_ + kRxRing + rx_used_ % traffic_.ring * 16, done);
      ++rx_used_;
      --waiting_;
    }
  }
  void sent(std::uint64_t number) {
    ++transmitted;
    if (number % traffic_.check_every == 0) {
      fill(number);
      wrong += std::equal(frame_.begin(), frame_.end(), place(number)) ? 0 : 1;
    }
    if (!traffic_.tx_writeback) return;
    const std::array<std::byte, 16> done{std::byte{1}};
    port_->post_write(fpga_ + kTxRing + number % traffic_.ring * 16, done);
  }

  EventQueue& queue_;
  Traffic traffic_;
  Port* port_ = nullptr;
  std::uint64_t fpga_ = 0;
  std::vector<std::byte> frame_, in_;
  std::uint64_t waiting_ = 0;
  std::uint32_t rx_asked_ = 0, rx_known_ = 0, rx_used_ = 0, tx_asked_ = 0;
};

/// Forwards in order and in place: each packet is sent from the slot that received it. A slot is returned when the NIC
/// has read its last byte, or with tx_writeback when the write-back has come.
class Fpga final : public Function, EventHandler {
 public:
  Fpga(EventQueue& queue, const Traffic& traffic)
      : traffic_(traffic), queue_(queue), slots_(traffic.ring * kSlotBytes), timer_(queue, *this, kTimer) {}

  void start(Port& port, std::uint64_t nic) {
    port_ = &port;
    nic_ = nic;
    rx_tail_ = traffic_.ring;
    tail(kRxTail, rx_tail_);
  }

  void on_write(const InboundWrite& write) override {
    if (write.offset >= kSlots) {
      std::memcpy(slots_.data() + (write.offset - kSlots), write.data.data(), write.data.size());
    } else if (write.offset < kTxRing) {
      if (traffic_.handler == 0) {
        forward();
      } else {
        queue_.schedule(queue_.now() + traffic_.handler, *this, kForward);
      }
    } else {
      give_back();
    }
  }
  void on_read(const InboundRead& read) override {
    if (read.offset < kSlots) {
      const std::array<std::byte, 64> descriptors{};
      port_->complete(read, std::span(descriptors).first(read.bytes));
      return;
    }
    const std::uint64_t offset = read.offset - kSlots;
    port_->complete(read, std::span(slots_).subspan(offset, read.bytes));
    if (!traffic_.tx_writeback && offset % kSlotBytes + read.bytes == traffic_.bytes) give_back();
  }
  void on_event(std::uint64_t argument) override { argument == kForward ? forward() : write_tails(); }

  std::uint64_t tails = 0;

 private:
  static constexpr std::uint64_t kForward = 0, kTimer = 1;

  void forward() {
    ++tx_tail_;
    ++pending_;
    if (pending_ >= traffic_.tail_batch) return write_tails();
    if (traffic_.tail_timeout != kNever && !timer_.armed()) {
      timer_.set(std::max(queue_.now(), last_ + traffic_.tail_timeout));
    }
  }
  /// Writes both tails. The rx tail returns all slots that became free since the last one.
  void write_tails() {
    timer_.cancel();
    if (pending_ == 0) return;
    pending_ = 0;
    last_ = queue_.now();
    tail(kTxTail, tx_tail_);
    if (!rx_waits_) return;
    rx_waits_ = false;
    tail(kRxTail, rx_tail_);
  }
  void give_back() {
    ++rx_tail_;
    if (traffic_.tail_batch == 1) return tail(kRxTail, rx_tail_);
    rx_waits_ = true;
    // If nothing is sent, no other tail write would come, and the ring would run dry.
    if (rx_tail_ - rx_told_ >= traffic_.ring / 2) {
      rx_waits_ = false;
      tail(kRxTail, rx_tail_);
    }
  }
  void tail(std::uint64_t which, std::uint32_t value) {
    std::array<std::byte, 4> data;
    std::memcpy(data.data(), &value, sizeof value);
    port_->post_write(nic_ + which, data);
    ++tails;
    if (which == kRxTail) rx_told_ = value;
  }

  Traffic traffic_;
  EventQueue& queue_;
  Port* port_ = nullptr;
  std::uint64_t nic_ = 0;
  std::vector<std::byte> slots_;
  std::uint32_t rx_tail_ = 0, rx_told_ = 0, tx_tail_ = 0, pending_ = 0;
  bool rx_waits_ = false;
  Time last_ = -kSecond;
  Timer timer_;
};

/// The NIC (82599: Gen2 x8) and the FPGA (Gen3 x8), both at a switch or both at the root.
struct System {
  System(const FabricOptions& options, bool with_switch, const Traffic& traffic)
      : fabric(queue, options), nic(queue, traffic), fpga(queue, traffic) {
    const NodeId above = with_switch ? fabric.add_switch(kRoot, {.lanes = 16}).value() : kRoot;
    const NodeId nic_node = fabric.add_endpoint(above, {.generation = 2}).value();
    const NodeId fpga_node =
        fabric.add_endpoint(above, {.generation = 3}, {.receive_latency = 130 * kNanosecond}).value();
    nic_port = fabric.add_function(nic_node, nic, {.name = "nic", .bars = {BarOptions{.bytes = 1 << 17}}}).value();
    FunctionOptions card{.name = "fpga"};
    card.bars[2] = {.bytes = 8 << 20, .prefetchable = true};
    fpga_port = fabric.add_function(fpga_node, fpga, card).value();
    ready = fabric.enumerate();
    nic_port->set_bus_master(true);
    fpga_port->set_bus_master(true);
    nic.start(*nic_port, fpga_port->bar_address(2));
    fpga.start(*fpga_port, nic_port->bar_address(0));
  }

  EventQueue queue;
  Fabric fabric;
  Nic nic;
  Fpga fpga;
  Port* nic_port = nullptr;
  Port* fpga_port = nullptr;
  Status ready;
};

}  // namespace wherry::sim::pcie::paper
