// SPDX-License-Identifier: Apache-2.0
// The packet adapter under load, with finite stores. Towards the card, a packet without room is dropped and counted,
// since the CMAC cannot wait. Towards the network, the sources wait. Times without load are those of stream.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>

#include "sim/pcie/event_queue.hpp"
#include "sim/shell/clock.hpp"
#include "sim/shell/load/limits.hpp"
#include "sim/shell/load/packet.hpp"

namespace wherry::sim::shell::load {

/// OpenNIC's packet_adapter_rx.sv: in at 322 MHz, out at 250 MHz in the order of arrival, a beat a cycle if the sink
/// has room. A packet's beats count from arrival until they leave. A packet is dropped whole if one of its beats finds
/// the store full (axi_stream_packet_buffer.sv, `drop`). received = given out + dropped + held.
class AdapterIn {
 public:
  /// `route`: where a packet goes. A packet whose sink has no room blocks those behind it.
  AdapterIn(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, std::function<PartSink&(Packet&)> route)
      : queue_(queue), p_(p), capacity_(limits.adapter_beats), route_(std::move(route)) {}

  /// A beat arrives at an edge of the CMAC's clock.
  void part(const Part& part);
  /// A sink has room again.
  void pump();

  std::uint64_t received = 0, dropped = 0;
  std::uint32_t most = 0;  ///< beats held, at most

 private:
  struct Held {
    Packet* packet;
    Time begin;  ///< from when its beats may leave
    std::uint32_t sent = 0;
  };
  void emit();

  pcie::EventQueue& queue_;
  const Parameters& p_;
  std::uint32_t capacity_;
  std::function<PartSink&(Packet&)> route_;
  std::deque<Held> held_;
  std::uint32_t used_ = 0, partial_ = 0;
  bool dropping_ = false, scheduled_ = false;
  Time last_ = 0;
};

/// packet_adapter_tx.sv and the CMAC behind it: packets come from two sources, one packet at a time, and leave at 322
/// MHz, but no faster than the wire takes frames.
class AdapterOut {
 public:
  static constexpr std::size_t kSources = 2;
  AdapterOut(pcie::EventQueue& queue, const Parameters& p, const Limits& limits)
      : queue_(queue), p_(p), limits_(limits) {}

  /// Whether the source gets the adapter for its next packet. Waiting sources take turns.
  [[nodiscard]] bool acquire(std::size_t source);
  /// The source has sent its packet's last beat, which arrives after `way`. Another source's beats come after it.
  void release(Time way);
  [[nodiscard]] bool room() const noexcept { return used_ < limits_.adapter_beats; }
  void reserve() noexcept { ++used_; }
  /// A beat arrives.
  void part(const Part& part);

  /// Called when a source may have the adapter, or when there is room.
  std::array<std::function<void()>, kSources> on_room;
  /// Called when the last beat of a packet has left.
  std::function<void(Packet&)> sent;

 private:
  void tell(std::size_t source);

  pcie::EventQueue& queue_;
  const Parameters& p_;
  const Limits& limits_;
  std::uint32_t used_ = 0, arrived_ = 0;
  std::size_t holder_ = 0;
  bool held_ = false;
  std::array<bool, kSources> wants_{};
  Time others_from_ = 0;
  Time wire_free_ = 0, out_free_ = 0;
};

/// Gives beats to AdapterOut: each from a time on, a beat a cycle of `clock`, arriving `way` later.
class Feeder {
 public:
  Feeder(pcie::EventQueue& queue, AdapterOut& adapter, std::size_t source, const Clock& clock, Time way)
      : queue_(queue), adapter_(adapter), source_(source), clock_(clock), way_(way) {
    adapter_.on_room[source] = [this] { pump(); };
  }
  void add(const Part& part, Time ready);
  /// A beat has left.
  std::function<void(const Part&)> left;

 private:
  struct Item {
    Part part;
    Time ready;
  };
  void pump();
  void emit();

  pcie::EventQueue& queue_;
  AdapterOut& adapter_;
  std::size_t source_;
  Clock clock_;
  Time way_;
  std::deque<Item> items_;
  bool scheduled_ = false, holds_ = false;
  Time last_ = 0, woken_ = -1;
};

}  // namespace wherry::sim::shell::load
