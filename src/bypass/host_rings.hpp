// SPDX-License-Identifier: Apache-2.0
// Rings in host memory, for a NIC and a card that cannot reach each other (docs/design/bypass-host-rings.md).
//
// The NIC's rings and buffers are in a mirror of the card's window in host memory, with the same offsets. The core is
// unchanged. Its base is the mirror's address, so its descriptors point into the mirror. Its tails are words in host
// memory. This class connects core and NIC. A mover (a DMA engine on the card) copies descriptors and frames between
// window and mirror. The class writes the NIC's tails, and passes the NIC's write-backs to the core. The processor
// copies no frame but does some work for each one, so its thread must keep running.
//
// One thread, which calls turn() in a loop. No call blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "bypass/card.hpp"
#include "bypass/descriptor.hpp"
#include "wherry/status.hpp"

namespace wherry::bypass {

/// Copies between the card's window and its mirror, at equal offsets, in both directions. Each keeps its posting order.
class Mover {
 public:
  enum class Way : std::uint8_t { kToHost, kToCard };
  Mover() = default;
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  virtual ~Mover() = default;

  /// False: there is no room now.
  [[nodiscard]] virtual bool try_post(Way way, std::uint32_t offset, std::uint32_t bytes) = 0;
  /// Starts the copies that were posted.
  virtual void ring(Way way) = 0;
  /// Returns how many more copies have ended; all bytes of these are in place.
  [[nodiscard]] virtual Result<std::size_t> poll(Way way) = 0;
};

/// The writes that the processor does itself.
class HostRingsAccess {
 public:
  HostRingsAccess() = default;
  HostRingsAccess(const HostRingsAccess&) = delete;
  HostRingsAccess& operator=(const HostRingsAccess&) = delete;
  virtual ~HostRingsAccess() = default;
  /// Writes into the card's window, within 64 bytes that do not cross a multiple of 64; posted, in order.
  virtual void write_window(std::uint32_t offset, std::span<const std::byte> bytes) = 0;
  virtual void write_rx_tail(std::uint32_t pair, std::uint32_t value) = 0;
  virtual void write_tx_tail(std::uint32_t pair, std::uint32_t value) = 0;
};

struct HostRingsSetup {
  const Personality* nic = nullptr;              ///< outlives it
  std::uint32_t rx_entries = 0, tx_entries = 0;  ///< of each queue pair
  std::uint32_t pairs = 1;
  std::span<std::byte> mirror;       ///< kWindowBytes, zeros
  std::uint64_t mirror_address = 0;  ///< for the NIC: CardSetup::window
  std::span<std::byte> mailbox;      ///< kMailboxBytes for each pair, zeros: CardSetup::mailbox
};

struct HostRingsCounters {
  std::uint64_t received = 0, transmitted = 0;  ///< descriptors that the core was told of
  std::uint64_t copies = 0, copied_bytes = 0;
  std::uint64_t window_writes = 0, tails = 0;  ///< by the processor
  std::uint64_t turns = 0, idle_turns = 0;
};

class HostRings {
 public:
  HostRings(const HostRingsSetup& setup, Mover& mover, HostRingsAccess& access)
      : setup_(setup),
        mover_(mover),
        access_(access),
        pairs_(setup.pairs),
        seen_(std::size_t{setup.pairs} * kRingStride) {}

  /// Checks all queues once. Returns whether there was work. kUnavailable: the mover failed; kProtocol: a descriptor of
  /// the card points outside its window, or one of its tails goes back. After an error the queues must be taken back.
  Result<bool> turn();
  /// True if no copy is under way.
  [[nodiscard]] bool idle() const noexcept { return to_host_.empty() && to_card_.empty() && later_.empty(); }
  [[nodiscard]] const HostRingsCounters& counters() const noexcept { return counters_; }

 private:
  enum class Kind : std::uint8_t { kRxDescriptors, kTxDescriptors, kTxFrame };
  /// A copy to the host. `end`: the ring's index after the last descriptor copied.
  struct Copy {
    Kind kind = Kind::kRxDescriptors;
    std::uint32_t pair = 0, begin = 0, end = 0;
    std::uint32_t offset = 0, bytes = 0;
  };
  /// A copy of a received frame's part to the card. `end`: the ring's index after its descriptor.
  struct Arrival {
    std::uint32_t pair = 0, end = 0;
  };
  /// Indices of a queue pair, each at or behind the one before it. Receive: requested from the window, given to the
  /// NIC, written back by the NIC, copied to the window, reported to the core. Transmit: requested from the window,
  /// given to the NIC, reported to the core. `tailed`: the last tail that the NIC has.
  struct Pair {
    std::uint32_t rx_asked = 0, rx_given = 0, rx_seen = 0, rx_there = 0, rx_told = 0, rx_tailed = 0;
    std::uint32_t tx_asked = 0, tx_given = 0, tx_told = 0, tx_tailed = 0;
  };

  Status take_to_host();
  Status take_to_card();
  Status plan_frames(const Copy& descriptors);
  void write_tails(std::uint32_t number, Pair& pair);
  Status follow_tails(std::uint32_t number, Pair& pair);
  Status plan_descriptors(Kind kind, std::uint32_t number, std::uint32_t& asked, std::uint32_t told,
                          std::uint32_t tail);
  void post_later();
  void take_received(std::uint32_t number, Pair& pair);
  void tell_received(std::uint32_t number, Pair& pair);
  void tell_transmitted(std::uint32_t number, Pair& pair);
  /// Keeps a descriptor as it was checked, for tell(): the NIC may change its own.
  void remember(std::uint32_t offset, const Descriptor& descriptor);
  /// Writes the remembered descriptors [begin, end) of a ring at `ring` into the window, line by line.
  void tell(std::uint32_t ring, std::uint32_t stride, std::uint32_t begin, std::uint32_t end);
  [[nodiscard]] Descriptor mirrored(std::uint32_t offset) const;
  [[nodiscard]] std::uint32_t mail(std::size_t offset) const;

  HostRingsSetup setup_;
  Mover& mover_;
  HostRingsAccess& access_;
  std::deque<Copy> to_host_, later_;  ///< under way; those for which there was no room
  std::deque<Arrival> to_card_;       ///< under way
  bool rang_to_host_ = true, rang_to_card_ = true, worked_ = false;
  std::uint32_t first_ = 0;  ///< the pair that is served first
  std::vector<Pair> pairs_;
  std::vector<std::byte> seen_;  ///< rings of all pairs, at the window's offsets. Of 32 bytes, the first half counts
  HostRingsCounters counters_;
};

}  // namespace wherry::bypass
