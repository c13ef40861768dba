// SPDX-License-Identifier: Apache-2.0
// The next hop of each message. Computed once, and equal on every rank.
//
// Without agents a message takes one hop within a node, and two between nodes. The first hop is the rank of the other
// node with the sender's local rank. So a rank needs only as many next hops as its node has ranks and the job has
// nodes. These are fewer than the job's ranks. With agents a message takes three hops: to the sender's agent, the
// receiver's agent and the receiver (two within a node). A hop waits for room only at later hops of the same route, and
// the last hop always accepts messages. So no cycle of waiting hops can form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wherry/route_message.hpp"

namespace wherry::route {

/// Without agents: the next hops of a rank, including itself.
struct NextHops {
  std::vector<Rank> next;                   ///< by lane
  std::vector<std::uint32_t> lane_of_rank;  ///< by destination
};

/// A rank's links in a tree of all ranks. Each link joins two next hops, so that no third rank forwards their messages.
struct TreeLinks {
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
  /// A rank's number among the ranks of its node.
  [[nodiscard]] std::uint32_t local_rank(Rank rank) const noexcept { return local_rank_[rank]; }
  /// The ranks of a node in ascending order, which is the order of local ranks.
  [[nodiscard]] const std::vector<Rank>& on_node(std::uint32_t node) const noexcept { return on_node_[node]; }
  /// For errors: "the agent of node 1 (ranks 4 to 7)".
  [[nodiscard]] std::string agent_name(std::uint32_t node) const;

  /// Without agents: the next hop of `from` on the way to another `node`.
  [[nodiscard]] Rank gateway(Rank from, std::uint32_t node) const noexcept {
    return on_node_[node][local_rank_[from] % on_node_[node].size()];
  }
  [[nodiscard]] NextHops next_hops(Rank rank) const;
  /// Without agents: the previous hops of `rank`, in ascending order. A hop's index is the number of its input.
  [[nodiscard]] std::vector<Rank> previous_hops(Rank rank) const;
  [[nodiscard]] TreeLinks tree_links(Rank rank) const;

 private:
  std::vector<std::uint32_t> node_of_, local_rank_;  ///< by rank
  std::vector<std::vector<Rank>> on_node_;           ///< by node
};

}  // namespace wherry::route
