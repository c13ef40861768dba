// SPDX-License-Identifier: Apache-2.0
// One column (or nested child) of one offload: a view of the application's memory, shaped like Arrow's ArrowArray.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

#include "wherry/status.hpp"

namespace wherry {

/// A contiguous range of numbers that outlives the expression: an lvalue or a borrowed range. Not of bool, not text.
template <typename Range>
concept PlainNumbers =
    std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>) &&
    std::is_arithmetic_v<std::ranges::range_value_t<Range>> &&
    !std::is_same_v<std::ranges::range_value_t<Range>, bool> && !std::is_convertible_v<Range, std::string_view>;

/// Owns nothing. Every pointer, the children's included, must stay valid and unchanged until the offload's ticket is
/// ready. The child and dictionary Column objects themselves need to live only until the offload call returns.
struct WHERRY_API Column {
  std::int64_t length = 0;  ///< rows, of this node
  std::int64_t offset = 0;  ///< first row, in rows, as in ArrowArray.offset
  /// 0: no nulls, `validity` is ignored. -1: unknown, the agent counts them. A non-nullable field must not have nulls.
  std::int64_t null_count = 0;
  /// Bitmap, 1 = valid, least significant bit first. May be null when null_count <= 0.
  const std::uint8_t* validity = nullptr;
  const void* values = nullptr;   ///< fixed-width values, packed bits (bool), or dictionary indices
  const void* offsets = nullptr;  ///< int32 or int64, offset + length + 1 of them (utf8, binary, list; 64-bit: large)
  const void* data = nullptr;     ///< bytes that the offsets index (utf8, binary)
  std::span<const Column> children = {};  ///< list: one; struct: one a member
  const Column* dictionary = nullptr;     ///< the dictionary's values, for a dictionary field
  /// Size of one of `values` if its C++ type is known; compared with the field's size. 0: unknown.
  std::uint32_t value_bytes = 0;
  /// For fixed_list<K>: `values` holds the items, K per row; -K if the last row is not full. 0: the items are a child.
  std::int32_t list_size = 0;
  /// `values` are not final yet: Stream::post_rest() passes them. Only for fixed-width fields and lists of these.
  bool later = false;

  Column() = default;
  /// Rows of plain numbers: a std::vector, std::array, C array or span. For a fixed-size list field of k use
  /// `fixed_list`. A temporary that owns its numbers is a compile-time error, because the agent reads them after the
  /// temporary has been destroyed. Text is an error too, because it needs offsets: see `utf8`.
  template <typename Range>
    requires(!std::is_same_v<std::remove_cvref_t<Range>, Column> && PlainNumbers<Range>)
  Column(Range&& rows) noexcept  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : length(static_cast<std::int64_t>(std::ranges::size(rows))),
        values(std::ranges::data(rows)),
        value_bytes(sizeof(std::ranges::range_value_t<Range>)) {}

  /// `rows` rows of a fixed-width field whose values Stream::post_rest() will pass. For a fixed-size list field, also
  /// give `list_size`.
  static Column given_later(std::int64_t rows, std::int32_t list_size = 0) noexcept {
    Column c;
    c.length = rows;
    c.list_size = list_size;
    c.later = true;
    return c;
  }
  /// The same rows with a validity bitmap. `nulls` as null_count.
  [[nodiscard]] Column with_validity(const std::uint8_t* bitmap, std::int64_t nulls = -1) const {
    Column c = *this;
    c.validity = bitmap;
    c.null_count = nulls;
    return c;
  }
  /// `rows` booleans, packed as in Arrow: least significant bit first.
  static Column bits(const std::uint8_t* packed, std::int64_t rows);
  /// `rows` values, back to back; the field gives their width.
  static Column fixed_size_binary(const void* bytes, std::int64_t rows);
  /// Texts (or bytes, for a binary field): row i is `data` from offsets[i] to offsets[i + 1]. `offsets` has one more
  /// element than there are rows.
  static Column utf8(std::span<const std::int32_t> offsets, const char* data);
  /// As utf8(), with 64-bit offsets.
  static Column large_utf8(std::span<const std::int64_t> offsets, const char* data);
  /// Rows of K plain numbers each, one row after the other: x, y, z, x, y, z, ... for fixed_list<3>.
  template <std::int32_t K, PlainNumbers Range>
    requires(K > 0)
  static Column fixed_list(Range&& items) noexcept {  // NOLINT(cppcoreguidelines-missing-std-forward)
    Column c(items);
    c.list_size = c.length % K == 0 ? K : -K;
    c.length /= K;
    return c;
  }
  /// For any item type: `item` holds rows * k values and is borrowed until the offload call returns.
  static Column fixed_list(std::int64_t rows, std::span<const Column, 1> item);
  /// Row i holds the items from offsets[i] to offsets[i + 1]. `item` is borrowed until the offload call returns.
  static Column list(std::span<const std::int32_t> offsets, std::span<const Column, 1> item);
  /// As list(), with 64-bit offsets.
  static Column large_list(std::span<const std::int64_t> offsets, std::span<const Column, 1> item);
  /// Takes the item itself, which must be a variable: a temporary would be destroyed too early.
  static Column fixed_list(std::int64_t rows, const Column& item) {
    return fixed_list(rows, std::span<const Column, 1>(&item, 1));
  }
  /// Takes the item itself, which must be a variable.
  static Column list(std::span<const std::int32_t> offsets, const Column& item) {
    return list(offsets, std::span<const Column, 1>(&item, 1));
  }
  /// Takes the item itself, which must be a variable.
  static Column large_list(std::span<const std::int64_t> offsets, const Column& item) {
    return large_list(offsets, std::span<const Column, 1>(&item, 1));
  }
  static Column fixed_list(std::int64_t rows, const Column&& item) = delete;
  static Column list(std::span<const std::int32_t> offsets, const Column&& item) = delete;
  static Column large_list(std::span<const std::int64_t> offsets, const Column&& item) = delete;
  /// `rows` structs. Each of `members` has `rows` rows; they are borrowed until the offload call returns.
  static Column struct_(std::int64_t rows, std::span<const Column> members);
};

}  // namespace wherry
