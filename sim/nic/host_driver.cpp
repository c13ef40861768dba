// SPDX-License-Identifier: Apache-2.0
#include "sim/nic/host_driver.hpp"

#include <algorithm>
#include <array>

namespace wherry::sim::nic {

namespace {

constexpr std::uint64_t kPage = 4096;
std::uint64_t pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

HostDriver::HostDriver(pcie::Fabric& fabric, Nic& nic, pcie::Port& host, const DriverOptions& options)
    : fabric_(fabric), nic_(nic), host_(host), options_(options) {
  const bypass::Personality& p = nic.options().nic;
  rx_ring_ = options.memory;
  tx_ring_ = rx_ring_ + pages(std::uint64_t{options.rx_descriptors} * p.rx_descriptor_bytes);
  head_at_ = tx_ring_ + pages(std::uint64_t{options.tx_descriptors} * p.tx_descriptor_bytes);
  buffers_ = head_at_ + kPage;
  fabric.memory().watch(rx_ring_, buffers_ - rx_ring_, *this);
}

Status HostDriver::start() {
  rx_next_ = rx_held_ = tx_next_ = tx_done_ = tx_used_ = tx_held_ = tx_since_report_ = 0;
  frame_.clear();
  spoilt_ = false;
  reports_.clear();
  for (std::uint32_t i = 0; i < options_.rx_descriptors; ++i) refill(i);
  for (std::uint32_t i = 0; i < options_.tx_descriptors; ++i) write(tx_descriptor(i), {});
  write(head_at_, {});
  Status status = nic_.start_rx(options_.queue, rx_ring_, options_.rx_descriptors, options_.buffer_bytes);
  if (!status.ok()) return status;
  status = nic_.start_tx(options_.queue, tx_ring_, options_.tx_descriptors, options_.head_writeback ? head_at_ : 0);
  if (!status.ok()) return status;
  const std::uint32_t granule = nic_.options().nic.rx_tail_granule;
  rx_tail_ = (options_.rx_descriptors - 1) / granule * granule;
  tail(false, rx_tail_);
  return {};
}

std::uint64_t HostDriver::rx_descriptor(std::uint32_t index) const {
  return rx_ring_ + std::uint64_t{index} * nic_.options().nic.rx_descriptor_bytes;
}
std::uint64_t HostDriver::tx_descriptor(std::uint32_t index) const {
  return tx_ring_ + std::uint64_t{index} * nic_.options().nic.tx_descriptor_bytes;
}
std::uint64_t HostDriver::buffer(bool tx, std::uint32_t index) const {
  return buffers_ + (std::uint64_t{tx ? options_.rx_descriptors : 0} + index) * options_.buffer_bytes;
}

bypass::Descriptor HostDriver::read(std::uint64_t address) const {
  std::array<std::byte, bypass::kDescriptorBytes> bytes{};
  fabric_.memory().read(address, bytes);
  return bypass::load(bytes);
}
void HostDriver::write(std::uint64_t address, const bypass::Descriptor& descriptor) {
  std::array<std::byte, bypass::kDescriptorBytes> bytes{};
  bypass::store(descriptor, bytes);
  fabric_.memory().write(address, bytes);
}
void HostDriver::refill(std::uint32_t index) { write(rx_descriptor(index), bypass::make_rx(buffer(false, index))); }

void HostDriver::tail(bool tx, std::uint32_t value) {
  std::array<std::byte, 4> bytes{};
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
  host_.post_write(tx ? nic_.tx_tail_address(options_.queue) : nic_.rx_tail_address(options_.queue), bytes);
}

void HostDriver::on_memory_write(std::uint64_t address, std::uint32_t bytes) {
  static_cast<void>(bytes);
  if (address < tx_ring_) {
    poll_rx();
  } else {
    poll_tx();
  }
}

void HostDriver::poll_rx() {
  const bypass::Personality& p = nic_.options().nic;
  for (;;) {
    const bypass::Descriptor descriptor = read(rx_descriptor(rx_next_));
    if (!bypass::rx_done(p, descriptor)) return;
    const bypass::RxDone done = bypass::read_rx(p, descriptor);
    if (done.bytes > options_.buffer_bytes || done.bytes == 0) {
      spoilt_ = true;
    } else {
      frame_.resize(frame_.size() + done.bytes);
      fabric_.memory().read(buffer(false, rx_next_), std::span(frame_).last(done.bytes));
    }
    refill(rx_next_);
    rx_next_ = (rx_next_ + 1) % options_.rx_descriptors;
    ++rx_held_;
    if (done.end) {
      if (spoilt_) {
        ++bad_lengths;
      } else if (handler_) {
        handler_(frame_);
      }
      spoilt_ = false;
      frame_.clear();
    }
    // The tail stays one short of the next descriptor to come, because equal would mean empty.
    const std::uint32_t limit = (rx_next_ + options_.rx_descriptors - 1) % options_.rx_descriptors;
    const std::uint32_t value = limit / p.rx_tail_granule * p.rx_tail_granule;
    if (rx_held_ >= options_.rx_tail_batch && value != rx_tail_) {
      rx_tail_ = value;
      rx_held_ = 0;
      tail(false, value);
    }
  }
}

bool HostDriver::send(std::span<const std::byte> frame) {
  const bypass::Personality& p = nic_.options().nic;
  const auto parts = static_cast<std::uint32_t>((frame.size() + options_.buffer_bytes - 1) / options_.buffer_bytes);
  // With reports, all entries of the ring except one may be filled (head equal to tail means empty).
  if (tx_used_ + parts > options_.tx_descriptors - 1) return false;
  const bool report = ++tx_since_report_ >= options_.report_every;
  if (report) tx_since_report_ = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::size_t offset = std::size_t{i} * options_.buffer_bytes;
    const auto part = frame.subspan(offset, std::min<std::size_t>(options_.buffer_bytes, frame.size() - offset));
    const std::uint64_t at = buffer(true, tx_next_);
    fabric_.memory().write(at, part);
    const bool end = i + 1 == parts;
    write(tx_descriptor(tx_next_), bypass::make_tx(p, {.address = at,
                                                       .bytes = static_cast<std::uint32_t>(part.size()),
                                                       .total = static_cast<std::uint32_t>(frame.size()),
                                                       .end = end,
                                                       .report = end && report}));
    if (end && report && !options_.head_writeback) reports_.push_back(tx_next_);
    tx_next_ = (tx_next_ + 1) % options_.tx_descriptors;
  }
  tx_used_ += parts;
  if (++tx_held_ >= options_.tx_tail_batch) flush();
  return true;
}

void HostDriver::flush() {
  if (tx_held_ == 0) return;
  tx_held_ = 0;
  tail(true, tx_next_);
}

void HostDriver::poll_tx() {
  const bypass::Personality& p = nic_.options().nic;
  const std::uint32_t before = tx_used_;
  if (options_.head_writeback) {
    std::array<std::byte, 4> bytes{};
    fabric_.memory().read(head_at_, bytes);
    std::uint32_t head = 0;
    for (std::size_t i = 4; i-- > 0;) head = head << 8 | std::to_integer<std::uint32_t>(bytes[i]);
    tx_used_ -= (head + options_.tx_descriptors - tx_done_) % options_.tx_descriptors;
    tx_done_ = head;
  } else {
    while (!reports_.empty() && bypass::tx_done(p, read(tx_descriptor(reports_.front())))) {
      const std::uint32_t next = (reports_.front() + 1) % options_.tx_descriptors;
      tx_used_ -= (next + options_.tx_descriptors - tx_done_) % options_.tx_descriptors;
      tx_done_ = next;
      reports_.pop_front();
    }
  }
  if (tx_used_ != before && space_) space_();
}

}  // namespace wherry::sim::nic
