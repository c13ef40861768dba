// SPDX-License-Identifier: Apache-2.0
#include "sim/nic/transmit.hpp"

#include <algorithm>
#include <array>

namespace wherry::sim::nic {

using bypass::TxKind;
using bypass::TxPart;
using pcie::CompletionStatus;

Transmit::Transmit(Context& context, WireEnd& wire) : context_(context), wire_(wire) {
  const bypass::Personality& nic = context.options.nic;
  const RingLimits limits{.descriptor_bytes = nic.tx_descriptor_bytes,
                          .cache = nic.tx_cache,
                          .prefetch_below = nic.tx_prefetch_below,
                          .prefetch_at_least = nic.tx_prefetch_at_least,
                          .fetch_max = nic.tx_fetch_max,
                          .tail_granule = 1};
  for (std::uint32_t queue = 0; queue < context.options.queues; ++queue) {
    rings_.emplace_back(context, static_cast<RingUser&>(*this), queue, limits);
  }
}

void Transmit::start(std::uint32_t queue, std::uint64_t base, std::uint32_t entries) {
  QueueState& state = rings_[queue];
  state.ring.start(base, entries);
  state.accumulated = 0;
  state.flush_at = pcie::kNever;
  state.skipping = false;
}

void Transmit::stop(std::uint32_t queue) {
  QueueState& state = rings_[queue];
  state.ring.stop();
  state.accumulated = 0;
  state.flush_at = pcie::kNever;
  state.skipping = false;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Frame& frame = frames_[order_[i]];
    if (frame.queue != queue || frame.stale) continue;
    frame.stale = true;
    if (frame.counts && frame.why == TxDrop::kCount) frame.why = TxDrop::kReset;
    frame.issued = frame.segments.size();
  }
  retire();
}

void Transmit::set_tail(std::uint32_t queue, std::uint32_t tail) {
  ++context_.counters.tx_tails;
  if (!rings_[queue].ring.set_tail(tail)) ++context_.counters.bad_tails;
}

void Transmit::set_link(bool up) {
  link_up_ = up;
  if (!up) lost_ = sending_;
  if (up) send_next();
}

void Transmit::on_descriptors(std::uint32_t queue) {
  QueueState& state = rings_[queue];
  if (!state.ring.running()) stop(queue);
  pump();
}

void Transmit::pump() {
  if (!context_.master()) return;
  for (;;) {
    for (; issuing_ < order_.size(); ++issuing_) {
      if (!issue(order_[issuing_])) return;
    }
    retire();
    bool taken = false;
    for (std::uint32_t i = 0; i < rings_.size() && !taken; ++i) {
      taken = take(rings_[turn_]);
      turn_ = turn_ + 1 == rings_.size() ? 0 : turn_ + 1;
    }
    if (!taken) return;
  }
}

bool Transmit::take(QueueState& state) {
  const bypass::Personality& nic = context_.options.nic;
  Fifo<CachedDescriptor>& cached = state.ring.cached();
  if (cached.empty()) {
    state.ring.fetch(true);
    return false;
  }
  const TxPart front = read_tx(nic, cached.front().descriptor);
  if (front.kind != TxKind::kData) {
    front.kind == TxKind::kContext ? ++context_.counters.contexts : ++context_.counters.bad_descriptors;
    begin(state, 1);
    return true;
  }
  if (state.skipping) {
    state.skipping = !front.end;
    begin(state, 1);
    return true;
  }
  std::uint32_t count = 0, total = 0;
  bool end = false;
  while (!end && count < cached.size() && count < nic.tx_frame_descriptors) {
    const TxPart part = read_tx(nic, cached[count].descriptor);
    if (part.kind != TxKind::kData) break;
    total += part.bytes;
    end = part.end;
    ++count;
  }
  TxDrop why = TxDrop::kCount;
  if (!end) {
    if (count == cached.size() && count < nic.tx_frame_descriptors && cached.size() < nic.tx_cache) {
      state.ring.fetch(true);
      return false;
    }
    why = TxDrop::kBadChain;
    state.skipping = true;
  } else if (total < nic.tx_min_bytes) {
    why = TxDrop::kTooShort;
  } else if (total + kFcsBytes > nic.frame_max) {
    why = TxDrop::kTooLong;
  }
  const std::uint64_t room = std::uint64_t{nic.tx_buffer_kib} * 1024;
  if (why == TxDrop::kCount && used_ != 0 && used_ + total > room) return false;

  std::uint32_t offset = 0;
  std::array<Segment, 256> segments;
  for (std::uint32_t i = 0; i < count && why == TxDrop::kCount; ++i) {
    const TxPart part = read_tx(nic, cached[i].descriptor);
    segments[i] = {.address = part.address, .offset = offset, .bytes = part.bytes};
    offset += part.bytes;
  }
  Frame& frame = frames_[begin(state, count)];
  frame.counts = true;
  frame.why = why;
  ++context_.counters.accepted;
  ++waiting_;
  if (why == TxDrop::kCount) {
    frame.data.resize(total);
    frame.segments.assign(segments.begin(), segments.begin() + count);
    used_ += total;
    context_.counters.tx_buffer_peak = std::max(context_.counters.tx_buffer_peak, used_);
  }
  if (context_.chance(context_.hostile.outside_reads)) misbehave(state);
  return true;
}

