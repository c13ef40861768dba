// SPDX-License-Identifier: Apache-2.0
#include "route/router.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/copy.hpp"
#include "route/internal.hpp"

namespace wherry::route {
namespace {

/// Payloads are padded to multiples of 8 bytes. Most are short, and memcpy would be slower for them.
inline void copy_payload(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes > detail::kLongCopy) return copy_to_other_core(to, from, bytes);
  if (bytes > 128) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (; bytes >= 16; bytes -= 16, to += 16, from += 16) std::memcpy(to, from, 16);
  if (bytes != 0) std::memcpy(to, from, 8);
}

}  // namespace

void connect(Lane& lane, InboxShape shape, std::byte* inbox, std::size_t input) {
  lane.ring = RingWriter(inbox + shape.ring_at(input), shape.ring);
  lane.doorbells = Doorbells(reinterpret_cast<std::uint64_t*>(inbox));
  lane.doorbell = input;
}

Router::Router(std::size_t lanes, std::size_t inputs, std::size_t buffer_bytes, Rank mine)
    : lanes_(lanes), inputs_(inputs), waiting_((inputs + 63) / 64), buffer_bytes_(buffer_bytes), mine_(mine) {
  armed_.reserve(lanes);
}

void Router::read_from(InboxShape shape, std::byte* inbox) noexcept {
  doorbells_ = Doorbells(reinterpret_cast<std::uint64_t*>(inbox));
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i].ring = RingReader(inbox + shape.ring_at(i), shape.ring);
}

void Router::set_table(const std::vector<std::uint32_t>& lane_of_rank, const std::vector<bool>& ends_at_rank) {
  table_.clear();
  table_.reserve(lane_of_rank.size());
  std::vector<std::size_t> ranks_behind(lanes_.size());
  for (const std::uint32_t lane : lane_of_rank) {
    table_.push_back(&lanes_[lane]);
    ++ranks_behind[lane];
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i].direct = i < ends_at_rank.size() && ends_at_rank[i] && ranks_behind[i] == 1;
}

bool Router::begin_pack(Lane& lane, Header header) noexcept {
  if (!lane.direct || header.size() > kMaxPackedBytes || header.size() == 0 || header.handler() < kFirstUserHandler)
    return false;
  if (lane.skip_packs != 0) {
    --lane.skip_packs;
    return false;
  }
  constexpr std::ptrdiff_t kHeaders = 2 * sizeof(Header);
  const auto step = static_cast<std::ptrdiff_t>(packed_stride(header.size()));
  if (lane.end - lane.at < kHeaders + step) return false;
  lane.pack_start = lane.at;
  lane.pack_end = lane.at + std::min<std::ptrdiff_t>(lane.end - lane.at, kMaxMessageBytes);
  lane.end = lane.at;
  header.store(lane.at + sizeof(Header));
  lane.at += kHeaders;
  lane.pack = header.word;
  return true;
}

void Router::end_pack(Lane& lane) noexcept {
  constexpr std::size_t kWorthwhile = 4;  // messages; a pack of two is not shorter than the two by themselves
  constexpr std::uint32_t kPause = 3;     // calls of begin_pack(): one for each buffer or flush
  const Header shared{lane.pack};
  const auto bytes = static_cast<std::size_t>(lane.at - lane.pack_start) - sizeof(Header);
  Header::make(bytes, kPackHandler, shared.to()).store(lane.pack_start);
  if (bytes < sizeof(Header) + kWorthwhile * packed_stride(shared.size())) lane.skip_packs = kPause;
  lane.pack = 0;
  lane.pack_end = nullptr;
}

void Router::arm(Lane& lane) noexcept {
  if (lane.armed) return;
  lane.armed = true;
  armed_.push_back(&lane);
}

void Router::publish(Lane& lane, Flush why) noexcept {
  const auto bytes = static_cast<std::uint64_t>(lane.at - lane.flushed);
  counts.bytes_out += bytes;
  lane.written += bytes;
  ++counts.transfers;
  ++counts.flushes[static_cast<std::size_t>(why)];
  lane.flushed = lane.at;
}

void Router::close(Lane& lane) noexcept {
  if (lane.closed) return;
  flush(lane, Flush::kExplicit);
  lane.closed = true;
  lane.at = lane.end = lane.start = lane.flushed = nullptr;
}

