// SPDX-License-Identifier: Apache-2.0
#include "probe/pattern.hpp"

#include <cstring>

namespace wherry::probe {
namespace {

/// Writes the pattern, or its complement (`flip`: all ones), in words; the first and last bytes singly.
void fill(std::span<std::byte> to, std::uint64_t seed, std::uint64_t offset, std::uint64_t flip) noexcept {
  std::size_t i = 0;
  const auto single = [&] { to[i] = pattern_byte(seed, offset + i) ^ static_cast<std::byte>(flip & 0xff), ++i; };
  while (i < to.size() && (offset + i) % 8 != 0) single();
  for (; i + 8 <= to.size(); i += 8) {
    const std::uint64_t word = splitmix64(seed, (offset + i) / 8) ^ flip;
    std::memcpy(to.data() + i, &word, sizeof word);
  }
  while (i < to.size()) single();
}

std::optional<std::size_t> find(std::span<const std::byte> in, std::uint64_t seed, std::uint64_t offset,
                                std::uint64_t flip) noexcept {
  const auto wrong = [&](std::size_t at) {
    return in[at] != (pattern_byte(seed, offset + at) ^ static_cast<std::byte>(flip & 0xff));
  };
  std::size_t i = 0;
  for (; i < in.size() && (offset + i) % 8 != 0; ++i)
    if (wrong(i)) return i;
  for (; i + 8 <= in.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, in.data() + i, sizeof word);
    if (word == (splitmix64(seed, (offset + i) / 8) ^ flip)) continue;
    while (!wrong(i)) ++i;
    return i;
  }
  for (; i < in.size(); ++i)
    if (wrong(i)) return i;
  return std::nullopt;
}

constexpr std::uint64_t kPlain = 0, kComplement = ~std::uint64_t{0};

}  // namespace

void fill_pattern(std::span<std::byte> to, std::uint64_t seed, std::uint64_t offset) noexcept {
  fill(to, seed, offset, kPlain);
}
void fill_poison(std::span<std::byte> to, std::uint64_t seed, std::uint64_t offset) noexcept {
  fill(to, seed, offset, kComplement);
}
std::optional<std::size_t> find_wrong(std::span<const std::byte> in, std::uint64_t seed,
                                      std::uint64_t offset) noexcept {
  return find(in, seed, offset, kPlain);
}
std::optional<std::size_t> find_touched(std::span<const std::byte> in, std::uint64_t seed,
                                        std::uint64_t offset) noexcept {
  return find(in, seed, offset, kComplement);
}

}  // namespace wherry::probe
