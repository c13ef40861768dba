// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/host_way.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "bypass/nic/nic.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMemoryFrom = std::uint64_t{4} << 30;  // where the search for addresses begins
constexpr std::size_t kMailboxes = 4096;                       // a page: more than the mailboxes of all pairs
static_assert(kMailboxes >= std::size_t{kMostPairs} * kMailboxBytes);
constexpr auto kCopyLimit = 200ms;           // for a copy, which takes microseconds
constexpr std::uint32_t kTriedBytes = 1000;  // not whole lines, and over several reads

}  // namespace

Result<std::unique_ptr<HostWay>> HostWay::open(pci::Vfio& vfio, std::size_t card, const Personality& personality,
                                               Registers& nic, std::uint32_t pairs, const OpenEngine& open_engine) {
  std::unique_ptr<HostWay> way(new HostWay(personality, nic, pairs));
  // The core's base must be a multiple of its window's size.
  WHERRY_ASSIGN(const std::uint64_t free, vfio.free_iova(2 * kWindowBytes, kMemoryFrom));
  way->mirror_address_ = (free + kWindowBytes - 1) / kWindowBytes * kWindowBytes;
  // First the engine, since it may still run copies to the addresses of a process that was killed.
  WHERRY_ASSIGN(way->engine_, open_engine(vfio, card, way->mirror_address_));
  WHERRY_ASSIGN(way->mirror_, vfio.map_memory(kWindowBytes, way->mirror_address_));
  WHERRY_ASSIGN(way->mailbox_address_, vfio.free_iova(kMailboxes, kMemoryFrom));
  WHERRY_ASSIGN(way->mailbox_, vfio.map_memory(kMailboxes, way->mailbox_address_));
  return way;
}

Status HostWay::copy(Mover::Way way, std::uint32_t offset, std::uint32_t bytes, CardAccess& card) {
  if (!engine_->try_post(way, offset, bytes)) return {StatusCode::kUnavailable, "the card's DMA engine takes no copy"};
  engine_->ring(way);
  for (const Deadline deadline(kCopyLimit);; card.pause(10us)) {
    WHERRY_ASSIGN(const std::size_t ended, engine_->poll(way));
    if (ended != 0) return {};
    if (deadline.passed()) return {StatusCode::kUnavailable, "a copy by the card's DMA engine does not end"};
  }
}

Status HostWay::try_copies(CardAccess& card, std::uint64_t seed) {
  const std::span<std::byte> here = mirror_.subspan(kSlots, kTriedBytes);
  std::mt19937_64 random(seed);
  std::ranges::generate(here, [&] { return static_cast<std::byte>(random()); });
  const std::vector<std::byte> sent(here.begin(), here.end());
  std::vector<std::byte> there(kTriedBytes);
  WHERRY_TRY(copy(Mover::Way::kToCard, kSlots, kTriedBytes, card));
  WHERRY_TRY(card.read_window(kSlots, there));
  if (there != sent)
    return {StatusCode::kUnavailable,
            "the card's DMA engine reported a copy to the card, and other bytes are in the card's slot"};
  std::ranges::fill(here, std::byte{0});
  WHERRY_TRY(copy(Mover::Way::kToHost, kSlots, kTriedBytes, card));
  if (!std::ranges::equal(here, sent))
    return {StatusCode::kUnavailable,
            "the card's DMA engine reported a copy to the host, and other bytes are in the host's memory"};
  std::ranges::fill(here, std::byte{0});
  return {};
}

void HostWay::begin(const CardShape& shape) {
  std::ranges::fill(mailbox_, std::byte{0});
  HostRingsAccess& access = *this;
  rings_ = std::make_unique<HostRings>(HostRingsSetup{.nic = &personality_,
                                                      .rx_entries = shape.rx_entries,
                                                      .tx_entries = shape.tx_entries,
                                                      .pairs = pairs_,
                                                      .mirror = mirror_,
                                                      .mirror_address = mirror_address_,
                                                      .mailbox = mailbox_},
                                       *engine_, access);
}

}  // namespace wherry::bypass
