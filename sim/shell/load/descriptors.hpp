// SPDX-License-Identifier: Apache-2.0
// QDMA's descriptor engine (PG302 and PG347, Descriptor Engine; PG344, Descriptor Fetch). Rings are in host memory.
// Queues take turns, each with one fetch at a time of as many descriptors as MRRS holds. Each direction has its own
// buffer. For packets to the host, it fetches when packets come (PG302, C2H Stream Engine).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "sim/pcie/memory.hpp"
#include "sim/shell/load/limits.hpp"
#include "sim/shell/load/requests.hpp"

namespace wherry::sim::shell::load {

enum class RingKind : std::uint8_t { kH2cStream, kC2hStream, kH2cMemory, kC2hMemory, kCount };

/// The word at byte `at` of a descriptor.
template <typename Word>
[[nodiscard]] Word word_at(std::span<const std::byte> bytes, std::size_t at) {
  Word word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

class Descriptors {
 public:
  /// Called when a descriptor of `queue` has arrived, in the ring's order.
  using Deliver = std::function<void(std::uint32_t queue, std::span<const std::byte> descriptor)>;

  /// The rings begin at `base`, with `limits.queues` queues of each kind.
  Descriptors(const Parameters& p, const Limits& limits, Requests& requests, pcie::HostMemory& memory,
              std::uint64_t base);

  void on_descriptor(RingKind kind, Deliver deliver) { ring_set(kind).deliver = std::move(deliver); }
  [[nodiscard]] bool full(RingKind kind, std::uint32_t queue) const {
    const Ring& ring = sets_[static_cast<std::size_t>(kind)].rings[queue];
    return ring.posted - ring.done == limits_.ring;
  }
  /// The host writes a descriptor and the queue's new producer index. Precondition: the ring is not full.
  void post(RingKind kind, std::uint32_t queue, std::span<const std::byte> descriptor);
  /// kC2hStream: a packet of `queue` needs a descriptor. Precondition: the host has posted enough descriptors.
  void need(std::uint32_t queue);
  /// The engine has removed a delivered descriptor from the buffer.
  void taken(RingKind kind, std::uint32_t queue);
  [[nodiscard]] static std::uint32_t size_of(RingKind kind) noexcept;
  /// The host may post one more descriptor to that queue. It learns this at once, so the model is a bound.
  std::function<void(RingKind kind, std::uint32_t queue)> on_space;

  std::uint64_t fetches = 0, fetched = 0;

 private:
  struct Ring {
    std::uint64_t address = 0;
    std::uint64_t posted = 0, asked = 0, done = 0;  ///< since the start: by the host, of the host, taken by the engine
    bool fetching = false;
    std::uint64_t needed = 0, given = 0;        ///< kC2hStream: by packets
    std::deque<std::vector<std::byte>> cached;  ///< kC2hStream: prefetched
  };
  struct RingSet {
    std::vector<Ring> rings;
    Deliver deliver;
  };
  [[nodiscard]] RingSet& ring_set(RingKind kind) { return sets_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] static std::size_t direction_of(RingKind kind) noexcept {
    return kind == RingKind::kH2cStream || kind == RingKind::kH2cMemory ? 0 : 1;
  }
  [[nodiscard]] std::uint32_t wanted(RingKind kind, const Ring& ring) const;
  void fetch();
  void came(RingKind kind, std::uint32_t queue, std::span<const std::byte> data);

  const Parameters& p_;
  const Limits& limits_;
  Requests& requests_;
  pcie::HostMemory& memory_;
  std::vector<RingSet> sets_;
  std::size_t buffered_[2]{};  ///< bytes, of each direction
  std::size_t turn_ = 0;       ///< the ring that was fetched last, of all
};

}  // namespace wherry::sim::shell::load
