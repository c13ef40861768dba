// SPDX-License-Identifier: Apache-2.0
// Fields of wide ports in Verilator's layout of packed structs: a struct's last field is in the lowest bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace wherry::sim::dma {

using Word = std::uint32_t;
inline constexpr unsigned kWordBits = 32;
inline constexpr std::size_t kLineBytes = 64;

/// The `width` (1 to 64) bits from `low` on.
[[nodiscard]] inline std::uint64_t field(std::span<const Word> words, unsigned low, unsigned width) {
  std::uint64_t value = 0;
  for (unsigned done = 0; done < width;) {
    const unsigned bit = low + done, offset = bit % kWordBits;
    const std::uint64_t part = words[bit / kWordBits] >> offset;
    value |= part << done;
    done += kWordBits - offset;
  }
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

inline void set_field(std::span<Word> words, unsigned low, unsigned width, std::uint64_t value) {
  for (unsigned done = 0; done < width;) {
    const unsigned bit = low + done, offset = bit % kWordBits;
    const unsigned count = std::min(kWordBits - offset, width - done);
    const Word mask = static_cast<Word>((std::uint64_t{1} << count) - 1) << offset;
    words[bit / kWordBits] = (words[bit / kWordBits] & ~mask) | (static_cast<Word>(value >> done << offset) & mask);
    done += count;
  }
}

/// 64 bytes from bit `low` on.
inline void line(std::span<const Word> words, unsigned low, std::byte* into) {
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t part = field(words, low + 64 * i, 64);
    std::memcpy(into + 8 * i, &part, 8);
  }
}
inline void set_line(std::span<Word> words, unsigned low, const std::byte* from) {
  for (unsigned i = 0; i < 8; ++i) {
    std::uint64_t part = 0;
    std::memcpy(&part, from + 8 * i, 8);
    set_field(words, low + 64 * i, 64, part);
  }
}

}  // namespace wherry::sim::dma
