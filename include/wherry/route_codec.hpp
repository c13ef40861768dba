// SPDX-License-Identifier: Apache-2.0
// Codecs for route: messages may be strings, containers, pairs, tuples and optionals, and structures made of such.
//
//   struct Page { std::string url; std::vector<std::uint32_t> links; };
//   template <>
//   struct wherry::route::Codec<Page> : wherry::route::Fields<&Page::url, &Page::links> {};
//
// As bytes, without padding and without alignment:
//   bool                          0 or 1
//   numbers, enumerations, other trivially copyable types    as in memory
//   string, vector, deque, set, map and their like           how many (32 bits), then each; of a map key, then value
//   array, pair, tuple, Fields    one after the other
//   optional                      0, or 1 and the value
//   what has a Codec of its own with write and read          how many bytes (32 bits), then what write made
// A message that is one of these has nothing before or behind it. What does not follow this, by a byte too few or too
// many, is not read. Reading never looks beyond the message and allocates nothing on the word of a number in it that
// the bytes behind it cannot bear out.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

namespace wherry::route {

/// Values that hold values of their own type may do so this many times over.
inline constexpr unsigned kMaxCodecDepth = 512;
/// What a value may take up once it has been read: a few bytes can stand for a large one that is mostly empty.
inline constexpr std::size_t kMaxDecodedBytes = 32 * kMaxMessageBytes;

class Decoder;

namespace detail {

/// Its Codec knows from the bytes themselves where a value ends.
template <typename T>
concept Streamed = requires(Decoder& in, T& value) {
  { Codec<T>::take(in, value) } -> std::same_as<bool>;
};
template <typename T>
concept Codable = Streamed<T> || Plain<T> || Coded<T>;
/// Travels as it lies in memory.
template <typename T>
concept Raw = Plain<T> && !Streamed<T>;

/// The fewest bytes that a T may come as; never zero.
template <Codable T>
consteval std::size_t least_bytes() {
  if constexpr (Streamed<T>) {
    return Codec<T>::least();
  } else if constexpr (Plain<T>) {
    return sizeof(T);
  } else {
    return sizeof(std::uint32_t);
  }
}

inline void append(std::vector<std::byte>& out, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  out.insert(out.end(), at, at + bytes);
}

/// Appends `value` as part of a message.
template <Codable T>
void append(std::vector<std::byte>& out, const T& value) {
  if constexpr (Streamed<T>) {
    Codec<T>::write(out, value);
  } else if constexpr (Plain<T>) {
    append(out, &value, sizeof value);
  } else {
    const std::size_t at = out.size();
    append(out, std::uint32_t{0});
    Codec<T>::write(out, value);
    const auto bytes = static_cast<std::uint32_t>(out.size() - at - sizeof(std::uint32_t));
    std::memcpy(out.data() + at, &bytes, sizeof bytes);
  }
}

/// A count that does not fit belongs to a message that is too large to be sent.
inline void append_count(std::vector<std::byte>& out, std::size_t count) {
  append(out, static_cast<std::uint32_t>(count));
}

}  // namespace detail

/// Takes values off the front of a message. After the first false, nothing more can be said of the rest.
class Decoder {
 public:
  explicit Decoder(ByteView in) noexcept : in_(in) {}

  template <detail::Codable T>
  [[nodiscard]] bool take(T& value) {
    if constexpr (detail::Streamed<T>) {
      if (depth_ == kMaxCodecDepth) return false;
      ++depth_;
      const bool good = Codec<T>::take(*this, value);
      --depth_;
      return good;
    } else if constexpr (Plain<T>) {
      return take_bytes(&value, sizeof value);
    } else {
      std::uint32_t bytes = 0;
      if (!take(bytes) || bytes > in_.size()) return false;
      const ByteView mine = in_.first(bytes);
      in_ = in_.subspan(bytes);
      return Codec<T>::read(mine, value);
    }
  }
  [[nodiscard]] bool take_bytes(void* to, std::size_t bytes) noexcept {
    if (bytes > in_.size()) return false;
    if (bytes != 0) std::memcpy(to, in_.data(), bytes);
    in_ = in_.subspan(bytes);
    return true;
  }
  /// How many elements follow. False if they cannot all be there, each as `least` bytes, or if they would take up too
  /// much memory, each `memory` bytes.
  [[nodiscard]] bool take_count(std::uint32_t& count, std::size_t least, std::size_t memory) noexcept {
    if (!take_bytes(&count, sizeof count) || count > in_.size() / least || count > memory_ / memory) return false;
    memory_ -= count * memory;
    return true;
  }
  [[nodiscard]] bool at_end() const noexcept { return in_.empty(); }

