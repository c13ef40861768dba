// SPDX-License-Identifier: Apache-2.0
// Memory of large messages, kept for the next ones: fresh memory costs a page fault every 4 KiB, several times what the
// copy costs.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/bytes.hpp"

namespace wherry::route::detail {

class Spare {
 public:
  /// `bytes` long, of any content. What was kept last, and is therefore in the caches, if it is large enough.
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
  /// For take(), unless much is kept already.
  void give(Bytes memory) {
    if (memory.capacity() < kSmallest || held_ + memory.capacity() > kMost) return;
    held_ += memory.capacity();
    kept_.push_back(std::move(memory));
  }

 private:
  static constexpr std::size_t kSmallest = 4096, kMost = std::size_t{32} << 20;
  std::vector<Bytes> kept_;
  std::size_t held_ = 0;
};

}  // namespace wherry::route::detail
