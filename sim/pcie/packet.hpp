// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: a TLP in flight, and the pool that it comes from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/pcie/tlp.hpp"

namespace wherry::sim::pcie {

struct Packet;

/// Accounts for the packets in a receive buffer: the link that leads to it implements this.
class BufferAccount {
 public:
  /// The packet, which used room there, has left the buffer.
  virtual void release(const Packet& packet) = 0;

 protected:
  ~BufferAccount() = default;
};

/// Accounts for the packets that a function sends.
class QueueAccount {
 public:
  /// The packet's first bit is on the wire, or the packet is lost.
  virtual void left(const Packet& packet) = 0;

 protected:
  ~QueueAccount() = default;
};

struct Packet : Tlp {
  // In a buffer.
  Packet* previous = nullptr;
  Packet* next = nullptr;
  std::uint64_t order = 0;  ///< of its coming into the buffer
  Time ready = 0;           ///< leaves no earlier
  // On the way.
  Time tail = 0;                      ///< its last bit is at hand, in a node that passes it on before; 0: it has come
  Time duration = 0;                  ///< from its first bit to its last on the link that it came over
  BufferAccount* holds = nullptr;     ///< in whose receiver it takes up credits
  std::uint32_t holds_epoch = 0;      ///< of that link when it came in
  std::uint32_t held_data = 0;        ///< so many of its data credits, and one for the header
  std::uint32_t sent_epoch = 0;       ///< of the link that it is on
  QueueAccount* queued_by = nullptr;  ///< in whose queue it is, until its first bit is sent
  std::uint32_t port = 0;             ///< of the node where it is: where it came in
  std::uint32_t target = 0;           ///< port where it is to leave
  std::uint64_t turn = 0;             ///< of its coming into the node
  std::uint8_t stage = 0;             ///< what the node was about to do with it
  std::uint8_t size_class = 0;

  /// Units of flow control.
  [[nodiscard]] std::uint32_t data_credits() const noexcept { return (payload_bytes() + 15) / 16; }
};

/// A pool of packets, each with its payload behind it. It keeps its memory until its end.
class PacketPool {
 public:
  PacketPool() = default;
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  /// A packet with room for this many bytes, at most 4096. Its other fields are as constructed, and `number` is new.
  [[nodiscard]] Packet* take(std::uint32_t payload);
  void give(Packet* packet) noexcept;
  [[nodiscard]] std::uint64_t live() const noexcept { return live_; }

 private:
  static constexpr std::array<std::uint32_t, 5> kSizes{0, 64, 256, 1024, 4096};
  std::array<Packet*, kSizes.size()> free_{};
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::uint64_t live_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace wherry::sim::pcie
