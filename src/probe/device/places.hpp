// SPDX-License-Identifier: Apache-2.0
// The places of a round's transfers in the memory of both ends: their layout, contents and verification.
//
// Each end is one region: guard, places, guard. A transfer copies a place of the source to the same
// place of the destination. The source has a pattern that depends on seed and offset. The destination,
// with guards and gaps, has the pattern's complement ("poison"), so each byte changes in a transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "probe/path.hpp"
#include "wherry/status.hpp"

namespace wherry::probe {

/// Requirements on the places in an end's memory.
struct PlaceRules {
  std::size_t room = std::size_t{64} << 20;  ///< bytes of the region, guards included, that there are
  std::size_t guard = 4096;                  ///< bytes before the first place and behind the last; a multiple of unit
  std::size_t unit = 1;                      ///< every place begins at a multiple of it
  std::size_t spread =
      std::size_t{4} << 20;  ///< places take about so many bytes, to be more than one cache line or row
};

/// For one thread. It allocates memory only in plan().
class Places {
 public:
  Places() = default;
  /// kResourceExhausted: the shape does not fit into the room.
  static Result<Places> plan(const Shape& shape, const PlaceRules& rules);

  /// Size of one end's region, including guards.
  [[nodiscard]] std::size_t region_bytes() const noexcept { return region_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t places() const noexcept { return order_.size(); }
  [[nodiscard]] std::size_t offset_of_place(std::size_t place) const noexcept { return first_ + place * spacing_; }

  /// Assigns the next transfer's place to the slot, and returns its offset in the region.
  std::size_t take(unsigned slot) noexcept;
  /// The offset that take() returned for the slot.
  [[nodiscard]] std::size_t offset(unsigned slot) const noexcept { return offset_of_place(slots_[slot]); }
  /// The slot's transfer has ended, so check() expects its bytes.
  void ended(unsigned slot) noexcept { written_[slots_[slot]] = 1; }

  /// Starts a new round without written places. `region` has region_bytes().
  void fill_source(std::span<std::byte> region, std::uint64_t seed) noexcept;
  void fill_destination(std::span<std::byte> region, std::uint64_t seed) noexcept;
  /// Checks every byte: the pattern in places whose transfer has ended, otherwise
  /// poison. kInternal gives the number of wrong bytes and the first one's offset.
  [[nodiscard]] Status check(std::span<const std::byte> region, std::uint64_t seed) const;
  /// Checks that the source is unchanged. A transfer in the wrong direction would change it.
  [[nodiscard]] Status check_source(std::span<const std::byte> region, std::uint64_t seed) const;

 private:
  std::size_t bytes_ = 0, first_ = 0, spacing_ = 0, region_ = 0, next_ = 0;
  std::vector<std::uint32_t> order_, slots_;
  std::vector<std::uint8_t> written_;
};

/// Number of bytes that differ from fill_pattern() or fill_poison() (pattern.hpp), and the first of them.
struct Difference {
  std::size_t count = 0;
  std::size_t first = 0;  ///< offset in the region
  std::byte is{}, want{};
};
[[nodiscard]] Difference compare_pattern(std::span<const std::byte> with, std::uint64_t seed, std::size_t offset,
                                         bool poison) noexcept;

}  // namespace wherry::probe
