// SPDX-License-Identifier: Apache-2.0
#include "sim/nic/receive.hpp"

#include <algorithm>
#include <array>

#include "sim/nic/rss.hpp"
#include "sim/nic/wire.hpp"

namespace wherry::sim::nic {

namespace {

/// A frame's space in a packet buffer, in whole lines. Chosen: lines of 32 bytes, as in 82599's statistics.
constexpr std::uint64_t kBufferLine = 32;
std::uint64_t buffer_bytes(std::size_t frame) {
  return (frame + kFcsBytes + kBufferLine - 1) / kBufferLine * kBufferLine;
}

}  // namespace

Receive::Receive(Context& context) : context_(context) {
  const bypass::Personality& nic = context.options.nic;
  const RingLimits limits{.descriptor_bytes = nic.rx_descriptor_bytes,
                          .cache = nic.rx_cache,
                          .prefetch_below = nic.rx_prefetch_below,
                          .prefetch_at_least = nic.rx_prefetch_at_least,
                          .fetch_max = nic.rx_fetch_max,
                          .tail_granule = nic.rx_tail_granule};
  for (std::uint32_t queue = 0; queue < context.options.queues; ++queue) {
    rings_.emplace_back(context, static_cast<RingUser&>(*this), queue, limits);
  }
}

void Receive::start(std::uint32_t queue, std::uint64_t base, std::uint32_t entries, std::uint32_t buffer_bytes) {
  QueueState& state = rings_[queue];
  forget(state);
  state.buffer_bytes = buffer_bytes;
  state.ring.start(base, entries);
}

void Receive::stop(std::uint32_t queue) {
  rings_[queue].ring.stop();
  forget(rings_[queue]);
  pump();
}

void Receive::forget(QueueState& state) {
  for (; !state.done.empty(); state.done.pop_front()) {
    if (state.done.front().frame == 0) continue;
    --unreported_;
    drop(RxDrop::kReset);
  }
  state.flush_at = pcie::kNever;
  state.overdue = false;
}

void Receive::set_tail(std::uint32_t queue, std::uint32_t tail) {
  ++context_.counters.rx_tails;
  if (!rings_[queue].ring.set_tail(tail)) ++context_.counters.bad_tails;
}

void Receive::on_frame(std::span<const std::byte> frame, bool fcs_good, bool link_up) {
  NicCounters& counters = context_.counters;
  ++counters.received;
  counters.received_bytes += frame.size();
  if (!link_up) return drop(RxDrop::kLinkDown);
  if (!fcs_good) return drop(RxDrop::kBadFcs);
  if (frame.size() < kShortestFrame) return drop(RxDrop::kTooShort);
  if (frame.size() + kFcsBytes > context_.options.nic.frame_max) return drop(RxDrop::kTooLong);
  const std::uint64_t bytes = buffer_bytes(frame.size());
  if (used_ + bytes > std::uint64_t{context_.options.nic.rx_buffer_kib} * 1024) return drop(RxDrop::kBufferFull);
  const std::uint32_t queue = context_.options.queues == 1 ? 0 : rss_queue(rss_hash(frame), context_.options.queues);
  if (!rings_[queue].ring.running()) return drop(RxDrop::kQueueOff);

  used_ += bytes;
  counters.rx_buffer_peak = std::max(counters.rx_buffer_peak, used_);
  Waiting& waiting = buffer_.push_back();
  waiting.data.assign(frame.begin(), frame.end());
  waiting.ready = context_.queue.now() + context_.options.nic.rx_ns * pcie::kNanosecond;
  waiting.queue = queue;
  waiting.written = 0;
  waiting.begun = false;
  if (buffer_.size() == 1) pump();
}

void Receive::leave() {
  used_ -= buffer_bytes(buffer_.front().data.size());
  buffer_.pop_front();
}

void Receive::pump() {
  if (!context_.master()) return;
  while (!buffer_.empty() && write_front()) {
  }
}

bool Receive::write_front() {
  Waiting& frame = buffer_.front();
  if (frame.ready > context_.queue.now()) {
    if (!ready_event_) {
      ready_event_ = true;
      context_.queue.schedule(frame.ready, *this, pack({kReady, 0, epoch_}));
    }
    return false;
  }
  QueueState& state = rings_[frame.queue];
  if (!state.ring.running()) {
    drop(frame.begun ? RxDrop::kReset : RxDrop::kQueueOff);
    leave();
    return true;
  }
  Fifo<CachedDescriptor>& cached = state.ring.cached();
  if (cached.empty()) {
    if (!frame.begun && context_.options.nic.rx_drop_without_descriptor && state.ring.exhausted()) {
      drop(RxDrop::kNoDescriptor);
      leave();
      return true;
    }
    state.ring.fetch(true);
    return false;
  }
  const CachedDescriptor descriptor = cached.front();
  const auto rest = std::span<const std::byte>(frame.data).subspan(frame.written);
  const auto part = rest.first(std::min<std::size_t>(rest.size(), state.buffer_bytes));
  if (!context_.port->try_write(descriptor.descriptor.low, part)) return false;
  frame.begun = true;
  frame.written += static_cast<std::uint32_t>(part.size());
  const bool end = frame.written == frame.data.size();
  cached.pop_front();
  state.ring.fetch();
  finished(state, descriptor.index, static_cast<std::uint32_t>(part.size()), end ? frame.written : 0);
  if (end) leave();
  return true;
}

void Receive::finished(QueueState& state, std::uint32_t index, std::uint32_t bytes, std::uint32_t frame) {
  const bypass::Personality& nic = context_.options.nic;
  Done& done = state.done.push_back();
  done.index = index;
  done.what = {.bytes = bytes, .errors = 0, .end = frame != 0};
  done.frame = frame;
  if (frame != 0) ++unreported_;
  if (context_.chance(context_.hostile.long_lengths)) {
    done.what.bytes = state.buffer_bytes + 1 + context_.below(1U << 14);
    ++context_.counters.hostile_acts;
  }
  // Writes back whole aligned lines, so that after a partial one the next is aligned again (82598 3.5.2.7).
  if (nic.rx_writeback <= 1 || (index + 1) % nic.rx_writeback == 0 || index + 1 == state.ring.entries()) {
    write_back(state);
  } else if (state.done.size() == 1 && nic.writeback_timer_ns != 0) {
    state.flush_at = context_.queue.now() + nic.writeback_timer_ns * pcie::kNanosecond;
    context_.queue.schedule(state.flush_at, *this, pack({kFlush, static_cast<std::uint16_t>(state.queue), epoch_}));
  }
}

void Receive::write_back(QueueState& state) {
  const bypass::Personality& nic = context_.options.nic;
  std::array<std::byte, 8192> line;
  const std::uint32_t size = nic.rx_descriptor_bytes;
  const std::uint32_t first = state.done.front().index;
  std::uint32_t bytes = 0;
  for (; !state.done.empty(); state.done.pop_front(), bytes += size) {
    std::fill_n(line.begin() + bytes, size, std::byte{0});
    if (const std::uint32_t frame = state.done.front().frame; frame != 0) {
      --unreported_;
      ++context_.counters.delivered;
      context_.counters.delivered_bytes += frame;
    }
    bypass::store(bypass::make_rx_done(nic, state.done.front().what),
                  std::span<std::byte, bypass::kDescriptorBytes>(line.data() + bytes, bypass::kDescriptorBytes));
  }
  context_.port->post_write(state.ring.address(first), std::span(line).first(bytes));
  ++context_.counters.rx_writebacks;
  state.ring.head = (first + bytes / size) % state.ring.entries();
  state.flush_at = pcie::kNever;
  state.overdue = false;
  if (context_.chance(context_.hostile.ghost_writebacks)) misbehave(state);
}

void Receive::misbehave(QueueState& state) {
  const bypass::Personality& nic = context_.options.nic;
  std::array<std::byte, 32> ghost{};
  bypass::store(bypass::make_rx_done(nic, {.bytes = 60 + context_.below(1500), .errors = 0, .end = true}),
                std::span<std::byte, bypass::kDescriptorBytes>(ghost.data(), bypass::kDescriptorBytes));
  context_.port->post_write(state.ring.address(context_.below(state.ring.entries())),
                            std::span(ghost).first(nic.rx_descriptor_bytes));
  ++context_.counters.hostile_acts;
}

void Receive::on_descriptors(std::uint32_t queue) {
  if (!rings_[queue].ring.running()) forget(rings_[queue]);
  if (!buffer_.empty() && buffer_.front().queue == queue) pump();
}

void Receive::on_event(std::uint64_t argument) {
  const EventArgument event = unpack(argument);
  if (event.epoch != epoch_) return;
  if (event.kind == kReady) {
    ready_event_ = false;
    pump();
    return;
  }
  QueueState& state = rings_[event.queue];
  if (state.flush_at != context_.queue.now() || state.done.empty()) return;
  if (context_.master()) {
    write_back(state);
  } else {
    state.overdue = true;  // resume() does it
  }
}

void Receive::resume() {
  for (QueueState& state : rings_) {
    if (state.overdue && context_.master()) write_back(state);
    state.ring.fetch();
  }
  pump();
}

void Receive::reset() {
  ++epoch_;
  ready_event_ = false;
  while (!buffer_.empty()) {
    drop(RxDrop::kReset);
    leave();
  }
  for (QueueState& state : rings_) {
    state.ring.stop();
    forget(state);
  }
}

}  // namespace wherry::sim::nic
