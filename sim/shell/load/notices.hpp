// SPDX-License-Identifier: Apache-2.0
// QDMA's reports to the host: entries of completion rings (packets to the host), status descriptors, and MSI-X
// interrupts with one outstanding in each queue (PG302, Completion Queue, Completion Status Structure, Interrupts;
// PG347, Completion Status/Interrupt Moderation; trigger mode EVERY). The host's side is ideal: it answers an interrupt
// at once, and its update of the consumer index is back after one flight. This is a bound, not a driver.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/pcie/memory.hpp"
#include "sim/shell/load/descriptors.hpp"
#include "sim/shell/load/limits.hpp"
#include "sim/shell/load/packet.hpp"
#include "sim/shell/load/requests.hpp"

namespace wherry::sim::shell::load {

class Notices final : pcie::MemoryWatcher {
 public:
  /// Rings and status descriptors begin at `base`. `packets`: the packets by their numbers.
  Notices(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
          pcie::HostMemory& memory, std::vector<Packet>& packets, std::uint64_t base);

  /// The transfer has ended on the card's side. `source`: the engine whose TLPs the notice follows.
  void over(Packet& packet, RingKind kind, Source source);

  std::uint64_t entries = 0, statuses = 0, interrupts = 0;  ///< written
  std::uint64_t wrong = 0;                                  ///< entries that did not say what they should

 private:
  struct Queue {
    std::uint64_t ring = 0, status = 0;
    std::uint64_t written = 0, seen = 0;  ///< completions: by the card; by the host
    std::deque<Packet*> untold;           ///< whose completion the host has not seen
    bool armed = true;
  };
  void on_memory_write(std::uint64_t address, std::uint32_t bytes) override;
  void trigger(std::size_t index, Source source);
  void tell(Queue& queue, std::uint64_t written);
  [[nodiscard]] static std::vector<std::byte> bytes_of(std::uint64_t value, std::uint32_t bytes);

  pcie::EventQueue& queue_;
  const Parameters& p_;
  const Limits& limits_;
  Requests& requests_;
  pcie::HostMemory& memory_;
  std::vector<Packet>& packets_;
  std::uint64_t base_;
  std::vector<Queue> queues_;
};

}  // namespace wherry::sim::shell::load
