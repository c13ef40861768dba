// SPDX-License-Identifier: Apache-2.0
// The block behind the engine's packet streams: it sends each whole packet back to the host, on the packet's channel.
// One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace wherry::sim::card {

struct Packet {
  unsigned channel = 0;
  std::vector<std::byte> bytes;
};

class PacketLoop {
 public:
  static constexpr unsigned kChannels = 4;

  /// A beat from the engine. Packets of several channels may interleave.
  void take(unsigned channel, bool worthless, bool last, const std::byte* data, std::size_t bytes) {
    Coming& coming = coming_[channel];
    coming.worthless = coming.worthless || worthless;
    coming.bytes.insert(coming.bytes.end(), data, data + bytes);
    if (!last) return;
    if (coming.worthless)
      ++worthless_;
    else
      back.push_back({channel, std::move(coming.bytes)});
    ++taken_;
    coming = {};
  }
  /// After a reset of the function: packets that have begun never end, so all are dropped.
  void reset() {
    coming_ = {};
    back.clear();
    sent = 0;
  }

  std::deque<Packet> back;  ///< to the host, the first is under way
  std::size_t sent = 0;     ///< bytes of the first that are gone
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::uint64_t worthless() const noexcept { return worthless_; }

 private:
  struct Coming {
    bool worthless = false;
    std::vector<std::byte> bytes;
  };
  std::array<Coming, kChannels> coming_;
  std::uint64_t taken_ = 0, worthless_ = 0;
};

}  // namespace wherry::sim::card
