// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/twin.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

/// The granule of BAR 2's layout at an offset. Accesses are cut at its multiples. Accesses are cut there.
std::uint32_t grain(std::uint32_t offset) {
  if (offset >= kSlots) return kSlotBytes;
  if (offset >= kPack) return kLineBytes;
  return kHeadStride;  // divides the rings, too
}

template <typename Byte, typename Each>
void in_parts(std::uint32_t offset, std::span<Byte> data, const Each& each) {
  while (!data.empty()) {
    const std::size_t count = std::min<std::size_t>(data.size(), grain(offset) - offset % grain(offset));
    each(offset, data.first(count));
    data = data.subspan(count);
    offset += static_cast<std::uint32_t>(count);
  }
}

Status wrong(const std::string& what) { return {StatusCode::kInvalidArgument, "card set-up: " + what}; }

Status check_ring(const char* name, std::uint32_t entries, std::uint32_t guard, std::uint32_t descriptor_bytes) {
  const std::uint32_t most = kRingBytes / descriptor_bytes, least = (guard + TwinQueue::kMaxParts + 7) / 8 * 8;
  if (entries % 8 != 0 || entries < least || entries > most)
    return wrong(fmt::format("{} is {}: want a multiple of 8 from {} to {}", name, entries, least, most));
  return {};
}

}  // namespace

Twin::Twin(InPlaceFunction* function) {
  shared_.function = function;
  shared_.slots.resize(std::size_t{kMaxSlots} * kSlotBytes);
}

Status Twin::configure(const CardSetup& setup) {
  if (std::any_of(queues_.begin(), queues_.end(), [](const TwinQueue& queue) { return queue.running(); }))
    return {StatusCode::kFailedPrecondition, "card set-up: a queue is running: stop it first"};
  if (setup.nic == nullptr) return wrong("no NIC was chosen");
  if (setup.bar % kBarBytes != 0)
    return wrong(fmt::format("BAR 2 at {:#x} is not aligned to its {} bytes", setup.bar, kBarBytes));
  if (!std::has_single_bit(setup.pack_bytes) || setup.pack_bytes < 4096 || setup.pack_bytes > kMaxPackBytes)
    return wrong(fmt::format("pack_bytes is {}: want a power of two from 4096 to {}", setup.pack_bytes, kMaxPackBytes));
  if (setup.in_place && shared_.function == nullptr) return wrong("in_place, but the card has no function for it");
  if (setup.queues.empty() || setup.queues.size() > kMaxQueues)
    return wrong(fmt::format("{} queue pairs: want 1 to {}", setup.queues.size(), kMaxQueues));
  std::uint32_t first_free = 0;
  for (const QueueSetup& queue : setup.queues) {
    WHERRY_TRY(check_ring("rx_entries", queue.rx_entries, 1, setup.nic->rx_descriptor_bytes));
    WHERRY_TRY(check_ring("tx_entries", queue.tx_entries, setup.nic->tx_ahead_guard, setup.nic->tx_descriptor_bytes));
    if (queue.first_slot < first_free || queue.slots < TwinQueue::kMaxParts || queue.first_slot > kMaxSlots ||
        queue.slots > kMaxSlots - queue.first_slot)
      return wrong(fmt::format("slots {} + {}: want {} or more, in ascending order of queues, below {}",
                               queue.first_slot, queue.slots, TwinQueue::kMaxParts, kMaxSlots));
    first_free = queue.first_slot + queue.slots;
  }
  shared_.setup = setup;
  shared_.pack = PackBuffer(setup.pack_bytes);
  queues_.clear();
  for (const QueueSetup& queue : setup.queues)
    queues_.emplace_back(shared_, static_cast<std::uint32_t>(queues_.size()), queue);
  return {};
}

Status Twin::start(std::uint32_t queue) {
  if (queue >= queues_.size()) return wrong(fmt::format("start of queue {} of {}", queue, queues_.size()));
  queues_[queue].start();
  return {};
}

void Twin::stop(std::uint32_t queue) {
  if (queue < queues_.size()) queues_[queue].stop();
}

TwinQueue* Twin::owner(std::uint32_t slot) {
  const auto found =
      std::find_if(queues_.begin(), queues_.end(), [slot](const TwinQueue& queue) { return queue.owns_slot(slot); });
  return found == queues_.end() ? nullptr : &*found;
}

