// SPDX-License-Identifier: Apache-2.0
#include "route/client/wiring.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace wherry::route {

namespace {

/// The router of a rank whose messages no agent routes: a lane to each of hops(), an input for each of sources(). The
/// inputs lie in `inbox`; the lanes' rings are still to be set.
std::unique_ptr<Router> inline_router(const Topology& topology, Rank rank, InboxShape shape, std::byte* inbox) {
  const Topology::Hops hops = topology.hops(rank);
  auto router = std::make_unique<Router>(hops.next.size(), shape.inputs, shape.ring.buffer_bytes, rank);
  router->set_bells(reinterpret_cast<std::uint64_t*>(inbox));
  for (std::size_t i = 0; i < shape.inputs; ++i)
    router->inputs()[i].ring = RingReader(inbox + shape.ring_at(i), shape.ring);
  return router;
}

struct FreeAligned {
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t(4096)); }
};
using Inbox = std::unique_ptr<std::byte, FreeAligned>;

class ThreadWiring final : public Wiring {
 public:
  ThreadWiring(Place place, std::vector<std::shared_ptr<Inbox>> inboxes, const std::vector<InboxShape>& shapes)
      : Wiring(std::move(place)), inboxes_(std::move(inboxes)) {
    const Topology& topology = place_.topology;
    const Topology::Hops hops = topology.hops(place_.rank);
    own_ = inline_router(topology, place_.rank, shapes[place_.rank], inboxes_[place_.rank]->get());
    router_ = own_.get();
    for (std::size_t i = 0; i < hops.next.size(); ++i) {
      const Rank next = hops.next[i];
      const std::vector<Rank> sources = topology.sources(next);
      const auto input = std::ranges::find(sources, place_.rank) - sources.begin();
      connect(router_->lanes()[i], shapes[next], inboxes_[next]->get(), static_cast<std::size_t>(input));
      const Presence presence(inboxes_[next]->get() + shapes[next].presence_at());
      if (next == place_.rank) {
        presence_ = presence;
      } else {
        neighbours_.emplace_back(next, static_cast<std::uint32_t>(i), presence, 0);
      }
    }
    router_->set_table(hops.lane_of_rank, std::vector<bool>(hops.next.size(), true));
  }
  [[nodiscard]] std::string transport() const override {
    return place_.topology.ranks() == 1 ? "one rank alone" : "threads of one process";
  }

 private:
  std::vector<std::shared_ptr<Inbox>> inboxes_;
  std::unique_ptr<Router> own_;
};

}  // namespace

std::vector<std::unique_ptr<Wiring>> wire_threads(const std::vector<std::uint32_t>& node_of_rank, RingShape shape) {
  const Topology topology(node_of_rank);
  std::vector<std::shared_ptr<Inbox>> inboxes;
  std::vector<InboxShape> shapes;
  for (Rank rank = 0; rank < topology.ranks(); ++rank) {
    shapes.push_back({static_cast<std::uint32_t>(topology.sources(rank).size()), shape});
    auto* memory = static_cast<std::byte*>(::operator new(shapes.back().bytes(), std::align_val_t(4096)));
    std::memset(memory, 0, shapes.back().bytes());
    inboxes.push_back(std::make_shared<Inbox>(memory));
  }
  std::vector<std::unique_ptr<Wiring>> wirings;
  for (Rank rank = 0; rank < topology.ranks(); ++rank)
    wirings.push_back(std::make_unique<ThreadWiring>(Place{rank, topology, Placement::kInline}, inboxes, shapes));
  return wirings;
}

}  // namespace wherry::route
