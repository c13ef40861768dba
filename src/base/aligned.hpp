// SPDX-License-Identifier: Apache-2.0
// Heap memory with a given alignment.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace wherry {

struct AlignedDelete {
  std::size_t alignment = 0;
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t(alignment)); }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

/// `alignment`: a power of two. The bytes are not initialised.
inline AlignedBytes aligned_bytes(std::size_t bytes, std::size_t alignment) {
  return {static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment))), AlignedDelete{alignment}};
}
/// Like aligned_bytes(), but all bytes are zero.
inline AlignedBytes zeroed_bytes(std::size_t bytes, std::size_t alignment) {
  AlignedBytes memory = aligned_bytes(bytes, alignment);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

}  // namespace wherry
