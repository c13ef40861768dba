// SPDX-License-Identifier: Apache-2.0
#include "sim/host_bypassing/core.hpp"

#include <algorithm>

namespace wherry::sim::host_bypassing {

namespace {

/// Capacity between the two handlers, in frames: the stream's FIFO. Chosen; the published design has none.
constexpr std::size_t kBetween = 2;
/// The most frames of the Ethernet port that wait for the transmit handler. Chosen; at line rate one waits.
constexpr std::size_t kPortFrames = 64;
constexpr pcie::Time kRxOverhead = 7, kTxOverhead = 2;  ///< cycles beside those of the data (research, section 3)

}  // namespace

Core::Core(pcie::EventQueue& queue, const CoreOptions& options)
    : queue_(queue), options_(options), memory_(kBarBytes) {}

pcie::FunctionOptions Core::function_options() {
  pcie::FunctionOptions options;
  options.name = "host bypassing";
  options.bars[2] = {.bytes = kBarBytes, .prefetchable = true};
  return options;
}

Status Core::start(nic::Nic& nic) {
  personality_ = &nic.options().nic;
  const std::uint64_t bar = port_->bar_address(2);
  for (std::uint32_t i = 0; i < options_.descriptors; ++i) {
    set_descriptor(kRxRing + i * bypass::kDescriptorBytes, bypass::make_rx(bar + kRxSlots + i * kSlotBytes));
    // All transmit descriptors begin as done, so the first lap finds them free.
    set_descriptor(kTxRing + i * bypass::kDescriptorBytes, bypass::make_tx_done(*personality_));
  }
  if (Status status = nic.start_rx(0, bar + kRxRing, options_.descriptors, kSlotBytes); !status.ok()) return status;
  if (Status status = nic.start_tx(0, bar + kTxRing, options_.descriptors); !status.ok()) return status;
  rx_tail_at_ = nic.rx_tail_address(0);
  tx_tail_at_ = nic.tx_tail_address(0);
  rx_bell_.value = options_.descriptors - 2;
  write_tail(rx_bell_, false);
  rx_bell_.last = -pcie::kSecond;
  return {};
}

bypass::Descriptor Core::descriptor(std::uint64_t at) const {
  return bypass::load(
      std::span<const std::byte, bypass::kDescriptorBytes>(memory_.data() + at, bypass::kDescriptorBytes));
}
void Core::set_descriptor(std::uint64_t at, const bypass::Descriptor& descriptor) {
  bypass::store(descriptor,
                std::span<std::byte, bypass::kDescriptorBytes>(memory_.data() + at, bypass::kDescriptorBytes));
}

void Core::on_write(const pcie::InboundWrite& write) {
  if (write.bar != 2 || write.offset + write.data.size() > memory_.size()) return;
  std::copy(write.data.begin(), write.data.end(), memory_.begin() + static_cast<std::ptrdiff_t>(write.offset));
  if (write.offset >= kRxSlots) {
    counters_.received_payload += write.data.size();
  } else if (write.offset >= kTxRing) {
    counters_.received_tx_writebacks += write.data.size();
    begin_tx();
  } else {
    counters_.received_writebacks += write.data.size();
    poll_rx();
  }
}

void Core::on_read(const pcie::InboundRead& read) {
  if (read.bar != 2 || read.offset + read.bytes > memory_.size()) {
    port_->complete(read, {}, pcie::CompletionStatus::kUnsupportedRequest);
    return;
  }
  (read.offset >= kRxSlots  ? counters_.sent_payload
   : read.offset >= kTxRing ? counters_.sent_tx_descriptors
                            : counters_.sent_rx_descriptors) += read.bytes;
  port_->complete(read, std::span(memory_).subspan(read.offset, read.bytes));
}

void Core::poll_rx() {
  if (rx_busy_ || (peer_ == nullptr && between_.size() >= kBetween)) return;
  const bypass::Descriptor done = descriptor(kRxRing + rx_next_ * bypass::kDescriptorBytes);
  if (!bypass::rx_done(*personality_, done)) return;
  rx_busy_ = true;
  const std::uint32_t bytes = bypass::read_rx(*personality_, done).bytes;
  queue_.schedule(queue_.now() + kCycle * (kRxOverhead + (bytes + 7) / 8), *this, kRxDone);
}

void Core::begin_tx() {
  if (tx_busy_ || between_.empty()) return;
  if (options_.writeback &&
      !bypass::tx_done(*personality_, descriptor(kTxRing + tx_next_ * bypass::kDescriptorBytes))) {
    return;
  }
  tx_busy_ = true;
  // A frame from the Ethernet port passes the handler as it arrives: 8 bytes per 6.4 ns, slower than its 4 ns.
  const bool streamed = options_.joined || peer_ != nullptr;
  const auto beats = streamed ? pcie::Time{0} : static_cast<pcie::Time>((between_.front().size() + 7) / 8);
  queue_.schedule(queue_.now() + kCycle * (kTxOverhead + beats), *this, kTxDone);
}

void Core::on_frame(std::span<const std::byte> frame, bool fcs_good) {
  if (!fcs_good || between_.size() >= kPortFrames) {
    ++counters_.port_dropped;
    return;
  }
  between_.push_back().assign(frame.begin(), frame.end());
  begin_tx();
}

/// The receive handler has streamed `frame`. The port has sent it since the first beat, at the wire's pace.
void Core::send_to_port(std::span<const std::byte> frame) {
  const pcie::Time first_beat = queue_.now() - kCycle * static_cast<pcie::Time>((frame.size() + 7) / 8);
  const pcie::Time start = std::max(first_beat, port_free_);
  port_free_ = start + nic::slot_time(frame.size(), mbits_);
  port_out_.push_back().assign(frame.begin(), frame.end());
  queue_.schedule(start + nic::frame_time(frame.size(), mbits_), *this, kPortSent);
}

void Core::on_event(std::uint64_t argument) {
  switch (static_cast<Event>(argument)) {
    case kRxDone: {
      const std::uint64_t at = kRxRing + rx_next_ * bypass::kDescriptorBytes;
      const std::uint32_t bytes = bypass::read_rx(*personality_, descriptor(at)).bytes;
      const auto* slot = memory_.data() + kRxSlots + std::uint64_t{rx_next_} * kSlotBytes;
      if (peer_ != nullptr) {
        send_to_port({slot, std::min(bytes, kSlotBytes)});
      } else {
        between_.push_back().assign(slot, slot + std::min(bytes, kSlotBytes));
      }
      set_descriptor(at, bypass::make_rx(port_->bar_address(2) + kRxSlots + std::uint64_t{rx_next_} * kSlotBytes));
      ++counters_.packets_in;
      rx_next_ = (rx_next_ + 1) % options_.descriptors;
      ring_bell(rx_bell_, (rx_next_ + options_.descriptors - 2) % options_.descriptors, false);
      rx_busy_ = false;
      begin_tx();
      poll_rx();
      return;
    }
    case kTxDone: {
      const std::vector<std::byte>& packet = between_.front();
      const std::uint64_t slot = kTxSlots + std::uint64_t{tx_next_} * kSlotBytes;
      std::copy(packet.begin(), packet.end(), memory_.begin() + static_cast<std::ptrdiff_t>(slot));
      const auto bytes = static_cast<std::uint32_t>(packet.size());
      set_descriptor(kTxRing + tx_next_ * bypass::kDescriptorBytes,
                     bypass::make_tx(*personality_, {.address = port_->bar_address(2) + slot,
                                                     .bytes = bytes,
                                                     .total = bytes,
                                                     .end = true,
                                                     .report = options_.writeback}));
      between_.pop_front();
      ++counters_.packets_out;
      tx_next_ = (tx_next_ + 1) % options_.descriptors;
      ring_bell(tx_bell_, tx_next_, true);
      tx_busy_ = false;
      poll_rx();
      begin_tx();
      return;
    }
    case kPortSent:
      peer_->on_frame(port_out_.front(), true);
      port_out_.pop_front();
      return;
    case kRxTail:
    case kTxTail: {
      Doorbell& bell = argument == kTxTail ? tx_bell_ : rx_bell_;
      bell.armed = false;
      if (bell.pending == 0) return;
      if (queue_.now() - bell.last >= options_.timeout) return write_tail(bell, argument == kTxTail);
      bell.armed = true;
      queue_.schedule(bell.last + options_.timeout, *this, argument);
      return;
    }
  }
}

void Core::ring_bell(Doorbell& bell, std::uint32_t value, bool tx) {
  bell.value = value;
  ++bell.pending;
  if (bell.pending >= options_.batch || (options_.timeout != 0 && queue_.now() - bell.last >= options_.timeout)) {
    write_tail(bell, tx);
  } else if (options_.timeout != 0 && !bell.armed) {
    bell.armed = true;
    queue_.schedule(bell.last + options_.timeout, *this, tx ? kTxTail : kRxTail);
  }
}

void Core::write_tail(Doorbell& bell, bool tx) {
  std::array<std::byte, 4> bytes{};
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(bell.value >> (8 * i) & 0xFF);
  port_->post_write(tx ? tx_tail_at_ : rx_tail_at_, bytes);
  bell.pending = 0;
  bell.last = queue_.now();
  ++counters_.tail_writes;
  counters_.sent_tails += bytes.size();
}

}  // namespace wherry::sim::host_bypassing
