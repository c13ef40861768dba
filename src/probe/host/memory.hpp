// SPDX-License-Identifier: Apache-2.0
// Source and destination of a path on this machine: data in slots, with guards around the destination.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "wherry/status.hpp"

namespace wherry::probe {

/// A mapping of whole pages, which have all been touched. Move-only.
class Mapping {
 public:
  enum class Kind : std::uint8_t { kPrivate, kShared };  // kShared: a child of fork() has the same memory
  Mapping() noexcept = default;
  Mapping(Mapping&& other) noexcept : data_(std::exchange(other.data_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  /// kResourceExhausted, with the size.
  static Result<Mapping> make(std::size_t bytes, Kind kind);
  void reset() noexcept;
  [[nodiscard]] std::span<std::byte> data() const noexcept { return data_; }
  explicit operator bool() const noexcept { return !data_.empty(); }

 private:
  std::span<std::byte> data_;
};

/// `slots` pieces of `bytes`, each in its own cache lines, after a guard of a page and
/// `align` bytes, and before another guard of a page. Sources have the same layout.
struct Layout {
  static constexpr std::size_t kGuardBytes = 4096;
  std::size_t bytes = 0;
  unsigned slots = 1;
  unsigned align = 0;

  [[nodiscard]] std::size_t stride() const noexcept { return (bytes + 63) / 64 * 64; }
  [[nodiscard]] std::size_t offset(unsigned slot) const noexcept { return kGuardBytes + align + slot * stride(); }
  [[nodiscard]] std::size_t total() const noexcept { return 2 * kGuardBytes + align + slots * stride(); }
};

/// Fills a source's slots with the seed's pattern, by their offset in the memory.
void fill_source(std::span<std::byte> memory, const Layout& layout, std::uint64_t seed) noexcept;
/// Fills a destination with guards, also in the gaps between slots, and its slots with poison.
void fill_destination(std::span<std::byte> memory, const Layout& layout, std::uint64_t seed) noexcept;
/// Checks the first `written` slots for the pattern, the others for poison, and
/// the bytes around them for guards. kInternal names the wrong slot and byte.
[[nodiscard]] Status check_destination(std::span<const std::byte> memory, const Layout& layout, std::uint64_t seed,
                                       unsigned written) noexcept;
/// The place where data arrive: the first slot.
[[nodiscard]] std::span<std::byte> landing_of(std::span<std::byte> memory, const Layout& layout) noexcept;

}  // namespace wherry::probe
