// SPDX-License-Identifier: Apache-2.0
// A card's interface to the NIC (BAR 2 and the card's own writes), to the network function (frames) and to the host
// (set-up and counters). The software twin and the Verilated core implement it.
//
// Threads: one at a time. Time: a call may run the card's clock for as long as the access takes. Otherwise the clock
// runs only in tick(). Errors: a NIC may request anything. The card counts invalid requests; they change nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bypass/generated/personalities.hpp"
#include "sim/bypass/layout.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

/// A posted write of four bytes from the card to a tail register of the NIC.
struct TailWrite {
  std::uint64_t address = 0;
  std::uint32_t value = 0;
};

/// The card as the NIC's DMA sees it.
class DmaTarget {
 public:
  virtual ~DmaTarget() = default;
  /// A posted write of 1 to 4096 bytes at an offset in BAR 2, within one 4 KiB page.
  virtual void write(std::uint32_t offset, std::span<const std::byte> data) = 0;
  /// A read, answered in full. Addresses without data read as zeros.
  virtual void read(std::uint32_t offset, std::span<std::byte> data) = 0;
  /// Returns the next write that the card wants to make, in order, and counts it as made.
  [[nodiscard]] virtual std::optional<TailWrite> next_tail() = 0;
  /// Advances time by one clock cycle, or in the twin by one round of its bookkeeping.
  virtual void tick() = 0;
};

/// The card as a program on the host sees it: BAR 0, and its reset.
class RegisterTarget {
 public:
  virtual ~RegisterTarget() = default;
  /// `offset`: a multiple of 4 below kRegisterBytes.
  [[nodiscard]] virtual std::uint32_t read_register(std::uint32_t offset) = 0;
  virtual void write_register(std::uint32_t offset, std::uint32_t value) = 0;
  /// Restores the state after power-on.
  virtual void reset() = 0;
};

struct Frame {
  std::uint16_t queue = 0;
  std::vector<std::byte> bytes;
};

/// The stream side: frames from the NIC, and frames for the NIC.
class StreamPort {
 public:
  virtual ~StreamPort() = default;
  /// The next received frame, in order within its queue.
  [[nodiscard]] virtual std::optional<Frame> take() = 0;
  /// False: there is no room now, and the frame was not taken. A frame has 1 to kMaxFrameBytes bytes.
  [[nodiscard]] virtual bool try_put(const Frame& frame) = 0;
};

/// The function for frames in place: it may change a frame's first line. The other lines are transmitted unchanged.
class InPlaceFunction {
 public:
  virtual ~InPlaceFunction() = default;
  /// `head`: the first min(frame, 64) bytes, which the function may change. False: drop the frame.
  [[nodiscard]] virtual bool forward(std::span<std::byte> head, std::uint32_t frame_bytes) = 0;
};

/// One queue pair: indices and addresses that the host chose when it set up the NIC.
struct QueueSetup {
  std::uint32_t rx_entries = 0;  ///< a multiple of 8, at most what the ring's window holds
  std::uint32_t tx_entries = 0;
  std::uint32_t first_slot = 0;  ///< slots of this queue alone
  std::uint32_t slots = 0;
};

/// When the card writes tail registers. research/bypass.md, section 3, explains credits.
struct DoorbellSetup {
  std::uint32_t tx_credits = 3;   ///< tail writes that no descriptor fetch has answered yet; 0: no limit
  std::uint32_t rx_batch = 1;     ///< free slots that are worth a write
  std::uint32_t patience = 4096;  ///< ticks after which a write is made though credits or batch say no
};

struct CardSetup {
  const bypass::Personality* nic = nullptr;  ///< outlives the card
  std::uint64_t bar = 0;                     ///< the address of the card's BAR 2, as the NIC must use it
  std::uint64_t nic_bar = 0;                 ///< of the NIC's BAR 0, as the card must use it
  std::uint32_t pack_bytes = 1U << 16;       ///< a power of two, at most kMaxPackBytes
  bool in_place = false;
  DoorbellSetup doorbell;
  std::vector<QueueSetup> queues;
};

/// For each half, at any time: frames in = out + dropped + held. See holds_balance().
struct CardCounters {
  std::uint64_t rx_frames = 0, rx_bytes = 0;  ///< whole frames that the NIC reported
  std::uint64_t rx_damaged = 0;               ///< of them: the NIC reported an error, or impossible lengths
  std::uint64_t rx_too_long = 0;              ///< of them: more than kMaxFrameBytes
  std::uint64_t rx_refused = 0;               ///< of them: dropped by the function in place
  std::uint64_t rx_delivered = 0;             ///< of them: handed to the stream or, in place, to the transmit ring
  std::uint64_t rx_stopped = 0;               ///< of them: waited when the queue was stopped
  std::uint64_t rx_cut = 0;                   ///< not of them: frames without an end when the queue was stopped
  std::uint64_t rx_waiting = 0;               ///< of them, now
  std::uint64_t tx_frames = 0, tx_bytes = 0;  ///< that the NIC has read to the last byte
  std::uint64_t tx_taken = 0;                 ///< from the stream or in place
  std::uint64_t tx_stopped = 0;               ///< were in the ring when the queue was stopped
  std::uint64_t tx_waiting = 0;               ///< in the ring now
  std::uint64_t rx_tails = 0, tx_tails = 0;
  std::uint64_t tx_writebacks = 0;     ///< writes to a transmit ring or a head write-back: 0 as long as RS is 0
  std::uint64_t wrong_writebacks = 0;  ///< of descriptors that are not next, or that the NIC has not read
  std::uint64_t stray_reads = 0;       ///< of what is nowhere, or descriptors behind the tail
  std::uint64_t stray_writes = 0;      ///< to what is nowhere, or a slot that the NIC does not own
};

/// Whether every lost frame is counted.
[[nodiscard]] constexpr bool holds_balance(const CardCounters& c) noexcept {
  return c.rx_frames == c.rx_damaged + c.rx_too_long + c.rx_refused + c.rx_delivered + c.rx_stopped + c.rx_waiting &&
         c.tx_taken == c.tx_frames + c.tx_stopped + c.tx_waiting;
}

/// The host's side.
class CardControl {
 public:
  virtual ~CardControl() = default;
  /// Precondition: all queues are stopped. kInvalidArgument names the invalid field.
  virtual Status configure(const CardSetup& setup) = 0;
  /// Offers slots from now on. Precondition: the NIC's rings of this queue are set up, with all heads and tails 0.
  virtual Status start(std::uint32_t queue) = 0;
  /// Takes effect at once: the card writes no more tails. It drops and counts the queue's frames, and frees its slots.
  /// The host stops the NIC first if it can, because later writes by the NIC count as wrong.
  virtual void stop(std::uint32_t queue) = 0;
  [[nodiscard]] virtual CardCounters counters() const = 0;
};

class Card : public DmaTarget, public StreamPort, public CardControl {};

}  // namespace wherry::sim
