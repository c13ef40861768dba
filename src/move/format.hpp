// SPDX-License-Identifier: Apache-2.0
// Parses a format string of the Arrow C data interface
// (https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings).
#pragma once

#include <cstdint>
#include <string_view>

namespace wherry::move {

/// The buffers and children that an Arrow array has.
enum class Kind : std::uint8_t {
  kNull,           ///< no buffers at all
  kFixed,          ///< validity, values of `width` bytes (dictionary indices too)
  kBool,           ///< validity, packed bits
  kBinary,         ///< validity, offsets of `width` (4 or 8) bytes, data
  kList,           ///< validity, offsets of `width` bytes; one child (map too)
  kFixedSizeList,  ///< validity; one child of list_size * length rows
  kStruct,         ///< validity; children as long as itself
};

struct Format {
  enum class Verdict : std::uint8_t { kKnown, kUnsupported, kUnknown } verdict = Verdict::kUnknown;
  Kind kind = Kind::kNull;
  std::uint32_t width = 0;
  std::uint32_t list_size = 0;
  const char* type = "";  ///< kUnsupported: what it is, in words
};

/// Allocates nothing.
Format parse_format(std::string_view format) noexcept;

/// The number of buffers of an ArrowArray of this kind, and so the maximum in a message.
constexpr std::uint32_t buffer_count(Kind kind) noexcept {
  switch (kind) {
    case Kind::kNull:
      return 0;
    case Kind::kFixedSizeList:
    case Kind::kStruct:
      return 1;
    case Kind::kFixed:
    case Kind::kBool:
    case Kind::kList:
      return 2;
    case Kind::kBinary:
      return 3;
  }
  return 0;
}

/// Whether `format` is allowed for dictionary indices.
constexpr bool is_index_format(std::string_view format) noexcept {
  return format.size() == 1 && std::string_view("cCsSiIlL").find(format.front()) != std::string_view::npos;
}

/// False also for embedded zeros, because the C data interface ends a string at the first zero.
bool is_utf8_text(std::string_view text) noexcept;

/// Length in bytes of the C data interface's binary key/value encoding at the start of `bytes`; -1 if it does not end
/// in time. Readers of an ArrowSchema do not check that encoding, so check it here before it reaches them.
std::int64_t metadata_bytes(std::string_view bytes) noexcept;

}  // namespace wherry::move
