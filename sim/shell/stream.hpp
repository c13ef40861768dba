// SPDX-License-Identifier: Apache-2.0
// AXI4-Stream of 512 bit: packets as beats, and the parts on their path. A beat is passed on at the edge at which it is
// taken. No part applies back-pressure, because the thesis has one packet in flight.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/pcie/event_queue.hpp"
#include "sim/shell/clock.hpp"
#include "sim/shell/parameters.hpp"
#include "sim/shell/trace.hpp"

namespace wherry::sim::shell {

struct Beat {
  std::array<std::byte, kBeatBytes> data{};
  std::uint32_t bytes = kBeatBytes;
  bool last = false;
};

class Sink {
 public:
  virtual void beat(const Beat& beat) = 0;

 protected:
  ~Sink() = default;
};

[[nodiscard]] constexpr std::uint32_t beats_of(std::uint32_t bytes) noexcept {
  return (bytes + kBeatBytes - 1) / kBeatBytes;
}
[[nodiscard]] std::vector<Beat> cut(std::span<const std::byte> packet);

/// Records each beat and passes it on.
class Probe final : public Sink {
 public:
  Probe(pcie::EventQueue& queue, Trace& trace, Place place, Sink& next)
      : queue_(queue), trace_(trace), place_(place), next_(next) {}
  void beat(const Beat& beat) override {
    trace_.see(place_, queue_.now());
    next_.beat(beat);
  }

 private:
  pcie::EventQueue& queue_;
  Trace& trace_;
  Place place_;
  Sink& next_;
};

/// A pipeline in the shell's clock.
class Pipe final : public Sink {
 public:
  Pipe(pcie::EventQueue& queue, std::uint32_t cycles, Sink& next)
      : queue_(queue), delay_(kShellClock.cycles(cycles)), next_(next) {}
  void beat(const Beat& beat) override;

 private:
  pcie::EventQueue& queue_;
  Time delay_;
  Sink& next_;
};

/// Holds a packet until all of it is there, then gives out one beat per cycle of another clock. Both directions of
/// OpenNIC's packet adapter do so (src/utility/axi_stream_packet_buffer.sv, axi_stream_packet_fifo.sv).
class PacketStore final : public Sink {
 public:
  /// `delay`: from the last beat in until the first one is offered, at an edge of `out`.
  PacketStore(pcie::EventQueue& queue, const Clock& out, Time delay, Sink& next)
      : queue_(queue), out_(out), delay_(delay), next_(next) {}
  void beat(const Beat& beat) override;

 private:
  pcie::EventQueue& queue_;
  Clock out_;
  Time delay_;
  Sink& next_;
  std::vector<Beat> packet_;
};

/// Where packets end.
class Collector final : public Sink {
 public:
  void beat(const Beat& beat) override { bytes.insert(bytes.end(), beat.data.begin(), beat.data.begin() + beat.bytes); }
  std::vector<std::byte> bytes;
};

}  // namespace wherry::sim::shell
