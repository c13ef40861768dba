// SPDX-License-Identifier: Apache-2.0
// How strings with names are kept in a store whose keys are 64-bit numbers. The number is computed from the name. The
// value begins with the name, which distinguishes two names with the same number.
//
//   byte 0    0x52, 'R'
//   byte 1    1: this form
//   2, 3      length of the name, little-endian
//   4 ...     the name, then the text
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry::kv::resp {

inline constexpr std::size_t kHeadBytes = 4;
/// The room for a name and its text: the 1024 bytes of a value without the head.
inline constexpr std::size_t kRoomBytes = 1020;

/// The first eight bytes of a name's SHA-256 (FIPS 180-4), most significant byte first. In practice it is not possible
/// to find a name with the number of a given other name. Finding two names with the same number takes 2^32 attempts.
/// One thread at a time.
class KeyNumbers {
 public:
  KeyNumbers();
  ~KeyNumbers();
  KeyNumbers(const KeyNumbers&) = delete;
  KeyNumbers& operator=(const KeyNumbers&) = delete;
  [[nodiscard]] std::uint64_t of(std::string_view name) const;

 private:
  struct Digest;
  std::unique_ptr<Digest> digest_;
};

/// The value that stores `text` under `name`. Precondition: together they have at most kRoomBytes.
std::string stored_text(std::string_view name, std::string_view text);

enum class Kept : std::uint8_t { text, of_another_name, not_ours };

/// Compares a stored value with `name`. If the value belongs to the name, `text` becomes a view into `value`.
Kept find_text(std::string_view value, std::string_view name, std::string_view& text) noexcept;

inline std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> as_bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace wherry::kv::resp
