// SPDX-License-Identifier: Apache-2.0
// One agent's part of a job. The ranks of its node join one by one. When all agents of the job are connected, it routes
// these ranks' messages until the last of them has left.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "fabric/stream_worker.hpp"
#include "route/internal.hpp"
#include "route/layout.hpp"
#include "route/request.hpp"
#include "route/service/routing_thread.hpp"

namespace wherry::route {

class Job {
 public:
  struct Options {
    std::uint32_t threads = 1;      ///< routing threads; the first is the agent's data thread
    std::vector<int> cores;         ///< of the further threads, in turn; empty: not pinned
    fabric::StreamOptions network;  ///< of TCP connections among agents
    /// The time that an ending job waits for others to take its messages.
    std::chrono::milliseconds patience = Hop::kPatience;
  };

  /// The size of the inboxes for the job that the request describes.
  static std::size_t bytes_for(const JoinRequest& request, std::uint32_t threads);
  static Result<std::unique_ptr<Job>> create(const JoinRequest& request, const Options& options);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Whether the session belongs to a rank that has joined and not left.
  [[nodiscard]] bool has(std::uint64_t session) const noexcept { return present_.contains(session); }
  [[nodiscard]] std::size_t ranks() const noexcept { return present_.size(); }
  /// Whether all ranks have left before the agents were connected, so that nothing is in flight.
  [[nodiscard]] bool abandoned() const noexcept { return present_.empty() && !connected_; }

  // ---- what ranks request

  /// Adds a rank of this node. Returns the addresses of the routing threads' inboxes.
  Result<std::vector<Address>> join(std::uint64_t session, const JoinRequest& request);
  /// Called once, when all ranks of the node have joined: connects to the other agents and begins to route.
  Status connect(const ConnectRequest& request);
  /// Records that the session's rank has left after `rounds` collective rounds. Precondition: has(session).
  void leave(std::uint64_t session, std::uint32_t rounds);
  /// Fails the job, because the session ended without leave(). Works even without memory. Precondition: has(session).
  void die(std::uint64_t session, const std::string& name, std::uint32_t pid) noexcept;
  /// Fails the job and informs all its ranks as lanes get room. Only the first failure counts.
  void fail(JobFailure failure);

  // ---- work, in the agent's data thread

  /// Runs one turn. True: there was work.
  bool poll() noexcept;
  /// Whether all ranks of this node have left and their messages were taken or given up. Then destroy the job.
  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] RouterCounts counts() const;
  /// The last call before destruction if the job is over() or abandoned(). Other agents that map the inboxes then see
  /// that this agent has left. Returns its counts.
  RouterCounts end() noexcept;

 private:
  using Present = std::map<std::uint64_t, Rank>;

  Job(const JoinRequest& request, Options options);
  Status check(const JoinRequest& request) const;
  Result<std::unique_ptr<Hop>> make_hop(const JoinRequest& request, std::uint32_t thread) const;
  Status connect_node(std::uint32_t node, const std::vector<Address>& agent);
  void remove(Present::iterator rank) noexcept;
  bool push_notices() noexcept;
  bool finish();
  void check_threads();
  void warn_of_losses() const noexcept;
  [[nodiscard]] AgentLayout layout() const noexcept { return {topology_, node_, options_.threads}; }

  const Options options_;
  const Topology topology_;
  const std::uint32_t node_;
  const RingShape shape_;
  const bool memory_between_nodes_;
  const std::size_t bytes_;
  std::vector<std::unique_ptr<RoutingThread>> threads_;
  std::set<Rank> joined_;  ///< ever
  Present present_;        ///< by session
  bool asked_to_connect_ = false;
  bool connected_ = false;          ///< asked_to_connect_, and that succeeded
  bool failed_ = false;             ///< the ranks are told, or have been
  std::optional<Rank> died_;        ///< there was no memory to fail(): poll() tries again
  std::uint64_t ending_since_ = 0;  ///< now_ns() at which the last rank left; 0: some are present. connected_
  int quiet_turns_ = 0;             ///< in a row, of an ending job
  bool over_ = false;
  unsigned turns_ = 0;
  std::vector<Notice> notices_;  ///< for ranks, to be put into lanes as those get room
};

}  // namespace wherry::route
