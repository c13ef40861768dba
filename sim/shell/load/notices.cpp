// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/notices.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::sim::shell::load {
namespace {

constexpr std::uint64_t kInterrupt = 0xfee00000;  ///< given: x86's interrupt range, to which MSI-X messages are written
constexpr std::uint32_t kEntryRoom = 64, kStatus = 8, kMessage = 4;  ///< given: PG302 (entry, status), PCIe 6.1.4

}  // namespace

Notices::Notices(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
                 pcie::HostMemory& memory, std::vector<Packet>& packets, std::uint64_t base)
    : queue_(queue), p_(p), limits_(limits), requests_(requests), memory_(memory), packets_(packets), base_(base) {
  // A ring's status descriptor follows its entries (PG302, Completion Status Structure).
  const std::uint64_t stride = (std::uint64_t{limits_.ring} + 1) * kEntryRoom;
  const std::size_t count = static_cast<std::size_t>(RingKind::kCount) * limits_.queues;
  for (std::size_t i = 0; i < count; ++i) {
    Queue one;
    one.ring = base + i * stride;
    one.status = one.ring + std::uint64_t{limits_.ring} * kEntryRoom;
    queues_.push_back(one);
  }
  memory_.watch(base, count * stride, *this);
  memory_.watch(kInterrupt, 4096, *this);
}

std::vector<std::byte> Notices::bytes_of(std::uint64_t value, std::uint32_t bytes) {
  std::vector<std::byte> found(bytes);
  std::memcpy(found.data(), &value, std::min<std::size_t>(bytes, sizeof value));
  return found;
}

void Notices::over(Packet& packet, RingKind kind, Source source) {
  const std::size_t index = static_cast<std::size_t>(kind) * limits_.queues + packet.queue;
  Queue& queue = queues_[index];
  const std::uint64_t place = queue.written++ % limits_.ring;
  queue.untold.push_back(&packet);
  if (kind == RingKind::kC2hStream) {
    // The entry's user-defined data are the packet's number here.
    requests_.write(source, queue.ring + place * limits_.completion, bytes_of(packet.id, limits_.completion));
    ++entries;
    if (limits_.interrupts == 0) return;  // the host polls the ring
  }
  trigger(index, source);
}

/// Writes a status, and sends an interrupt if none is outstanding. Without interrupts each completion writes a status.
void Notices::trigger(std::size_t index, Source source) {
  Queue& queue = queues_[index];
  if (limits_.interrupts != 0 && !queue.armed) return;
  requests_.write(source, queue.status, bytes_of(queue.written, kStatus));
  ++statuses;
  if (limits_.interrupts == 0) return;
  queue.armed = false;
  requests_.write(source, kInterrupt, bytes_of(index << 8 | static_cast<std::uint64_t>(source), kMessage));
  ++interrupts;
}

/// The host now knows of the first `written` completions of the queue.
void Notices::tell(Queue& queue, std::uint64_t written) {
  for (; queue.seen < written; ++queue.seen) {
    queue.untold.front()->told = queue_.now();
    queue.untold.pop_front();
  }
}

void Notices::on_memory_write(std::uint64_t address, std::uint32_t bytes) {
  std::uint64_t value = 0;
  memory_.read(address, std::as_writable_bytes(std::span(&value, 1)).first(std::min(bytes, 8U)));
  if (address >= kInterrupt && address < kInterrupt + 4096) {
    const std::size_t index = value >> 8;
    const auto source = static_cast<Source>(value & 0xff);
    std::uint64_t written = 0;
    memory_.read(queues_[index].status, std::as_writable_bytes(std::span(&written, 1)));
    tell(queues_[index], written);
    // The consumer index comes back. If more completions wait then, the queue triggers at once.
    queue_.call(queue_.now() + kShellClock.cycles(p_.flight), [this, index, source] {
      Queue& queue = queues_[index];
      queue.armed = true;
      if (queue.written > queue.seen) trigger(index, source);
    });
    return;
  }
  const std::uint64_t stride = (std::uint64_t{limits_.ring} + 1) * kEntryRoom;
  Queue& queue = queues_[(address - base_) / stride];
  if (address == queue.status) {
    if (limits_.interrupts == 0) tell(queue, value);
    return;
  }
  const auto id = static_cast<std::uint32_t>(value);
  if (id >= packets_.size() || packets_[id].done == pcie::kNever) {
    ++wrong;  // the packet's data must be there before its completion
  }
  if (limits_.interrupts == 0) tell(queue, queue.seen + 1);
}

}  // namespace wherry::sim::shell::load
