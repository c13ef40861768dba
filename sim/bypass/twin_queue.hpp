// SPDX-License-Identifier: Apache-2.0
// One queue pair of the software twin: two rings that exist only as indices and slots, and the frames between them.
//
// The path of a frame: a free slot is offered (rx entry), the NIC reads its descriptor, fills the slot and writes the
// descriptor back. The frame waits with its slots until the stream takes it or, in place, until there is room in the
// transmit ring. From that ring the NIC reads the descriptor, and then the buffer. A buffer becomes free when its last
// byte was read, in ring order.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "bypass/descriptor.hpp"
#include "sim/bypass/card.hpp"
#include "sim/bypass/pack_buffer.hpp"
#include "sim/bypass/read_watch.hpp"

namespace wherry::sim {

/// The state that all queues of a card share.
struct TwinShared {
  CardSetup setup;
  std::vector<std::byte> slots;  ///< the memory of all slots
  PackBuffer pack;
  CardCounters counters;  ///< without rx_waiting and tx_waiting
  InPlaceFunction* function = nullptr;
};

class TwinQueue {
 public:
  /// Slots that a frame of kMaxFrameBytes fills. If a NIC uses more of them it leaves gaps, and the frame is damaged.
  static constexpr std::uint32_t kMaxParts = (kMaxFrameBytes + kSlotBytes - 1) / kSlotBytes;

  /// `shared` outlives the queue.
  TwinQueue(TwinShared& shared, std::uint32_t number, const QueueSetup& setup);

  void start();
  void stop();
  [[nodiscard]] bool running() const noexcept { return running_; }

  /// Offsets count from the start of the ring. Any range.
  void read_rx_ring(std::uint32_t offset, std::span<std::byte> out);
  void read_tx_ring(std::uint32_t offset, std::span<std::byte> out);
  void write_rx_ring(std::uint32_t offset, std::span<const std::byte> data);
  [[nodiscard]] bool owns_slot(std::uint32_t slot) const noexcept;
  /// Whether the NIC may write to the slot now, because it was offered.
  [[nodiscard]] bool offered(std::uint32_t slot) const noexcept;
  /// The NIC reads `count` bytes from `at` on, in a slot or in a line of the transmit buffer. False: the slot is not to
  /// be sent.
  bool watch_slot(std::uint32_t slot, std::uint32_t at, std::uint32_t count);
  bool watch_pack(std::uint32_t line, std::uint32_t at, std::uint32_t count);

  [[nodiscard]] std::optional<Frame> take();
  [[nodiscard]] bool try_put(std::span<const std::byte> frame);
  void tick();
  [[nodiscard]] std::optional<TailWrite> next_tail();

  [[nodiscard]] std::uint64_t rx_waiting() const noexcept { return waiting_.size(); }
  [[nodiscard]] std::uint64_t tx_waiting() const noexcept;
  /// Slots that are free, offered, received or to be sent: always all slots of the queue.
  [[nodiscard]] std::uint32_t slots_accounted() const;

 private:
  struct RxEntry {
    std::uint32_t slot = 0;
    bool fetched = false;
    std::array<std::byte, bypass::kDescriptorBytes> written{};  ///< write-backs may come in pieces
  };
  struct TxEntry {
    std::uint32_t offset = 0;  ///< of the buffer in BAR 2
    std::uint32_t bytes = 0;
    std::uint32_t frame_bytes = 0;
    bool last = true;                   ///< of its frame
    std::optional<std::uint32_t> slot;  ///< otherwise it lies in the transmit buffer
    bool fetched = false;
    ReadWatch watch{0};
  };
  struct Part {
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
  };
  struct Received {
    std::vector<Part> parts;
    std::uint32_t bytes = 0;
    bool damaged = false;
  };
  /// Entry numbers count from the start of the queue; an entry's ring index is its number modulo the ring's size. head
  /// <= rung <= tail <= head + entries - 1.
  struct Ring {
    std::uint32_t entries = 0;
    std::uint64_t head = 0;  ///< the first that the NIC has not finished
    std::uint64_t rung = 0;  ///< the tail that the NIC was told
    std::uint64_t tail = 0;
    std::uint64_t since = 0;          ///< the tick since which rung < tail
    std::deque<std::uint64_t> asked;  ///< tails told, whose last descriptor the NIC has not read
    [[nodiscard]] std::uint32_t index(std::uint64_t number) const noexcept {
      return static_cast<std::uint32_t>(number % entries);
    }
    /// The number of the entry that has this ring index now, if it was announced to the NIC.
    [[nodiscard]] std::optional<std::uint64_t> told(std::uint32_t at) const noexcept;
    void fetched(std::uint64_t number);
    [[nodiscard]] std::uint32_t ring_bell(std::uint64_t to);
  };

  void offer_slots();
  void written_back(std::uint32_t index);
  void frame_ends();
  void forward_in_place();
  void push(TxEntry entry);
  void retire();
  void free(const std::vector<Part>& parts);
  bool watch(std::uint64_t number, std::uint32_t at, std::uint32_t count);
  [[nodiscard]] std::uint32_t tx_room() const noexcept;

  TwinShared& shared_;
  std::uint32_t number_;
  QueueSetup setup_;
  bool running_ = false;
  std::uint64_t now_ = 0;
  Ring rx_, tx_;
  std::vector<RxEntry> rx_entries_;
  std::vector<TxEntry> tx_entries_;
  std::vector<std::optional<std::uint64_t>> slot_tx_;  ///< by slot of the queue: the transmit entry it is in
  std::vector<std::uint8_t> slot_offered_;
  std::deque<std::uint32_t> free_;
  Received assembling_;
  std::deque<Received> waiting_;
  std::deque<std::pair<std::uint32_t, std::uint64_t>> pack_tx_;  ///< first line and entry, in ring order
};

}  // namespace wherry::sim
