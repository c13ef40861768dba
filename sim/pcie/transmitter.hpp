// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: one direction of a link, with the sender's buffer, the wire, and the credits of the receiver.
//
// Data link packets (ACK, UpdateFC) for this direction travel in the other one. They are not events. Each has a due
// time, and settle() lets the due ones take their time on the other wire before that wire is used.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "sim/pcie/node.hpp"
#include "sim/pcie/ordered_buffer.hpp"

namespace wherry::sim::pcie {

class Transmitter final : public BufferAccount, EventHandler {
 public:
  Transmitter(Context& context, const LinkOptions& link, const ReceiveBuffer& receiver, Node& far,
              std::uint32_t far_port);

  /// The other direction. Call it once for each.
  void pair(Transmitter& other) noexcept { other_ = &other; }

  /// Precondition: up(). The packet leaves when the rules, the wire and the credits allow it.
  void send(Packet* packet);
  /// A packet that came over this direction has left the receiver's buffer, so its credits are free again.
  void release(const Packet& packet) override;

  [[nodiscard]] bool up() const noexcept { return up_; }
  /// Drops everything in the buffer and on the wire. Idempotent.
  void go_down();
  void go_up();
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }

  [[nodiscard]] const LinkCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] NodeId far_node() const noexcept { return far_.node_id; }

 private:
  struct Level {
    std::int64_t headers = 0;
    std::int64_t data = 0;
  };
  struct Update {
    Time at;
    std::uint32_t flow;
    Level level;
  };

  void on_event(std::uint64_t argument) override;
  void arrive(Packet* packet);
  void pump();
  void wake_at(Time at);
  void transmit(Packet* packet);
  [[nodiscard]] bool has_credits(const Packet& packet) const noexcept;
  /// Puts bytes on this wire from `from` on, and returns when they are through.
  Time occupy(Time from, std::uint32_t bytes);
  void settle(Time now);
  void reset_credits();

  Context& context_;
  LinkOptions link_;
  ReceiveBuffer receiver_;
  Node& far_;
  std::uint32_t far_port_;
  std::uint32_t place_;
  Transmitter* other_ = nullptr;
  std::int64_t byte_time_;
  Time dllp_latency_;
  OrderedBuffer buffer_;
  SplitMix64 replay_random_;

  bool up_ = true;
  std::uint32_t epoch_ = 0;
  Time wire_free_ = 0;         ///< whole picoseconds
  std::int64_t fraction_ = 0;  ///< and so many 2^-20
  Time wake_ = kNever;         ///< of the earliest event that looks at the buffer
  Time blocked_since_ = kNever;
  // At the sender.
  std::array<Level, kFlowClasses> available_{};
  std::deque<Update> updates_;  ///< on their way
  // At the receiver.
  std::array<Level, kFlowClasses> freed_{};
  std::array<Time, kFlowClasses> update_due_{kNever, kNever, kNever};
  std::array<Time, kFlowClasses> update_sent_{};
  Time ack_due_ = kNever;
  Time ack_sent_ = 0;
  LinkCounters counters_;
};

}  // namespace wherry::sim::pcie
