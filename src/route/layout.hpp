// SPDX-License-Identifier: Apache-2.0
// Which ring of whom is for what, where agents route: computed alike by ranks and agents.
//
// An agent has `threads` routing threads, each with an inbox and a router of its own. A rank sends to one of them, the
// one of its place; each of them sends to every rank of its node, and to its namesake on every other node.
#pragma once

#include <cstdint>

#include "route/topology.hpp"

namespace wherry::route {

struct AgentLayout {
  const Topology& topology;
  std::uint32_t node;
  std::uint32_t threads;

  [[nodiscard]] std::uint32_t local_ranks() const noexcept {
    return static_cast<std::uint32_t>(topology.on_node(node).size());
  }
  /// The routing thread that the rank with this place sends to.
  [[nodiscard]] std::uint32_t thread_of(std::uint32_t place) const noexcept { return place % threads; }
  [[nodiscard]] std::uint32_t ranks_of(std::uint32_t thread) const noexcept {
    return (local_ranks() + threads - 1 - thread) / threads;
  }
  [[nodiscard]] std::uint32_t inputs(std::uint32_t thread) const noexcept {
    return ranks_of(thread) + topology.nodes() - 1;
  }
  [[nodiscard]] std::uint32_t input_of_rank(std::uint32_t place) const noexcept { return place / threads; }
  [[nodiscard]] std::uint32_t input_of_node(std::uint32_t thread, std::uint32_t other) const noexcept {
    return ranks_of(thread) + skipping(other);
  }
  [[nodiscard]] std::uint32_t lanes() const noexcept { return local_ranks() + topology.nodes() - 1; }
  [[nodiscard]] std::uint32_t lane_to_rank(std::uint32_t place) const noexcept { return place; }
  [[nodiscard]] std::uint32_t lane_to_node(std::uint32_t other) const noexcept {
    return local_ranks() + skipping(other);
  }
  /// A rank hears from each thread of its agent.
  [[nodiscard]] std::uint32_t rank_inputs() const noexcept { return threads; }

 private:
  [[nodiscard]] std::uint32_t skipping(std::uint32_t other) const noexcept { return other < node ? other : other - 1; }
};

}  // namespace wherry::route
