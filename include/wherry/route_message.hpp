// SPDX-License-Identifier: Apache-2.0
// The types that may be messages, and the form of a message in a buffer: an 8-byte header, then its payload (paper 001
// section 3, "Communication Protocol"). A buffer holds messages back to back, each at a multiple of 8. Headers and
// packs matter only to users of the low-level interface (Runtime::try_buffer) and to the library itself.
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

/// The number of an application process in the job, from 0 to Runtime::ranks() - 1.
using Rank = std::uint32_t;

/// The largest message, in bytes.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;
/// The most ranks that a job may have.
inline constexpr Rank kMaxRanks = Rank{1} << 24;
/// The most handlers that a rank may have, including the library's own.
inline constexpr std::uint32_t kMaxHandlers = std::uint32_t{1} << 15;
/// Smaller handler numbers belong to the library itself.
inline constexpr std::uint32_t kFirstUserHandler = 16;
/// Whether messages may be sent to this number. A number out of range would change the header's other fields.
constexpr bool may_be_sent_to(std::uint32_t handler) noexcept {
  return handler - kFirstUserHandler < kMaxHandlers - kFirstUserHandler;
}

// ---- types that may be messages

/// Bytes that the library does not interpret: messages of any size.
using ByteView = std::span<const std::byte>;

namespace detail {

/// Whether a T refers to memory of the process that made it.
template <typename T>
inline constexpr bool kRefers = std::is_pointer_v<T>;
template <typename C, typename Traits>
inline constexpr bool kRefers<std::basic_string_view<C, Traits>> = true;
template <typename T, std::size_t N>
inline constexpr bool kRefers<std::span<T, N>> = true;

}  // namespace detail

/// A type that is sent as it lies in memory: trivially copyable, and neither a pointer nor a view.
template <typename T>
concept Plain = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !detail::kRefers<T> &&
                sizeof(T) <= kMaxMessageBytes;

/// How to send a type that is not Plain. Specialise it with
///
///     static void write(std::vector<std::byte>& out, const T& value);   // appends
///     static bool read(ByteView in, T& value);                          // false: not a T; the job fails
///
/// route_codec.hpp covers the standard containers, and a structure of them needs only one line.
template <typename T>
struct Codec;
/// A type that is sent as its Codec writes it.
template <typename T>
concept Coded = !Plain<T> && requires(std::vector<std::byte>& out, ByteView in, T& value) {
  Codec<T>::write(out, value);
  { Codec<T>::read(in, value) } -> std::same_as<bool>;
};

// ---- bytes in a buffer

/// One little-endian word. Bits 0 to 24: the payload's size; 25 to 39: the handler; 40 to 63: the destination rank.
struct Header {
  std::uint64_t word = 0;  ///< the whole header

  /// Precondition: each value fits its bits.
  static constexpr Header make(std::size_t size, std::uint32_t handler, Rank to) noexcept {
    return {static_cast<std::uint64_t>(size) | std::uint64_t{handler} << 25 | std::uint64_t{to} << 40};
  }
  /// Reads the header whose 8 bytes are at `at`, which need not be aligned.
  static Header load(const std::byte* at) noexcept {
    Header header;
    std::memcpy(&header.word, at, sizeof header.word);
    return header;
  }
  /// Writes the header's 8 bytes to `at`.
  void store(std::byte* at) const noexcept { std::memcpy(at, &word, sizeof word); }

  /// Length of the payload in bytes.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return word & 0x1ffffff; }
  /// The number of the handler at the destination.
  [[nodiscard]] constexpr std::uint32_t handler() const noexcept { return word >> 25 & 0x7fff; }
  /// The destination rank.
  [[nodiscard]] constexpr Rank to() const noexcept { return static_cast<Rank>(word >> 40); }
  /// Bytes from this header to the next one.
  [[nodiscard]] constexpr std::size_t stride() const noexcept { return stride_of(size()); }
  /// The stride of a payload of `size` bytes: header and payload, rounded up to a multiple of 8.
  static constexpr std::size_t stride_of(std::size_t size) noexcept { return 8 + ((size + 7) & ~std::size_t{7}); }

  /// Whether handler and rank are equal; sizes may differ.
  [[nodiscard]] constexpr bool same_way(Header other) const noexcept { return (word ^ other.word) >> 25 == 0; }

  friend constexpr bool operator==(Header, Header) noexcept = default;
};
static_assert(sizeof(Header) == 8);

/// In a lane that ends at their rank, consecutive messages with the same header are sent as a pack. It consists of a
/// header with this handler, that rank and the size of the rest; the header that the messages share; and their
/// payloads, `packed_stride` apart. The last hop packs and the receiver unpacks, so routers never see a pack.
inline constexpr std::uint32_t kPackHandler = 6;
/// Larger messages do not gain from a pack.
inline constexpr std::size_t kMaxPackedBytes = 64;
/// Bytes from the start of one payload of a pack to the next.
constexpr std::size_t packed_stride(std::size_t size) noexcept { return (size + 7) & ~std::size_t{7}; }

}  // namespace wherry::route
