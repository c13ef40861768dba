// SPDX-License-Identifier: Apache-2.0
#include "route/convey/arrivals.hpp"

#include <algorithm>
#include <cstring>

#include "wherry/convey.h"

namespace wherry::route::convey {

/// Returns space behind the last packet. A block is reused only after it was read completely and the next block was
/// begun, so the last pulled item stays valid.
std::byte* Arrivals::grow(std::size_t bytes) {
  if (blocks_.empty() || blocks_.back().capacity - blocks_.back().used < bytes) {
    if (!spare_.empty() && bytes <= kBlockBytes) {
      blocks_.push_back(std::move(spare_.back()));
      spare_.pop_back();
    } else {
      const std::size_t capacity = std::max(bytes, kBlockBytes);
      blocks_.push_back({aligned_bytes(capacity, CONVEY_MAX_ALIGN), capacity});
    }
  }
  Block& block = blocks_.back();
  std::byte* const at = block.memory.get() + block.used;
  block.used += bytes;
  return at;
}

void Arrivals::append(const std::byte* at, const std::byte* to) {
  const auto bytes = static_cast<std::size_t>(to - at);
  std::memcpy(grow(bytes), at, bytes);
}

bool Arrivals::append_piece(Header header, const std::byte* at) {
  PacketHead head;
  std::memcpy(&head, at + 8, sizeof head);
  Assembly& assembly = assemblies_[head.rank()];
  if (assembly.item.empty()) assembly.item.resize(head.bytes);
  const std::size_t bytes = header.size() - sizeof head;
  const std::size_t fits = std::min(bytes, assembly.item.size() - assembly.received);
  std::memcpy(assembly.item.data() + assembly.received, at + kBeforeItems, fits);
  assembly.received += fits;
  if (assembly.received < assembly.item.size()) return false;
  const Header whole = Header::make(sizeof head + assembly.item.size(), header.handler(), header.to());
  std::byte* const out = grow(whole.stride());
  // The pieces were acknowledged when they arrived, so pulling this item returns no credit.
  head.source |= PacketHead::kPiece;
  head.bytes = static_cast<std::uint32_t>(assembly.item.size());
  whole.store(out);
  std::memcpy(out + 8, &head, sizeof head);
  std::memcpy(out + kBeforeItems, assembly.item.data(), assembly.item.size());
  assemblies_.erase(head.rank());
  return true;
}

bool Arrivals::next_packet() noexcept {
  if (stride_ != 0) spent_ = {source_, std::exchange(stride_, 0)};
  if (blocks_.empty()) return false;
  if (blocks_.front().read == blocks_.front().used) {
    if (blocks_.size() == 1) return false;
    Block done = std::move(blocks_.front());
    blocks_.pop_front();
    if (done.capacity == kBlockBytes && spare_.size() < kSpareBlocks) {
      done.used = done.read = 0;
      spare_.push_back(std::move(done));
    }
  }
  Block& block = blocks_.front();
  std::byte* const packet = block.memory.get() + block.read;
  const Header header = Header::load(packet);
  PacketHead head;
  std::memcpy(&head, packet + 8, sizeof head);
  block.read += header.stride();
  at_ = packet + kBeforeItems;
  bytes_ = head.bytes;
  left_ = bytes_ == 0 ? 1 : static_cast<std::uint32_t>((header.size() - sizeof head) / bytes_);
  source_ = head.rank();
  stride_ = head.piece() ? 0 : header.stride();
  taken_ = false;
  return true;
}

void Arrivals::clear() noexcept {
  at_ = nullptr;
  bytes_ = left_ = 0;
  taken_ = false;
  stride_ = 0;
  spent_ = {};
  blocks_.clear();
  assemblies_.clear();
}

}  // namespace wherry::route::convey
