// SPDX-License-Identifier: Apache-2.0
#include "sim/host_bypassing/software.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace wherry::sim::host_bypassing {
namespace {

constexpr std::uint64_t kRings = 1 << 20, kBuffers = kRings + 0x10000, kCompletions = kRings + 0xf000;
constexpr std::uint32_t kFpgaBar = 4096;

}  // namespace

SoftwareTestbed::SoftwareTestbed(const SoftwareOptions& options, const nic::NicOptions& nic, pcie::Time slice)
    : options_(options), fabric_(queue_, {}), nic_(queue_, nic), meter_(queue_, nic_, slice) {
  const pcie::NodeId card = fabric_.add_endpoint(pcie::kRoot, {.generation = 2, .lanes = 8}).value();
  const pcie::NodeId board = fabric_
                                 .add_endpoint(pcie::kRoot, {.generation = 3, .lanes = 8},
                                               {.receive_latency = kBridge, .send_latency = kBridge})
                                 .value();
  pcie::Port* nic_port = fabric_.add_function(card, nic_, nic::Nic::function_options(nic)).value();
  fpga_.port =
      fabric_.add_function(board, fpga_, {.name = "fpga", .bars = {pcie::BarOptions{.bytes = kFpgaBar}}}).value();
  host_ = fabric_.add_host(processor_).value();
  ready_ = fabric_.enumerate().ok();
  fpga_.port->set_bus_master(true);
  fpga_.completions_at = kCompletions;
  nic_.attach(*nic_port);
  nic_.connect(&meter_.out());
  nic_.set_bus_master(true);
  rx_ring_ = kRings;
  tx_ring_ = kRings + std::uint64_t{options.descriptors} * bypass::kDescriptorBytes;
  thread_.rx_buffers.resize(options.descriptors);
  thread_.tx_buffers.resize(options.descriptors);
  for (std::uint32_t i = 0; i < 4 * options.descriptors; ++i) {
    thread_.free.push_back(kBuffers + std::uint64_t{i} * kBufferBytes);
  }
  for (std::uint32_t i = 0; i < options.descriptors; ++i) {
    thread_.rx_buffers[i] = thread_.free.back();
    thread_.free.pop_back();
    set_descriptor(rx_ring_ + i * bypass::kDescriptorBytes, bypass::make_rx(thread_.rx_buffers[i]));
    set_descriptor(tx_ring_ + i * bypass::kDescriptorBytes, {});
  }
  ready_ = ready_ && nic_.start_rx(0, rx_ring_, options.descriptors, kBufferBytes).ok() &&
           nic_.start_tx(0, tx_ring_, options.descriptors).ok();
  thread_.tail(false, options.descriptors - 1);
  thread_.look();
  queue_.run(20 * pcie::kMicrosecond);
}

bypass::Descriptor SoftwareTestbed::descriptor(std::uint64_t at) const {
  std::array<std::byte, bypass::kDescriptorBytes> bytes{};
  const_cast<pcie::Fabric&>(fabric_).memory().read(at, bytes);
  return bypass::load(bytes);
}
void SoftwareTestbed::set_descriptor(std::uint64_t at, const bypass::Descriptor& descriptor) {
  std::array<std::byte, bypass::kDescriptorBytes> bytes{};
  bypass::store(descriptor, bytes);
  fabric_.memory().write(at, bytes);
}

void SoftwareTestbed::Fpga::on_write(const pcie::InboundWrite& write) {
  if (write.data.size() != 12) return;
  Work& one = work.emplace_back();
  std::memcpy(&one.packet.buffer, write.data.data(), 8);
  std::memcpy(&one.packet.bytes, write.data.data() + 8, 4);
  one.data.resize(one.packet.bytes);
  port->post_read({.address = one.packet.buffer,
                   .bytes = one.packet.bytes,
                   .into = one.data.data(),
                   .token = first + work.size() - 1});
}
void SoftwareTestbed::Fpga::on_read(const pcie::InboundRead& read) {
  port->complete(read, {}, pcie::CompletionStatus::kUnsupportedRequest);
}
void SoftwareTestbed::Fpga::on_read_done(pcie::Token token, pcie::CompletionStatus status) {
  // Without reordering, completions come in the order of the reads.
  if (status != pcie::CompletionStatus::kSuccess || token != first) return;
  port->post_write(work.front().packet.buffer, work.front().data);
  work.pop_front();
  ++first;
  ++done;
  std::array<std::byte, 8> count{};
  std::memcpy(count.data(), &done, 8);
  port->post_write(completions_at, count);
}

void SoftwareTestbed::Thread::tail(bool tx, std::uint32_t value) {
  std::array<std::byte, 4> bytes{};
  std::memcpy(bytes.data(), &value, 4);
  bed.host_->post_write(tx ? bed.nic_.tx_tail_address(0) : bed.nic_.rx_tail_address(0), bytes);
}

