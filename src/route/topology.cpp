// SPDX-License-Identifier: Apache-2.0
#include "route/topology.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace wherry::route {

Topology::Topology(std::vector<std::uint32_t> node_of_rank)
    : node_of_(std::move(node_of_rank)), place_of_(node_of_.size()) {
  for (Rank rank = 0; rank < ranks(); ++rank) {
    const std::uint32_t node = node_of_[rank];
    if (node >= on_node_.size()) on_node_.resize(node + 1);
    place_of_[rank] = static_cast<std::uint32_t>(on_node_[node].size());
    on_node_[node].push_back(rank);
  }
}

std::string Topology::agent_name(std::uint32_t node) const {
  const std::vector<Rank>& ranks = on_node_[node];
  constexpr std::size_t kMost = 8;  // numbers without a pattern in one error
  std::string which;
  if (ranks.size() == 1) {
    which = fmt::format("rank {}", ranks.front());
  } else if (ranks.back() - ranks.front() + 1 == ranks.size()) {
    which = fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  } else if (ranks.size() <= kMost) {
    which = fmt::format("ranks {}", fmt::join(ranks, ", "));
  } else {
    which = fmt::format("ranks {} and {} more", fmt::join(std::span(ranks).first(kMost), ", "), ranks.size() - kMost);
  }
  return fmt::format("the agent of node {} ({})", node, which);
}

Topology::Hops Topology::hops(Rank rank) const {
  Hops hops;
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
    hops.lane_of_rank[to] = node_of_[to] == mine ? place_of_[to] : lane_of_node[node_of_[to]];
  return hops;
}

/// The first ranks of the nodes form a tree, and the ranks of each node one below its first.
Family Topology::family(Rank rank) const {
  constexpr std::uint32_t kFanOut = 8;
  const std::uint32_t node = node_of_[rank], place = place_of_[rank];
  const std::vector<Rank>& here = on_node_[node];
  Family family;
  if (place != 0) {
    family.parent = here[(place - 1) / kFanOut];
  } else if (node != 0) {
    family.parent = on_node_[(node - 1) / kFanOut].front();
  }
  for (std::uint32_t i = 1; i <= kFanOut; ++i) {
    if (place * kFanOut + i < here.size()) family.children.push_back(here[place * kFanOut + i]);
    if (place == 0 && node * kFanOut + i < nodes()) family.children.push_back(on_node_[node * kFanOut + i].front());
  }
  return family;
}

std::vector<Rank> Topology::sources(Rank rank) const {
  std::vector<Rank> sources;
  for (Rank from = 0; from < ranks(); ++from) {
    if (node_of_[from] == node_of_[rank] || gateway(from, node_of_[rank]) == rank) sources.push_back(from);
  }
  return sources;
}

}  // namespace wherry::route
