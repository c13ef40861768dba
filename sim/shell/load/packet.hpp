// SPDX-License-Identifier: Apache-2.0
// A packet of the loaded shell, and the content of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/random.hpp"
#include "sim/shell/bed.hpp"
#include "sim/shell/clock.hpp"

namespace wherry::sim::shell::load {

struct Packet {
  std::uint32_t id = 0;
  std::uint32_t flow = 0;
  std::uint32_t queue = 0;
  std::uint32_t bytes = 0;
  Path path = Path::kWireToHost;
  std::uint64_t host = 0, card = 0;  ///< addresses of its own buffers; not all paths have both
  Time offered = 0;                  ///< when it came, by the load's own clock, whether or not the shell could take it
  Time done = pcie::kNever;          ///< its last byte is at the end of the path
  Time told = pcie::kNever;          ///< the host knows; kNever, too, on paths without a host's queue
  bool dropped = false;
  std::uint32_t landed = 0;   ///< bytes that the card has passed on, or that its memory has
  std::uint32_t arrived = 0;  ///< bytes that the host has
  std::uint64_t wrong = 0;    ///< bytes that differed on the way
};

/// A beat of a stream; its bytes are the packet's from 64 x `index` on.
struct Part {
  Packet* packet = nullptr;
  std::uint32_t index = 0;
  [[nodiscard]] std::uint32_t bytes() const noexcept {
    const std::uint32_t left = packet->bytes - index * kBeatBytes;
    return left < kBeatBytes ? left : kBeatBytes;
  }
  [[nodiscard]] bool last() const noexcept { return (index + 1) * kBeatBytes >= packet->bytes; }
};

/// Byte `offset` of packet `id`.
[[nodiscard]] inline std::byte byte_of(std::uint32_t id, std::uint32_t offset) noexcept {
  const std::uint64_t word = splitmix64(id, offset / 8);
  return static_cast<std::byte>(word >> 8 * (offset % 8));
}
inline void fill(std::uint32_t id, std::uint32_t offset, std::span<std::byte> into) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = byte_of(id, offset + static_cast<std::uint32_t>(i));
}
/// The number of bytes that differ from the packet's.
[[nodiscard]] inline std::uint64_t differing(std::uint32_t id, std::uint32_t offset,
                                             std::span<const std::byte> data) noexcept {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < data.size(); ++i)
    count += data[i] == byte_of(id, offset + static_cast<std::uint32_t>(i)) ? 0 : 1;
  return count;
}

/// The end of a stream, or a part that changes its path. It accepts beats for which room() was true.
class PartSink {
 public:
  /// The number of beats that may be sent now. Beats in flight occupy their room already.
  [[nodiscard]] virtual std::uint32_t room() const = 0;
  /// One of these beats is now in flight.
  virtual void reserve() = 0;
  virtual void part(const Part& part) = 0;
  /// The earliest time at which the next beat may be taken.
  [[nodiscard]] virtual Time not_before() const { return 0; }
  /// A packet's last beat is now in flight.
  virtual void gap() {}
  /// Called when there is room again.
  std::function<void()> on_room;

 protected:
  ~PartSink() = default;
};

}  // namespace wherry::sim::shell::load
