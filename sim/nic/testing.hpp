// SPDX-License-Identifier: Apache-2.0
// For tests: a NIC behind a port that the test controls. The port sees every request and answers when it chooses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "bypass/descriptor.hpp"
#include "sim/nic/nic.hpp"
#include "sim/nic/traffic.hpp"

namespace wherry::sim::nic {

/// The memory behind it answers reads at once, or when the test says so, in any order.
class HandPort final : public pcie::Port {
 public:
  struct Write {
    std::uint64_t address;
    std::vector<std::byte> data;
  };
  explicit HandPort(pcie::Function& function) : function_(function) {}

  // Test's side.
  bool hold_reads = false;            ///< reads wait in `reads` for answer()
  std::uint32_t refuse = 0;           ///< so many try_write() and try_read() say no
  std::optional<std::uint32_t> room;  ///< so many of both say yes, and then no
  std::vector<Write> writes;          ///< in order
  std::vector<pcie::ReadRequest> reads;
  std::vector<pcie::ReadRequest> seen;  ///< all that were ever accepted
  void poke(std::uint64_t address, std::span<const std::byte> data) {
    for (std::size_t i = 0; i < data.size(); ++i) memory_[address + i] = data[i];
  }
  void poke(std::uint64_t address, const bypass::Descriptor& descriptor) {
    std::array<std::byte, bypass::kDescriptorBytes> bytes{};
    bypass::store(descriptor, bytes);
    poke(address, bytes);
  }
  [[nodiscard]] bypass::Descriptor peek(std::uint64_t address) const {
    std::array<std::byte, bypass::kDescriptorBytes> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte(address + i);
    return bypass::load(bytes);
  }
  [[nodiscard]] std::byte byte(std::uint64_t address) const {
    const auto found = memory_.find(address);
    return found == memory_.end() ? std::byte{0} : found->second;
  }
  void answer(std::size_t i, pcie::CompletionStatus status = pcie::CompletionStatus::kSuccess) {
    const pcie::ReadRequest request = reads[i];
    reads.erase(reads.begin() + static_cast<std::ptrdiff_t>(i));
    if (status == pcie::CompletionStatus::kSuccess || status == pcie::CompletionStatus::kPoisoned) {
      for (std::uint32_t k = 0; k < request.bytes; ++k) request.into[k] = byte(request.address + k);
    }
    function_.on_read_done(request.token, status);
  }
  /// Answers all waiting reads, and all that follow from them.
  void answer_all() {
    while (!reads.empty()) answer(0);
  }

  // Port.
  void post_write(std::uint64_t address, std::span<const std::byte> data, pcie::Attributes attributes) override {
    static_cast<void>(attributes);
    if (!master_) return;
    writes.push_back({address, {data.begin(), data.end()}});
    poke(address, data);
  }
  bool try_write(std::uint64_t address, std::span<const std::byte> data, pcie::Attributes attributes) override {
    if (!takes_one()) return false;
    post_write(address, data, attributes);
    return true;
  }
  bool try_read(const pcie::ReadRequest& request) override {
    if (!takes_one()) return false;
    post_read(request);
    return true;
  }
  void post_read(const pcie::ReadRequest& request) override {
    seen.push_back(request);
    reads.push_back(request);
  }
  void complete(const pcie::InboundRead& read, std::span<const std::byte> data,
                pcie::CompletionStatus status) override {
    static_cast<void>(read), static_cast<void>(status);
    completed.assign(data.begin(), data.end());
  }
  std::vector<std::byte> completed;
  void set_ready(bool writes_on, bool reads_on) override { static_cast<void>(writes_on), static_cast<void>(reads_on); }
  [[nodiscard]] pcie::FunctionId id() const noexcept override { return 1; }
  [[nodiscard]] std::uint64_t bar_address(std::uint32_t bar) const noexcept override {
    return bar == 0 ? 0xC0000000 : 0;
  }
  [[nodiscard]] std::uint32_t mps() const noexcept override { return 256; }
  [[nodiscard]] std::uint32_t mrrs() const noexcept override { return 512; }
  [[nodiscard]] std::uint32_t reads_pending() const noexcept override {
    return static_cast<std::uint32_t>(reads.size());
  }
  [[nodiscard]] std::uint64_t bytes_queued() const noexcept override { return 0; }
  [[nodiscard]] bool bus_master() const noexcept override { return master_; }
  [[nodiscard]] const pcie::PortCounters& counters() const noexcept override { return counters_; }
  void set_bus_master(bool on) override { master_ = on; }
  void set_memory_space(bool on) override { static_cast<void>(on); }
  void set_mrrs(std::uint32_t bytes) override { static_cast<void>(bytes); }
  void set_completion_timeout(pcie::Time timeout) override { static_cast<void>(timeout); }
  void reset() override {}

