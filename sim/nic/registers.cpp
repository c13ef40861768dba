// SPDX-License-Identifier: Apache-2.0
// BAR 0 of a NIC model: tail registers, reset and loopback, and the ring registers of personalities that use registers
// for rings. Every other register keeps what is written, without effect.
#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "sim/nic/nic.hpp"

namespace wherry::sim::nic {
namespace {

// Offsets of a ring's registers, from rx_ring_offset or tx_ring_offset on (E1000_RDBAL and the following).
constexpr std::uint32_t kBaseLow = 0x00, kBaseHigh = 0x04, kLength = 0x08, kHead = 0x10, kControl = 0x28;
constexpr std::uint32_t kRingRegisters = 0x2C;

/// Finds the queue whose register lies at `offset`, among the `count` queues that begin at `first`.
bool among(std::uint32_t offset, std::uint32_t first, std::uint32_t stride, std::uint32_t bytes, std::uint32_t count,
           std::uint32_t& queue, std::uint32_t& within) {
  if (offset < first || stride == 0) return false;
  queue = (offset - first) / stride;
  within = (offset - first) % stride;
  return queue < count && within < bytes;
}

}  // namespace

pcie::FunctionOptions Nic::function_options(const NicOptions& options) {
  const bypass::Personality& nic = options.nic;
  pcie::FunctionOptions function;
  function.name = std::string(nic.name);
  const std::uint64_t end = std::max(nic.rx_tail_offset + options.queues * std::max(nic.rx_tail_stride, 4U),
                                     nic.tx_tail_offset + options.queues * std::max(nic.tx_tail_stride, 4U));
  function.bars[0] = {.bytes = std::max<std::uint64_t>(std::bit_ceil(end), 128 * 1024), .prefetchable = false};
  function.tags = nic.reads_outstanding;
  return function;
}

std::uint64_t Nic::rx_tail_address(std::uint32_t queue) const noexcept {
  const bypass::Personality& nic = context_.options.nic;
  return context_.port->bar_address(0) + nic.rx_tail_offset + std::uint64_t{queue} * nic.rx_tail_stride;
}
std::uint64_t Nic::tx_tail_address(std::uint32_t queue) const noexcept {
  const bypass::Personality& nic = context_.options.nic;
  return context_.port->bar_address(0) + nic.tx_tail_offset + std::uint64_t{queue} * nic.tx_tail_stride;
}

void Nic::on_write(const pcie::InboundWrite& write) {
  if (write.poisoned || write.bar != 0) return;
  for (std::size_t at = 0; at + 4 <= write.data.size(); at += 4) {
    std::uint32_t word = 0;
    for (std::size_t i = 4; i-- > 0;) word = word << 8 | std::to_integer<std::uint32_t>(write.data[at + i]);
    if ((write.offset + at) % 4 == 0) write_register(static_cast<std::uint32_t>(write.offset + at), word);
  }
}

void Nic::on_read(const pcie::InboundRead& read) {
  std::array<std::byte, 4096> data{};
  for (std::uint32_t i = 0; i < read.bytes; ++i) {
    const auto offset = static_cast<std::uint32_t>(read.offset + i);
    data[i] = static_cast<std::byte>(read_register(offset & ~3U) >> (8 * (offset & 3)) & 0xFF);
  }
  context_.port->complete(read, std::span(data).first(read.bytes));
}

std::uint32_t Nic::value(std::uint32_t offset) const {
  const auto found = registers_.find(offset);
  return found == registers_.end() ? 0 : found->second;
}

void Nic::write_register(std::uint32_t offset, std::uint32_t word) {
  const bypass::Personality& nic = context_.options.nic;
  const std::uint32_t queues = context_.options.queues;
  std::uint32_t queue = 0, within = 0;
  if (among(offset, nic.rx_tail_offset, nic.rx_tail_stride, 4, queues, queue, within)) {
    receive_.set_tail(queue, word);
    return receive_.pump();
  }
  if (among(offset, nic.tx_tail_offset, nic.tx_tail_stride, 4, queues, queue, within)) {
    transmit_.set_tail(queue, word);
    return transmit_.pump();
  }
  if (nic.reset_mask != 0 && offset == nic.reset_offset && (word & nic.reset_mask) != 0) return reset();
  registers_[offset] = word;
  if (nic.loopback_mask != 0 && offset == nic.loopback_offset) {
    set_loopback((word & nic.loopback_mask) != 0);
    transmit_.set_link(link_up_ || loopback_);
  }
  if (nic.rx_ring_offset == 0) return;
  // Without an enable bit, a write to the length starts the ring.
  const std::uint32_t starts = nic.ring_enable_mask != 0 ? kControl : kLength;
  if (among(offset, nic.rx_ring_offset, nic.rx_ring_stride, kRingRegisters, queues, queue, within) &&
      within == starts) {
    control(false, queue);
  }
  if (among(offset, nic.tx_ring_offset, nic.tx_ring_stride, kRingRegisters, queues, queue, within) &&
      within == starts) {
    control(true, queue);
  }
}

void Nic::control(bool tx, std::uint32_t queue) {
  const bypass::Personality& nic = context_.options.nic;
  const std::uint32_t ring =
      tx ? nic.tx_ring_offset + queue * nic.tx_ring_stride : nic.rx_ring_offset + queue * nic.rx_ring_stride;
  const std::uint64_t base = (std::uint64_t{value(ring + kBaseHigh)} << 32 | value(ring + kBaseLow)) &
                             ~(std::uint64_t{nic.ring_align} - 1);  // the low bits are ignored (X550 7.2.3.3)
  const std::uint32_t bytes = value(ring + kLength);
  const bool on = bytes != 0 && (nic.ring_enable_mask == 0 || (value(ring + kControl) & nic.ring_enable_mask) != 0);
  if (!on) return tx ? transmit_.stop(queue) : receive_.stop(queue);
  if (tx) {
    const std::uint32_t at = nic.tx_head_offset + queue * nic.tx_head_stride;
    const std::uint32_t low = nic.tx_head_offset != 0 ? value(at) : 0;
    const std::uint64_t address = std::uint64_t{value(at + 4)} << 32 | (low & ~3U);
    transmit_.start(queue, base, bytes / nic.tx_descriptor_bytes);
    transmit_.set_head_writeback(queue, (low & nic.tx_head_enable) != 0 ? address : 0);
    return;
  }
  const std::uint32_t size =
      nic.rx_buffer_offset != 0 ? (value(nic.rx_buffer_offset + queue * nic.rx_ring_stride) & 0x7F) : 0;
  receive_.start(queue, base, bytes / nic.rx_descriptor_bytes, size != 0 ? size * nic.rx_buffer_unit : 2048);
}

std::uint32_t Nic::read_register(std::uint32_t offset) const {
  const bypass::Personality& nic = context_.options.nic;
  std::uint32_t queue = 0, within = 0;
  if (among(offset, nic.rx_tail_offset, nic.rx_tail_stride, 4, context_.options.queues, queue, within)) {
    return receive_.ring(queue).tail();
  }
  if (among(offset, nic.tx_tail_offset, nic.tx_tail_stride, 4, context_.options.queues, queue, within)) {
    return transmit_.ring(queue).tail();
  }
  if (nic.rx_ring_offset != 0) {
    if (among(offset, nic.rx_ring_offset + kHead, nic.rx_ring_stride, 4, context_.options.queues, queue, within)) {
      return receive_.ring(queue).head;
    }
    if (among(offset, nic.tx_ring_offset + kHead, nic.tx_ring_stride, 4, context_.options.queues, queue, within)) {
      return transmit_.ring(queue).head;
    }
  }
  return value(offset);
}

}  // namespace wherry::sim::nic
