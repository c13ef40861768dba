// SPDX-License-Identifier: Apache-2.0
// How a rank is connected: its router with lanes and inputs in place, and whatever must live as long as they do.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "route/client/neighbour.hpp"
#include "route/inbox.hpp"
#include "route/router.hpp"
#include "route/topology.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

struct Place {
  Rank rank = 0;
  Topology topology;
  Placement placement = Placement::kInline;
};

class Wiring {
 public:
  virtual ~Wiring() = default;
  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] Router& router() noexcept { return *router_; }
  /// Takes what is under way outside of shared memory a step further; true if something happened.
  virtual bool progress() noexcept { return false; }
  /// Why the job cannot go on, if so. Costs a system call or two: for pollers that have been idle for a while.
  [[nodiscard]] virtual Status health() noexcept { return {}; }
  /// Whether the first `written` bytes of a lane (Lane::written) have left, or never will.
  [[nodiscard]] virtual bool has_sent(std::uint32_t /*lane*/, std::uint64_t /*written*/) noexcept { return true; }
  /// Whether the reader of a lane over a network has said, at the end of its connections, that it reads no more.
  [[nodiscard]] virtual bool has_left(std::uint32_t /*lane*/) noexcept { return false; }
  /// This rank sends nothing more. False: what it sent over a network has not been taken, and `patience` has not passed
  /// since the first call; ask again, and poll meanwhile.
  [[nodiscard]] virtual bool depart(std::chrono::nanoseconds /*patience*/) noexcept { return true; }
  /// Names those that have not taken all that this rank sent over a network; empty: none.
  [[nodiscard]] virtual std::string untaken() { return {}; }
  /// Next hops whose memory this rank maps, itself excluded.
  [[nodiscard]] std::vector<Neighbour>& neighbours() noexcept { return neighbours_; }
  /// Next hops that must be told by a message when this rank leaves or fails: there is a network in between.
  [[nodiscard]] const std::vector<Rank>& distant() const noexcept { return distant_; }
  /// Everybody else may know that this rank has concluded so many collective rounds.
  virtual void conclude(std::uint32_t rounds) noexcept { presence_.conclude(rounds); }
  /// This rank takes no part any more. The last call but the destructor.
  virtual void leave() noexcept { presence_.leave(); }
  /// This rank has found the job broken.
  virtual void fail(const Breakdown& breakdown) noexcept { presence_.fail(breakdown); }
  [[nodiscard]] Presence presence() const noexcept { return presence_; }
  /// "shared memory", "ucx tcp": how the next hops are reached.
  [[nodiscard]] virtual std::string transport() const = 0;

 protected:
  explicit Wiring(Place place) : place_(std::move(place)) {}
  Place place_;
  Router* router_ = nullptr;  ///< lives as long as the wiring
  Presence presence_;
  std::vector<Neighbour> neighbours_;
  std::vector<Rank> distant_;
};

class Bootstrap;
/// Ranks that are processes: the job that `bootstrap` found. Collective.
Result<std::unique_ptr<Wiring>> wire_processes(const Options& options, std::unique_ptr<Bootstrap> bootstrap,
                                               const Deadline& deadline);
/// Ranks that are threads of one process, or one rank alone: memory that all of them have anyway. Element i belongs to
/// rank i. `node_of_rank` as in Topology.
std::vector<std::unique_ptr<Wiring>> wire_threads(const std::vector<std::uint32_t>& node_of_rank, RingShape shape);

}  // namespace wherry::route
