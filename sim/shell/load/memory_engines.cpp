// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/memory_engines.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/shell/stream.hpp"

namespace wherry::sim::shell::load {
namespace {

std::uint32_t to_page(std::uint64_t address) { return static_cast<std::uint32_t>(kPageBytes - address % kPageBytes); }

}  // namespace

H2cMemory::H2cMemory(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
                     Descriptors& descriptors, Notices& notices, CardSwitch& card)
    : queue_(queue),
      p_(p),
      limits_(limits),
      requests_(requests),
      descriptors_(descriptors),
      notices_(notices),
      card_(card) {
  descriptors_.on_descriptor(RingKind::kH2cMemory, [this](std::uint32_t of, std::span<const std::byte> bytes) {
    Packet* const packet = expected_[of].front();
    expected_[of].pop_front();
    jobs_.push_back({packet, word_at<std::uint64_t>(bytes, 0), word_at<std::uint64_t>(bytes, 16),
                     word_at<std::uint32_t>(bytes, 8) & 0xfffffffU});
    issue();
  });
  requests_.on_room_of(Source::kH2cMemory, [this] { issue(); });
  card_.on_taken[static_cast<std::size_t>(Master::kQdma)] = [this] {
    buffered_ -= static_cast<std::uint32_t>(kv::rtl::kHbmBeatBytes);
    issue();
  };
}

void H2cMemory::issue() {
  while (!jobs_.empty()) {
    Job& job = jobs_.front();
    const std::uint32_t part = std::min({job.left, p_.mrrs, to_page(job.source)});
    if (buffered_ + part > limits_.memory_buffer || !requests_.room(Source::kH2cMemory)) return;
    buffered_ += part;
    Packet& packet = *job.packet;
    const std::uint64_t from = job.source, to = job.destination;
    job = {&packet, from + part, to + part, job.left - part};
    if (job.left == 0) {
      jobs_.pop_front();
      descriptors_.taken(RingKind::kH2cMemory, packet.queue);
    }
    auto got = std::make_shared<std::vector<std::byte>>();
    requests_.read(Source::kH2cMemory, from, part,
                   [this, &packet, part, to, got](std::uint32_t, std::span<const std::byte> data) {
                     got->insert(got->end(), data.begin(), data.end());
                     if (got->size() == part) pass(packet, to, std::move(*got));
                   });
  }
}

void H2cMemory::pass(Packet& packet, std::uint64_t to, std::vector<std::byte> data) {
  const auto bytes = static_cast<std::uint32_t>(data.size());
  const Time at = queue_.now() + kShellClock.cycles(p_.h2c_memory + beats_of(bytes));
  queue_.call(at, [this, &packet, to, data = std::move(data), bytes] {
    card_.write(Master::kQdma, to, bytes, [this, &packet, bytes] {
      packet.landed += bytes;
      if (packet.landed < packet.bytes) return;
      packet.done = queue_.now();
      notices_.over(packet, RingKind::kH2cMemory, Source::kStatus);
    });
    card_.write_data(Master::kQdma, data);
  });
}

C2hMemory::C2hMemory(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
                     Descriptors& descriptors, Notices& notices, CardSwitch& card)
    : limits_(limits),
      descriptors_(descriptors),
      card_(card),
      writer_(queue, requests, Source::kC2hMemory, p.mps, kShellClock.cycles(p.c2h_memory),
              [this, &notices](Packet& packet, std::uint32_t bytes, bool last) {
                static_cast<void>(last);
                buffered_ -= bytes;
                packet.landed += bytes;
                if (packet.landed == packet.bytes) notices.over(packet, RingKind::kC2hMemory, Source::kC2hMemory);
                issue();
              }) {
  descriptors_.on_descriptor(RingKind::kC2hMemory, [this](std::uint32_t of, std::span<const std::byte> bytes) {
    Packet* const packet = expected_[of].front();
    expected_[of].pop_front();
    waiting_.push_back({packet, word_at<std::uint64_t>(bytes, 0), word_at<std::uint64_t>(bytes, 16),
                        word_at<std::uint32_t>(bytes, 8) & 0xfffffffU});
    issue();
  });
}

/// Begins the descriptors that may begin: one after the other, or as many as there is room for.
void C2hMemory::issue() {
  while (!waiting_.empty()) {
    if (limits_.memory_order == kEngineSerial && !active_.empty()) return;
    if (buffered_ + waiting_.front().left > limits_.memory_buffer && buffered_ != 0) return;
    active_.push_back(waiting_.front());
    waiting_.pop_front();
    Transfer& transfer = active_.back();
    buffered_ += transfer.left;
    descriptors_.taken(RingKind::kC2hMemory, transfer.packet->queue);
    do {
      transaction(transfer);
    } while (limits_.memory_order == kOverlap && transfer.left != 0);
  }
}

void C2hMemory::transaction(Transfer& transfer) {
  const std::uint32_t part = std::min({transfer.left, to_page(transfer.source), to_page(transfer.destination)});
  const std::uint64_t from = transfer.source, to = transfer.destination;
  transfer.source += part;
  transfer.destination += part;
  transfer.left -= part;
  transfer.until += part;
  const std::uint64_t number = writer_.begin(*transfer.packet, part);
  writer_.open(number, to, 0);
  card_.read(Master::kQdma, from, part,
             [this, number](std::uint32_t, std::span<const std::byte> data) { writer_.add(number, data); });
}

void C2hMemory::host_has(Packet& packet) {
  for (auto one = active_.begin(); one != active_.end(); ++one) {
    if (one->packet != &packet) continue;
    const bool over = packet.done != pcie::kNever;
    if (over) {
      active_.erase(one);
      issue();
    } else if (limits_.memory_order != kOverlap && one->until == packet.arrived) {
      transaction(*one);
    }
    return;
  }
}

}  // namespace wherry::sim::shell::load
