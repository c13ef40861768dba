// SPDX-License-Identifier: Apache-2.0
// The receive half of a NIC: packet buffer, RSS, payload writes, write-backs.
//
// Frames wait in one packet buffer, in their order on the wire. A frame whose queue has no descriptors blocks those
// behind it, unless Personality::rx_drop_without_descriptor. The FCS is stripped. A frame's payload is written before
// the write-back of its descriptors, and descriptors are written back in ring order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "sim/nic/context.hpp"
#include "sim/nic/ring.hpp"

namespace wherry::sim::nic {

class Receive final : RingUser, pcie::EventHandler {
 public:
  explicit Receive(Context& context);

  void start(std::uint32_t queue, std::uint64_t base, std::uint32_t entries, std::uint32_t buffer_bytes);
  void stop(std::uint32_t queue);
  void set_tail(std::uint32_t queue, std::uint32_t tail);
  [[nodiscard]] const Ring& ring(std::uint32_t queue) const { return rings_[queue].ring; }
  /// Takes everything that the wire brings to the MAC.
  void on_frame(std::span<const std::byte> frame, bool fcs_good, bool link_up);
  /// Continues every frame that can continue.
  void pump();
  /// Call it when bus mastering is on again, or when a read may find room.
  void resume();
  void reset();
  [[nodiscard]] std::uint64_t waiting() const noexcept { return buffer_.size() + unreported_; }

 private:
  struct Waiting {
    std::vector<std::byte> data;
    Time ready = 0;
    std::uint32_t queue = 0;
    std::uint32_t written = 0;
    bool begun = false;
  };
  struct Done {
    std::uint32_t index = 0;
    bypass::RxDone what;
    std::uint32_t frame = 0;  ///< bytes of the frame that ends here; 0: none does
  };
  struct QueueState {
    QueueState(Context& context, RingUser& user, std::uint32_t number, const RingLimits& limits)
        : queue(number),
          ring(context.reads, user, number, limits,
               {context.counters.rx_fetches, context.counters.rx_fetched, context.counters.rings_stopped}) {}
    std::uint32_t queue;
    Ring ring;
    std::uint32_t buffer_bytes = 2048;
    Fifo<Done> done;  ///< not written back yet; consecutive
    Time flush_at = pcie::kNever;
    bool overdue = false;  ///< the timer expired while bus mastering was off
  };
  enum Event : std::uint8_t { kReady, kFlush };

  void on_descriptors(std::uint32_t queue) override;
  void on_event(std::uint64_t argument) override;
  void drop(RxDrop why) { ++context_.counters.rx_dropped[static_cast<std::size_t>(why)]; }
  void leave();
  /// False: it waits for an event that will call pump().
  [[nodiscard]] bool write_front();
  void finished(QueueState& state, std::uint32_t index, std::uint32_t bytes, std::uint32_t frame);
  void write_back(QueueState& state);
  /// Forgets the descriptors that are done but not written back.
  void forget(QueueState& state);
  void misbehave(QueueState& state);

  Context& context_;
  std::deque<QueueState> rings_;
  Fifo<Waiting> buffer_;
  std::uint64_t used_ = 0;        ///< bytes of the packet buffer
  std::uint64_t unreported_ = 0;  ///< frames that are written, their descriptors not
  std::uint32_t epoch_ = 0;
  bool ready_event_ = false;
};

}  // namespace wherry::sim::nic
