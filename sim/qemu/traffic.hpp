// SPDX-License-Identifier: Apache-2.0
// Frames of all sizes and kinds, from a seed, and the replies that an echo must give to them. A reply is built from its
// fields, like the frame, independently of echo().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry::sim {

class Traffic {
 public:
  static constexpr std::uint32_t kShortest = 60;  ///< bytes, without the check sequence
  static constexpr std::uint32_t kLongest = 9000;

  /// `longest`: the most bytes of a frame; at least kShortest.
  explicit Traffic(std::uint64_t seed, std::uint32_t longest = kLongest) noexcept : seed_(seed), longest_(longest) {}

  /// Frame `number` for the NIC: of an unknown EtherType, UDP, or an ICMP echo request. No two are equal.
  [[nodiscard]] std::vector<std::byte> frame(std::uint64_t number) const { return build(number, false); }
  [[nodiscard]] std::vector<std::byte> reply(std::uint64_t number) const { return build(number, true); }
  /// Most frames are short, and one in thirty is longer than 1514 bytes; sizes at the edges of slots are included.
  [[nodiscard]] std::uint32_t size(std::uint64_t number) const;

 private:
  [[nodiscard]] std::uint32_t any_size(std::uint64_t number) const;
  [[nodiscard]] std::vector<std::byte> build(std::uint64_t number, bool reply) const;

  std::uint64_t seed_;
  std::uint32_t longest_;
};

}  // namespace wherry::sim
