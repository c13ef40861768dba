// SPDX-License-Identifier: Apache-2.0
// How a conveyor sends: it appends items to the open packet of their rank. A large item is sent in pieces.
#include <algorithm>

#include "route/convey/conveyor.hpp"

namespace wherry::route::convey {

int Conveyor::epush(std::size_t bytes, const void* item, std::int64_t pe) {
  if (!traits_.elastic) return kRigid;
  if (bytes > traits_.largest) return kOverflow;
  return push(item, bytes, pe);
}

void Conveyor::close_packet(Out& out) noexcept {
  if (out.packet == nullptr) return;
  const auto bytes = out.end - out.packet;
  out.unacknowledged += bytes;
  counts_[convey_BYTES] += out.write - out.packet - static_cast<std::ptrdiff_t>(kBeforeItems);
  ++counts_[convey_COMMS];
  out.packet = nullptr;
}

std::byte* Conveyor::try_packet(Rank to, PacketHead head, const void* items, std::size_t bytes) noexcept {
  const Header header = Header::make(sizeof head + bytes, data_, to);
  const std::span<std::byte> space = core_.try_buffer(to, header.stride());
  if (space.empty()) return nullptr;
  lane_of(to).append(header, header.stride(), [&](std::byte* at) {
    std::memcpy(at, &head, sizeof head);
    if (bytes != 0) std::memcpy(at + sizeof head, items, bytes);
  });
  ++core_.sent;
  return space.data();
}

int Conveyor::open_packet(const void* item, std::size_t bytes, Rank to) noexcept {
  // Items keep their order, so no other item is pushed while a large item is being sent.
  if (!pending_.item.empty() && !push_pending()) return convey_FAIL;
  Out& out = outs_[to];
  close_packet(out);
  if (out.unacknowledged >= kWindow) return convey_FAIL;
  const std::size_t stride = Header::stride_of(sizeof(PacketHead) + bytes);
  if (stride > packet_bytes_) {
    const auto* const from = static_cast<const std::byte*>(item);
    pending_.item.assign(from, from + bytes);
    pending_.at = 0;
    pending_.to = to;
    (void)push_pending();
    ++counts_[convey_PUSHES];
    return convey_OK;
  }
  std::byte* const at = try_packet(to, {core_.place().rank, static_cast<std::uint32_t>(bytes)}, item, bytes);
  if (at == nullptr) return convey_FAIL;
  const Lane& lane = lane_of(to);
  // Items of 0 bytes cannot be counted in a packet, so each has a separate packet.
  const std::ptrdiff_t room = std::min(lane.end - at, static_cast<std::ptrdiff_t>(packet_bytes_));
  out.packet = at;
  out.write = at + kBeforeItems + bytes;
  out.end = at + stride;
  out.limit = bytes == 0 ? out.write : at + room;
  out.bytes = bytes == 0 ? 1 : bytes;
  out.sequence = lane.ring.sequence();
  ++counts_[convey_PUSHES];
  return convey_OK;
}

/// Sends as much of the large item as fits. True: all of it was sent.
bool Conveyor::push_pending() noexcept {
  Out& out = outs_[pending_.to];
  const std::size_t most = packet_bytes_ - kBeforeItems;
  const PacketHead head{core_.place().rank | PacketHead::kPiece, static_cast<std::uint32_t>(pending_.item.size())};
  while (pending_.at != pending_.item.size()) {
    if (out.unacknowledged >= kWindow) return false;
    const std::size_t bytes = std::min(most, pending_.item.size() - pending_.at);
    if (try_packet(pending_.to, head, pending_.item.data() + pending_.at, bytes) == nullptr) return false;
    out.unacknowledged += static_cast<std::int64_t>(Header::stride_of(sizeof head + bytes));
    ++counts_[convey_COMMS];
    counts_[convey_BYTES] += static_cast<std::int64_t>(bytes);
    pending_.at += bytes;
  }
  pending_.item.clear();
  return true;
}

}  // namespace wherry::route::convey