bool SoftwareTestbed::Thread::take_one() {
  const bypass::Personality& p = bed.nic_.options().nic;
  const std::uint64_t at = bed.rx_ring_ + rx_next * bypass::kDescriptorBytes;
  const bypass::Descriptor done = bed.descriptor(at);
  if (free.empty() || !bypass::rx_done(p, done)) return false;
  received.push_back({rx_buffers[rx_next], bypass::read_rx(p, done).bytes});
  rx_buffers[rx_next] = free.back();
  free.pop_back();
  bed.set_descriptor(at, bypass::make_rx(rx_buffers[rx_next]));
  rx_next = (rx_next + 1) % bed.options_.descriptors;
  ++rx_held;
  return true;
}

/// Reads the present input. act() runs when the time for that is over.
void SoftwareTestbed::Thread::look() {
  const SoftwareOptions& o = bed.options_;
  received.clear();
  ready.clear();
  while (received.size() < o.burst && take_one()) {
  }
  if (o.fpga) {
    std::array<std::byte, 8> count{};
    bed.fabric_.memory().read(kCompletions, count);
    std::uint64_t done = 0;
    std::memcpy(&done, count.data(), 8);
    for (; completed < done && ready.size() < o.burst; ++completed) {
      ready.push_back(at_fpga.front());
      at_fpga.pop_front();
    }
  } else {
    ready = received;
  }
  // Each packet costs its time once: half on the way to the FPGA, and half on the way back.
  const auto steps = static_cast<pcie::Time>(received.size() + ready.size());
  const pcie::Time work = steps == 0 ? o.poll : o.per_burst + steps * (o.fpga ? o.per_packet_fpga : o.per_packet) / 2;
  bed.queue_.schedule(bed.queue_.now() + work, *this);
}

void SoftwareTestbed::Thread::on_event(std::uint64_t argument) {
  static_cast<void>(argument);
  if (stopped) return;
  act();
  look();
}

void SoftwareTestbed::Thread::act() {
  const SoftwareOptions& o = bed.options_;
  if (o.fpga) {
    for (const Packet& packet : received) {
      std::array<std::byte, 12> pointer{};
      std::memcpy(pointer.data(), &packet.buffer, 8);
      std::memcpy(pointer.data() + 8, &packet.bytes, 4);
      bed.host_->post_write(bed.fpga_.port->bar_address(0), pointer);
      at_fpga.push_back(packet);
    }
  }
  const std::uint32_t before = tx_next;
  for (const Packet& packet : ready) send(packet);
  if (tx_next != before) tail(true, tx_next);
  if (rx_held >= o.rx_free) {
    rx_held = 0;
    tail(false, (rx_next + o.descriptors - 1) % o.descriptors);
  }
}

void SoftwareTestbed::Thread::send(const Packet& packet) {
  const SoftwareOptions& o = bed.options_;
  const bypass::Personality& p = bed.nic_.options().nic;
  // Descriptors return in groups. Only the last one of each group reports.
  for (;;) {
    const std::uint32_t last = tx_done + o.report_every - 1;
    if (tx_used < o.report_every ||
        !bypass::tx_done(p, bed.descriptor(bed.tx_ring_ + last * bypass::kDescriptorBytes))) {
      break;
    }
    for (std::uint32_t i = tx_done; i <= last; ++i) free.push_back(tx_buffers[i]);
    tx_used -= o.report_every;
    tx_done = (last + 1) % o.descriptors;
  }
  if (tx_used == o.descriptors - 1) {
    ++dropped;
    free.push_back(packet.buffer);
    return;
  }
  tx_buffers[tx_next] = packet.buffer;
  bed.set_descriptor(bed.tx_ring_ + tx_next * bypass::kDescriptorBytes,
                     bypass::make_tx(p, {.address = packet.buffer,
                                         .bytes = packet.bytes,
                                         .total = packet.bytes,
                                         .end = true,
                                         .report = (tx_next + 1) % o.report_every == 0}));
  tx_next = (tx_next + 1) % o.descriptors;
  ++tx_used;
  ++sent;
}

Interval SoftwareTestbed::counted() const {
  return {.received = meter_.received(),
          .dropped = nic_.counters().rx_dropped_all() + thread_.dropped,
          .out = meter_.checker().frames,
          .reordered = meter_.checker().reordered};
}

Interval SoftwareTestbed::run(std::uint64_t warm_up, std::uint64_t frames, std::uint32_t bytes,
                              std::uint32_t load_per_mille) {
  const Interval found = measure(queue_, meter_, warm_up, frames, bytes, load_per_mille, [this] { return counted(); });
  thread_.stopped = true;
  return found;
}

}  // namespace wherry::sim::host_bypassing
