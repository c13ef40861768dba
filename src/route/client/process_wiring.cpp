// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes and route for themselves: every rank tells every other who it is and where its inbox lies,
// connects to its next hops, and waits until all have done so.
#include "route/client/process_wiring.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "route/client/introduction.hpp"

namespace wherry::route {
Result<std::unique_ptr<Wiring>> wire_inline(const Introduction& mine, const std::vector<Introduction>& all,
                                            std::unique_ptr<Bootstrap> bootstrap, const Deadline& deadline) {
  const Rank me = bootstrap->rank();
  Place place{me, topology_of(all), mine.placement};
  const Topology& topology = place.topology;
  const Topology::Hops hops = topology.hops(me);
  const std::vector<Rank> sources = topology.sources(me);

  const auto mapped = [&](Rank other) { return reached_by_memory(mine, all[other]); };
  Post::Options options;
  options.mine = me;
  options.lanes = hops.next.size();
  options.inbox = {static_cast<std::uint32_t>(sources.size()), mine.shape};
  options.network = !std::ranges::all_of(hops.next, mapped) || !std::ranges::all_of(sources, mapped);
  WHERRY_ASSIGN(options.transport,
                choose_network(mine, all, *bootstrap, deadline, [] { return fabric::rdma_is_here(); }));
  WHERRY_ASSIGN(options.stream, network_options());
  WHERRY_ASSIGN(auto post, Post::create(options));

  Writer out;
  encode(post->card(), out);
  WHERRY_ASSIGN(auto gathered, bootstrap->exchange(out.bytes(), deadline));
  std::vector<Card> cards;
  for (const Bytes& bytes : gathered) {
    Reader in(bytes);
    WHERRY_ASSIGN(auto card, decode_card(in));
    cards.push_back(std::move(card));
  }
  const auto position = [](const std::vector<Rank>& ranks, Rank rank) {
    return static_cast<std::uint32_t>(std::ranges::find(ranks, rank) - ranks.begin());
  };
  for (std::uint32_t lane = 0; lane < hops.next.size(); ++lane) {
    const Rank next = hops.next[lane];
    if (Status s = post->connect(lane, cards[next], position(topology.sources(next), me), mapped(next),
                                 fmt::format("rank {}", next));
        !s)
      return Status(s.code(), fmt::format("rank {} cannot reach rank {}: {}", me, next, s.message()));
  }
  for (std::uint32_t input = 0; input < sources.size(); ++input) {
    const Rank source = sources[input];
    if (mapped(source)) continue;
    if (Status s = post->expect(input, cards[source], position(topology.hops(source).next, me),
                                fmt::format("rank {}", source));
        !s)
      return Status(s.code(), fmt::format("rank {} cannot reach rank {}: {}", me, source, s.message()));
  }
  post->router().set_table(hops.lane_of_rank, std::vector<bool>(hops.next.size(), true));
  if (Status s = post->open(deadline); !s) return Status(s.code(), fmt::format("rank {}: {}", me, s.message()));
  WHERRY_TRY(bootstrap->exchange({}, deadline));
  auto wiring = std::make_unique<ProcessWiring>(std::move(place), std::move(bootstrap), std::move(post));
  for (std::uint32_t lane = 0; lane < hops.next.size(); ++lane)
    wiring->watch(hops.next[lane], lane, static_cast<pid_t>(cards[hops.next[lane]].pid));
  return std::unique_ptr<Wiring>(std::move(wiring));
}

Result<std::unique_ptr<Wiring>> wire_processes(const Options& options, std::unique_ptr<Bootstrap> bootstrap,
                                               const Deadline& deadline) {
  WHERRY_ASSIGN(auto mine, introduce(options, *bootstrap));
  WHERRY_ASSIGN(auto gathered, bootstrap->exchange(encode(mine), deadline));
  WHERRY_ASSIGN(auto all, agree(mine, bootstrap->rank(), gathered));
  if (mine.placement != Placement::kInline) return wire_agents(mine, all, std::move(bootstrap), deadline);
  return wire_inline(mine, all, std::move(bootstrap), deadline);
}

}  // namespace wherry::route