void Router::abandon() noexcept {
  abandoned_ = true;
  for (Lane& lane : lanes_) {
    lane.closed = true;
    lane.pack = 0;
    lane.at = lane.end = lane.pack_end = lane.pack_start = lane.start = lane.flushed = nullptr;
  }
}

bool Router::try_put(Lane& lane, Header header, std::span<const std::byte> payload) noexcept {
  const std::size_t stride = header.stride();
  if (room(lane, stride, header.to()) == nullptr) return false;
  const auto copy = [payload](std::byte* to) noexcept {
    if (payload.size() > detail::kLongCopy) {
      copy_to_other_core(to, payload.data(), payload.size());
    } else if (!payload.empty()) {
      std::memcpy(to, payload.data(), payload.size());
    }
  };
  if (begin_pack(lane, header)) {
    lane.append_packed(stride - sizeof header, copy);
  } else {
    lane.append(header, stride, copy);
  }
  return true;
}

std::byte* Router::room(Lane& lane, std::size_t stride, Rank to) noexcept {
  if (lane.closed) [[unlikely]] {
    lose(to);
    return nullptr;
  }
  if (stride > buffer_bytes_) [[unlikely]]
    std::abort();  // instead of writing beyond the buffer
  if (lane.start != nullptr) {
    if (lane.pack != 0) end_pack(lane);
    lane.end = lane.start + lane.ring.shape().buffer_bytes;
    if (static_cast<std::size_t>(lane.end - lane.at) >= stride) {
      arm(lane);
      return lane.at;
    }
    publish(lane, Flush::kFull);
    lane.ring.close(static_cast<std::uint32_t>(lane.at - lane.start));
    lane.doorbells.set(lane.doorbell);
    lane.at = lane.end = lane.start = lane.flushed = nullptr;
  }
  std::byte* const fresh = lane.ring.try_open();
  if (fresh == nullptr) {
    ++counts.blocked;
    return nullptr;
  }
  lane.at = lane.start = lane.flushed = fresh;
  lane.end = fresh + lane.ring.shape().buffer_bytes;
  arm(lane);
  return fresh;
}

void Router::flush(Lane& lane, Flush why) noexcept {
  if (lane.at != lane.flushed) {
    if (lane.pack != 0) end_pack(lane);
    publish(lane, why);
    lane.ring.publish(static_cast<std::uint32_t>(lane.at - lane.start));
    lane.doorbells.set(lane.doorbell);
  }
  lane.end = lane.at;
}

bool Router::flush(Flush why) noexcept {
  flush_at_ = 0;
  if (armed_.empty()) return false;
  for (Lane* lane : armed_) {
    lane->armed = false;
    flush(*lane, why);
  }
  armed_.clear();
  return true;
}

Router::Stop Router::forward(const std::byte* from, const std::byte* to) noexcept {
  using Why = Stop::Why;
  const std::byte* const start = from;
  std::uint64_t messages = 0;
  Why why = Why::kEnd;
  while (from != to) {
    const Header header = Header::load(from);
    const std::size_t stride = header.stride();
    const Rank rank = header.to();
    if (stride > static_cast<std::size_t>(to - from) || rank >= table_.size()) {
      why = Why::kMalformed;
      break;
    }
    if (rank == mine_) {
      why = Why::kMine;
      break;
    }
    auto& lane = *static_cast<Lane*>(table_[rank]);
    const std::size_t step = stride - sizeof(Header);
    // Use the length from the header that was read once, because another process may change the bytes meanwhile.
    const auto copy = [=](std::byte* out) noexcept { copy_payload(out, from + sizeof(Header), step); };
    if (lane.pack_takes(header, step)) {
      lane.append_packed(step, copy);
      from += stride;
      ++messages;
      continue;
    }
    if (!lane.has_room(stride)) [[unlikely]] {
      if (stride > buffer_bytes_) {
        why = Why::kMalformed;
        break;
      }
      if (lane.closed) {
        if (!may_be_dropped(header.handler())) lose(rank);
        from += stride;
        continue;
      }
      if (room(lane, stride, rank) == nullptr) {
        why = Why::kBlocked;
        break;
      }
      if (begin_pack(lane, header)) {
        lane.append_packed(step, copy);
        from += stride;
        ++messages;
        continue;
      }
    }
    lane.append(header, stride, copy);
    from += stride;
    ++messages;
  }
  counts.forwarded_bytes += static_cast<std::uint64_t>(from - start);
  counts.forwarded += messages;
  return {why, from};
}

}  // namespace wherry::route
