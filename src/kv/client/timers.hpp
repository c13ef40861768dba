// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kv/message.hpp"

namespace wherry::kv {

/// When each of n things wants to be woken, the earliest first: a binary heap that knows where each of them is.
/// Allocates when it is made, never after.
class TimerHeap {
 public:
  explicit TimerHeap(std::size_t things) : at_(things, kNever), place_(things, kOut) { heap_.reserve(things); }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  /// The earliest; kNever if there is none.
  [[nodiscard]] Cycles next() const noexcept { return heap_.empty() ? kNever : at_[heap_.front()]; }
  [[nodiscard]] std::uint32_t first() const noexcept { return heap_.front(); }

  void set(std::uint32_t thing, Cycles at) noexcept {
    at_[thing] = at;
    if (place_[thing] == kOut) {
      place_[thing] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back(thing);
    }
    down(up(place_[thing]));
  }

  void clear(std::uint32_t thing) noexcept {
    const std::uint32_t place = std::exchange(place_[thing], kOut);
    if (place == kOut) return;
    const std::uint32_t last = heap_.back();
    heap_.pop_back();
    if (last == thing) return;
    heap_[place] = last;
    place_[last] = place;
    down(up(place));
  }

 private:
  static constexpr std::uint32_t kOut = ~std::uint32_t{0};

  void swap(std::uint32_t a, std::uint32_t b) noexcept {
    std::swap(heap_[a], heap_[b]);
    place_[heap_[a]] = a;
    place_[heap_[b]] = b;
  }
  std::uint32_t up(std::uint32_t place) noexcept {
    while (place > 0 && at_[heap_[place]] < at_[heap_[(place - 1) / 2]]) {
      swap(place, (place - 1) / 2);
      place = (place - 1) / 2;
    }
    return place;
  }
  void down(std::uint32_t place) noexcept {
    for (;;) {
      std::uint32_t least = place;
      for (std::uint32_t child = 2 * place + 1; child <= 2 * place + 2 && child < heap_.size(); ++child)
        if (at_[heap_[child]] < at_[heap_[least]]) least = child;
      if (least == place) return;
      swap(place, least);
      place = least;
    }
  }

  std::vector<Cycles> at_;
  std::vector<std::uint32_t> place_;
  std::vector<std::uint32_t> heap_;
};

}  // namespace wherry::kv
