// SPDX-License-Identifier: Apache-2.0
// Who hands a message to whom. Computed once, the same on every rank.
//
// Without agents a message takes one hop within a node, and two between nodes: to the rank of the other node that has
// the sender's place there, and on from it. So a rank has as many next hops as its node has ranks and the job has
// nodes, not as many as the job has ranks. With agents it takes three: the sender's agent, the receiver's agent, the
// receiver (two within a node). Whoever waits for room on such a way waits for hops further on only, the last of which
// is always taken: no circle can close.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wherry/route_message.hpp"

namespace wherry::route {

/// A rank's place in a tree of all ranks, whose edges join next hops only: nobody in between must forward for it.
struct Family {
  std::optional<Rank> parent;  ///< none: the root
  std::vector<Rank> children;
};

class Topology {
 public:
  Topology() = default;
  /// Nodes are numbered 0 to n - 1, each with at least one rank.
  explicit Topology(std::vector<std::uint32_t> node_of_rank);

  [[nodiscard]] Rank ranks() const noexcept { return static_cast<Rank>(node_of_.size()); }
  [[nodiscard]] std::uint32_t nodes() const noexcept { return static_cast<std::uint32_t>(on_node_.size()); }
  [[nodiscard]] std::uint32_t node_of(Rank rank) const noexcept { return node_of_[rank]; }
  [[nodiscard]] const std::vector<std::uint32_t>& node_of_rank() const noexcept { return node_of_; }
  /// A rank's number among those of its node.
  [[nodiscard]] std::uint32_t place_of(Rank rank) const noexcept { return place_of_[rank]; }
  [[nodiscard]] const std::vector<Rank>& on_node(std::uint32_t node) const noexcept { return on_node_[node]; }
  /// For errors: "the agent of node 1 (ranks 4 to 7)".
  [[nodiscard]] std::string agent_name(std::uint32_t node) const;

  /// Without agents: to whom `from` gives what is for another `node`.
  [[nodiscard]] Rank gateway(Rank from, std::uint32_t node) const noexcept {
    return on_node_[node][place_of_[from] % on_node_[node].size()];
  }
  /// Without agents: the next hops of `rank`, itself among them, and for each destination which of them.
  struct Hops {
    std::vector<Rank> next;
    std::vector<std::uint32_t> lane_of_rank;
  };
  [[nodiscard]] Hops hops(Rank rank) const;
  [[nodiscard]] Family family(Rank rank) const;
  /// Without agents: those that `rank` is a next hop of, in ascending order.
  [[nodiscard]] std::vector<Rank> sources(Rank rank) const;

 private:
  std::vector<std::uint32_t> node_of_, place_of_;
  std::vector<std::vector<Rank>> on_node_;
};

}  // namespace wherry::route
