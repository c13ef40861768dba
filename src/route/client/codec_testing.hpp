// SPDX-License-Identifier: Apache-2.0
// Types with codecs, for the test and the fuzz target.
#pragma once

#include "wherry/route_codec.hpp"

namespace wherry::route {

/// A recursive type: only for such types the compiler cannot know the nesting depth of values.
struct Tree {
  std::uint16_t value = 0;
  std::vector<Tree> children;
  friend bool operator==(const Tree&, const Tree&) = default;
};

struct Page {
  std::string url;
  std::map<std::string, std::vector<std::uint32_t>> words;
  std::optional<std::pair<std::uint8_t, bool>> mark;
  friend bool operator==(const Page&, const Page&) = default;
};

/// A Codec as users write it without Fields: it reads to the end of its bytes. This one accepts only digits.
struct Digits {
  std::string text;
  friend bool operator==(const Digits&, const Digits&) = default;
};

template <>
struct Codec<Tree> : Fields<&Tree::value, &Tree::children> {};
template <>
struct Codec<Page> : Fields<&Page::url, &Page::words, &Page::mark> {};
template <>
struct Codec<Digits> {
  static void write(std::vector<std::byte>& out, const Digits& value) {
    for (const char c : value.text) out.push_back(static_cast<std::byte>(c));
  }
  static bool read(ByteView in, Digits& value) {
    value.text.clear();
    for (const std::byte byte : in) {
      if (byte < std::byte{'0'} || byte > std::byte{'9'}) return false;
      value.text.push_back(static_cast<char>(byte));
    }
    return true;
  }
};

}  // namespace wherry::route
