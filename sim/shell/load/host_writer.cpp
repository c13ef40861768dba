// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/host_writer.hpp"

#include <algorithm>
#include <utility>

#include "sim/shell/stream.hpp"

namespace wherry::sim::shell::load {

std::uint64_t HostWriter::begin(Packet& packet, std::uint32_t bytes) {
  Transfer transfer;
  transfer.packet = &packet;
  transfer.bytes = bytes;
  transfers_.push_back(std::move(transfer));
  return first_ + transfers_.size() - 1;
}

void HostWriter::open(std::uint64_t number, std::uint64_t address, Time from) {
  Transfer& transfer = transfers_[number - first_];
  transfer.address = address;
  transfer.from = from;
  cut(transfer);
  pump();
}

void HostWriter::add(std::uint64_t number, std::span<const std::byte> data) {
  Transfer& transfer = transfers_[number - first_];
  transfer.data.insert(transfer.data.end(), data.begin(), data.end());
  cut(transfer);
  pump();
}

/// Cuts off TLPs whose data are all there. TLPs end at MPS and at pages.
void HostWriter::cut(Transfer& transfer) {
  if (transfer.from == pcie::kNever) return;
  const bool all = transfer.data.size() == transfer.bytes;
  for (;;) {
    const auto page = static_cast<std::uint32_t>(kPageBytes - (transfer.address + transfer.cut) % kPageBytes);
    const std::uint32_t full = std::min(mps_, page);
    const std::uint32_t part = std::min(full, static_cast<std::uint32_t>(transfer.data.size()) - transfer.cut);
    if (part == 0 || (part < full && !all)) return;
    transfer.pieces.push_back({part, kShellClock.edge(queue_.now() + delay_)});
    transfer.cut += part;
  }
}

void HostWriter::pump() {
  while (!transfers_.empty()) {
    Transfer& first = transfers_.front();
    if (first.pieces.empty() || on_way_ >= 2 || !requests_.room(source_)) return;
    const Piece piece = first.pieces.front();
    const Time ready = std::max(piece.ready, first.from);
    if (ready > queue_.now()) {
      if (woken_ != ready) queue_.call(ready, [this] { pump(); });
      woken_ = ready;
      return;
    }
    first.pieces.pop_front();
    const Time begin = std::max(kShellClock.edge(queue_.now()), free_);
    free_ = begin + kShellClock.cycles(beats_of(piece.bytes));
    const auto from = first.data.begin() + first.sent;
    std::vector<std::byte> data(from, from + piece.bytes);
    const std::uint64_t address = first.address + first.sent;
    first.sent += piece.bytes;
    const bool last = first.sent == first.bytes;
    Packet& packet = *first.packet;
    if (last) {
      transfers_.pop_front();
      ++first_;
    }
    ++on_way_;
    queue_.call(free_, [this, address, data = std::move(data), &packet, last] { submit(address, data, packet, last); });
  }
}

void HostWriter::submit(std::uint64_t address, std::vector<std::byte> data, Packet& packet, bool last) {
  --on_way_;
  const auto bytes = static_cast<std::uint32_t>(data.size());
  requests_.write(source_, address, std::move(data));
  sent_(packet, bytes, last);
  pump();
}

}  // namespace wherry::sim::shell::load
