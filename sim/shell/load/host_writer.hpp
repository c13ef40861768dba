// SPDX-License-Identifier: Apache-2.0
// QDMA's path to the host for many transfers: like TlpWriter (tlp_writer.hpp), one transfer after the other, with
// back-pressure from RQ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "sim/shell/load/packet.hpp"
#include "sim/shell/load/requests.hpp"

namespace wherry::sim::shell::load {

class HostWriter {
 public:
  /// Called when bytes of a packet have gone to RQ. `last`: the last ones of its transfer.
  using Sent = std::function<void(Packet& packet, std::uint32_t bytes, bool last)>;

  /// `delay`: from the arrival of data to the earliest time at which they are passed on.
  HostWriter(pcie::EventQueue& queue, Requests& requests, Source source, std::uint32_t mps, Time delay, Sent sent)
      : queue_(queue), requests_(requests), source_(source), mps_(mps), delay_(delay), sent_(std::move(sent)) {
    requests_.on_room_of(source, [this] { pump(); });
  }

  /// Begins the next transfer, of `bytes` bytes; data and place come later. Returns its number. Its number.
  std::uint64_t begin(Packet& packet, std::uint32_t bytes);
  /// Transfer `number` goes to `address`, not before `from`.
  void open(std::uint64_t number, std::uint64_t address, Time from);
  /// Adds data to transfer `number`.
  void add(std::uint64_t number, std::span<const std::byte> data);

 private:
  struct Piece {
    std::uint32_t bytes;
    Time ready;
  };
  struct Transfer {
    Packet* packet;
    std::uint32_t bytes;
    std::uint64_t address = 0;
    Time from = pcie::kNever;  ///< kNever: the place is not known
    std::vector<std::byte> data;
    std::uint32_t cut = 0, sent = 0;
    std::deque<Piece> pieces;  ///< of one TLP each
  };
  void cut(Transfer& transfer);
  void pump();
  void submit(std::uint64_t address, std::vector<std::byte> data, Packet& packet, bool last);

  pcie::EventQueue& queue_;
  Requests& requests_;
  Source source_;
  std::uint32_t mps_;
  Time delay_;
  Sent sent_;
  std::deque<Transfer> transfers_;
  std::uint64_t first_ = 0;   ///< number of the first of them
  std::uint32_t on_way_ = 0;  ///< pieces between here and RQ
  Time free_ = 0, woken_ = -1;
};

}  // namespace wherry::sim::shell::load