std::uint32_t Transmit::begin(QueueState& state, std::uint32_t descriptors) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(frames_.size()));
    frames_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Frame& frame = frames_[index];
  frame.segments.clear();
  frame.reports.clear();
  frame.data.clear();
  frame.issued = 0;
  frame.under_way = 0;
  frame.queue = state.queue;
  frame.why = TxDrop::kCount;
  frame.counts = frame.stale = false;
  Fifo<CachedDescriptor>& cached = state.ring.cached();
  frame.first = cached.front().index;
  frame.count = descriptors;
  for (std::uint32_t i = 0; i < descriptors; ++i, cached.pop_front()) {
    if (read_tx(context_.options.nic, cached.front().descriptor).report) frame.reports.push_back(cached.front().index);
  }
  order_.push_back() = index;
  state.ring.fetch();
  return index;
}

bool Transmit::issue(std::uint32_t index) {
  Frame& frame = frames_[index];
  for (; frame.issued < frame.segments.size(); ++frame.issued) {
    const Segment& segment = frame.segments[frame.issued];
    if (segment.bytes == 0) continue;
    if (!context_.reads.try_read(segment.address, segment.bytes, frame.data.data() + segment.offset, *this, index)) {
      return false;
    }
    ++frame.under_way;
  }
  return true;
}

void Transmit::on_read(std::uint64_t argument, CompletionStatus status) {
  if (argument == kOutside) return;
  const auto index = static_cast<std::uint32_t>(argument);
  Frame& frame = frames_[index];
  --frame.under_way;
  if (status != CompletionStatus::kSuccess && frame.why == TxDrop::kCount) {
    frame.why = status == CompletionStatus::kPoisoned  ? TxDrop::kPoisoned
                : status == CompletionStatus::kAborted ? TxDrop::kReset
                                                       : TxDrop::kReadFailed;
  }
  if (frame.under_way == 0 && !order_.empty() && order_.front() == index) {
    retire();
    pump();
  }
}

void Transmit::retire() {
  while (!order_.empty()) {
    const std::uint32_t index = order_.front();
    Frame& frame = frames_[index];
    if (frame.under_way != 0 || (frame.issued < frame.segments.size() && frame.why == TxDrop::kCount)) return;
    if (!frame.stale && !context_.master()) return;  // its report could not be written; resume() goes on
    if (frame.issued < frame.segments.size()) frame.issued = frame.segments.size();
    order_.pop_front();
    if (issuing_ != 0) --issuing_;
    if (!frame.stale) {
      QueueState& state = rings_[frame.queue];
      state.ring.head = (frame.first + frame.count) % state.ring.entries();
      report(state, frame);
    }
    if (!frame.counts) {
      free_.push_back(index);
    } else if (frame.why != TxDrop::kCount) {
      drop(frame.why);
      release(index);
    } else {
      outgoing_.push_back() = {.frame = index,
                               .ready = context_.queue.now() + context_.options.nic.tx_ns * pcie::kNanosecond};
      send_next();
    }
  }
}

void Transmit::report(QueueState& state, const Frame& frame) {
  const bypass::Personality& nic = context_.options.nic;
  if (state.head_address != 0) {
    if (frame.reports.empty()) return;
    std::array<std::byte, 4> head{};
    for (std::size_t i = 0; i < 4; ++i) head[i] = static_cast<std::byte>(state.ring.head >> (8 * i) & 0xFF);
    context_.port->post_write(state.head_address, head);
    ++context_.counters.head_writebacks;
    return;
  }
  if (nic.tx_writeback == 0) {
    for (const std::uint32_t index : frame.reports) write_back(state, index, 1);
    return;
  }
  if (state.accumulated == 0) {
    state.accumulated_first = frame.first;
    if (nic.writeback_timer_ns != 0) {
      state.flush_at = context_.queue.now() + nic.writeback_timer_ns * pcie::kNanosecond;
      context_.queue.schedule(state.flush_at, *this, pack({kFlush, static_cast<std::uint16_t>(state.queue), epoch_}));
    }
  }
  state.accumulated += frame.count;
  if (state.accumulated >= nic.tx_writeback) write_back(state, state.accumulated_first, state.accumulated);
}

