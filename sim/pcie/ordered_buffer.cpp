// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/ordered_buffer.hpp"

#include <algorithm>

namespace wherry::sim::pcie {

void OrderedBuffer::push(Packet* packet, Time now) {
  if (reordering_.per_mille != 0) {
    scan_ = true;
    if (random_.below(1000) < reordering_.per_mille) {
      const auto longest = static_cast<std::uint64_t>(reordering_.longest_hold) + 1;
      packet->ready = std::max(packet->ready, now + static_cast<Time>(random_() % longest));
    }
  }
  packet->order = order_++;
  List& list = lists_[static_cast<std::size_t>(packet->flow())];
  packet->previous = list.tail;
  packet->next = nullptr;
  (list.tail != nullptr ? list.tail->next : list.head) = packet;
  list.tail = packet;
  ++count_;
}

void OrderedBuffer::remove(Packet* packet) noexcept {
  List& list = lists_[static_cast<std::size_t>(packet->flow())];
  (packet->previous != nullptr ? packet->previous->next : list.head) = packet->next;
  (packet->next != nullptr ? packet->next->previous : list.tail) = packet->previous;
  packet->previous = packet->next = nullptr;
  --count_;
}

Packet* OrderedBuffer::oldest() const noexcept {
  Packet* oldest = nullptr;
  for (const List& list : lists_) {
    if (list.head != nullptr && (oldest == nullptr || list.head->order < oldest->order)) oldest = list.head;
  }
  return oldest;
}

}  // namespace wherry::sim::pcie