 private:
  ByteView in_;
  std::size_t memory_ = kMaxDecodedBytes;  ///< left to allocate
  unsigned depth_ = 0;
};

/// Base of the Codec of a structure: these members, in this order. `Fields<&Page::url, &Page::links>`
template <auto... kMembers>
struct Fields {
  static_assert(sizeof...(kMembers) != 0, "a structure without members is trivially copyable: it needs no Codec");

  template <typename T>
  static void write(std::vector<std::byte>& out, const T& value) {
    (detail::append(out, value.*kMembers), ...);
  }
  template <typename T>
  static bool take(Decoder& in, T& value) {
    return (in.take(value.*kMembers) && ...);
  }
  template <typename T>
  static bool read(ByteView in, T& value) {
    Decoder decoder(in);
    return decoder.take(value) && decoder.at_end();
  }
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

namespace detail {

/// A message that is a T and nothing else.
template <typename T>
struct Whole {
  static bool read(ByteView in, T& value) {
    Decoder decoder(in);
    return decoder.take(value) && decoder.at_end();
  }
};

template <typename Container, typename Element>
struct Sequence : Whole<Container> {
  static constexpr bool kContiguous = Raw<Element> && requires(Container& c, std::size_t n) { c.resize(n), c.data(); };

  static void write(std::vector<std::byte>& out, const Container& value) {
    append_count(out, value.size());
    if constexpr (kContiguous) {
      append(out, value.data(), value.size() * sizeof(Element));
    } else {
      for (const Element& element : value) append(out, element);
    }
  }
  static bool take(Decoder& in, Container& value) {
    std::uint32_t count = 0;
    if (!in.take_count(count, least_bytes<Element>(), sizeof(Element))) return false;
    value.clear();
    if constexpr (kContiguous) {
      value.resize(count);
      return in.take_bytes(value.data(), count * sizeof(Element));
    } else {
      if constexpr (requires { value.reserve(count); }) value.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        Element element{};
        if (!in.take(element)) return false;
        value.push_back(std::move(element));
      }
      return true;
    }
  }
  static consteval std::size_t least() { return sizeof(std::uint32_t); }
};

/// Sets and maps. Element: the key, or a pair of key and value.
template <typename Container, typename Element>
struct Association : Whole<Container> {
  static constexpr std::size_t kNodeBytes = sizeof(Element) + 8 * sizeof(void*);  // links, and what malloc adds

  static void write(std::vector<std::byte>& out, const Container& value) {
    append_count(out, value.size());
    for (const auto& element : value) {
      if constexpr (std::same_as<Element, typename Container::key_type>) {
        append(out, element);
      } else {
        append(out, element.first);
        append(out, element.second);
      }
    }
  }
  static bool take(Decoder& in, Container& value) {
    std::uint32_t count = 0;
    if (!in.take_count(count, least_bytes<Element>(), kNodeBytes)) return false;
    value.clear();
    if constexpr (requires { value.reserve(count); }) value.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      Element element{};
      if (!in.take(element)) return false;
      value.insert(value.end(), std::move(element));
      if (value.size() != i + std::size_t{1}) return false;  // the same key again
    }
    return true;
  }
  static consteval std::size_t least() { return sizeof(std::uint32_t); }
};

/// Pairs and tuples.
template <typename Tuple, typename... Elements>
struct Product : Whole<Tuple> {
  static void write(std::vector<std::byte>& out, const Tuple& value) {
    std::apply([&out](const Elements&... each) { (append(out, each), ...); }, value);
  }
  static bool take(Decoder& in, Tuple& value) {
    return std::apply([&in](Elements&... each) { return (in.take(each) && ...); }, value);
  }
  static consteval std::size_t least() { return (least_bytes<Elements>() + ...); }
};

}  // namespace detail

/// Its own bytes could be neither true nor false. As a message by itself it is trivially copyable, and so sent as it
/// is.
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
