// SPDX-License-Identifier: Apache-2.0
#include "route/convey/conveyor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace wherry::route::convey {
Conveyor::Conveyor(detail::RuntimeCore& core, detail::Agreement& agreement, std::uint32_t data, std::uint32_t credit,
                   Traits traits, std::uint32_t& epoch)
    : core_(core),
      agreement_(agreement),
      data_(data),
      credit_(credit),
      traits_(traits),
      epoch_(epoch),
      packet_bytes_(core.max_buffer() / 4 & ~std::size_t{7}),
      ranks_(core.ranks),
      outs_(ranks_),
      spent_(ranks_) {
  start_watching();
}

int Conveyor::begin(std::size_t item_bytes, std::size_t align) {
  if (state_ != State::kDormant) return refusal();
  if (item_bytes == 0) return kZero;
  if (item_bytes > traits_.largest) return kOverflow;
  item_bytes_ = item_bytes;
  const bool good = std::has_single_bit(align) && align <= CONVEY_MAX_ALIGN && item_bytes % align == 0;
  align_ = good ? align : std::min<std::size_t>(item_bytes & -item_bytes, CONVEY_MAX_ALIGN);
  state_ = State::kWorking;
  ++counts_[convey_BEGINS];
  return convey_OK;
}

// ---------------------------------------------------------------- pushing

int Conveyor::epush(std::size_t bytes, const void* item, std::int64_t pe) {
  if (!traits_.elastic) return kRigid;
  if (bytes > traits_.largest) return kOverflow;
  return push(item, bytes, pe);
}

