// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace wherry {

/// memcpy with stores that bypass the caches, for a destination that is larger than the cache and is not read soon.
/// These stores avoid a read of each destination line. Regions must not overlap. The data is globally visible when the
/// call returns.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// memcpy into lines that are in another core's cache, as with buffers that two cores exchange. From a few hundred
/// bytes on, it writes whole lines without fetching their old content, if the processor can (x86 with fast short rep
/// movsb; glibc uses it only from 2 KiB on). Measured speed-up: 1.4x for messages of 1 to 4 KiB.
void copy_to_other_core(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Chooses the faster copy for large sizes, which depends on the machine by up to 2x: a 300 MiB cache favours memcpy, a
/// small cache favours streaming stores. It tries both on the first transfers of each size and keeps the better one. A
/// trial is a whole transfer of any number of pieces. The memory of one transfer must be all new or all used before.
/// One thread.
class CopyChooser {
 public:
  static constexpr std::uint32_t kTrials = 4;  ///< transfers by each kind of copy, alternating

  /// Copies a piece. `whole`: the size of its whole transfer, which determines what stays in the caches.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t whole) noexcept;
  /// Whether the next piece of a transfer of this size is copied by streaming stores.
  [[nodiscard]] bool streams(std::size_t whole) const noexcept;
  /// Records the time `ns` that a piece of such a transfer took.
  void note(std::size_t bytes, std::size_t whole, std::uint64_t ns) noexcept;

 private:
  struct SizeClass {
    std::uint32_t trials = 0;
    std::uint64_t bytes = 0, ns = 0;                                                      ///< of the trial under way
    std::array<std::uint64_t, 2> best_ps_per_byte{~std::uint64_t{0}, ~std::uint64_t{0}};  ///< memcpy, streaming
    [[nodiscard]] bool trying() const noexcept { return trials < 2 * kTrials; }
  };
  SizeClass& of(std::size_t whole) noexcept {
    return classes_[static_cast<std::size_t>(std::bit_width(whole)) % classes_.size()];
  }
  [[nodiscard]] const SizeClass& of(std::size_t whole) const noexcept {
    return classes_[static_cast<std::size_t>(std::bit_width(whole)) % classes_.size()];
  }
  std::array<SizeClass, 64> classes_{};
};

}  // namespace wherry
