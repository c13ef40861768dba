// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: TLPs that wait to leave in an order that the ordering rules allow.
#pragma once

#include <array>
#include <cstdint>

#include "base/random.hpp"
#include "sim/pcie/ordering.hpp"
#include "sim/pcie/packet.hpp"
#include "sim/pcie/parameters.hpp"

namespace wherry::sim::pcie {

/// Without reordering, O(1): of the three classes' heads, the oldest that may leave. With reordering, some packets are
/// held back for a while, and packets that may pass them do so.
class OrderedBuffer {
 public:
  OrderedBuffer(const Reordering& reordering, std::uint64_t seed) : reordering_(reordering), random_(seed) {}

  /// `packet->ready` is the earliest time at which it may leave; chance may delay it.
  void push(Packet* packet, Time now);
  /// From now on this buffer can hold packets back, for a fault that delays one.
  void allow_holds() noexcept { scan_ = true; }

  /// Returns the packet that leaves at `now`, or null. `*wake` is then when a held one becomes ready, or kNever. The
  /// packet remains in the buffer. `may_leave(packet)`: it has credits and is wanted.
  template <typename MayLeave>
  Packet* pick(Time now, Time* wake, MayLeave&& may_leave) {
    *wake = kNever;
    return scan_ ? pick_any(now, wake, may_leave) : pick_head(now, wake, may_leave);
  }
  void remove(Packet* packet) noexcept;
  /// The oldest packet of all classes; null: empty.
  [[nodiscard]] Packet* oldest() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::uint32_t size() const noexcept { return count_; }

 private:
  struct List {
    Packet* head = nullptr;
    Packet* tail = nullptr;
  };
  /// The search goes no further back than this. Heads are always checked.
  static constexpr std::uint32_t kWindow = 48;

  template <typename MayLeave>
  Packet* pick_head(Time now, Time* wake, MayLeave& may_leave) {
    const Packet* const write = lists_[0].head;
    Packet* best = nullptr;
    for (const List& list : lists_) {
      Packet* const head = list.head;
      if (head == nullptr || (best != nullptr && head->order > best->order)) continue;
      if (head != write && write != nullptr && write->order < head->order) continue;  // B2a, D2a
      if (head->ready > now) {
        if (head->ready < *wake) *wake = head->ready;
        continue;
      }
      if (may_leave(*head)) best = head;
    }
    return best;
  }

  template <typename MayLeave>
  Packet* pick_any(Time now, Time* wake, MayLeave& may_leave) {
    std::array<Packet*, kFlowClasses> at{lists_[0].head, lists_[1].head, lists_[2].head};
    std::array<const Packet*, kWindow> earlier;
    std::uint32_t count = 0;
    while (count < kWindow) {
      // The next packet in the order of arrival.
      Packet** next = nullptr;
      for (Packet*& candidate : at) {
        if (candidate != nullptr && (next == nullptr || candidate->order < (*next)->order)) next = &candidate;
      }
      if (next == nullptr) return nullptr;
      Packet* const packet = *next;
      bool held_up = false;
      for (std::uint32_t i = 0; i < count && !held_up; ++i) held_up = passing(*packet, *earlier[i]) == Passing::kNo;
      if (!held_up) {
        if (packet->ready > now) {
          if (packet->ready < *wake) *wake = packet->ready;
        } else if (may_leave(*packet)) {
          return packet;
        }
      }
      earlier[count++] = packet;
      *next = packet->next;
    }
    // A class whose first packet lies beyond the window must not starve. That packet may pass all of the others, or
    // waits for a write.
    for (Packet* const head : at) {
      if (head == nullptr || head->previous != nullptr) continue;
      const bool blocked =
          head->kind != TlpKind::kWrite && lists_[0].head != nullptr && lists_[0].head->order < head->order;
      if (!blocked && head->ready <= now && may_leave(*head)) return head;
    }
    return nullptr;
  }

  Reordering reordering_;
  SplitMix64 random_;
  bool scan_ = false;
  std::array<List, kFlowClasses> lists_{};
  std::uint32_t count_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace wherry::sim::pcie
