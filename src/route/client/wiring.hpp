// SPDX-License-Identifier: Apache-2.0
// Connects one rank to its job: a router with lanes and inputs, and the objects that must live as long as the router.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "route/client/mapped_hop.hpp"
#include "route/inbox.hpp"
#include "route/router.hpp"
#include "route/topology.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

/// The rank, and the job that it belongs to.
struct Place {
  Rank rank = 0;
  Topology topology;
  Placement placement = Placement::kInline;
  std::string buffers_why = {};  ///< why the buffers have their size, for describe(); empty: nothing to say
};

class Wiring {
 public:
  virtual ~Wiring() = default;
  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] Router& router() noexcept { return *router_; }
  /// Makes progress with transfers over networks. True: something happened.
  virtual bool progress() noexcept { return false; }
  /// Ok, or why the job has failed. Costs one or two system calls, so do not call it in every poll.
  [[nodiscard]] virtual Status health() noexcept { return {}; }
  /// Whether the first `written` bytes of a lane (Lane::written) have left this process, or can never leave it.
  [[nodiscard]] virtual bool has_sent(std::uint32_t /*lane*/, std::uint64_t /*written*/) noexcept { return true; }
  /// Whether the reader of a bridged lane announced its departure before it closed its connections.
  [[nodiscard]] virtual bool has_left(std::uint32_t /*lane*/) noexcept { return false; }
  /// Whether the receivers have taken all messages that this rank sent over networks, or `patience` has passed since
  /// the first call. If false, poll and call again. Call it when the application sends no further messages.
  [[nodiscard]] virtual bool settled(std::chrono::nanoseconds /*patience*/) noexcept { return true; }
  /// The names of hops that have not taken all of this rank's network messages; empty if there are none.
  [[nodiscard]] virtual std::string unsettled() { return {}; }
  /// Next hops whose inboxes this rank maps, without itself.
  [[nodiscard]] std::vector<MappedHop>& mapped_hops() noexcept { return mapped_hops_; }
  /// Next hops over a network. Only a message can inform them that this rank leaves or has failed.
  [[nodiscard]] const std::vector<Rank>& bridged_hops() const noexcept { return bridged_hops_; }
  /// Publishes that this rank has concluded `rounds` collective rounds.
  virtual void conclude(std::uint32_t rounds) noexcept { presence_.conclude(rounds); }
  /// Publishes that this rank has left the job. The last call before the destructor.
  virtual void leave() noexcept { presence_.leave(); }
  /// Publishes that the job has failed.
  virtual void fail(const JobFailure& failure) noexcept { presence_.fail(failure); }
  [[nodiscard]] Presence presence() const noexcept { return presence_; }
  /// The transport to the next hops: "shared memory", "tcp".
  [[nodiscard]] virtual std::string transport() const = 0;

 protected:
  explicit Wiring(Place place) : place_(std::move(place)) {}
  Place place_;
  Router* router_ = nullptr;  ///< lives as long as the wiring
  Presence presence_;
  std::vector<MappedHop> mapped_hops_;
  std::vector<Rank> bridged_hops_;
};

class Bootstrap;
/// For ranks that are processes: connects to the job that `bootstrap` found. Collective.
Result<std::unique_ptr<Wiring>> wire_processes(const Options& options, std::unique_ptr<Bootstrap> bootstrap,
                                               const Deadline& deadline);
/// For ranks that are threads of one process, or for a single rank. Element i belongs to rank i. `node_of_rank` as in
/// Topology.
std::vector<std::unique_ptr<Wiring>> wire_threads(const std::vector<std::uint32_t>& node_of_rank, RingShape shape);

}  // namespace wherry::route
