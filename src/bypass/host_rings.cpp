// SPDX-License-Identifier: Apache-2.0
#include "bypass/host_rings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/try.hpp"

namespace wherry::bypass {
namespace {

constexpr std::uint32_t kLine = 64;
constexpr auto kTxStride = static_cast<std::uint32_t>(kDescriptorBytes);

}  // namespace

std::uint32_t HostRings::mail(std::size_t offset) const {
  std::uint32_t value = 0;
  std::memcpy(&value, setup_.mailbox.data() + offset, sizeof value);
  std::atomic_thread_fence(std::memory_order_acquire);
  return value;
}

Descriptor HostRings::mirrored(std::uint32_t offset) const {
  Descriptor descriptor = load(std::span<const std::byte, kDescriptorBytes>(setup_.mirror.subspan(offset).first(16)));
  std::atomic_thread_fence(std::memory_order_acquire);  // what it tells of was written before it
  return descriptor;
}

Result<bool> HostRings::turn() {
  worked_ = false;
  WHERRY_TRY(take_to_host());
  WHERRY_TRY(take_to_card());
  follow_tails();
  post_later();
  take_received();
  tell_received();
  tell_transmitted();
  if (!rang_to_host_) mover_.ring(Mover::Way::kToHost);
  if (!rang_to_card_) mover_.ring(Mover::Way::kToCard);
  rang_to_host_ = rang_to_card_ = true;
  ++counters_.turns;
  if (!worked_) ++counters_.idle_turns;
  return worked_;
}

Status HostRings::take_to_host() {
  WHERRY_ASSIGN(const std::size_t ended, mover_.poll(Mover::Way::kToHost));
  const std::uint32_t rx_before = rx_given_, tx_before = tx_given_;
  for (std::size_t i = 0; i < ended && !to_host_.empty(); ++i) {
    const Copy copy = to_host_.front();
    to_host_.pop_front();
    worked_ = true;
    switch (copy.kind) {
      case Kind::kRxDescriptors:
        rx_given_ = copy.end;
        break;
      case Kind::kTxDescriptors:
        WHERRY_TRY(plan_frames(copy.begin, copy.end));
        break;
      case Kind::kTxFrame:
        tx_given_ = copy.end;
        break;
    }
  }
  // The NIC may fetch as soon as it gets the tail, because descriptors and frames are already in the mirror.
  if (rx_given_ != rx_before) {
    access_.write_rx_tail(rx_given_);
    ++counters_.tails;
  }
  if (tx_given_ != tx_before) {
    access_.write_tx_tail(tx_given_);
    ++counters_.tails;
  }
  return {};
}

Status HostRings::take_to_card() {
  WHERRY_ASSIGN(const std::size_t ended, mover_.poll(Mover::Way::kToCard));
  for (std::size_t i = 0; i < ended && !to_card_.empty(); ++i) {
    rx_there_ = to_card_.front();
    to_card_.pop_front();
    worked_ = true;
  }
  return {};
}

Status HostRings::plan_frames(std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t i = begin; i != end; i = (i + 1) % setup_.tx_entries) {
    const TxPart part = read_tx(*setup_.nic, mirrored(kTxRings + i * kTxStride));
    const std::uint64_t offset = part.address - setup_.mirror_address;
    if (part.address < setup_.mirror_address || offset > kWindowBytes || part.bytes > kWindowBytes - offset ||
        part.bytes == 0)
      return {StatusCode::kProtocol,
              fmt::format("the card's transmit descriptor {} has {} bytes at {:#x}, which are not in its window", i,
                          part.bytes, part.address)};
    later_.push_back({.kind = Kind::kTxFrame,
                      .begin = i,
                      .end = (i + 1) % setup_.tx_entries,
                      .offset = static_cast<std::uint32_t>(offset),
                      .bytes = part.bytes});
  }
  return {};
}

void HostRings::follow_tails() {
  plan_descriptors(Kind::kRxDescriptors, rx_asked_, mail(kRxMail));
  plan_descriptors(Kind::kTxDescriptors, tx_asked_, mail(kTxMail));
}

/// Plans copies from `asked` to `tail`, in two pieces if the range wraps around.
void HostRings::plan_descriptors(Kind kind, std::uint32_t& asked, std::uint32_t tail) {
  const bool rx = kind == Kind::kRxDescriptors;
  const std::uint32_t entries = rx ? setup_.rx_entries : setup_.tx_entries, ring = rx ? kRxRings : kTxRings;
  const std::uint32_t stride = rx ? setup_.nic->rx_descriptor_bytes : kTxStride;
  while (asked != tail && tail < entries) {
    const std::uint32_t end = tail > asked ? tail : entries;
    later_.push_back({.kind = kind,
                      .begin = asked,
                      .end = end % entries,
                      .offset = ring + asked * stride,
                      .bytes = (end - asked) * stride});
    asked = end % entries;
  }
}

void HostRings::post_later() {
  for (; !later_.empty(); later_.pop_front()) {
    const Copy& copy = later_.front();
    if (!mover_.try_post(Mover::Way::kToHost, copy.offset, copy.bytes)) return;
    ++counters_.copies;
    counters_.copied_bytes += copy.bytes;
    to_host_.push_back(copy);
    rang_to_host_ = false;
    worked_ = true;
  }
}

void HostRings::take_received() {
  const Personality& nic = *setup_.nic;
  while (rx_seen_ != rx_given_) {
    const Descriptor descriptor = mirrored(kRxRings + rx_seen_ * nic.rx_descriptor_bytes);
    if (!rx_done(nic, descriptor)) return;
    // A NIC may report any length, so limit it here. The core refuses a length that its slot cannot hold.
    const std::uint32_t bytes = std::clamp<std::uint32_t>(read_rx(nic, descriptor).bytes, 1, kSlotBytes);
    if (!mover_.try_post(Mover::Way::kToCard, kSlots + rx_seen_ * kSlotBytes, bytes)) return;
    ++counters_.copies;
    counters_.copied_bytes += bytes;
    rx_seen_ = (rx_seen_ + 1) % setup_.rx_entries;
    to_card_.push_back(rx_seen_);
    rang_to_card_ = false;
    worked_ = true;
  }
}

void HostRings::tell(std::uint32_t ring, std::uint32_t stride, std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t from = ring + begin * stride, to = ring + end * stride; from < to;) {
    const std::uint32_t next = std::min((from / kLine + 1) * kLine, to);
    access_.write_window(from, setup_.mirror.subspan(from, next - from));
    ++counters_.window_writes;
    from = next;
  }
  worked_ = true;
}

void HostRings::tell_received() {
  while (rx_told_ != rx_there_) {
    const std::uint32_t end = rx_there_ > rx_told_ ? rx_there_ : setup_.rx_entries;
    tell(kRxRings, setup_.nic->rx_descriptor_bytes, rx_told_, end);
    counters_.received += end - rx_told_;
    rx_told_ = end % setup_.rx_entries;
  }
}

void HostRings::tell_transmitted() {
  while (tx_told_ != tx_given_) {
    std::uint32_t end = tx_told_;
    const std::uint32_t most = tx_given_ > tx_told_ ? tx_given_ : setup_.tx_entries;
    while (end != most && tx_done(*setup_.nic, mirrored(kTxRings + end * kTxStride))) ++end;
    if (end == tx_told_) return;
    tell(kTxRings, kTxStride, tx_told_, end);
    counters_.transmitted += end - tx_told_;
    tx_told_ = end % setup_.tx_entries;
  }
}

}  // namespace wherry::bypass