void Transmit::write_back(QueueState& state, std::uint32_t first, std::uint32_t count) {
  const bypass::Personality& nic = context_.options.nic;
  std::array<std::byte, 64 * bypass::kDescriptorBytes> line;
  while (count != 0) {
    const std::uint32_t n = std::min({count, state.ring.entries() - first, 64U});
    for (std::uint32_t i = 0; i < n; ++i) {
      bypass::store(bypass::make_tx_done(nic),
                    std::span<std::byte, bypass::kDescriptorBytes>(line.data() + i * bypass::kDescriptorBytes,
                                                                   bypass::kDescriptorBytes));
    }
    context_.port->post_write(state.ring.address(first), std::span(line).first(n * bypass::kDescriptorBytes));
    ++context_.counters.tx_writebacks;
    first = (first + n) % state.ring.entries();
    count -= n;
  }
  state.accumulated = 0;
  state.flush_at = pcie::kNever;
}

void Transmit::misbehave(const QueueState& state) {
  const std::uint64_t near = state.ring.base() + (std::uint64_t{context_.below(1U << 16)} << 8);
  if (!context_.reads.try_read(near, 1 + context_.below(512), outside_.data(), *this, kOutside)) return;
  ++context_.counters.hostile_acts;
}

void Transmit::send_next() {
  if (sending_ || !link_up_ || outgoing_.empty()) return;
  const Outgoing& next = outgoing_.front();
  const Time start = std::max({context_.queue.now(), next.ready, wire_free_});
  const std::size_t bytes = frames_[next.frame].data.size();
  const Time last = start + frame_time(bytes, context_.options.mbits);
  wire_free_ = start + slot_time(bytes, context_.options.mbits);
  sending_ = true;
  lost_ = false;
  context_.queue.schedule(last, *this, pack({kLastBit, 0, epoch_}));
}

void Transmit::on_event(std::uint64_t argument) {
  const EventArgument event = unpack(argument);
  if (event.epoch != epoch_) return;
  if (event.kind == kFlush) {
    QueueState& state = rings_[event.queue];
    if (state.flush_at == context_.queue.now() && state.accumulated != 0 && context_.master()) {
      write_back(state, state.accumulated_first, state.accumulated);
    }
    return;
  }
  const std::uint32_t index = outgoing_.front().frame;
  outgoing_.pop_front();
  sending_ = false;
  Frame& frame = frames_[index];
  if (lost_) {
    drop(TxDrop::kLinkDown);
  } else {
    ++context_.counters.sent;
    context_.counters.sent_bytes += frame.data.size();
    const std::size_t bytes = frame.data.size();
    if (bytes < kShortestFrame) frame.data.resize(kShortestFrame);  // the MAC pads with zeros
    --waiting_;
    wire_.on_frame(frame.data, true);
    frame.data.resize(bytes);
  }
  release(index);
  send_next();
  pump();  // there is room in the packet buffer
}

void Transmit::drop(TxDrop why) {
  ++context_.counters.tx_dropped[static_cast<std::size_t>(why)];
  --waiting_;
}

void Transmit::release(std::uint32_t index) {
  used_ -= frames_[index].data.size();
  free_.push_back(index);
}

void Transmit::resume() {
  for (QueueState& state : rings_) {
    if (state.accumulated != 0 && state.flush_at <= context_.queue.now()) {
      write_back(state, state.accumulated_first, state.accumulated);
    }
    state.ring.fetch();
  }
  pump();
}

void Transmit::reset() {
  ++epoch_;
  while (!outgoing_.empty()) {
    drop(TxDrop::kReset);
    release(outgoing_.front().frame);
    outgoing_.pop_front();
  }
  sending_ = lost_ = false;
  wire_free_ = context_.queue.now();
  for (std::uint32_t queue = 0; queue < rings_.size(); ++queue) {
    stop(queue);
    rings_[queue].head_address = 0;
  }
}

}  // namespace wherry::sim::nic
