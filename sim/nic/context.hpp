// SPDX-License-Identifier: Apache-2.0
// The data that all parts of a NIC model share.
#pragma once

#include <cstdint>

#include "sim/nic/options.hpp"
#include "sim/nic/reads.hpp"
#include "sim/pcie/event_queue.hpp"
#include "sim/pcie/function.hpp"

namespace wherry::sim::nic {

struct Context {
  Context(pcie::EventQueue& events, const NicOptions& from)
      : queue(events),
        options(from),
        hostile(from.hostile),
        reads(counters, from.repeats_reads),
        random(from.seed * 2 + 1) {}

  /// DMA may start now.
  [[nodiscard]] bool master() const noexcept { return port != nullptr && port->bus_master(); }
  /// xorshift64*: below `limit`.
  [[nodiscard]] std::uint32_t below(std::uint32_t limit) noexcept {
    random ^= random >> 12, random ^= random << 25, random ^= random >> 27;
    return static_cast<std::uint32_t>((random * 0x2545F4914F6CDD1DULL >> 32) * limit >> 32);
  }
  [[nodiscard]] bool chance(std::uint32_t per_mille) noexcept { return per_mille != 0 && below(1000) < per_mille; }

  pcie::EventQueue& queue;
  const NicOptions options;
  Hostile hostile;  ///< may change
  NicCounters counters;
  Reads reads;
  pcie::Port* port = nullptr;
  std::uint64_t random;
};

/// Arguments of a part's events: the event, its queue, and the number of resets before it.
struct EventArgument {
  std::uint8_t kind;
  std::uint16_t queue;
  std::uint32_t epoch;
};
[[nodiscard]] constexpr std::uint64_t pack(const EventArgument& a) noexcept {
  return std::uint64_t{a.epoch} << 32 | std::uint64_t{a.queue} << 8 | a.kind;
}
[[nodiscard]] constexpr EventArgument unpack(std::uint64_t a) noexcept {
  return {.kind = static_cast<std::uint8_t>(a & 0xFF),
          .queue = static_cast<std::uint16_t>(a >> 8 & 0xFFFF),
          .epoch = static_cast<std::uint32_t>(a >> 32)};
}

}  // namespace wherry::sim::nic
