// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace wherry {

/// memcpy with stores that bypass the caches, for destinations that nobody reads soon and that are larger than the
/// cache: spares the read of every destination line. Regions must not overlap. The data is globally visible when the
/// call returns.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// memcpy into memory whose lines another core has, as buffers that go to and fro between two cores have: whole lines
/// are written without asking that core for what was in them, where the processor can do so for more than a few hundred
/// bytes (x86 with fast short rep movsb; glibc begins with that at 2 KiB only). Measured: 1.4x for messages of 1 to 4
/// KiB.
void copy_to_other_core(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Which copy is faster for large sizes depends on the machine (a 300 MiB cache likes memcpy, a small one streaming
/// stores, by up to 2x either way), so both are tried on the first copies of each size and the better one stays. One
/// thread.
class CopyChooser {
 public:
  /// Copies; `whole` is the size of the transfer that these bytes are a part of: it decides what the caches hold.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t whole) noexcept;

 private:
  static constexpr std::uint32_t kTrials = 4;  ///< of each kind, alternating
  struct SizeClass {
    std::uint32_t trials = 0;
    std::array<std::uint64_t, 2> best_ps_per_byte{~std::uint64_t{0}, ~std::uint64_t{0}};  ///< memcpy, streaming
  };
  std::array<SizeClass, 64> classes_{};
};

}  // namespace wherry
