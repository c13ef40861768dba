// SPDX-License-Identifier: Apache-2.0
// Packets that have arrived, and how many of their items have been pulled.
#pragma once

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/aligned.hpp"
#include "base/bytes.hpp"
#include "route/convey/packet.hpp"

namespace wherry::route::convey {

class Arrivals {
 public:
  /// Bytes of a packet whose items were all pulled. Its source may send that many further bytes.
  struct Spent {
    Rank source = 0;
    std::size_t bytes = 0;
  };

  Arrivals() { spare_.reserve(kSpareBlocks); }
  /// Copies the packets in [at, to). Precondition: they are whole and valid, and not pieces.
  void append(const std::byte* at, const std::byte* to);
  /// Takes a piece of a large item. True: it was the last piece. Precondition: its head is valid.
  bool append_piece(Header header, const std::byte* at);
  void clear() noexcept;

  // ---- the next item to be pulled

  /// Whether an item can be pulled.
  [[nodiscard]] bool ready() noexcept { return left_ != 0 || next_packet(); }
  [[nodiscard]] std::byte* item() noexcept { return at_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Rank source() const noexcept { return source_; }
  /// Pulls the next item. Precondition: ready().
  void take() noexcept {
    at_ += bytes_;
    --left_;
    taken_ = true;
  }
  /// Undoes the last take(). False: the packet of that item was already left.
  bool put_back() noexcept {
    if (!taken_) return false;
    taken_ = false;
    at_ -= bytes_;
    ++left_;
    return true;
  }
  /// Returns, once, the packet that was finished last. 0 bytes: there is none.
  Spent take_spent() noexcept { return std::exchange(spent_, Spent{}); }

 private:
  static constexpr std::size_t kBlockBytes = 64 << 10, kSpareBlocks = 8;
  struct Block {
    AlignedBytes memory;
    std::size_t capacity = 0, used = 0, read = 0;
  };
  bool next_packet() noexcept;
  std::byte* grow(std::size_t bytes);

  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t left_ = 0;  ///< items of the current packet that were not taken
  Rank source_ = 0;
  bool taken_ = false;
  std::size_t stride_ = 0;  ///< of the current packet; 0 once it is spent_, and if it was put together from pieces
  Spent spent_;
  std::deque<Block> blocks_;
  std::vector<Block> spare_;
  struct Assembly {
    Bytes item;
    std::size_t received = 0;
  };
  std::unordered_map<Rank, Assembly> assemblies_;  ///< by source: pieces come in order, so one item of each
};

}  // namespace wherry::route::convey
