// SPDX-License-Identifier: Apache-2.0
#include "bypass/host_rings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/try.hpp"

namespace wherry::bypass {
namespace {

constexpr std::uint32_t kLine = 64;
constexpr auto kTxStride = static_cast<std::uint32_t>(kDescriptorBytes);

std::uint32_t rx_ring(std::uint32_t pair) { return kRxRings + pair * kRingStride; }
std::uint32_t tx_ring(std::uint32_t pair) { return kTxRings + pair * kRingStride; }

}  // namespace

std::uint32_t HostRings::mail(std::size_t offset) const {
  std::uint32_t value = 0;
  std::memcpy(&value, setup_.mailbox.data() + offset, sizeof value);
  std::atomic_thread_fence(std::memory_order_acquire);
  return value;
}

Descriptor HostRings::mirrored(std::uint32_t offset) const {
  // The half with the bits that say "done" is read first and as one word, because the NIC may write meanwhile. What
  // these bits report was written before them.
  const auto half = [&](std::size_t at) {
    auto* const word = reinterpret_cast<std::uint64_t*>(setup_.mirror.data() + offset + at);
    return std::atomic_ref(*word).load(std::memory_order_acquire);
  };
  const std::uint64_t high = half(sizeof high), low = half(0);
  std::array<std::byte, kDescriptorBytes> bytes;
  std::memcpy(bytes.data(), &low, sizeof low);
  std::memcpy(bytes.data() + sizeof low, &high, sizeof high);
  return load(bytes);
}

Result<bool> HostRings::turn() {
  worked_ = false;
  WHERRY_TRY(take_to_host());
  WHERRY_TRY(take_to_card());
  // Another pair is first in each turn, since the mover may have room for some only.
  first_ = (first_ + 1) % setup_.pairs;
  for (std::uint32_t n = 0; n < setup_.pairs; ++n) {
    const std::uint32_t i = (first_ + n) % setup_.pairs;
    write_tails(i, pairs_[i]);
    WHERRY_TRY(follow_tails(i, pairs_[i]));
  }
  post_later();
  for (std::uint32_t n = 0; n < setup_.pairs; ++n) {
    const std::uint32_t i = (first_ + n) % setup_.pairs;
    take_received(i, pairs_[i]);
    tell_received(i, pairs_[i]);
    tell_transmitted(i, pairs_[i]);
  }
  if (!rang_to_host_) mover_.ring(Mover::Way::kToHost);
  if (!rang_to_card_) mover_.ring(Mover::Way::kToCard);
  rang_to_host_ = rang_to_card_ = true;
  ++counters_.turns;
  if (!worked_) ++counters_.idle_turns;
  return worked_;
}

Status HostRings::take_to_host() {
  WHERRY_ASSIGN(const std::size_t ended, mover_.poll(Mover::Way::kToHost));
  for (std::size_t i = 0; i < ended && !to_host_.empty(); ++i) {
    const Copy copy = to_host_.front();
    to_host_.pop_front();
    worked_ = true;
    switch (copy.kind) {
      case Kind::kRxDescriptors:
        pairs_[copy.pair].rx_given = copy.end;
        break;
      case Kind::kTxDescriptors:
        WHERRY_TRY(plan_frames(copy));
        break;
      case Kind::kTxFrame:
        pairs_[copy.pair].tx_given = copy.end;
        break;
    }
  }
  return {};
}

void HostRings::write_tails(std::uint32_t number, Pair& pair) {
  // The NIC may fetch as soon as it gets the tail, because descriptors and frames are already in the mirror.
  if (pair.rx_given != pair.rx_tailed) {
    access_.write_rx_tail(number, pair.rx_given);
    pair.rx_tailed = pair.rx_given;
    ++counters_.tails;
  }
  if (pair.tx_given != pair.tx_tailed) {
    access_.write_tx_tail(number, pair.tx_given);
    pair.tx_tailed = pair.tx_given;
    ++counters_.tails;
  }
}

Status HostRings::take_to_card() {
  WHERRY_ASSIGN(const std::size_t ended, mover_.poll(Mover::Way::kToCard));
  for (std::size_t i = 0; i < ended && !to_card_.empty(); ++i) {
    pairs_[to_card_.front().pair].rx_there = to_card_.front().end;
    to_card_.pop_front();
    worked_ = true;
  }
  return {};
}

Status HostRings::plan_frames(const Copy& descriptors) {
  for (std::uint32_t i = descriptors.begin; i != descriptors.end; i = (i + 1) % setup_.tx_entries) {
    const TxPart part = read_tx(*setup_.nic, mirrored(tx_ring(descriptors.pair) + i * kTxStride));
    const std::uint64_t offset = part.address - setup_.mirror_address;
    if (part.address < setup_.mirror_address || offset > kWindowBytes || part.bytes > kWindowBytes - offset ||
        part.bytes == 0)
      return {StatusCode::kProtocol,
              fmt::format("the card's transmit descriptor {} has {} bytes at {:#x}, which are not in its window", i,
                          part.bytes, part.address)};
    later_.push_back({.kind = Kind::kTxFrame,
                      .pair = descriptors.pair,
                      .begin = i,
                      .end = (i + 1) % setup_.tx_entries,
                      .offset = static_cast<std::uint32_t>(offset),
                      .bytes = part.bytes});
  }
  return {};
}

Status HostRings::follow_tails(std::uint32_t number, Pair& pair) {
  const std::size_t box = std::size_t{number} * kMailboxBytes;
  WHERRY_TRY(plan_descriptors(Kind::kRxDescriptors, number, pair.rx_asked, pair.rx_told, mail(box + kRxMail)));
  return plan_descriptors(Kind::kTxDescriptors, number, pair.tx_asked, pair.tx_told, mail(box + kTxMail));
}

/// Plans copies from `asked` to `tail`, in two pieces if the range wraps around.
Status HostRings::plan_descriptors(Kind kind, std::uint32_t number, std::uint32_t& asked, std::uint32_t told,
                                   std::uint32_t tail) {
  const bool rx = kind == Kind::kRxDescriptors;
  const std::uint32_t entries = rx ? setup_.rx_entries : setup_.tx_entries,
                      ring = rx ? rx_ring(number) : tx_ring(number);
  const std::uint32_t stride = rx ? setup_.nic->rx_descriptor_bytes : kTxStride;
  if (tail >= entries) return {};  // of a card that was removed
  if ((tail + entries - told) % entries < (asked + entries - told) % entries)
    return {StatusCode::kProtocol,
            fmt::format("the card's {} tail of pair {} is {}, which lies among the descriptors {} to {} in use",
                        rx ? "receive" : "transmit", number, tail, told, asked)};
  while (asked != tail) {
    const std::uint32_t end = tail > asked ? tail : entries;
    later_.push_back({.kind = kind,
                      .pair = number,
                      .begin = asked,
                      .end = end % entries,
                      .offset = ring + asked * stride,
                      .bytes = (end - asked) * stride});
    asked = end % entries;
  }
  return {};
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

void HostRings::take_received(std::uint32_t number, Pair& pair) {
  const Personality& nic = *setup_.nic;
  // A pair's slots appear twice in the window, one copy behind the other (docs/design/bypass-core.md).
  const std::uint32_t slots = kSlots + number * 2 * setup_.rx_entries * kSlotBytes;
  while (pair.rx_seen != pair.rx_given) {
    const Descriptor descriptor = mirrored(rx_ring(number) + pair.rx_seen * nic.rx_descriptor_bytes);
    if (!rx_done(nic, descriptor)) return;
    // A NIC may report any length, so limit it here. The core refuses a length that its slot cannot hold.
    const std::uint32_t bytes = std::clamp<std::uint32_t>(read_rx(nic, descriptor).bytes, 1, kSlotBytes);
    if (!mover_.try_post(Mover::Way::kToCard, slots + pair.rx_seen * kSlotBytes, bytes)) return;
    ++counters_.copies;
    counters_.copied_bytes += bytes;
    remember(rx_ring(number) + pair.rx_seen * nic.rx_descriptor_bytes, descriptor);
    pair.rx_seen = (pair.rx_seen + 1) % setup_.rx_entries;
    to_card_.push_back({.pair = number, .end = pair.rx_seen});
    rang_to_card_ = false;
    worked_ = true;
  }
}

void HostRings::remember(std::uint32_t offset, const Descriptor& descriptor) {
  store(descriptor, std::span(seen_).subspan(offset).first<kDescriptorBytes>());
}

void HostRings::tell(std::uint32_t ring, std::uint32_t stride, std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t from = ring + begin * stride, to = ring + end * stride; from < to;) {
    const std::uint32_t next = std::min((from / kLine + 1) * kLine, to);
    access_.write_window(from, std::span(seen_).subspan(from, next - from));
    ++counters_.window_writes;
    from = next;
  }
  worked_ = true;
}

void HostRings::tell_received(std::uint32_t number, Pair& pair) {
  while (pair.rx_told != pair.rx_there) {
    const std::uint32_t end = pair.rx_there > pair.rx_told ? pair.rx_there : setup_.rx_entries;
    tell(rx_ring(number), setup_.nic->rx_descriptor_bytes, pair.rx_told, end);
    counters_.received += end - pair.rx_told;
    pair.rx_told = end % setup_.rx_entries;
  }
}

void HostRings::tell_transmitted(std::uint32_t number, Pair& pair) {
  while (pair.tx_told != pair.tx_given) {
    std::uint32_t end = pair.tx_told;
    const std::uint32_t most = pair.tx_given > pair.tx_told ? pair.tx_given : setup_.tx_entries;
    for (; end != most; ++end) {
      const Descriptor descriptor = mirrored(tx_ring(number) + end * kTxStride);
      if (!tx_done(*setup_.nic, descriptor)) break;
      remember(tx_ring(number) + end * kTxStride, descriptor);
    }
    if (end == pair.tx_told) return;
    tell(tx_ring(number), kTxStride, pair.tx_told, end);
    counters_.transmitted += end - pair.tx_told;
    pair.tx_told = end % setup_.tx_entries;
  }
}

}  // namespace wherry::bypass
