// SPDX-License-Identifier: Apache-2.0
// Memory at a multiple of something, from the heap.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace wherry {

struct AlignedDelete {
  std::size_t alignment = 0;
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t(alignment)); }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

/// `alignment`: a power of two. Not initialised.
inline AlignedBytes aligned_bytes(std::size_t bytes, std::size_t alignment) {
  return {static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment))), AlignedDelete{alignment}};
}

}  // namespace wherry
