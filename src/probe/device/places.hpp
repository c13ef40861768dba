// SPDX-License-Identifier: Apache-2.0
// The places of a round's transfers in both ends' memory, their bytes, and the check of every byte.
//
// Each end is one region: guard, places, guard. A transfer moves one place of the source to the same place of the
// destination. The source holds a pattern that depends on seed and offset. The destination, its guards and the gaps
// between its places hold the complement of it ("poison"), so that each byte differs before and after a transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "probe/path.hpp"
#include "wherry/status.hpp"

namespace wherry::probe {

/// The requirements of an end's memory for the places.
struct PlaceRules {
  std::size_t room = std::size_t{64} << 20;  ///< bytes of the region, guards included, that there are
  std::size_t guard = 4096;                  ///< bytes before the first place and behind the last; a multiple of unit
  std::size_t unit = 1;                      ///< every place begins at a multiple of it
  std::size_t spread =
      std::size_t{4} << 20;  ///< places take about so many bytes, to be more than one cache line or row
};

/// One thread. No allocation behind plan().
class Places {
 public:
  Places() = default;
  /// kResourceExhausted: the shape does not fit into the room.
  static Result<Places> plan(const Shape& shape, const PlaceRules& rules);

  /// Of one end's region, guards included.
  [[nodiscard]] std::size_t region_bytes() const noexcept { return region_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t places() const noexcept { return order_.size(); }
  [[nodiscard]] std::size_t offset_of_place(std::size_t place) const noexcept { return first_ + place * spacing_; }

  /// Gives the slot the place of the next transfer. Its offset in the region.
  std::size_t take(unsigned slot) noexcept;
  /// The offset that take() said.
  [[nodiscard]] std::size_t offset(unsigned slot) const noexcept { return offset_of_place(slots_[slot]); }
  /// The slot's transfer has ended: check() wants its bytes.
  void ended(unsigned slot) noexcept { written_[slots_[slot]] = 1; }

  /// A new round: no place is written. `region` has region_bytes().
  void fill_source(std::span<std::byte> region, std::uint64_t seed) noexcept;
  void fill_destination(std::span<std::byte> region, std::uint64_t seed) noexcept;
  /// Checks every byte: the pattern where a transfer has ended, else the poison. kInternal says how many bytes are
  /// wrong, and where the first is.
  [[nodiscard]] Status check(std::span<const std::byte> region, std::uint64_t seed) const;
  /// The source must be as it was filled: a transfer in the wrong direction would have changed it.
  [[nodiscard]] Status check_source(std::span<const std::byte> region, std::uint64_t seed) const;

 private:
  std::size_t bytes_ = 0, first_ = 0, spacing_ = 0, region_ = 0, next_ = 0;
  std::vector<std::uint32_t> order_, slots_;
  std::vector<std::uint8_t> written_;
};

/// Bytes that differ from fill_pattern()'s, or fill_poison()'s (pattern.hpp), and the first of them.
struct Difference {
  std::size_t count = 0;
  std::size_t first = 0;  ///< offset in the region
  std::byte is{}, want{};
};
[[nodiscard]] Difference compare_pattern(std::span<const std::byte> with, std::uint64_t seed, std::size_t offset,
                                         bool poison) noexcept;

}  // namespace wherry::probe
