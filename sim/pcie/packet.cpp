// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/packet.hpp"

#include <cassert>
#include <new>
#include <type_traits>

namespace wherry::sim::pcie {
namespace {
constexpr std::size_t kSlab = 64;  // packets
constexpr std::size_t kAlignment = 64;
constexpr std::size_t round_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
}  // namespace

static_assert(std::is_trivially_destructible_v<Packet>);

Packet* PacketPool::take(std::uint32_t payload) {
  std::uint8_t size = 0;
  while (kSizes[size] < payload) ++size;
  if (free_[size] == nullptr) {
    // One more cache line for each, so that packets of one size do not all fall into the same cache sets.
    const std::size_t stride = round_up(sizeof(Packet)) + kSizes[size] + kAlignment;
    slabs_.push_back(std::make_unique<std::byte[]>(stride * kSlab + kAlignment));
    auto place = reinterpret_cast<std::uintptr_t>(slabs_.back().get());
    std::byte* base = slabs_.back().get() + (round_up(place) - place);
    for (std::size_t i = 0; i < kSlab; ++i) {
      auto* packet = new (base + i * stride) Packet{};
      packet->payload = base + i * stride + round_up(sizeof(Packet));
      packet->size_class = size;
      packet->next = free_[size];
      free_[size] = packet;
    }
  }
  Packet* packet = free_[size];
  free_[size] = packet->next;
  std::byte* const data = packet->payload;
  *packet = Packet{};
  packet->payload = data;
  packet->size_class = size;
  packet->number = ++number_;
  ++live_;
  return packet;
}

void PacketPool::give(Packet* packet) noexcept {
  assert(live_ > 0);
  packet->next = free_[packet->size_class];
  free_[packet->size_class] = packet;
  --live_;
}

}  // namespace wherry::sim::pcie
