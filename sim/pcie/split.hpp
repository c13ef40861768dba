// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: where requests and completions are cut.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.hpp"
#include "sim/pcie/tlp.hpp"

namespace wherry::sim::pcie {

/// Bytes of the part that begins at `address`: within a page, and in at most `limit` bytes of whole doublewords.
[[nodiscard]] inline std::uint32_t request_part(std::uint64_t address, std::uint32_t left, std::uint32_t limit) {
  const auto in_page = static_cast<std::uint32_t>(kPageBytes - address % kPageBytes);
  const auto in_limit = static_cast<std::uint32_t>(limit - address % kDwBytes);
  return std::min({left, in_page, in_limit});
}

/// Spec 2.3.1.1: every completion except the last ends at a multiple of RCB.
struct CompletionSplitter {
  std::uint32_t mps;
  std::uint32_t preferred;  ///< ends at multiples of this
  std::uint32_t rcb;
  bool anywhere;

  /// Bytes of the completion that begins at `address`.
  [[nodiscard]] std::uint32_t next(std::uint64_t address, std::uint32_t left, SplitMix64& random) const {
    const std::uint32_t most = request_part(address, left, mps);
    if (!anywhere) {
      const std::uint32_t chunk = std::min(mps, preferred);
      return std::min(most, static_cast<std::uint32_t>(chunk - address % chunk));
    }
    const auto first = static_cast<std::uint32_t>(rcb - address % rcb);
    if (most <= first) return most;
    // Chooses any boundary within, or the end of the request.
    const std::uint32_t boundaries = (most - first) / rcb + 1;
    const bool may_end = most == left && (address + most) % rcb != 0;
    const std::uint32_t chosen = random.below(boundaries + (may_end ? 1 : 0));
    return chosen == boundaries ? most : first + chosen * rcb;
  }
};

}  // namespace wherry::sim::pcie
