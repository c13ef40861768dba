// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/twin_queue.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace wherry::sim {
namespace {

/// Calls each(index, offset in the descriptor, offset in the range, count) for every descriptor that a range touches.
template <typename Each>
void for_descriptors(std::uint32_t size, std::uint32_t offset, std::size_t bytes, const Each& each) {
  for (std::size_t at = 0; at < bytes;) {
    const std::uint32_t here = offset + static_cast<std::uint32_t>(at);
    const std::size_t count = std::min<std::size_t>(bytes - at, size - here % size);
    each(here / size, here % size, at, count);
    at += count;
  }
}

/// Copies a part of a descriptor, whose bytes after the first 16 are all zero.
void copy_descriptor(const bypass::Descriptor& from, std::uint32_t first, std::span<std::byte> out) {
  std::array<std::byte, bypass::kDescriptorBytes> bytes{};
  bypass::store(from, bytes);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + i < bytes.size() ? bytes[first + i] : std::byte{0};
}

constexpr std::uint32_t kStatusByte = 8;  ///< of the descriptor: DD and EOP

}  // namespace

std::optional<std::uint64_t> TwinQueue::Ring::told(std::uint32_t at) const noexcept {
  if (at >= entries) return std::nullopt;
  const std::uint64_t number = head + (at + entries - index(head)) % entries;
  if (number >= rung) return std::nullopt;
  return number;
}

void TwinQueue::Ring::fetched(std::uint64_t number) {
  while (!asked.empty() && asked.front() <= number + 1) asked.pop_front();
}

std::uint32_t TwinQueue::Ring::ring_bell(std::uint64_t to) {
  rung = to;
  asked.push_back(to);
  return index(to);
}

TwinQueue::TwinQueue(TwinShared& shared, std::uint32_t number, const QueueSetup& setup)
    : shared_(shared), number_(number), setup_(setup) {
  stop();
}

void TwinQueue::start() { running_ = true; }

void TwinQueue::stop() {
  CardCounters& counters = shared_.counters;
  counters.rx_stopped += waiting_.size();
  if (!assembling_.parts.empty() || assembling_.damaged) ++counters.rx_cut;
  counters.tx_stopped += tx_waiting();
  for (const auto& [line, number] : pack_tx_) {
    const TxEntry& entry = tx_entries_[tx_.index(number)];
    for (std::uint32_t i = 0; i * kLineBytes < entry.bytes; ++i)
      if (!entry.watch.line_done(i)) shared_.pack.release(line + i);
  }
  running_ = false;
  rx_ = {.entries = setup_.rx_entries};
  tx_ = {.entries = setup_.tx_entries};
  rx_entries_.assign(setup_.rx_entries, {});
  tx_entries_.assign(setup_.tx_entries, {});
  slot_tx_.assign(setup_.slots, std::nullopt);
  slot_offered_.assign(setup_.slots, 0);
  free_.clear();
  for (std::uint32_t i = 0; i < setup_.slots; ++i) free_.push_back(setup_.first_slot + i);
  assembling_ = {};
  waiting_.clear();
  pack_tx_.clear();
}

void TwinQueue::read_rx_ring(std::uint32_t offset, std::span<std::byte> out) {
  const CardSetup& card = shared_.setup;
  for_descriptors(card.nic->rx_descriptor_bytes, offset, out.size(), [&](auto index, auto first, auto at, auto count) {
    const auto number = rx_.told(index);
    if (!number) {
      ++shared_.counters.stray_reads;
      std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(at), count, std::byte{0});
      return;
    }
    RxEntry& entry = rx_entries_[index];
    entry.fetched = true;
    rx_.fetched(*number);
    copy_descriptor(bypass::make_rx(card.bar + kSlots + entry.slot * kSlotBytes), first, out.subspan(at, count));
  });
}

void TwinQueue::read_tx_ring(std::uint32_t offset, std::span<std::byte> out) {
  const CardSetup& card = shared_.setup;
  for_descriptors(card.nic->tx_descriptor_bytes, offset, out.size(), [&](auto index, auto first, auto at, auto count) {
    const auto number = tx_.told(index);
    if (!number) {
      ++shared_.counters.stray_reads;
      std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(at), count, std::byte{0});
      return;
    }
    TxEntry& entry = tx_entries_[index];
    entry.fetched = true;
    tx_.fetched(*number);
    const bypass::TxPart part{
        .address = card.bar + entry.offset, .bytes = entry.bytes, .total = entry.frame_bytes, .end = entry.last};
    copy_descriptor(bypass::make_tx(*card.nic, part), first, out.subspan(at, count));
  });
}

