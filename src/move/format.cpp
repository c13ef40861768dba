// SPDX-License-Identifier: Apache-2.0
#include "move/format.hpp"

#include <charconv>
#include <cstring>
#include <limits>

namespace wherry::move {
namespace {

constexpr Format fixed(std::uint32_t width) {
  return {.verdict = Format::Verdict::kKnown, .kind = Kind::kFixed, .width = width};
}
constexpr Format known(Kind kind, std::uint32_t width = 0, std::uint32_t list_size = 0) {
  return {.verdict = Format::Verdict::kKnown, .kind = kind, .width = width, .list_size = list_size};
}
constexpr Format unsupported(const char* type) { return {.verdict = Format::Verdict::kUnsupported, .type = type}; }

/// Parses a decimal number at the front of `text` and removes it.
bool take_number(std::string_view& text, std::int32_t& value) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

/// Parses a size, which must be the whole `text`.
bool parse_size(std::string_view text, std::uint32_t& size) noexcept {
  std::int32_t value = 0;
  if (!take_number(text, value) || !text.empty() || value < 0) return false;
  size = static_cast<std::uint32_t>(value);
  return true;
}

/// "19,10" or "19,10,256"
Format decimal(std::string_view text) noexcept {
  std::int32_t precision = 0;
  std::int32_t scale = 0;
  std::int32_t bits = 128;
  if (!take_number(text, precision) || !text.starts_with(',')) return {};
  text.remove_prefix(1);
  if (!take_number(text, scale)) return {};
  if (text.starts_with(',')) {
    text.remove_prefix(1);
    if (!take_number(text, bits)) return {};
  }
  if (!text.empty()) return {};
  std::int32_t most_digits = 0;
  switch (bits) {
    case 32:
      most_digits = 9;
      break;
    case 64:
      most_digits = 18;
      break;
    case 128:
      most_digits = 38;
      break;
    case 256:
      most_digits = 76;
      break;
    default:
      return {};
  }
  if (precision < 1 || precision > most_digits) return {};
  return fixed(static_cast<std::uint32_t>(bits / 8));
}

Format temporal(std::string_view format) noexcept {
  if (format.size() >= 4 && format[1] == 's' && format[3] == ':') {  // "tsu:Europe/Berlin"
    return std::string_view("smun").find(format[2]) == std::string_view::npos || !is_utf8_text(format) ? Format{}
                                                                                                       : fixed(8);
  }
  if (format.size() != 3) return {};
  const std::string_view rest = format.substr(1);
  if (rest == "dD" || rest == "ts" || rest == "tm" || rest == "iM") return fixed(4);
  if (rest == "dm" || rest == "tu" || rest == "tn" || rest == "iD") return fixed(8);
  if (rest == "Ds" || rest == "Dm" || rest == "Du" || rest == "Dn") return fixed(8);
  if (rest == "in") return fixed(16);
  return {};
}

Format nested(std::string_view format) noexcept {
  if (format == "+l" || format == "+m") return known(Kind::kList, 4);
  if (format == "+L") return known(Kind::kList, 8);
  if (format == "+s") return known(Kind::kStruct);
  std::uint32_t size = 0;
  if (format.starts_with("+w:"))
    return parse_size(format.substr(3), size) ? known(Kind::kFixedSizeList, 0, size) : Format{};
  if (format.starts_with("+ud:")) return unsupported("a dense union");
  if (format.starts_with("+us:")) return unsupported("a sparse union");
  if (format == "+vl") return unsupported("a list view");
  if (format == "+vL") return unsupported("a large list view");
  if (format == "+r") return unsupported("run-end encoded");
  return {};
}

}  // namespace

Format parse_format(std::string_view format) noexcept {
  if (format.empty()) return {};
  if (format.size() == 1) {
    switch (format.front()) {
      case 'n':
        return known(Kind::kNull);
      case 'b':
        return known(Kind::kBool);
      case 'c':
      case 'C':
        return fixed(1);
      case 's':
      case 'S':
      case 'e':
        return fixed(2);
      case 'i':
      case 'I':
      case 'f':
        return fixed(4);
      case 'l':
      case 'L':
      case 'g':
        return fixed(8);
      case 'u':
      case 'z':
        return known(Kind::kBinary, 4);
      case 'U':
      case 'Z':
        return known(Kind::kBinary, 8);
      default:
        return {};
    }
  }
  switch (format.front()) {
    case 't':
      return temporal(format);
    case '+':
      return nested(format);
    case 'd':
      return format[1] == ':' ? decimal(format.substr(2)) : Format{};
    case 'w': {
      constexpr std::uint32_t kWidest =
          std::numeric_limits<std::int32_t>::max() / 8;  // Arrow C++ counts the bits in an int32
      std::uint32_t size = 0;
      return format[1] == ':' && parse_size(format.substr(2), size) && size <= kWidest ? fixed(size) : Format{};
    }
    case 'v':
      if (format == "vu") return unsupported("a utf8 view");
      if (format == "vz") return unsupported("a binary view");
      return {};
    default:
      return {};
  }
}

bool is_utf8_text(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead == 0) return false;
    const std::size_t length = lead < 0x80           ? 1
                               : (lead >> 5) == 0x6  ? 2
                               : (lead >> 4) == 0xE  ? 3
                               : (lead >> 3) == 0x1E ? 4
                                                     : 0;
    if (length == 0 || length > text.size() - at) return false;
    std::uint32_t point = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      if ((byte & 0xC0) != 0x80) return false;
      point = (point << 6) | (byte & 0x3F);
    }
    constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < smallest[length] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
    at += length;
  }
  return true;
}

std::int64_t metadata_bytes(std::string_view bytes) noexcept {
  std::size_t at = 0;
  const auto take_count = [&](std::int32_t& value) {
    if (bytes.size() - at < sizeof value) return false;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value >= 0;
  };
  std::int32_t pairs = 0;
  if (!take_count(pairs)) return -1;
  for (std::int64_t text = 0; text < 2 * std::int64_t{pairs}; ++text) {
    std::int32_t length = 0;
    if (!take_count(length) || bytes.size() - at < static_cast<std::size_t>(length)) return -1;
    at += static_cast<std::size_t>(length);
  }
  return static_cast<std::int64_t>(at);
}

}  // namespace wherry::move
