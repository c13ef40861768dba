// SPDX-License-Identifier: Apache-2.0
// The packets that have come and the place in them up to which items were pulled.
#pragma once

#include <deque>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "route/convey/packet.hpp"

namespace wherry::route::convey {

struct FreeAligned {
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t(64)); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeAligned>;
AlignedBytes allocate_aligned(std::size_t bytes);

class Arrivals {
 public:
  /// What has become of packets, for those who sent them.
  struct Spent {
    Rank source = 0;
    std::size_t bytes = 0;
  };

  Arrivals() { spare_.reserve(kSpareBlocks); }
  /// Copies the packets in [at, to), which were checked to be none but whole ones without pieces.
  void append(const std::byte* at, const std::byte* to);
  /// Takes a piece, of which the head was checked; true: it was its item's last one.
  bool append_piece(Header header, const std::byte* at);
  void clear() noexcept;

  // ---- the item at hand: the next one to be pulled

  /// Whether there is one.
  [[nodiscard]] bool ready() noexcept { return left_ != 0 || next_packet(); }
  [[nodiscard]] std::byte* item() noexcept { return at_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Rank source() const noexcept { return source_; }
  /// On to the next one. Precondition: ready().
  void take() noexcept {
    at_ += bytes_;
    --left_;
    taken_ = true;
  }
  /// Back to the last one that was taken; false: it is too late for that.
  bool put_back() noexcept {
    if (!taken_) return false;
    taken_ = false;
    at_ -= bytes_;
    ++left_;
    return true;
  }
  /// The packet that was read to its end last, once; bytes is 0 if there is none.
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
  std::uint32_t left_ = 0;  ///< items of the packet at hand that were not taken
  Rank source_ = 0;
  bool taken_ = false;
  std::size_t stride_ = 0;  ///< of the packet at hand; 0 once it was spent
  Spent spent_;
  std::deque<Block> blocks_;
  std::vector<Block> spare_;
  struct Assembly {
    Bytes item;
    std::size_t received = 0;
  };
  std::unordered_map<Rank, Assembly> assemblies_;  ///< pieces come in order: one item of each source
};

}  // namespace wherry::route::convey
