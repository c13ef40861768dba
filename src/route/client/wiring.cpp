// SPDX-License-Identifier: Apache-2.0
#include "route/client/wiring.hpp"

#include <algorithm>

#include "base/aligned.hpp"

namespace wherry::route {
namespace {

using Inbox = std::shared_ptr<std::byte[]>;

/// The wiring of a rank without an agent: a lane to each of next_hops(), and an input for each of previous_hops().
class ThreadWiring final : public Wiring {
 public:
  ThreadWiring(Place place, std::vector<Inbox> inboxes, const std::vector<InboxShape>& shapes)
      : Wiring(std::move(place)), inboxes_(std::move(inboxes)) {
    const Topology& topology = place_.topology;
    const NextHops hops = topology.next_hops(place_.rank);
    const InboxShape& shape = shapes[place_.rank];
    own_ = std::make_unique<Router>(hops.next.size(), shape.inputs, shape.ring.buffer_bytes, place_.rank);
    own_->read_from(shape, inboxes_[place_.rank].get());
    router_ = own_.get();
    for (std::size_t lane = 0; lane < hops.next.size(); ++lane) {
      const Rank next = hops.next[lane];
      const std::vector<Rank> previous = topology.previous_hops(next);
      const auto input = std::ranges::find(previous, place_.rank) - previous.begin();
      connect(router_->lanes()[lane], shapes[next], inboxes_[next].get(), static_cast<std::size_t>(input));
      const Presence presence(inboxes_[next].get() + shapes[next].presence_at());
      if (next == place_.rank) {
        presence_ = presence;
      } else {
        mapped_hops_.emplace_back(next, static_cast<std::uint32_t>(lane), presence, 0);
      }
    }
    router_->set_table(hops.lane_of_rank, std::vector<bool>(hops.next.size(), true));
  }
  [[nodiscard]] std::string transport() const override {
    return place_.topology.ranks() == 1 ? "one rank alone" : "threads of one process";
  }

 private:
  std::vector<Inbox> inboxes_;  ///< of all ranks
  std::unique_ptr<Router> own_;
};

}  // namespace

std::vector<std::unique_ptr<Wiring>> wire_threads(const std::vector<std::uint32_t>& node_of_rank, RingShape shape) {
  const Topology topology(node_of_rank);
  std::vector<Inbox> inboxes;
  std::vector<InboxShape> shapes;
  for (Rank rank = 0; rank < topology.ranks(); ++rank) {
    shapes.push_back({static_cast<std::uint32_t>(topology.previous_hops(rank).size()), shape});
    inboxes.push_back(zeroed_bytes(shapes.back().bytes(), 4096));
  }
  std::vector<std::unique_ptr<Wiring>> wirings;
  for (Rank rank = 0; rank < topology.ranks(); ++rank)
    wirings.push_back(std::make_unique<ThreadWiring>(Place{rank, topology, Placement::kInline}, inboxes, shapes));
  return wirings;
}

}  // namespace wherry::route
