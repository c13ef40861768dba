// SPDX-License-Identifier: Apache-2.0
// Lanes and inputs of a job whose agents route: where each lane ends. Ranks and agents compute the same layout.
//
// An agent has `threads` routing threads, each with its own inbox and router. A rank sends to one of them, selected by
// its local rank. Each routing thread sends to every rank of its node, and to the routing thread with the same number
// on every other node.
#pragma once

#include <cstdint>

#include "route/topology.hpp"

namespace wherry::route {

struct AgentLayout {
  const Topology& topology;
  std::uint32_t node;     ///< the agent's
  std::uint32_t threads;  ///< the same on all nodes

  [[nodiscard]] std::uint32_t local_ranks() const noexcept {
    return static_cast<std::uint32_t>(topology.on_node(node).size());
  }
  /// The routing thread that a rank of this node sends to.
  [[nodiscard]] std::uint32_t thread_of(std::uint32_t local_rank) const noexcept { return local_rank % threads; }
  [[nodiscard]] std::uint32_t ranks_of(std::uint32_t thread) const noexcept {
    return (local_ranks() + threads - 1 - thread) / threads;
  }
  [[nodiscard]] std::uint32_t inputs(std::uint32_t thread) const noexcept {
    return ranks_of(thread) + topology.nodes() - 1;
  }
  [[nodiscard]] std::uint32_t input_of_rank(std::uint32_t local_rank) const noexcept { return local_rank / threads; }
  [[nodiscard]] std::uint32_t input_of_node(std::uint32_t thread, std::uint32_t other) const noexcept {
    return ranks_of(thread) + skipping(other);
  }
  [[nodiscard]] std::uint32_t lanes() const noexcept { return local_ranks() + topology.nodes() - 1; }
  [[nodiscard]] std::uint32_t lane_to_rank(std::uint32_t local_rank) const noexcept { return local_rank; }
  [[nodiscard]] std::uint32_t lane_to_node(std::uint32_t other) const noexcept {
    return local_ranks() + skipping(other);
  }
  /// A rank has one input for each thread of its agent.
  [[nodiscard]] std::uint32_t rank_inputs() const noexcept { return threads; }

 private:
  /// The index of node `other` among all nodes except this one.
  [[nodiscard]] std::uint32_t skipping(std::uint32_t other) const noexcept { return other < node ? other : other - 1; }
};

}  // namespace wherry::route
