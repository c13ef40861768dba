// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/transmitter.hpp"

#include <algorithm>
#include <cassert>

namespace wherry::sim::pcie {
namespace {
constexpr std::int64_t kWireUnit = std::int64_t{1} << 20;
const Credits& credits_of(const ReceiveBuffer& buffer, std::size_t flow) {
  return flow == 0 ? buffer.posted : flow == 1 ? buffer.non_posted : buffer.completion;
}
}  // namespace

Transmitter::Transmitter(Context& context, const LinkOptions& link, const ReceiveBuffer& receiver, Node& far,
                         std::uint32_t far_port)
    : context_(context),
      link_(link),
      receiver_(receiver),
      far_(far),
      far_port_(far_port),
      place_(context.places++),
      byte_time_(byte_time(link)),
      dllp_latency_(dllp_latency(link, context.options.mps)),
      buffer_(context.options.reordering, splitmix64(context.options.seed, place_)),
      replay_random_(splitmix64(context.options.seed, (std::uint64_t{1} << 32) + place_)) {
  reset_credits();
}

void Transmitter::reset_credits() {
  for (std::size_t flow = 0; flow < kFlowClasses; ++flow) {
    const Credits& credits = credits_of(receiver_, flow);
    available_[flow] = {credits.headers, credits.data};
    counters_.lowest_headers[flow] = credits.headers;
    counters_.lowest_data[flow] = credits.data;
  }
  freed_ = {};
  update_due_.fill(kNever);
  ack_due_ = kNever;
  updates_.clear();
}

void Transmitter::send(Packet* packet) {
  assert(up_);
  if (packet->tail != 0) {
    // Cut through: the last bit must not leave before it has come.
    const std::int64_t duration = (link_bytes(*packet, link_.overhead) * byte_time_) >> 20;
    packet->ready = std::max(packet->ready, packet->tail - duration);
    packet->tail = 0;
  }
  if (!context_.faults.empty()) [[unlikely]] {
    if (const Fault* fault = context_.strike(*packet, far_.node_id, true)) {
      packet->ready = std::max(packet->ready, context_.queue.now() + fault->delay);
      buffer_.allow_holds();
    }
  }
  context_.see(Point::kEntered, place_, *packet);
  buffer_.push(packet, context_.queue.now());
  pump();
}

bool Transmitter::has_credits(const Packet& packet) const noexcept {
  const auto flow = static_cast<std::size_t>(packet.flow());
  const Credits& credits = credits_of(receiver_, flow);
  return (credits.headers == kInfinite || available_[flow].headers >= 1) &&
         (credits.data == kInfinite || available_[flow].data >= packet.data_credits());
}

void Transmitter::wake_at(Time at) {
  if (at >= wake_) return;
  wake_ = at;
  context_.queue.schedule(at, *this, 0);
}

void Transmitter::pump() {
  const Time now = context_.queue.now();
  while (!buffer_.empty()) {
    other_->settle(now);  // its DLLPs are sent over this wire
    settle(now);
    if (wire_free_ > now || (wire_free_ == now && fraction_ != 0)) {
      wake_at(fraction_ != 0 ? wire_free_ + 1 : wire_free_);
      return;
    }
    while (!updates_.empty() && updates_.front().at <= now) {
      available_[updates_.front().flow].headers += updates_.front().level.headers;
      available_[updates_.front().flow].data += updates_.front().level.data;
      updates_.pop_front();
    }
    Time held = kNever;
    Packet* const packet = buffer_.pick(now, &held, [this](const Packet& p) { return has_credits(p); });
    if (packet == nullptr) {
      if (blocked_since_ == kNever) blocked_since_ = now;
      Time wake = std::min(held, updates_.empty() ? kNever : updates_.front().at);
      for (const Time due : update_due_) wake = std::min(wake, due);
      if (wake != kNever) wake_at(std::max(wake, now + 1));
      return;
    }
    if (blocked_since_ != kNever) {
      counters_.blocked += now - blocked_since_;
      blocked_since_ = kNever;
    }
    buffer_.remove(packet);
    transmit(packet);
  }
}

Time Transmitter::occupy(Time from, std::uint32_t bytes) {
  if (from > wire_free_ + (fraction_ != 0 ? 1 : 0)) {  // otherwise there is no gap before it
    wire_free_ = from;
    fraction_ = 0;
  }
  const std::int64_t span = bytes * byte_time_;
  fraction_ += span;
  wire_free_ += fraction_ / kWireUnit;
  fraction_ %= kWireUnit;
  counters_.busy += span / kWireUnit;
  return fraction_ == 0 ? wire_free_ : wire_free_ + 1;
}

void Transmitter::transmit(Packet* packet) {
  const Time now = context_.queue.now();
  const auto flow = static_cast<std::size_t>(packet->flow());
  const Credits& credits = credits_of(receiver_, flow);
  if (credits.headers != kInfinite) {
    available_[flow].headers -= 1;
    counters_.lowest_headers[flow] = std::min(counters_.lowest_headers[flow], available_[flow].headers);
  }
  if (credits.data != kInfinite) {
    available_[flow].data -= packet->data_credits();
    counters_.lowest_data[flow] = std::min(counters_.lowest_data[flow], available_[flow].data);
  }
  const std::uint32_t bytes = link_bytes(*packet, link_.overhead);
  ++counters_.tlps[flow];
  counters_.payload_bytes += packet->payload_bytes();
  counters_.header_bytes += bytes - packet->payload_bytes();
  context_.see(Point::kLeft, place_, *packet);

  if (packet->holds != nullptr) {
    packet->holds->release(*packet);
    packet->holds = nullptr;
  }
  if (packet->queued_by != nullptr) {
    packet->queued_by->left(*packet);
    packet->queued_by = nullptr;
  }

  Time begin = now;
  Time end = occupy(now, bytes);
  if (link_.replay_one_in != 0 && replay_random_.below(link_.replay_one_in) == 0) [[unlikely]] {
    // The receiver sends a NAK, and everything from there on is sent again: this costs one round trip.
    ++counters_.replays;
    const Time nak = end + 2 * link_.propagation + ((link_.overhead.dllp * byte_time_) >> 20);
    begin = nak;
    end = occupy(nak, bytes);
  }
  packet->held_data = packet->data_credits();
  packet->sent_epoch = epoch_;
  Time arrival = end + link_.propagation + far_.arrival_latency;
  packet->tail = 0;
  packet->duration = end - begin;
  if (far_.cut_through) {
    packet->tail = arrival;
    arrival = begin + link_.propagation + far_.arrival_latency;
  }
  context_.queue.schedule(arrival, *this, reinterpret_cast<std::uintptr_t>(packet));
}

void Transmitter::on_event(std::uint64_t argument) {
  if (argument != 0) {
    arrive(reinterpret_cast<Packet*>(static_cast<std::uintptr_t>(argument)));
    return;
  }
  // Of several such events, the one set last is the earliest. The others find that they are outdated.
  if (context_.queue.now() >= wake_) {
    wake_ = kNever;
    pump();
  }
}

void Transmitter::arrive(Packet* packet) {
  if (packet->sent_epoch != epoch_ || !up_) [[unlikely]] {
    ++context_.counters.link_down;
    context_.drop(packet);
    return;
  }
  const Time now = context_.queue.now();
  if (link_.overhead.dllps) {
    if (ack_due_ <= now) settle(now);
    if (ack_due_ == kNever) ack_due_ = std::max(now, ack_sent_ + dllp_latency_);
  }
  packet->holds = this;
  packet->holds_epoch = epoch_;
  far_.arrive(packet, far_port_);
}

void Transmitter::release(const Packet& packet) {
  if (packet.holds_epoch != epoch_) return;  // the link was down since
  const auto flow = static_cast<std::size_t>(packet.flow());
  const Credits& credits = credits_of(receiver_, flow);
  if (credits.headers == kInfinite && credits.data == kInfinite) return;
  const Time now = context_.queue.now();
  const Level level{credits.headers == kInfinite ? 0 : 1, credits.data == kInfinite ? 0 : packet.held_data};
  if (!link_.overhead.dllps) {
    updates_.push_back({now + link_.propagation, static_cast<std::uint32_t>(flow), level});
  } else {
    if (update_due_[flow] <= now) settle(now);
    freed_[flow].headers += level.headers;
    freed_[flow].data += level.data;
    if (update_due_[flow] == kNever) update_due_[flow] = std::max(now, update_sent_[flow] + dllp_latency_);
  }
  if (blocked_since_ != kNever) wake_at(link_.overhead.dllps ? update_due_[flow] : updates_.back().at);
}

void Transmitter::settle(Time now) {
  for (;;) {
    Time due = ack_due_;
    std::size_t flow = kFlowClasses;
    for (std::size_t i = 0; i < kFlowClasses; ++i) {
      if (update_due_[i] < due) {
        due = update_due_[i];
        flow = i;
      }
    }
    if (due > now || due == kNever) return;
    const Time end = other_->occupy(due, link_.overhead.dllp);
    if (flow == kFlowClasses) {
      ack_sent_ = due;
      ack_due_ = kNever;
      ++other_->counters_.acks;
    } else {
      update_sent_[flow] = due;
      update_due_[flow] = kNever;
      ++other_->counters_.credit_updates;
      updates_.push_back({end + link_.propagation, static_cast<std::uint32_t>(flow), freed_[flow]});
      freed_[flow] = {};
    }
  }
}

void Transmitter::go_down() {
  if (!up_) return;
  up_ = false;
  ++epoch_;
  blocked_since_ = kNever;
  while (Packet* const packet = buffer_.oldest()) {
    buffer_.remove(packet);
    ++context_.counters.link_down;
    context_.drop(packet);
  }
  reset_credits();
}

void Transmitter::go_up() { up_ = true; }

}  // namespace wherry::sim::pcie
