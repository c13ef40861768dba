// SPDX-License-Identifier: Apache-2.0
// Sets of nodes in the form that registers use: one bit per node.
#pragma once

#include <cstdint>

namespace wherry::kv {

using NodeMask = std::uint8_t;
[[nodiscard]] constexpr NodeMask mask_of(std::uint32_t node) noexcept { return static_cast<NodeMask>(1U << node); }
[[nodiscard]] constexpr bool has(std::uint32_t mask, std::uint32_t node) noexcept { return (mask >> node & 1U) != 0; }
[[nodiscard]] constexpr NodeMask without(NodeMask mask, NodeMask others) noexcept {
  return static_cast<NodeMask>(mask & ~others);
}

}  // namespace wherry::kv
