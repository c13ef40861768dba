// SPDX-License-Identifier: Apache-2.0
// The times at which a packet passed the places of the shell between which the thesis measures.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/shell/clock.hpp"

namespace wherry::sim::shell {

enum class Place : std::uint8_t {
  kWireIn,      ///< from the network: begins with the first beat's offer, ends with the last one taken
  kAdapterOut,  ///< out of the packet adapter, towards the card
  kBoxOut,      ///< out of the 250 MHz box, either way
  kFetch,       ///< the descriptor: the request is offered; the descriptor is at hand
  kHostRead,    ///< the first request for data is offered; the last data are at hand
  kHostWrite,   ///< the first write is offered; the host has the last byte
  kStreamOut,   ///< out of QDMA or DataMover, towards the network
  kWireOut,     ///< out of the packet adapter, towards the network
  kCardWrite,   ///< the first beat is taken from the master; its last answer is
  kCount
};

/// From the first event to the last.
struct Span {
  Time first = pcie::kNever;
  Time last = 0;
  [[nodiscard]] Time length() const noexcept { return last - first; }
};

class Trace {
 public:
  void see(Place place, Time at) {
    Span& span = spans_[static_cast<std::size_t>(place)];
    span.first = std::min(span.first, at);
    span.last = std::max(span.last, at);
  }
  [[nodiscard]] const Span& of(Place place) const { return spans_[static_cast<std::size_t>(place)]; }

  /// For each transaction with the card's memory: from when the address is taken from the master to the last data.
  std::vector<Span> card_reads;

 private:
  std::array<Span, static_cast<std::size_t>(Place::kCount)> spans_;
};

}  // namespace wherry::sim::shell
