// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/adapter.hpp"

#include <algorithm>

namespace wherry::sim::shell::load {

void AdapterIn::part(const Part& part) {
  if (part.index == 0) dropping_ = false;
  if (!dropping_ && used_ == capacity_) {
    dropping_ = true;
    used_ -= partial_;
    partial_ = 0;
    part.packet->dropped = true;
  }
  if (!dropping_) {
    ++used_;
    ++partial_;
    most = std::max(most, used_);
  }
  if (!part.last()) return;
  ++received;
  partial_ = 0;
  if (dropping_) {
    ++dropped;
    return;
  }
  held_.push_back({part.packet, kShellClock.edge(queue_.now() + kShellClock.cycles(p_.rx))});
  pump();
}

void AdapterIn::pump() {
  if (scheduled_ || held_.empty()) return;
  const Held& first = held_.front();
  PartSink& sink = route_(*first.packet);
  if (sink.room() == 0) return;
  sink.reserve();
  scheduled_ = true;
  const Time next = std::max(first.begin, last_) + kShellClock.cycles(1);
  queue_.call(kShellClock.edge(std::max({next, queue_.now(), sink.not_before()})), [this] { emit(); });
}

void AdapterIn::emit() {
  scheduled_ = false;
  last_ = queue_.now();
  --used_;
  Held& first = held_.front();
  const Part part{first.packet, first.sent++};
  PartSink& sink = route_(*first.packet);
  if (part.last()) {
    held_.pop_front();
    sink.gap();
  }
  queue_.call(queue_.now() + kShellClock.cycles(p_.box), [&sink, part] { sink.part(part); });
  pump();
}

bool AdapterOut::acquire(std::size_t source) {
  if (held_) {
    wants_[source] = true;
    return false;
  }
  if (source != holder_ && queue_.now() < others_from_) {
    queue_.call(others_from_, [this, source] { tell(source); });
    return false;
  }
  held_ = true;
  holder_ = source;
  wants_[source] = false;
  return true;
}

void AdapterOut::release(Time way) {
  held_ = false;
  others_from_ = queue_.now() + way;
  const std::size_t other = 1 - holder_;
  if (!wants_[other]) return;
  // It has waited for a packet's time, so it is next. Its beats come after those in flight.
  held_ = true;
  holder_ = other;
  wants_[other] = false;
  queue_.call(others_from_, [this, other] {
    held_ = false;
    tell(other);
  });
}

void AdapterOut::tell(std::size_t source) {
  if (on_room[source]) on_room[source]();
}

void AdapterOut::part(const Part& part) {
  if (part.index != arrived_++) ++part.packet->wrong;  // a beat of another packet among its own
  if (!part.last()) return;
  const std::uint32_t beats = arrived_;
  arrived_ = 0;
  // The wire takes a frame only after the one before it has ended.
  const Time own = kCmacClock.edge(queue_.now() + kCmacClock.cycles(p_.tx));
  const Time begin = kCmacClock.edge(std::max({own, wire_free_, out_free_}));
  const std::int64_t bits = std::int64_t{8} * (part.packet->bytes + limits_.wire_overhead);
  wire_free_ = std::max(own, wire_free_) + bits * 1000 / limits_.wire_gbits;
  out_free_ = begin + kCmacClock.cycles(beats);
  for (std::uint32_t i = 0; i < beats; ++i) {
    const Time at = kCmacClock.edge(begin + kCmacClock.cycles(i + 1));
    queue_.call(at, [this, packet = i + 1 == beats ? part.packet : nullptr] {
      --used_;
      if (packet != nullptr) sent(*packet);
      for (std::size_t source = 0; source < kSources; ++source) tell(source);
    });
  }
}

void Feeder::add(const Part& part, Time ready) {
  items_.push_back({part, ready});
  pump();
}

void Feeder::pump() {
  if (scheduled_ || items_.empty()) return;
  const Item& first = items_.front();
  if (first.ready > queue_.now()) {  // it asks for the adapter when it has something for it
    if (woken_ == first.ready) return;
    woken_ = first.ready;
    queue_.call(first.ready, [this] { pump(); });
    return;
  }
  if (!holds_) holds_ = adapter_.acquire(source_);
  if (!holds_ || !adapter_.room()) return;
  adapter_.reserve();
  scheduled_ = true;
  const Time next = std::max(first.ready, last_) + clock_.cycles(1);
  queue_.call(clock_.edge(std::max(next, queue_.now())), [this] { emit(); });
}

void Feeder::emit() {
  scheduled_ = false;
  last_ = queue_.now();
  const Part part = items_.front().part;
  items_.pop_front();
  queue_.call(queue_.now() + way_, [this, part] { adapter_.part(part); });
  if (left) left(part);
  if (part.last()) {
    holds_ = false;
    adapter_.release(way_);
  }
  pump();
}

}  // namespace wherry::sim::shell::load
