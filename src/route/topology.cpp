// SPDX-License-Identifier: Apache-2.0
#include "route/topology.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace wherry::route {

Topology::Topology(std::vector<std::uint32_t> node_of_rank)
    : node_of_(std::move(node_of_rank)), local_rank_(node_of_.size()) {
  for (Rank rank = 0; rank < ranks(); ++rank) {
    const std::uint32_t node = node_of_[rank];
    if (node >= on_node_.size()) on_node_.resize(node + 1);
    local_rank_[rank] = static_cast<std::uint32_t>(on_node_[node].size());
    on_node_[node].push_back(rank);
  }
}

std::string Topology::agent_name(std::uint32_t node) const {
  constexpr std::size_t kMaxListedRanks = 8;
  const std::vector<Rank>& ranks = on_node_[node];
  std::string which;
  if (ranks.size() == 1) {
    which = fmt::format("rank {}", ranks.front());
  } else if (ranks.back() - ranks.front() + 1 == ranks.size()) {
    which = fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  } else if (ranks.size() <= kMaxListedRanks) {
    which = fmt::format("ranks {}", fmt::join(ranks, ", "));
  } else {
    which = fmt::format("ranks {} and {} more", fmt::join(std::span(ranks).first(kMaxListedRanks), ", "),
                        ranks.size() - kMaxListedRanks);
  }
  return fmt::format("the agent of node {} ({})", node, which);
}

NextHops Topology::next_hops(Rank rank) const {
  NextHops hops;
  const std::uint32_t mine = node_of_[rank];
  hops.next = on_node_[mine];
  std::vector<std::uint32_t> lane_of_node(nodes());
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    if (node == mine) continue;
    lane_of_node[node] = static_cast<std::uint32_t>(hops.next.size());
    hops.next.push_back(gateway(rank, node));
  }
  hops.lane_of_rank.resize(ranks());
  for (Rank to = 0; to < ranks(); ++to)
    hops.lane_of_rank[to] = node_of_[to] == mine ? local_rank_[to] : lane_of_node[node_of_[to]];
  return hops;
}

std::vector<Rank> Topology::previous_hops(Rank rank) const {
  std::vector<Rank> previous;
  for (Rank from = 0; from < ranks(); ++from) {
    if (node_of_[from] == node_of_[rank] || gateway(from, node_of_[rank]) == rank) previous.push_back(from);
  }
  return previous;
}

/// The first ranks of all nodes form a tree. The other ranks of each node form a tree below their node's first rank.
TreeLinks Topology::tree_links(Rank rank) const {
  constexpr std::uint32_t kFanOut = 8;
  const std::uint32_t node = node_of_[rank], local = local_rank_[rank];
  const std::vector<Rank>& here = on_node_[node];
  TreeLinks links;
  if (local != 0) {
    links.parent = here[(local - 1) / kFanOut];
  } else if (node != 0) {
    links.parent = on_node_[(node - 1) / kFanOut].front();
  }
  for (std::uint32_t i = 1; i <= kFanOut; ++i) {
    if (local * kFanOut + i < here.size()) links.children.push_back(here[local * kFanOut + i]);
    if (local == 0 && node * kFanOut + i < nodes()) links.children.push_back(on_node_[node * kFanOut + i].front());
  }
  return links;
}

}  // namespace wherry::route
