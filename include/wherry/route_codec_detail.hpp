// SPDX-License-Identifier: Apache-2.0
// How route_codec.hpp writes and reads values. Internal to the library: applications must not use these names.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "wherry/route_message.hpp"

namespace wherry::route {

/// The maximum depth at which values of one type may be nested in each other.
inline constexpr unsigned kMaxCodecDepth = 512;
/// The most memory, in bytes, that a decoded message may use: a few bytes can encode a large, mostly empty
/// value.
inline constexpr std::size_t kMaxDecodedBytes = 32 * kMaxMessageBytes;

class Decoder;

namespace detail {

/// A type whose encoding shows where a value ends, so it needs no byte count in front.
template <typename T>
concept Streamed = requires(Decoder& in, T& value) {
  { Codec<T>::take(in, value) } -> std::same_as<bool>;
};
template <typename T>
concept Codable = Streamed<T> || Plain<T> || Coded<T>;
/// A type that is sent as it lies in memory.
template <typename T>
concept Raw = Plain<T> && !Streamed<T>;

/// The smallest number of bytes that a T occupies in a message; never zero.
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

/// A count over 32 bits cannot reach a receiver: such a message is too large to be sent.
inline void append_count(std::vector<std::byte>& out, std::size_t count) {
  append(out, static_cast<std::uint32_t>(count));
}

}  // namespace detail

/// Takes values from the front of a message. After the first false, the remaining values have no meaning.
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
  /// Reads the number of elements that follow. False: the message is too short for them (`least` bytes each), or they
  /// would need too much memory (`memory` bytes each).
  [[nodiscard]] bool take_count(std::uint32_t& count, std::size_t least, std::size_t memory) noexcept {
    if (!take_bytes(&count, sizeof count) || count > in_.size() / least || count > memory_ / memory) return false;
    memory_ -= count * memory;
    return true;
  }
  [[nodiscard]] bool at_end() const noexcept { return in_.empty(); }

 private:
  ByteView in_;
  std::size_t memory_ = kMaxDecodedBytes;  ///< bytes that may still be allocated
  unsigned depth_ = 0;
};

namespace detail {

/// Codec base for a message that contains one T only.
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

}  // namespace wherry::route
