// SPDX-License-Identifier: Apache-2.0
// A queue in one block of memory, because std::deque allocates for every few beats of 64 bytes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace wherry::sim::memory {

/// It grows to its largest size and never shrinks. T must be default-constructible.
template <typename T>
class Ring {
 public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The i-th from the front. Precondition: i < size().
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  [[nodiscard]] T& front() noexcept { return slots_[first_]; }
  [[nodiscard]] const T& front() const noexcept { return slots_[first_]; }

  void push_back(T element) {
    if (size_ == slots_.size()) grow();
    slots_[(first_ + size_++) & (slots_.size() - 1)] = std::move(element);
  }
  void pop_front() noexcept {
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 8 : 2 * slots_.size());  // a power of two
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> slots_;
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace wherry::sim::memory
