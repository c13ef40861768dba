// SPDX-License-Identifier: Apache-2.0
// The transmit half of a NIC: descriptors, payload reads, packet buffer, completion reports, MAC.
//
// Store and forward: a frame goes to the wire once all of it is in the packet buffer (X550 datasheet 7.2.1). The NIC
// reads a frame once all its descriptors are on the chip. Queues take turns, one frame each. Reads of several frames
// may be in flight. Frames leave in the order in which they began, whatever the order of completions. A frame is
// reported as complete when its data are in the packet buffer (X550 7.2.1.2), before it is on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "sim/nic/context.hpp"
#include "sim/nic/ring.hpp"
#include "sim/nic/wire.hpp"

namespace wherry::sim::nic {

class Transmit final : RingUser, ReadOwner, pcie::EventHandler {
 public:
  /// `wire` gets the sent frames.
  Transmit(Context& context, WireEnd& wire);

  void start(std::uint32_t queue, std::uint64_t base, std::uint32_t entries);
  void stop(std::uint32_t queue);
  void set_tail(std::uint32_t queue, std::uint32_t tail);
  /// The address to which the head is written when a descriptor with RS is done; 0: descriptors are written back.
  void set_head_writeback(std::uint32_t queue, std::uint64_t address) { rings_[queue].head_address = address; }
  [[nodiscard]] const Ring& ring(std::uint32_t queue) const { return rings_[queue].ring; }
  void set_link(bool up);
  void pump();
  void resume();
  void reset();
  [[nodiscard]] std::uint64_t waiting() const noexcept { return waiting_; }

 private:
  struct Segment {
    std::uint64_t address = 0;
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };
  struct Frame {
    std::vector<std::byte> data;
    std::vector<Segment> segments;
    std::vector<std::uint32_t> reports;  ///< descriptors with RS
    std::size_t issued = 0;              ///< of segments
    std::uint32_t under_way = 0;         ///< reads
    std::uint32_t queue = 0;
    std::uint32_t first = 0, count = 0;  ///< descriptors
    TxDrop why = TxDrop::kCount;         ///< kCount: nothing is wrong
    bool counts = false;                 ///< false: descriptors without a frame
    bool stale = false;                  ///< of a ring that was stopped: free when its reads are over
  };
  struct QueueState {
    QueueState(Context& context, RingUser& user, std::uint32_t number, const RingLimits& limits)
        : queue(number),
          ring(context.reads, user, number, limits,
               {context.counters.tx_fetches, context.counters.tx_fetched, context.counters.rings_stopped}) {}
    std::uint32_t queue;
    Ring ring;
    std::uint64_t head_address = 0;
    std::uint32_t accumulated_first = 0, accumulated = 0;  ///< done, to be written back together
    Time flush_at = pcie::kNever;
    bool skipping = false;  ///< too many descriptors: up to the next EOP
  };
  struct Outgoing {
    std::uint32_t frame = 0;
    Time ready = 0;
  };
  enum Event : std::uint8_t { kLastBit, kFlush };
  static constexpr std::uint32_t kOutside = ~std::uint32_t{0};  ///< argument of a hostile read

  void on_descriptors(std::uint32_t queue) override;
  void on_read(std::uint64_t argument, pcie::CompletionStatus status) override;
  void on_event(std::uint64_t argument) override;

  [[nodiscard]] bool take(QueueState& state);
  std::uint32_t begin(QueueState& state, std::uint32_t descriptors);
  /// False: no room for a read.
  [[nodiscard]] bool issue(std::uint32_t index);
  void retire();
  void report(QueueState& state, const Frame& frame);
  void write_back(QueueState& state, std::uint32_t first, std::uint32_t count);
  void send_next();
  void drop(TxDrop why);
  void release(std::uint32_t index);
  void misbehave(const QueueState& state);

  Context& context_;
  WireEnd& wire_;
  std::deque<QueueState> rings_;
  std::uint32_t turn_ = 0;
  std::deque<Frame> frames_;
  std::vector<std::uint32_t> free_;
  Fifo<std::uint32_t> order_;  ///< begun, not retired
  std::size_t issuing_ = 0;    ///< in order_: the first whose reads are not all issued
  Fifo<Outgoing> outgoing_;
  std::uint64_t used_ = 0;     ///< bytes of the packet buffer
  std::uint64_t waiting_ = 0;  ///< frames
  Time wire_free_ = 0;
  std::uint32_t epoch_ = 0;
  bool sending_ = false;
  bool lost_ = false;  ///< the frame on the wire is: the link went down
  bool link_up_ = true;
  std::vector<std::byte> outside_ = std::vector<std::byte>(512);
};

}  // namespace wherry::sim::nic
