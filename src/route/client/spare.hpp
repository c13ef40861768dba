// SPDX-License-Identifier: Apache-2.0
// Keeps the memory of large messages for later ones. New memory has a page fault every 4 KiB, which costs several times
// as much as the copy.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/bytes.hpp"

namespace wherry::route::detail {

class Spare {
 public:
  /// Returns `bytes` bytes with any content. Prefers the memory that was kept last, which is in the caches.
  Bytes take(std::size_t bytes) {
    Bytes memory;
    for (auto it = kept_.rbegin(); it != kept_.rend(); ++it) {
      if (it->capacity() < bytes) continue;
      memory = std::move(*it);
      held_ -= memory.capacity();
      kept_.erase(std::next(it).base());
      break;
    }
    memory.resize(bytes);
    return memory;
  }
  /// Keeps `memory` for take(), if not too much memory is kept already.
  void give(Bytes memory) {
    if (memory.capacity() < kMinKeptBytes || held_ + memory.capacity() > kMaxHeldBytes) return;
    held_ += memory.capacity();
    kept_.push_back(std::move(memory));
  }

 private:
  static constexpr std::size_t kMinKeptBytes = 4096, kMaxHeldBytes = std::size_t{32} << 20;
  std::vector<Bytes> kept_;
  std::size_t held_ = 0;  ///< bytes of kept_; at most kMaxHeldBytes
};

}  // namespace wherry::route::detail