void Twin::read(std::uint32_t offset, std::span<std::byte> data) {
  in_parts(offset, data, [this](std::uint32_t at, std::span<std::byte> part) { read_part(at, part); });
}

void Twin::write(std::uint32_t offset, std::span<const std::byte> data) {
  in_parts(offset, data, [this](std::uint32_t at, std::span<const std::byte> part) { write_part(at, part); });
}

void Twin::read_part(std::uint32_t offset, std::span<std::byte> data) {
  const std::uint32_t queue = offset / kRingStride;
  if (queue < queues_.size()) {
    const std::uint32_t at = offset % kRingStride;
    if (at < kTxRing) return queues_[queue].read_rx_ring(at, data);
    return queues_[queue].read_tx_ring(at - kTxRing, data);
  }
  if (offset >= kSlots && offset < kBarBytes) return read_slot(offset - kSlots, data);
  if (offset >= kPack && offset - kPack < 2 * shared_.pack.bytes()) return read_pack(offset - kPack, data);
  std::fill(data.begin(), data.end(), std::byte{0});
  ++shared_.counters.stray_reads;
}

void Twin::read_slot(std::uint32_t offset, std::span<std::byte> data) {
  const std::uint32_t slot = offset / kSlotBytes;
  std::copy_n(shared_.slots.begin() + offset, data.size(), data.begin());
  TwinQueue* queue = owner(slot);
  if (queue == nullptr || !queue->watch_slot(slot, offset % kSlotBytes, static_cast<std::uint32_t>(data.size())))
    ++shared_.counters.stray_reads;
}

void Twin::read_pack(std::uint32_t offset, std::span<std::byte> data) {
  shared_.pack.read(offset, data);
  const std::uint32_t line = offset % shared_.pack.bytes() / kLineBytes;
  const auto count = static_cast<std::uint32_t>(data.size());
  for (TwinQueue& queue : queues_)
    if (queue.watch_pack(line, offset % kLineBytes, count)) return;
  ++shared_.counters.stray_reads;
}

void Twin::write_part(std::uint32_t offset, std::span<const std::byte> data) {
  const std::uint32_t queue = offset / kRingStride;
  if (queue < queues_.size()) {
    if (offset % kRingStride < kTxRing) return queues_[queue].write_rx_ring(offset % kRingStride, data);
    ++shared_.counters.tx_writebacks;
    return;
  }
  if (offset >= kHeadWritebacks && offset < kHeadWritebacks + kHeadStride * queues_.size()) {
    ++shared_.counters.tx_writebacks;
    return;
  }
  if (offset >= kSlots && offset < kBarBytes) return write_slot(offset - kSlots, data);
  ++shared_.counters.stray_writes;
}

void Twin::write_slot(std::uint32_t offset, std::span<const std::byte> data) {
  const std::uint32_t slot = offset / kSlotBytes;
  const TwinQueue* queue = owner(slot);
  if (queue == nullptr || !queue->offered(slot)) {  // somebody else's data may be there
    ++shared_.counters.stray_writes;
    return;
  }
  std::copy(data.begin(), data.end(), shared_.slots.begin() + offset);
}

std::optional<TailWrite> Twin::next_tail() {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    turn_ = (turn_ + 1) % queues_.size();
    if (auto tail = queues_[turn_].next_tail()) return tail;
  }
  return std::nullopt;
}

void Twin::tick() {
  for (TwinQueue& queue : queues_) queue.tick();
}

std::optional<Frame> Twin::take() {
  for (TwinQueue& queue : queues_)
    if (auto frame = queue.take()) return frame;
  return std::nullopt;
}

bool Twin::try_put(const Frame& frame) {
  return frame.queue < queues_.size() && !frame.bytes.empty() && frame.bytes.size() <= kMaxFrameBytes &&
         queues_[frame.queue].try_put(frame.bytes);
}

CardCounters Twin::counters() const {
  CardCounters counters = shared_.counters;
  for (const TwinQueue& queue : queues_) {
    counters.rx_waiting += queue.rx_waiting();
    counters.tx_waiting += queue.tx_waiting();
  }
  return counters;
}

bool Twin::slots_conserved() const {
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (queues_[i].slots_accounted() != shared_.setup.queues[i].slots) return false;
  return true;
}

}  // namespace wherry::sim
