// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/mover.hpp"

#include <algorithm>
#include <array>

namespace wherry::sim::shell::load {

MoverWrite::MoverWrite(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, CardSwitch& card)
    : queue_(queue), p_(p), limits_(limits), card_(card), free_(limits.mover_buffer) {
  card_.on_taken[static_cast<std::size_t>(Master::kMover)] = [this] {
    if (++half_ < words_.front()) return;
    half_ = 0;
    words_.pop_front();
    ++free_;
    if (on_room) on_room();
  };
}

void MoverWrite::part(const Part& part) {
  queue_.call(queue_.now() + kShellClock.cycles(p_.mover_write), [this, part] {
    Packet& packet = *part.packet;
    if (part.index == 0)
      card_.write(Master::kMover, packet.card, packet.bytes, [this, &packet] { packet.done = queue_.now(); });
    std::array<std::byte, kBeatBytes> data;
    const auto bytes = std::span(data).first(part.bytes());
    fill(packet.id, part.index * kBeatBytes, bytes);
    words_.push_back(static_cast<std::uint32_t>(bytes.size() / kv::rtl::kHbmBeatBytes));
    card_.write_data(Master::kMover, bytes);
  });
}

void MoverWrite::gap() { not_before_ = queue_.now() + kShellClock.cycles(limits_.mover_gap); }

MoverRead::MoverRead(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, CardSwitch& card,
                     Feeder& feeder)
    : queue_(queue), p_(p), limits_(limits), card_(card), feeder_(feeder) {
  feeder_.left = [this](const Part& part) {
    bytes_ -= part.bytes();
    issue();
  };
}

void MoverRead::command(Packet& packet) {
  waiting_.push_back(&packet);
  issue();
}

void MoverRead::issue() {
  while (!waiting_.empty()) {
    Packet& packet = *waiting_.front();
    if (reads_ >= limits_.mover_reads || (bytes_ != 0 && bytes_ + packet.bytes > limits_.mover_bytes)) return;
    waiting_.pop_front();
    ++reads_;
    bytes_ += packet.bytes;
    card_.read(Master::kMover, packet.card, packet.bytes,
               [this, &packet](std::uint32_t offset, std::span<const std::byte> data) {
                 packet.wrong += differing(packet.id, offset, data);
                 const std::uint32_t there = offset + static_cast<std::uint32_t>(data.size());
                 const bool last = there == packet.bytes;
                 if (there % kBeatBytes == 0 || last) beat({&packet, (there - 1) / kBeatBytes});
                 if (!last) return;
                 --reads_;
                 issue();
               });
  }
}

/// A packet's first beat comes at the earliest a gap after the packet before it. Data arrive at half a beat per cycle,
/// so at most the beats of one gap wait.
void MoverRead::beat(const Part& part) {
  Time at = queue_.now() + kShellClock.cycles(p_.mover_read);
  if (out_ != 0) at = std::max(at, out_ + kShellClock.cycles(part.index == 0 ? limits_.mover_gap : 1));
  out_ = at;
  if (p_.second_store == kNoStore) {
    feeder_.add(part, at - kShellClock.cycles(1));
    return;
  }
  queue_.call(at + kShellClock.cycles(p_.box), [this, part] { store(part); });
}

/// The second store: a packet's beats leave only when the whole packet is there.
void MoverRead::store(const Part& part) {
  stored_.push_back(part);
  if (!part.last()) return;
  const Clock& clock = p_.second_store == kShellStore ? kShellClock : kCmacClock;
  const Time begin = clock.edge(queue_.now());
  for (const Part& one : stored_) feeder_.add(one, begin);
  stored_.clear();
}

}  // namespace wherry::sim::shell::load
