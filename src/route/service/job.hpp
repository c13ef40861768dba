// SPDX-License-Identifier: Apache-2.0
// One agent's part of a job. The ranks of its node join one by one. When all agents of the job are connected, it routes
// their messages, until the last of its ranks has left.
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

  /// Bytes of the inboxes of the job that this rank describes.
  static std::size_t bytes_for(const JoinRequest& request, std::uint32_t threads);
  static Result<std::unique_ptr<Job>> create(const JoinRequest& request, const Options& options);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Whether the session is that of a rank that has joined and not left.
  [[nodiscard]] bool has(std::uint64_t session) const noexcept { return present_.contains(session); }
  [[nodiscard]] std::size_t ranks() const noexcept { return present_.size(); }
  /// Ranks have joined and left before the agents were connected, so nothing is in flight.
  [[nodiscard]] bool abandoned() const noexcept { return present_.empty() && !connected_; }

  // ---- what ranks request

  /// A rank of this node joins. The addresses of the routing threads' inboxes.
  Result<std::vector<Address>> join(std::uint64_t session, const JoinRequest& request);
  /// Once, when all ranks of the node have joined: connects to the other agents and begins to route.
  Status connect(const ConnectRequest& request);
  /// The rank of the session has left, after so many collective rounds. Precondition: has(session).
  void leave(std::uint64_t session, std::uint32_t rounds);
  /// The session has ended without leave(): the job fails. Works without memory, too. Precondition: has(session).
  void die(std::uint64_t session, const std::string& name, std::uint32_t pid) noexcept;
  /// The first failure counts. Tells every rank of the job, as lanes get room.
  void fail(JobFailure failure);

  // ---- work, in the agent's data thread

  /// One turn. True: there was work.
  bool poll() noexcept;
  /// All ranks of this node have left, and their messages have been taken or given up. To be destroyed.
  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] RouterCounts counts() const;
  /// The last call before destruction if it is over() or abandoned(). Other agents, which map the inboxes, see that
  /// this one has left. Returns its counts.
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
