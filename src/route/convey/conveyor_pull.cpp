// SPDX-License-Identifier: Apache-2.0
// How a conveyor receives: it keeps packets until their items are pulled, and then acknowledges them.
#include <algorithm>

#include "route/convey/conveyor.hpp"

namespace wherry::route::convey {

detail::Handled Conveyor::receive(const std::byte* at, const std::byte* limit, Header header) noexcept {
  const Header first = header;
  const std::byte* packets = at;  // those from here on have not been copied
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
    failure_ = kAlloc;  // advance() returns it from now on
  }
  return {at, messages};
}

void Conveyor::receive_credit(const Credit& credit) noexcept {
  if (credit.epoch == epoch_ && credit.from < ranks_)
    outs_[credit.from].unacknowledged -= static_cast<std::int64_t>(credit.bytes);
}

void Conveyor::acknowledge(Rank source, std::size_t bytes) noexcept {
  std::size_t& spent = spent_[source];
  spent += bytes;
  if (spent < kWindow / 2) return;
  const Credit credit{epoch_, core_.place().rank, spent};
  // The send is refused only if the backlog is full; the next packet tries again.
  if (core_.send(source, credit_, std::as_bytes(std::span(&credit, 1)), detail::WhenFull::kAbsorb) == StatusCode::kOk)
    spent = 0;
}

/// The next item, or a copy of it if the item lacks the alignment that begin() has promised.
std::byte* Conveyor::aligned_item() {
  std::byte* const at = arrivals_.item();
  const std::size_t bytes = arrivals_.bytes();
  if (reinterpret_cast<std::uintptr_t>(at) % align_ == 0) return at;
  if (!scratch_ || scratch_bytes_ < bytes) {
    scratch_ =
        aligned_bytes(std::max<std::size_t>(bytes, 1), CONVEY_MAX_ALIGN);  // an item of no bytes has an address, too
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

}  // namespace wherry::route::convey
