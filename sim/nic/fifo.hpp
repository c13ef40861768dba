// SPDX-License-Identifier: Apache-2.0
// A queue that reuses its elements, so that the memory that they own (a frame's bytes) is allocated once.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace wherry::sim::nic {

/// Elements keep their state when they are popped: push_back() gives an element that may have been used before.
template <typename T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] T& front() noexcept { return ring_[first_]; }
  [[nodiscard]] const T& front() const noexcept { return ring_[first_]; }
  [[nodiscard]] T& back() noexcept { return (*this)[count_ - 1]; }
  /// Precondition: i < size().
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  T& push_back() {
    if (count_ == ring_.size()) grow();
    ++count_;
    return back();
  }
  void pop_front() noexcept {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
  }
  void clear() noexcept { count_ = 0; }

 private:
  void grow() {
    std::vector<T> wider(ring_.empty() ? 16 : 2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i) wider[i] = std::move((*this)[i]);
    ring_ = std::move(wider);
    first_ = 0;
  }
  std::vector<T> ring_;  ///< a power of two
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace wherry::sim::nic