void Conveyor::close_packet(Out& out) noexcept {
  if (out.packet == nullptr) return;
  const auto bytes = out.end - out.packet;
  out.unconfirmed += bytes;
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
  // Whatever is pushed next comes after the large item, which is why nothing is while that is leaving.
  if (!pending_.item.empty() && !push_pending()) return convey_FAIL;
  Out& out = outs_[to];
  close_packet(out);
  if (out.unconfirmed >= kWindow) return convey_FAIL;
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
  // An item of no bytes cannot be counted, so it stays alone.
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

/// Sends what there is room for of the large item; true: it has left.
bool Conveyor::push_pending() noexcept {
  Out& out = outs_[pending_.to];
  const std::size_t most = packet_bytes_ - kBeforeItems;
  const PacketHead head{core_.place().rank | PacketHead::kPiece, static_cast<std::uint32_t>(pending_.item.size())};
  while (pending_.at != pending_.item.size()) {
    if (out.unconfirmed >= kWindow) return false;
    const std::size_t bytes = std::min(most, pending_.item.size() - pending_.at);
    if (try_packet(pending_.to, head, pending_.item.data() + pending_.at, bytes) == nullptr) return false;
    out.unconfirmed += static_cast<std::int64_t>(Header::stride_of(sizeof head + bytes));
    ++counts_[convey_COMMS];
    counts_[convey_BYTES] += static_cast<std::int64_t>(bytes);
    pending_.at += bytes;
  }
  pending_.item.clear();
  return true;
}

// ---------------------------------------------------------------- what arrives

detail::Handled Conveyor::receive(const std::byte* at, const std::byte* limit, Header header) noexcept {
  const Header first = header;
  const std::byte* packets = at;  // from here on, none was copied
  std::uint64_t messages = 0;
  try {
    for (;;) {
      PacketHead head;
      if (header.size() < sizeof head) return {};
      std::memcpy(&head, at + 8, sizeof head);
      const std::size_t bytes = header.size() - sizeof head;
      if (head.rank() >= ranks_ || head.bytes > kMaxMessageBytes) return {};
      if (head.bytes == 0 ? bytes != 0 : bytes == 0 || (!head.piece() && bytes % head.bytes != 0)) return {};
      const std::byte* const packet = at;
      at += header.stride();
      ++messages;
      if (head.piece()) {
        if (packets != packet) arrivals_.append(packets, packet);
        packets = at;
        if (arrivals_.append_piece(header, packet)) ++arrived_;
        acknowledge(head.rank(), header.stride());
      } else {
        arrived_ += head.bytes == 0 ? 1 : bytes / head.bytes;
      }
      if (at == limit) break;
      header = Header::load(at);
      if (!header.same_way(first) || header.stride() > static_cast<std::size_t>(limit - at)) break;
    }
    if (packets != at) arrivals_.append(packets, at);
  } catch (const std::bad_alloc&) {
    failure_ = kAlloc;  // what advance() says from now on
  }
  return {at, messages};
}

void Conveyor::receive_credit(const Credit& credit) noexcept {
  if (credit.epoch == epoch_ && credit.from < ranks_)
    outs_[credit.from].unconfirmed -= static_cast<std::int64_t>(credit.bytes);
}

void Conveyor::acknowledge(Rank source, std::size_t bytes) noexcept {
  std::size_t& spent = spent_[source];
  spent += bytes;
  if (spent < kWindow / 2) return;
  const Credit credit{epoch_, core_.place().rank, spent};
  // Refused only when the backlog is full: then the next packet tries again.
  if (core_.send(source, credit_, std::as_bytes(std::span(&credit, 1)), detail::WhenFull::kAbsorb) == StatusCode::kOk)
    spent = 0;
}

// ---------------------------------------------------------------- pulling

/// The item at hand, or a copy of it that is aligned as begin() promised.
std::byte* Conveyor::aligned_item() {
  std::byte* const at = arrivals_.item();
  const std::size_t bytes = arrivals_.bytes();
  if (reinterpret_cast<std::uintptr_t>(at) % align_ == 0) return at;
  if (!scratch_ || scratch_bytes_ < bytes) {
    scratch_ = allocate_aligned(std::max<std::size_t>(bytes, 1));  // an item of no bytes has an address, too
    scratch_bytes_ = bytes;
  }
  copy_item(scratch_.get(), at, bytes);
  return scratch_.get();
}

void* Conveyor::apull(std::int64_t* from, int& error) {
  if (!may_pull(error) || !ready()) return nullptr;
  void* const at = aligned_item();
  ++counts_[convey_PULLS];
  const bool fits = arrivals_.bytes() == item_bytes_;
  arrivals_.take();
  if (!fits) {
    error = kMisfit;
    return nullptr;
  }
  if (from != nullptr) *from = arrivals_.source();
  return at;
}

int Conveyor::epull(convey_item_t& result) {
  result.data = nullptr;
  int error = 0;
  if (!traits_.elastic) return kRigid;
  if (!may_pull(error)) return error == kComms ? kComms : static_cast<int>(convey_FAIL);
  if (!ready()) return convey_FAIL;
  result = {arrivals_.bytes(), aligned_item(), arrivals_.source()};
  ++counts_[convey_PULLS];
  arrivals_.take();
  return convey_OK;
}

int Conveyor::unpull() noexcept {
  int error = 0;
  if (!may_pull(error)) return error;
  if (!arrivals_.put_back()) return convey_FAIL;
  ++counts_[convey_UNPULLS];
  return convey_OK;
}

// ---------------------------------------------------------------- together

int Conveyor::advance(bool done) {
  if (state_ == State::kDormant || state_ == State::kInherited) return refusal();
  ++counts_[convey_ADVANCES];
  if (state_ == State::kComplete) return convey_DONE;
  if (done && state_ == State::kWorking) state_ = State::kEndgame;
  core_.poll();
  if (failure_ != 0) return failure_;
  if (!core_.departed().empty()) {
    const Rank who = core_.departed().front().rank;
    core_.fail(Breakdown{
        {StatusCode::kUnavailable, fmt::format("rank {} has left the job in the middle of a conveyor's session", who)},
        who});
  }
  if (!core_.status()) return kComms;
  const bool all_left = pending_.item.empty() || push_pending();
  if (state_ == State::kWorking) return convey_OK;
  if (state_ == State::kEndgame) {
    // Nobody pushes any more once all have contributed: when as many items have arrived as were pushed, all have.
    const auto words = agreement_.take_outcome();
    if (words && words->a == words->b) {
      state_ = State::kCleanup;
    } else if (all_left && !agreement_.contributed()) {
      agreement_.contribute(detail::Agreement::Combine::kSum,
                            {static_cast<std::uint64_t>(counts_[convey_PUSHES]), arrived_});
      ++counts_[convey_SYNCS];
    }
    core_.flush();
  }
  if (state_ == State::kEndgame) return convey_OK;
  if (ready()) return convey_NEAR;
  state_ = State::kComplete;
  return convey_DONE;
}

bool Conveyor::barrier() { return core_.reduce(0, detail::Agreement::Combine::kSum).ok(); }

int Conveyor::reset() {
  if (state_ == State::kDormant) return convey_OK;
  if (state_ != State::kComplete) return refusal();
  for (Out& out : outs_) close_packet(out);
  for (std::size_t i = 0; i < counts_.size(); ++i) before_[i] += std::exchange(counts_[i], 0);
  std::ranges::fill(outs_, Out{});
  std::ranges::fill(spent_, 0);
  arrivals_.clear();
  arrived_ = 0;
  ++epoch_;
  state_ = State::kDormant;
  // Packets of the next session must not meet a rank that is still in this one.
  return barrier() ? static_cast<int>(convey_OK) : static_cast<int>(kComms);
}

int Conveyor::set_codec(const convey_codec_t* codec) const noexcept {
  if (state_ != State::kDormant) return refusal();
  return codec == nullptr ? static_cast<int>(convey_OK) : static_cast<int>(convey_FAIL);
}

std::int64_t Conveyor::statistic(int which) const noexcept {
  const bool cumulative = which >= convey_CUMULATIVE;
  const int index = cumulative ? which - convey_CUMULATIVE : which;
  if (index < 0 || index >= convey_CUMULATIVE) return -1;
  const auto at = static_cast<std::size_t>(index);
  return counts_[at] + (cumulative ? before_[at] : 0);
}

bool Conveyor::first_time(int error) noexcept {
  const std::uint32_t bit = 1U << (-error & 31);
  if (traits_.quiet || (told_ & bit) != 0) return false;
  told_ |= bit;
  return true;
}

}  // namespace wherry::route::convey