void TwinQueue::write_rx_ring(std::uint32_t offset, std::span<const std::byte> data) {
  const std::uint32_t size = shared_.setup.nic->rx_descriptor_bytes;
  for_descriptors(size, offset, data.size(), [&](auto index, auto first, auto at, auto count) {
    if (!rx_.told(index)) {
      ++shared_.counters.wrong_writebacks;
      return;
    }
    auto& written = rx_entries_[index].written;
    for (std::size_t i = 0; i < count && first + i < written.size(); ++i) written[first + i] = data[at + i];
    if (first <= kStatusByte && kStatusByte < first + count) written_back(index);
  });
}

void TwinQueue::written_back(std::uint32_t index) {
  RxEntry& entry = rx_entries_[index];
  const bypass::Descriptor descriptor = bypass::load(entry.written);
  if (!bypass::rx_done(*shared_.setup.nic, descriptor)) return;
  if (index != rx_.index(rx_.head) || !entry.fetched) {
    ++shared_.counters.wrong_writebacks;
    entry.written = {};
    return;
  }
  const bypass::RxDone back = bypass::read_rx(*shared_.setup.nic, descriptor);
  ++rx_.head;
  slot_offered_[entry.slot - setup_.first_slot] = 0;
  assembling_.damaged |= back.errors != 0 || back.bytes == 0 || back.bytes > kSlotBytes;
  assembling_.damaged |= assembling_.parts.size() == kMaxParts;
  assembling_.bytes += back.bytes;
  assembling_.parts.push_back({entry.slot, back.bytes});
  if (assembling_.damaged) {  // its slots are of use to others meanwhile
    free(assembling_.parts);
    assembling_.parts.clear();
  }
  if (back.end) frame_ends();
}

void TwinQueue::frame_ends() {
  CardCounters& counters = shared_.counters;
  Received frame = std::exchange(assembling_, {});
  ++counters.rx_frames;
  counters.rx_bytes += frame.bytes;
  if (frame.damaged) {
    ++counters.rx_damaged;
  } else if (frame.bytes > kMaxFrameBytes) {
    ++counters.rx_too_long;
    free(frame.parts);
  } else {
    waiting_.push_back(std::move(frame));
  }
}

void TwinQueue::free(const std::vector<Part>& parts) {
  for (const Part& part : parts) free_.push_back(part.slot);
}

void TwinQueue::offer_slots() {
  while (!free_.empty() && rx_.tail - rx_.head < rx_.entries - 1) {
    if (rx_.rung == rx_.tail) rx_.since = now_;
    rx_entries_[rx_.index(rx_.tail++)] = {.slot = free_.front()};
    free_.pop_front();
  }
}

bool TwinQueue::owns_slot(std::uint32_t slot) const noexcept { return slot - setup_.first_slot < setup_.slots; }

bool TwinQueue::offered(std::uint32_t slot) const noexcept { return slot_offered_[slot - setup_.first_slot] != 0; }

bool TwinQueue::watch(std::uint64_t number, std::uint32_t at, std::uint32_t count) {
  TxEntry& entry = tx_entries_[tx_.index(number)];
  if (!entry.fetched) return false;
  entry.watch.mark(at, count);
  retire();
  return true;
}

bool TwinQueue::watch_slot(std::uint32_t slot, std::uint32_t at, std::uint32_t count) {
  const auto number = slot_tx_[slot - setup_.first_slot];
  return number && watch(*number, at, count);
}

bool TwinQueue::watch_pack(std::uint32_t line, std::uint32_t at, std::uint32_t count) {
  const std::uint32_t lines = shared_.pack.bytes() / kLineBytes;
  for (const auto& [first, number] : pack_tx_) {
    const std::uint32_t behind = (line + lines - first) % lines;
    TxEntry& entry = tx_entries_[tx_.index(number)];
    if (behind * kLineBytes >= entry.bytes) continue;
    if (entry.watch.line_done(behind)) continue;  // a later frame may have the line
    if (!entry.fetched) return false;
    entry.watch.mark(behind * kLineBytes + at, count);
    if (entry.watch.line_done(behind)) shared_.pack.release(line);
    retire();
    return true;
  }
  return false;
}

void TwinQueue::retire() {
  while (tx_.head != tx_.rung) {
    TxEntry& entry = tx_entries_[tx_.index(tx_.head)];
    if (!entry.watch.done()) return;
    if (entry.slot) {
      slot_tx_[*entry.slot - setup_.first_slot].reset();
      free_.push_back(*entry.slot);
    } else {
      pack_tx_.pop_front();
    }
    if (entry.last) {
      ++shared_.counters.tx_frames;
      shared_.counters.tx_bytes += entry.frame_bytes;
    }
    ++tx_.head;
  }
}

std::uint32_t TwinQueue::tx_room() const noexcept {
  return static_cast<std::uint32_t>(tx_.head + tx_.entries - shared_.setup.nic->tx_ahead_guard - tx_.tail);
}

