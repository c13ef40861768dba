// SPDX-License-Identifier: Apache-2.0
// The schema of a stream, in Arrow's terms but without Arrow. A Field is the C data interface's ArrowSchema as a value
// (https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wherry/status.hpp"

namespace wherry {

/// One column of a schema, or one level of a nested column. A value: it owns its strings and children.
struct WHERRY_API Field {
  std::string name;      ///< unique among its siblings; readers find the column by it
  std::string format;    ///< Arrow C data interface format string: "g" is float64, "+w:3" a fixed-size list of 3
  bool nullable = true;  ///< whether columns may have a validity bitmap; false: nulls are not allowed
  bool dictionary_ordered = false;  ///< the order of the dictionary's values is meaningful
  bool map_keys_sorted = false;     ///< for a map ("+m"): each row's keys are sorted
  std::string metadata;             ///< key/value pairs in the C data interface's binary encoding, or empty
  std::vector<Field> children;      ///< lists: one; structs: any number; others: none
  std::vector<Field> dictionary;    ///< empty, or one: the field of the values; `format` is then that of the indices

  friend bool operator==(const Field&, const Field&) = default;
};

/// The columns of a stream's frames, in their order; names are unique.
using Schema = std::vector<Field>;

namespace detail {
template <typename T>
constexpr std::string_view format_of() {
  if constexpr (std::is_same_v<T, bool>)
    return "b";
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? "f" : "g";
  else if constexpr (std::is_integral_v<T>) {
    constexpr bool s = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1)
      return s ? "c" : "C";
    else if constexpr (sizeof(T) == 2)
      return s ? "s" : "S";
    else if constexpr (sizeof(T) == 4)
      return s ? "i" : "I";
    else
      return s ? "l" : "L";
  } else
    static_assert(!sizeof(T), "no Arrow type for T: give the format string");
}
}  // namespace detail

/// A column of plain numbers: field<double>("x"). `bool` means Arrow's packed bits, not an array of C++ bool.
template <typename T>
Field field(std::string name, bool nullable = false) {
  static_assert(!std::is_same_v<T, long double>);
  Field f;
  f.name = std::move(name);
  f.format = std::string(detail::format_of<T>());  // (assigning the view trips GCC 12's false -Wrestrict, PR105651)
  f.nullable = nullable;
  return f;
}
/// A column of any type, by its format string: field("t", "tsn:UTC") is a timestamp in nanoseconds.
WHERRY_API Field field(std::string name, std::string format, bool nullable = false);
WHERRY_API Field utf8(std::string name, bool nullable = false);    ///< 32-bit offsets; large_utf8: format "U"
WHERRY_API Field binary(std::string name, bool nullable = false);  ///< 32-bit offsets; large_binary: format "Z"
/// Rows of `width_bytes` bytes each.
WHERRY_API Field fixed_size_binary(std::string name, int width_bytes, bool nullable = false);
/// Rows of `size` items each, such as the x, y and z of an atom.
WHERRY_API Field fixed_size_list(std::string name, int size, Field item, bool nullable = false);
/// Rows of any number of items, with 32-bit offsets.
WHERRY_API Field list(std::string name, Field item, bool nullable = false);
/// As list(), with 64-bit offsets.
WHERRY_API Field large_list(std::string name, Field item, bool nullable = false);
/// Rows that have one value of each member.
WHERRY_API Field struct_(std::string name, std::vector<Field> members, bool nullable = false);
/// Rows of indices into `values`. `index_format`: the format string of the indices, such as "i" for 32 bits.
WHERRY_API Field dictionary(std::string name, std::string index_format, Field values, bool nullable = false);

}  // namespace wherry
