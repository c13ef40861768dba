// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes and route for themselves. Each rank sends its address to all others, connects to its next
// hops, and waits until all ranks have done so.
#include "route/client/process_wiring.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "route/client/settings.hpp"
#include "route/explain.hpp"

namespace wherry::route {
Result<std::unique_ptr<Wiring>> wire_inline(const Hello& mine, const std::vector<Hello>& all,
                                            std::unique_ptr<Bootstrap> bootstrap, const Deadline& deadline) {
  const Rank me = bootstrap->rank();
  Place place{me, topology_of(all), mine.placement, mine.shape_why};
  const Topology& topology = place.topology;
  const NextHops hops = topology.next_hops(me);
  const std::vector<Rank> previous = topology.previous_hops(me);

  const auto mapped = [&](Rank other) { return reached_by_memory(mine, all[other]); };
  Hop::Options options;
  options.mine = me;
  options.lanes = hops.next.size();
  options.inbox = {static_cast<std::uint32_t>(previous.size()), mine.shape};
  options.network = !std::ranges::all_of(hops.next, mapped) || !std::ranges::all_of(previous, mapped);
  WHERRY_ASSIGN(options.transport,
                choose_network(mine, all, *bootstrap, deadline, [] { return fabric::rdma_is_here(); }));
  WHERRY_ASSIGN(options.stream, network_options());
  WHERRY_ASSIGN(auto hop, Hop::create(options));

  Writer out;
  encode(hop->address(), out);
  WHERRY_ASSIGN(auto gathered, bootstrap->exchange(out.bytes(), deadline));
  std::vector<Address> addresses;
  for (const Bytes& bytes : gathered) {
    Reader in(bytes);
    WHERRY_ASSIGN(auto address, decode_address(in));
    addresses.push_back(std::move(address));
  }
  const auto index_in = [](const std::vector<Rank>& ranks, Rank rank) {
    return static_cast<std::uint32_t>(std::ranges::find(ranks, rank) - ranks.begin());
  };
  const auto cannot_reach = [me](Rank other) { return fmt::format("rank {} cannot reach rank {}", me, other); };
  for (std::uint32_t lane = 0; lane < hops.next.size(); ++lane) {
    const Rank next = hops.next[lane];
    const std::uint32_t input = index_in(topology.previous_hops(next), me);
    WHERRY_TRY(explain(cannot_reach(next),
                       hop->connect(lane, addresses[next], input, mapped(next), fmt::format("rank {}", next))));
  }
  for (std::uint32_t input = 0; input < previous.size(); ++input) {
    const Rank from = previous[input];
    if (mapped(from)) continue;
    const std::uint32_t lane = index_in(topology.next_hops(from).next, me);
    WHERRY_TRY(explain(cannot_reach(from), hop->expect(input, addresses[from], lane, fmt::format("rank {}", from))));
  }
  hop->router().set_table(hops.lane_of_rank, std::vector<bool>(hops.next.size(), true));
  WHERRY_TRY(explain(fmt::format("rank {}", me), hop->open(deadline)));
  WHERRY_TRY(bootstrap->exchange({}, deadline));
  auto wiring = std::make_unique<ProcessWiring>(std::move(place), std::move(bootstrap), std::move(hop));
  for (std::uint32_t lane = 0; lane < hops.next.size(); ++lane)
    wiring->watch(hops.next[lane], lane, static_cast<pid_t>(addresses[hops.next[lane]].pid));
  return std::unique_ptr<Wiring>(std::move(wiring));
}

Result<std::unique_ptr<Wiring>> wire_processes(const Options& options, std::unique_ptr<Bootstrap> bootstrap,
                                               const Deadline& deadline) {
  WHERRY_ASSIGN(auto mine, make_hello(options, *bootstrap));
  WHERRY_ASSIGN(auto gathered, bootstrap->exchange(encode(mine), deadline));
  WHERRY_ASSIGN(const auto all, agree(mine, bootstrap->rank(), gathered));
  const auto advised = [](const Hello& one) { return one.shape_from == ShapeFrom::kProfile; };
  const auto said = [](const Hello& one) { return one.shape_from == ShapeFrom::kPerson; };
  mine.shape = all[bootstrap->rank()].shape;
  if (advised(mine))
    mine.shape_why = std::ranges::any_of(all, said)
                         ? fmt::format("as other ranks were told, not as profile {} says", mine.shape_why)
                         : fmt::format("from profile {}", mine.shape_why);
  else if (!std::ranges::any_of(all, said) && std::ranges::any_of(all, advised))
    mine.shape_why = "from the profiles of other ranks" + (mine.shape_why.empty() ? "" : "; here " + mine.shape_why);
  if (mine.placement != Placement::kInline) return wire_agents(mine, all, std::move(bootstrap), deadline);
  return wire_inline(mine, all, std::move(bootstrap), deadline);
}

}  // namespace wherry::route
