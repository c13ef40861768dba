// SPDX-License-Identifier: Apache-2.0
// Rings in the host's memory, for a NIC and a card without traffic between them (docs/design/bypass-host-rings.md).
//
// The NIC's rings and buffers are a mirror of the card's window in host memory, byte for byte at the same offsets. The
// core is the same: its base address is the mirror's, so its descriptors point into the mirror, and its tails are
// words in host memory. This class is what stands between: it has a mover (a DMA engine on the card) copy descriptors
// and frames between window and mirror, writes the NIC's tails, and hands the NIC's write-backs to the core. The
// processor moves no frame, but it works for each of them: it may not be stopped.
//
// One queue pair, one thread: turn() in a loop. Nothing blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "bypass/card.hpp"
#include "bypass/descriptor.hpp"
#include "wherry/status.hpp"

namespace wherry::bypass {

/// Copies between the card's window and its mirror, in both ways at the same offset. Each way in the order of posting.
class Mover {
 public:
  enum class Way : std::uint8_t { kToHost, kToCard };
  Mover() = default;
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  virtual ~Mover() = default;

  /// False: no room now.
  [[nodiscard]] virtual bool try_post(Way way, std::uint32_t offset, std::uint32_t bytes) = 0;
  /// What was posted may begin.
  virtual void ring(Way way) = 0;
  /// How many more copies have ended, each with all its bytes in place.
  [[nodiscard]] virtual Result<std::size_t> poll(Way way) = 0;
};

/// What the processor writes by itself.
class HostRingsAccess {
 public:
  HostRingsAccess() = default;
  HostRingsAccess(const HostRingsAccess&) = delete;
  HostRingsAccess& operator=(const HostRingsAccess&) = delete;
  virtual ~HostRingsAccess() = default;
  /// Into the card's window, within 64 bytes that do not cross a multiple of 64; posted, in order.
  virtual void write_window(std::uint32_t offset, std::span<const std::byte> bytes) = 0;
  virtual void write_rx_tail(std::uint32_t value) = 0;
  virtual void write_tx_tail(std::uint32_t value) = 0;
};

struct HostRingsSetup {
  const Personality* nic = nullptr;  ///< outlives it
  std::uint32_t rx_entries = 0, tx_entries = 0;
  std::span<std::byte> mirror;       ///< kWindowBytes, zeros
  std::uint64_t mirror_address = 0;  ///< for the NIC: CardSetup::window
  std::span<std::byte> mailbox;      ///< kMailboxBytes, zeros: CardSetup::mailbox
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
      : setup_(setup), mover_(mover), access_(access) {}

  /// Looks once at everything. Whether there was something to do. kUnavailable: the mover failed; kProtocol: a
  /// descriptor of the card points out of its window. Then the queues must be taken back.
  Result<bool> turn();
  /// Nothing is being copied.
  [[nodiscard]] bool idle() const noexcept { return to_host_.empty() && to_card_.empty() && later_.empty(); }
  [[nodiscard]] const HostRingsCounters& counters() const noexcept { return counters_; }

 private:
  enum class Kind : std::uint8_t { kRxDescriptors, kTxDescriptors, kTxFrame };
  /// A copy to the host. `end`: the ring's index behind what it has.
  struct Copy {
    Kind kind = Kind::kRxDescriptors;
    std::uint32_t begin = 0, end = 0;
    std::uint32_t offset = 0, bytes = 0;
  };

  Status take_to_host();
  Status take_to_card();
  Status plan_frames(std::uint32_t begin, std::uint32_t end);
  void follow_tails();
  void plan_descriptors(Kind kind, std::uint32_t& asked, std::uint32_t tail);
  void post_later();
  void take_received();
  void tell_received();
  void tell_transmitted();
  /// Descriptors [begin, end) of a ring at `ring`, from the mirror into the window, by lines.
  void tell(std::uint32_t ring, std::uint32_t stride, std::uint32_t begin, std::uint32_t end);
  [[nodiscard]] Descriptor mirrored(std::uint32_t offset) const;
  [[nodiscard]] std::uint32_t mail(std::size_t offset) const;

  HostRingsSetup setup_;
  Mover& mover_;
  HostRingsAccess& access_;
  std::deque<Copy> to_host_, later_;   ///< under way; those for which there was no room
  std::deque<std::uint32_t> to_card_;  ///< receive slots under way
  bool rang_to_host_ = true, rang_to_card_ = true, worked_ = false;
  // Indices, each behind the one before it. Receive: asked of the window, given to the NIC, seen written back, in the
  // window, told to the core.
  std::uint32_t rx_asked_ = 0, rx_given_ = 0, rx_seen_ = 0, rx_there_ = 0, rx_told_ = 0;
  // Transmit: asked of the window, given to the NIC, told to the core.
  std::uint32_t tx_asked_ = 0, tx_given_ = 0, tx_told_ = 0;
  HostRingsCounters counters_;
};

}  // namespace wherry::bypass
