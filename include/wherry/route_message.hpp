// SPDX-License-Identifier: Apache-2.0
// What a message looks like in a buffer: an 8-byte header, then its bytes (paper 001 section 3, "Communication
// Protocol"). Buffers hold messages one behind the other, each at a multiple of 8. For users of the low-level API
// (Runtime::try_buffer) and for the library itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wherry::route {

/// An application process of the job, from 0 to Runtime::ranks() - 1.
using Rank = std::uint32_t;

/// The largest message, in bytes.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;
inline constexpr Rank kMaxRanks = Rank{1} << 24;
inline constexpr std::uint32_t kMaxHandlers = std::uint32_t{1} << 15;
/// Smaller numbers of handlers are the library's own.
inline constexpr std::uint32_t kFirstUserHandler = 16;
/// Whether a message may be sent to this number: what no handler can have would change the header's other fields.
constexpr bool may_be_sent_to(std::uint32_t handler) noexcept {
  return handler - kFirstUserHandler < kMaxHandlers - kFirstUserHandler;
}

/// One little-endian word: bits 0 to 24 the payload's size, 25 to 39 the handler, 40 to 63 the destination rank.
struct Header {
  std::uint64_t word = 0;

  static constexpr Header make(std::size_t size, std::uint32_t handler, Rank to) noexcept {
    return {static_cast<std::uint64_t>(size) | std::uint64_t{handler} << 25 | std::uint64_t{to} << 40};
  }
  static Header load(const std::byte* at) noexcept {
    Header header;
    std::memcpy(&header.word, at, sizeof header.word);
    return header;
  }
  void store(std::byte* at) const noexcept { std::memcpy(at, &word, sizeof word); }

  [[nodiscard]] constexpr std::size_t size() const noexcept { return word & 0x1ffffff; }
  [[nodiscard]] constexpr std::uint32_t handler() const noexcept { return word >> 25 & 0x7fff; }
  [[nodiscard]] constexpr Rank to() const noexcept { return static_cast<Rank>(word >> 40); }
  /// From this header to the next.
  [[nodiscard]] constexpr std::size_t stride() const noexcept { return stride_of(size()); }
  static constexpr std::size_t stride_of(std::size_t size) noexcept { return 8 + ((size + 7) & ~std::size_t{7}); }

  /// Whether handler and rank are the same; sizes may differ.
  [[nodiscard]] constexpr bool same_way(Header other) const noexcept { return (word ^ other.word) >> 25 == 0; }

  friend constexpr bool operator==(Header, Header) noexcept = default;
};
static_assert(sizeof(Header) == 8);

/// Messages of the same header that follow each other on a way that ends at their rank travel packed: a header with
/// this handler, that rank and the size of all that follows; the header that they share; then the messages, each
/// `packed_stride` after the one before. The runtime packs and unpacks; nobody in between meets such a message.
inline constexpr std::uint32_t kPackHandler = 6;
/// Longer messages gain nothing.
inline constexpr std::size_t kMaxPackedBytes = 64;
constexpr std::size_t packed_stride(std::size_t size) noexcept { return (size + 7) & ~std::size_t{7}; }

}  // namespace wherry::route
