// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace wherry {

/// memcpy with stores that bypass the caches, for destinations that are larger than the cache and are not read soon. It
/// avoids the read of every destination line. Regions must not overlap. The data is globally visible when the call
/// returns.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// memcpy into memory whose lines are in another core's cache, as with buffers that two cores exchange. If the
/// processor can, it writes whole lines without fetching their old content, from a few hundred bytes on (x86 with fast
/// short rep movsb; glibc begins with that only at 2 KiB). Measured: 1.4x for messages of 1 to 4 KiB.
void copy_to_other_core(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// The faster copy for large sizes depends on the machine: a 300 MiB cache favours memcpy, a small one streaming
/// stores, by up to 2x either way. So both are tried on the first transfers of each size, and the better one stays. A
/// trial is a whole transfer, with any number of pieces. The pieces of one transfer are all in unused memory, or all in
/// used memory. One thread.
class CopyChooser {
 public:
  static constexpr std::uint32_t kTrials = 4;  ///< transfers by each kind of copy, alternating

  /// Copies. `whole` is the size of the transfer that these bytes belong to, which decides the content of the caches.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t whole) noexcept;
  /// Whether the next piece of such a transfer is copied by streaming stores.
  [[nodiscard]] bool streams(std::size_t whole) const noexcept;
  /// A piece of such a transfer took so long.
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
