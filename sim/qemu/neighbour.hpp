// SPDX-License-Identifier: Apache-2.0
// The other machine on the cable, with what `ping` needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wherry::sim {

struct Neighbour {
  std::array<std::uint8_t, 6> mac{0x02, 0, 0, 0, 0, 1};
  std::array<std::uint8_t, 4> ip{10, 0, 2, 2};

  /// The answer to an ARP request for its address (RFC 826) or to an ICMP echo request to it (RFC 792). Other frames
  /// get no answer.
  [[nodiscard]] std::optional<std::vector<std::byte>> answer(std::span<const std::byte> frame) const;
};

}  // namespace wherry::sim
