// SPDX-License-Identifier: Apache-2.0
// Cuts a transfer into bursts at a port of the card's memory (sim/hbm.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/hbm.hpp"

namespace wherry::sim::shell {

/// Calls `visit(address, beats, last)` for each AXI3 burst in order. A burst has at most 16 beats of 32 bytes, and
/// stays within a page. `bytes`: a multiple of 32.
template <typename Visit>
void cut_bursts(std::uint64_t address, std::uint32_t bytes, Visit&& visit) {
  constexpr auto kBeat = static_cast<std::uint32_t>(kv::rtl::kHbmBeatBytes);
  for (std::uint32_t left = bytes; left != 0;) {
    const auto page = static_cast<std::uint32_t>(kv::rtl::kHbmPage - address % kv::rtl::kHbmPage);
    const std::uint32_t part = std::min({left, static_cast<std::uint32_t>(kv::rtl::kHbmBurst) * kBeat, page});
    left -= part;
    visit(address, part / kBeat, left == 0);
    address += part;
  }
}

}  // namespace wherry::sim::shell