 private:
  bool takes_one() {
    if (refuse != 0) return --refuse, false;
    if (room && *room == 0) return false;
    if (room) --*room;
    return true;
  }

  pcie::Function& function_;
  std::map<std::uint64_t, std::byte> memory_;
  bool master_ = true;
  pcie::PortCounters counters_;
};

/// A NIC with one ring of each kind in a HandPort's memory.
struct Bench {
  static constexpr std::uint64_t kRx = 0x10000, kTx = 0x40000, kHead = 0x70000, kBuffers = 0x100000;
  static constexpr std::uint32_t kEntries = 64, kBuffer = 2048;

  static NicOptions named(std::string_view name) {
    NicOptions options;
    options.nic = *bypass::find_personality(name);
    options.mbits = options.nic.mbits_max;
    return options;
  }
  explicit Bench(const NicOptions& options) : nic(queue, options), port(nic), p(options.nic) {
    nic.attach(port);
    nic.connect(&sent);
  }
  explicit Bench(std::string_view name) : Bench(named(name)) {}

  void start_rx() {
    for (std::uint32_t i = 0; i < kEntries; ++i) {
      port.poke(kRx + i * p.rx_descriptor_bytes, bypass::make_rx(kBuffers + std::uint64_t{i} * kBuffer));
    }
    ok = ok && nic.start_rx(0, kRx, kEntries, kBuffer).ok();
  }
  void start_tx(std::uint64_t head = 0) { ok = ok && nic.start_tx(0, kTx, kEntries, head).ok(); }
  void tail(bool tx, std::uint32_t value) { write_register(tx ? p.tx_tail_offset : p.rx_tail_offset, value); }
  void write_register(std::uint32_t offset, std::uint32_t value) {
    std::array<std::byte, 4> bytes{};
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
    nic.on_write({.bar = 0, .offset = offset, .data = bytes, .poisoned = false, .requester = 0, .attributes = {}});
  }
  std::uint32_t read_register(std::uint32_t offset) {
    nic.on_read({.bar = 0,
                 .offset = offset,
                 .bytes = 4,
                 .requester = 0,
                 .attributes = {},
                 .address = offset,
                 .tag = 0,
                 .reset_count = 0});
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(port.completed[i]);
    return value;
  }
  /// Puts a numbered frame at kBuffers + i * kBuffer, in one descriptor.
  void put_tx(std::uint32_t i, std::uint32_t bytes, bool report = false) {
    std::vector<std::byte> frame(bytes);
    if (bytes >= kShortestNumbered) make_frame(frame, i, 0);
    port.poke(kBuffers + std::uint64_t{i} * kBuffer, frame);
    put_part(i, kBuffers + std::uint64_t{i} * kBuffer, bytes, true, report);
  }
  void put_part(std::uint32_t i, std::uint64_t at, std::uint32_t bytes, bool end, bool report = false) {
    port.poke(kTx + i * p.tx_descriptor_bytes,
              bypass::make_tx(p, {.address = at, .bytes = bytes, .total = bytes, .end = end, .report = report}));
  }
  void arrive(std::uint64_t number, std::uint32_t bytes, bool fcs_good = true) {
    std::vector<std::byte> frame(bytes);
    if (bytes >= kShortestNumbered) make_frame(frame, number, 0);
    nic.on_frame(frame, fcs_good);
  }
  /// Runs events and answers reads until none is left.
  void settle() {
    do {
      if (!port.hold_reads) port.answer_all();
      queue.run();
    } while (!port.hold_reads && !port.reads.empty());
  }
  [[nodiscard]] bypass::RxDone received(std::uint32_t i) const {
    return bypass::read_rx(p, port.peek(kRx + i * p.rx_descriptor_bytes));
  }
  [[nodiscard]] bool is_done(std::uint32_t i) const {
    return bypass::rx_done(p, port.peek(kRx + i * p.rx_descriptor_bytes));
  }
  /// In both directions: in = out + dropped + inside.
  [[nodiscard]] bool conserved() const {
    const NicCounters& c = nic.counters();
    return c.received == c.delivered + c.rx_dropped_all() + nic.rx_waiting() &&
           c.accepted == c.sent + c.tx_dropped_all() + nic.tx_waiting();
  }

  pcie::EventQueue queue;
  Nic nic;
  HandPort port;
  bypass::Personality p;
  Checker sent;
  bool ok = true;
};

}  // namespace wherry::sim::nic
