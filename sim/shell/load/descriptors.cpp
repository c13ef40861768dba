// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/descriptors.hpp"

#include <algorithm>
#include <memory>

#include "sim/shell/qdma.hpp"

namespace wherry::sim::shell::load {

Descriptors::Descriptors(const Parameters& p, const Limits& limits, Requests& requests, pcie::HostMemory& memory,
                         std::uint64_t base)
    : p_(p), limits_(limits), requests_(requests), memory_(memory), sets_(static_cast<std::size_t>(RingKind::kCount)) {
  for (RingSet& one : sets_) {
    for (std::uint32_t queue = 0; queue < limits_.queues; ++queue) {
      Ring ring;
      ring.address = base;
      one.rings.push_back(std::move(ring));
      base += std::uint64_t{limits_.ring} * kMemoryDescriptor;
    }
  }
  requests_.on_room_of(Source::kFetch, [this] { fetch(); });
}

std::uint32_t Descriptors::size_of(RingKind kind) noexcept {
  switch (kind) {
    case RingKind::kH2cStream:
      return kH2cStreamDescriptor;
    case RingKind::kC2hStream:
      return kC2hStreamDescriptor;
    default:
      return kMemoryDescriptor;
  }
}

void Descriptors::post(RingKind kind, std::uint32_t queue, std::span<const std::byte> descriptor) {
  Ring& ring = ring_set(kind).rings[queue];
  memory_.write(ring.address + ring.posted % limits_.ring * descriptor.size(), descriptor);
  ++ring.posted;
  fetch();
}

void Descriptors::need(std::uint32_t queue) {
  Ring& ring = ring_set(RingKind::kC2hStream).rings[queue];
  ++ring.needed;
  if (!ring.cached.empty()) {
    const std::vector<std::byte> descriptor = std::move(ring.cached.front());
    ring.cached.pop_front();
    ++ring.given;
    ring_set(RingKind::kC2hStream).deliver(queue, descriptor);
  }
  fetch();
}

void Descriptors::taken(RingKind kind, std::uint32_t queue) {
  ++ring_set(kind).rings[queue].done;
  buffered_[direction_of(kind)] -= size_of(kind);
  if (on_space) on_space(kind, queue);
  fetch();
}

/// Descriptors that the ring's next fetch would bring.
std::uint32_t Descriptors::wanted(RingKind kind, const Ring& ring) const {
  if (ring.fetching) return 0;
  const std::uint32_t size = size_of(kind);
  std::uint64_t count = ring.posted - ring.asked;
  if (kind == RingKind::kC2hStream) {
    const std::uint64_t without = ring.needed - ring.given;  // packets that wait: none is cached for them
    const std::uint64_t cached = ring.cached.size();
    if (without == 0) return 0;
    count = std::min(count, std::max<std::uint64_t>(without, limits_.prefetch));
    count = std::min(count, limits_.descriptor_cache - std::min<std::uint64_t>(cached, limits_.descriptor_cache));
  }
  const std::uint64_t to_end = limits_.ring - ring.asked % limits_.ring;
  const std::uint64_t space = (limits_.descriptor_buffer - buffered_[direction_of(kind)]) / size;
  const std::uint64_t at = ring.address + ring.asked % limits_.ring * size;
  const std::uint64_t page = (kPageBytes - at % kPageBytes) / size;
  return static_cast<std::uint32_t>(std::min({count, to_end, space, page, std::uint64_t{p_.mrrs / size}}));
}

/// Fetches for the next rings in turn that want descriptors, while RQ has room.
void Descriptors::fetch() {
  const std::size_t rings = sets_.size() * limits_.queues;
  for (std::size_t step = 1; step <= rings && requests_.room(Source::kFetch); ++step) {
    const std::size_t next = (turn_ + step) % rings;
    const auto kind = static_cast<RingKind>(next / limits_.queues);
    const auto queue = static_cast<std::uint32_t>(next % limits_.queues);
    Ring& ring = ring_set(kind).rings[queue];
    const std::uint32_t count = wanted(kind, ring);
    if (count == 0) continue;
    turn_ = next;
    step = 0;
    const std::uint32_t bytes = count * size_of(kind);
    const std::uint64_t at = ring.address + ring.asked % limits_.ring * size_of(kind);
    ring.asked += count;
    ring.fetching = true;
    buffered_[direction_of(kind)] += bytes;
    ++fetches;
    fetched += count;
    auto got = std::make_shared<std::vector<std::byte>>();
    requests_.read(Source::kFetch, at, bytes,
                   [this, kind, queue, bytes, got](std::uint32_t, std::span<const std::byte> data) {
                     got->insert(got->end(), data.begin(), data.end());
                     if (got->size() == bytes) came(kind, queue, *got);
                   });
  }
}

void Descriptors::came(RingKind kind, std::uint32_t queue, std::span<const std::byte> data) {
  RingSet& of = ring_set(kind);
  Ring& ring = of.rings[queue];
  ring.fetching = false;
  const std::uint32_t size = size_of(kind);
  for (std::size_t at = 0; at < data.size(); at += size) {
    const auto one = data.subspan(at, size);
    if (kind == RingKind::kC2hStream && ring.given == ring.needed) {
      ring.cached.emplace_back(one.begin(), one.end());
    } else {
      ++ring.given;
      of.deliver(queue, one);
    }
  }
  fetch();
}

}  // namespace wherry::sim::shell::load
