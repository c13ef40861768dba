// SPDX-License-Identifier: Apache-2.0 The types that may be messages, and the form of a message in a buffer: an 8-byte
// header, then its payload (paper 001 section 3, "Communication Protocol"). A buffer holds messages back to back, each
// at a multiple of 8. Header and packs are for users of the low-level interface (Runtime::try_buffer) and for the
// library itself.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace wherry::route {

/// An application process of the job, from 0 to Runtime::ranks() - 1.
using Rank = std::uint32_t;

/// The largest message, in bytes.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;
/// Ranks of a job, at most.
inline constexpr Rank kMaxRanks = Rank{1} << 24;
/// Handlers of a rank, at most, the library's own included.
inline constexpr std::uint32_t kMaxHandlers = std::uint32_t{1} << 15;
/// The library's own handlers have smaller numbers.
inline constexpr std::uint32_t kFirstUserHandler = 16;
/// Whether a message may be sent to this number. A number out of range would change the header's other fields.
constexpr bool may_be_sent_to(std::uint32_t handler) noexcept {
  return handler - kFirstUserHandler < kMaxHandlers - kFirstUserHandler;
}

// ---- types that may be messages

/// Bytes without a meaning to the library: messages of any size.
using ByteView = std::span<const std::byte>;

namespace detail {

/// A T refers to memory of the process that made it.
template <typename T>
inline constexpr bool kRefers = std::is_pointer_v<T>;
template <typename C, typename Traits>
inline constexpr bool kRefers<std::basic_string_view<C, Traits>> = true;
template <typename T, std::size_t N>
inline constexpr bool kRefers<std::span<T, N>> = true;

}  // namespace detail

/// Travels as it lies in memory: trivially copyable, and neither a pointer nor a view.
template <typename T>
concept Plain = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !detail::kRefers<T> &&
                sizeof(T) <= kMaxMessageBytes;

/// How a type that is not Plain travels. Specialise it with
///
///     static void write(std::vector<std::byte>& out, const T& value);   // appends
///     static bool read(ByteView in, T& value);                          // false: not a T; the job fails
///
/// route_codec.hpp has the standard containers, and makes it one line for structures of them.
template <typename T>
struct Codec;
/// Travels as its Codec writes it.
template <typename T>
concept Coded = !Plain<T> && requires(std::vector<std::byte>& out, ByteView in, T& value) {
  Codec<T>::write(out, value);
  { Codec<T>::read(in, value) } -> std::same_as<bool>;
};

// ---- bytes in a buffer

/// One little-endian word: bits 0 to 24 the payload's size, 25 to 39 the handler, 40 to 63 the destination rank.
struct Header {
  std::uint64_t word = 0;  ///< all of it

  /// Precondition: each value fits its bits.
  static constexpr Header make(std::size_t size, std::uint32_t handler, Rank to) noexcept {
    return {static_cast<std::uint64_t>(size) | std::uint64_t{handler} << 25 | std::uint64_t{to} << 40};
  }
  /// The header whose 8 bytes are at `at`, which need not be aligned.
  static Header load(const std::byte* at) noexcept {
    Header header;
    std::memcpy(&header.word, at, sizeof header.word);
    return header;
  }
  /// Writes its 8 bytes to `at`.
  void store(std::byte* at) const noexcept { std::memcpy(at, &word, sizeof word); }

  /// Bytes of the payload.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return word & 0x1ffffff; }
  /// The number of the handler at the destination.
  [[nodiscard]] constexpr std::uint32_t handler() const noexcept { return word >> 25 & 0x7fff; }
  /// The destination.
  [[nodiscard]] constexpr Rank to() const noexcept { return static_cast<Rank>(word >> 40); }
  /// From this header to the next.
  [[nodiscard]] constexpr std::size_t stride() const noexcept { return stride_of(size()); }
  /// The same of a payload of `size` bytes: header and payload, to a multiple of 8.
  static constexpr std::size_t stride_of(std::size_t size) noexcept { return 8 + ((size + 7) & ~std::size_t{7}); }

  /// Whether handler and rank are the same; sizes may differ.
  [[nodiscard]] constexpr bool same_way(Header other) const noexcept { return (word ^ other.word) >> 25 == 0; }

  friend constexpr bool operator==(Header, Header) noexcept = default;
};
static_assert(sizeof(Header) == 8);

/// Messages with the same header, back to back in a lane that ends at their rank, travel as a pack: a header with this
/// handler, that rank and the size of all that follows; the header that the messages share; their payloads, each
/// `packed_stride` after the one before. The last hop packs and the receiver unpacks, so no router reads a pack.
inline constexpr std::uint32_t kPackHandler = 6;
/// Larger messages gain nothing by a pack.
inline constexpr std::size_t kMaxPackedBytes = 64;
/// Bytes from one payload of a pack to the next.
constexpr std::size_t packed_stride(std::size_t size) noexcept { return (size + 7) & ~std::size_t{7}; }

}  // namespace wherry::route