void TwinQueue::push(TxEntry entry) {
  entry.watch = ReadWatch(entry.bytes);
  if (tx_.rung == tx_.tail) tx_.since = now_;
  tx_entries_[tx_.index(tx_.tail++)] = std::move(entry);
}

void TwinQueue::forward_in_place() {
  while (!waiting_.empty() && waiting_.front().parts.size() <= tx_room()) {
    const Received frame = std::move(waiting_.front());
    waiting_.pop_front();
    const Part& first = frame.parts.front();
    const auto head =
        std::span(shared_.slots).subspan(std::size_t{first.slot} * kSlotBytes, std::min(first.bytes, kLineBytes));
    if (!shared_.function->forward(head, frame.bytes)) {
      ++shared_.counters.rx_refused;
      free(frame.parts);
      continue;
    }
    ++shared_.counters.rx_delivered;
    ++shared_.counters.tx_taken;
    for (const Part& part : frame.parts) {
      slot_tx_[part.slot - setup_.first_slot] = tx_.tail;
      push({.offset = kSlots + part.slot * kSlotBytes,
            .bytes = part.bytes,
            .frame_bytes = frame.bytes,
            .last = &part == &frame.parts.back(),
            .slot = part.slot});
    }
  }
}

std::optional<Frame> TwinQueue::take() {
  if (shared_.setup.in_place || waiting_.empty()) return std::nullopt;
  Frame frame{.queue = static_cast<std::uint16_t>(number_), .bytes = {}};
  frame.bytes.reserve(waiting_.front().bytes);
  for (const Part& part : waiting_.front().parts) {
    const auto from = shared_.slots.begin() + static_cast<std::ptrdiff_t>(part.slot) * kSlotBytes;
    frame.bytes.insert(frame.bytes.end(), from, from + part.bytes);
  }
  free(waiting_.front().parts);
  waiting_.pop_front();
  ++shared_.counters.rx_delivered;
  return frame;
}

bool TwinQueue::try_put(std::span<const std::byte> frame) {
  if (!running_ || tx_room() == 0) return false;
  const auto at = shared_.pack.try_put(frame);
  if (!at) return false;
  const auto bytes = static_cast<std::uint32_t>(frame.size());
  pack_tx_.emplace_back(*at / kLineBytes, tx_.tail);
  push({.offset = kPack + *at, .bytes = bytes, .frame_bytes = bytes});
  ++shared_.counters.tx_taken;
  return true;
}

void TwinQueue::tick() {
  ++now_;
  if (!running_) return;
  if (shared_.setup.in_place) forward_in_place();
  offer_slots();
}

std::optional<TailWrite> TwinQueue::next_tail() {
  if (!running_) return std::nullopt;
  const CardSetup& card = shared_.setup;
  const bypass::Personality& nic = *card.nic;
  const DoorbellSetup& bell = card.doorbell;
  const auto address = [&](std::uint32_t first, std::uint32_t stride) {
    return card.nic_bar + first + std::uint64_t{number_} * stride;
  };
  const auto late = [&](const Ring& ring) { return now_ - ring.since >= bell.patience; };
  if (tx_.rung != tx_.tail && (bell.tx_credits == 0 || tx_.asked.size() < bell.tx_credits || late(tx_))) {
    ++shared_.counters.tx_tails;
    return TailWrite{address(nic.tx_tail_offset, nic.tx_tail_stride), tx_.ring_bell(tx_.tail)};
  }
  const std::uint64_t whole = rx_.tail / nic.rx_tail_granule * nic.rx_tail_granule;
  if (whole > rx_.rung && (whole - rx_.rung >= bell.rx_batch || late(rx_))) {
    for (std::uint64_t i = rx_.rung; i < whole; ++i)
      slot_offered_[rx_entries_[rx_.index(i)].slot - setup_.first_slot] = 1;
    ++shared_.counters.rx_tails;
    rx_.since = now_;
    return TailWrite{address(nic.rx_tail_offset, nic.rx_tail_stride), rx_.ring_bell(whole)};
  }
  return std::nullopt;
}

std::uint64_t TwinQueue::tx_waiting() const noexcept {
  std::uint64_t frames = 0;
  for (std::uint64_t i = tx_.head; i != tx_.tail; ++i) frames += tx_entries_[tx_.index(i)].last ? 1 : 0;
  return frames;
}

std::uint32_t TwinQueue::slots_accounted() const {
  std::size_t slots = free_.size() + (rx_.tail - rx_.head) + assembling_.parts.size();
  for (const Received& frame : waiting_) slots += frame.parts.size();
  for (std::uint64_t i = tx_.head; i != tx_.tail; ++i) slots += tx_entries_[tx_.index(i)].slot ? 1U : 0U;
  return static_cast<std::uint32_t>(slots);
}

}  // namespace wherry::sim
