// SPDX-License-Identifier: Apache-2.0
// Codecs for route: messages may be strings, containers, pairs, tuples, optionals, and structures of these.
//
//   struct Page { std::string url; std::vector<std::uint32_t> links; };
//   template <>
//   struct wherry::route::Codec<Page> : wherry::route::Fields<&Page::url, &Page::links> {};
//
// The encoding, without padding and without alignment:
//   bool                          0 or 1
//   numbers, enumerations, other trivially copyable types    as in memory
//   string, vector, deque, set, map and their like           the count (32 bits), then each; of a map key, then value
//   array, pair, tuple, Fields    one after the other
//   optional                      0, or 1 and the value
//   types whose own Codec has write and read                 the number of bytes (32 bits), then what write made
// Such a message has no bytes before or behind its value. A message that cannot be decoded (truncated, impossible
// count, repeated key, trailing bytes) fails the job. The decoder never reads beyond the message, and allocates only as
// much as the message's bytes can justify.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "wherry/route.hpp"
#include "wherry/route_codec_detail.hpp"

namespace wherry::route {

/// Base of the Codec of a structure: `Fields<&Page::url, &Page::links>` writes these members in this order.
template <auto... kMembers>
struct Fields {
  static_assert(sizeof...(kMembers) != 0, "a structure without members is trivially copyable: it needs no Codec");

  /// Appends the members of `value`.
  template <typename T>
  static void write(std::vector<std::byte>& out, const T& value) {
    (detail::append(out, value.*kMembers), ...);
  }
  /// Takes the members from the front of a message. False: the message is too short or invalid.
  template <typename T>
  static bool take(Decoder& in, T& value) {
    return (in.take(value.*kMembers) && ...);
  }
  /// As take(), for a whole message. Also false if bytes are left.
  template <typename T>
  static bool read(ByteView in, T& value) {
    Decoder decoder(in);
    return decoder.take(value) && decoder.at_end();
  }
  /// The smallest number of bytes that a value occupies.
  static consteval std::size_t least() { return (detail::least_bytes<Member<decltype(kMembers)>>() + ...); }

 private:
  template <typename Pointer>
  struct MemberOf;
  template <typename T, typename Class>
  struct MemberOf<T Class::*> {
    using Type = T;
  };
  template <typename Pointer>
  using Member = typename MemberOf<std::remove_cv_t<Pointer>>::Type;
};

/// A byte of a message might be neither 0 nor 1, so it is checked. A message that is a single bool is Plain and does
/// not use this Codec.
template <>
struct Codec<bool> : detail::Whole<bool> {
  static void write(std::vector<std::byte>& out, bool value) { detail::append(out, std::uint8_t{value}); }
  static bool take(Decoder& in, bool& value) {
    std::uint8_t byte = 0;
    if (!in.take_bytes(&byte, 1) || byte > 1) return false;
    value = byte != 0;
    return true;
  }
  static consteval std::size_t least() { return 1; }
};

template <detail::Codable T>
struct Codec<std::optional<T>> : detail::Whole<std::optional<T>> {
  static void write(std::vector<std::byte>& out, const std::optional<T>& value) {
    detail::append(out, value.has_value());
    if (value) detail::append(out, *value);
  }
  static bool take(Decoder& in, std::optional<T>& value) {
    bool there = false;
    value.reset();
    return in.take(there) && (!there || in.take(value.emplace()));
  }
  static consteval std::size_t least() { return 1; }
};

template <detail::Codable T, std::size_t N>
  requires(N != 0)
struct Codec<std::array<T, N>> : detail::Whole<std::array<T, N>> {
  static void write(std::vector<std::byte>& out, const std::array<T, N>& value) {
    if constexpr (detail::Raw<T>) {
      detail::append(out, value.data(), sizeof value);
    } else {
      for (const T& element : value) detail::append(out, element);
    }
  }
  static bool take(Decoder& in, std::array<T, N>& value) {
    if constexpr (detail::Raw<T>) return in.take_bytes(value.data(), sizeof value);
    for (T& element : value) {
      if (!in.take(element)) return false;
    }
    return true;
  }
  static consteval std::size_t least() { return N * detail::least_bytes<T>(); }
};

template <detail::Codable A, detail::Codable B>
struct Codec<std::pair<A, B>> : detail::Product<std::pair<A, B>, A, B> {};
template <detail::Codable... T>
  requires(sizeof...(T) != 0)
struct Codec<std::tuple<T...>> : detail::Product<std::tuple<T...>, T...> {};

template <detail::Raw C, typename Traits, typename A>
struct Codec<std::basic_string<C, Traits, A>> : detail::Sequence<std::basic_string<C, Traits, A>, C> {};
template <detail::Codable T, typename A>
struct Codec<std::vector<T, A>> : detail::Sequence<std::vector<T, A>, T> {};
template <detail::Codable T, typename A>
struct Codec<std::deque<T, A>> : detail::Sequence<std::deque<T, A>, T> {};

template <detail::Codable K, typename Less, typename A>
struct Codec<std::set<K, Less, A>> : detail::Association<std::set<K, Less, A>, K> {};
template <detail::Codable K, typename Hash, typename Equal, typename A>
struct Codec<std::unordered_set<K, Hash, Equal, A>> : detail::Association<std::unordered_set<K, Hash, Equal, A>, K> {};
template <detail::Codable K, detail::Codable V, typename Less, typename A>
struct Codec<std::map<K, V, Less, A>> : detail::Association<std::map<K, V, Less, A>, std::pair<K, V>> {};
template <detail::Codable K, detail::Codable V, typename Hash, typename Equal, typename A>
struct Codec<std::unordered_map<K, V, Hash, Equal, A>>
    : detail::Association<std::unordered_map<K, V, Hash, Equal, A>, std::pair<K, V>> {};

}  // namespace wherry::route
