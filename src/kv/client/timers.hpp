// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kv/message.hpp"

namespace wherry::kv {

/// A binary heap of wake times for n items, earliest first, which also knows each item's position. Only its constructor
/// allocates memory.
class TimerHeap {
 public:
  explicit TimerHeap(std::size_t things) : at_(things, kNever), position_(things, kOut) { heap_.reserve(things); }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  /// The earliest wake time; kNever if there is none.
  [[nodiscard]] Cycles next() const noexcept { return heap_.empty() ? kNever : at_[heap_.front()]; }
  [[nodiscard]] std::uint32_t first() const noexcept { return heap_.front(); }

  void set(std::uint32_t thing, Cycles at) noexcept {
    at_[thing] = at;
    if (position_[thing] == kOut) {
      position_[thing] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back(thing);
    }
    down(up(position_[thing]));
  }

  void clear(std::uint32_t thing) noexcept {
    const std::uint32_t position = std::exchange(position_[thing], kOut);
    if (position == kOut) return;
    const std::uint32_t last = heap_.back();
    heap_.pop_back();
    if (last == thing) return;
    heap_[position] = last;
    position_[last] = position;
    down(up(position));
  }

 private:
  static constexpr std::uint32_t kOut = ~std::uint32_t{0};

  void swap(std::uint32_t a, std::uint32_t b) noexcept {
    std::swap(heap_[a], heap_[b]);
    position_[heap_[a]] = a;
    position_[heap_[b]] = b;
  }
  std::uint32_t up(std::uint32_t position) noexcept {
    while (position > 0 && at_[heap_[position]] < at_[heap_[(position - 1) / 2]]) {
      swap(position, (position - 1) / 2);
      position = (position - 1) / 2;
    }
    return position;
  }
  void down(std::uint32_t position) noexcept {
    for (;;) {
      std::uint32_t least = position;
      for (std::uint32_t child = 2 * position + 1; child <= 2 * position + 2 && child < heap_.size(); ++child)
        if (at_[heap_[child]] < at_[heap_[least]]) least = child;
      if (least == position) return;
      swap(position, least);
      position = least;
    }
  }

  std::vector<Cycles> at_;
  std::vector<std::uint32_t> position_;
  std::vector<std::uint32_t> heap_;
};

}  // namespace wherry::kv
