// SPDX-License-Identifier: Apache-2.0
// Memory that begins at a multiple of a power of two.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace wherry::route {

inline constexpr std::size_t kCacheLine = 64, kPage = 4096;

struct FreeAligned {
  std::size_t alignment = kCacheLine;
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t(alignment)); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeAligned>;

/// Throws std::bad_alloc.
inline AlignedBytes allocate_aligned(std::size_t bytes, std::size_t alignment) {
  return {static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment))), FreeAligned{alignment}};
}
inline AlignedBytes allocate_zeroed(std::size_t bytes, std::size_t alignment) {
  AlignedBytes memory = allocate_aligned(bytes, alignment);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

}  // namespace wherry::route
