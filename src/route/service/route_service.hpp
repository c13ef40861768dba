// SPDX-License-Identifier: Apache-2.0
// The agent's half of route: jobs, whose ranks on this agent's node join one by one, and whose messages it routes from
// when all agents of the job know each other until the last of its ranks here has left.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fabric/stream_worker.hpp"
#include "route/internal.hpp"
#include "route/layout.hpp"
#include "route/request.hpp"
#include "route/service/routing_thread.hpp"
#include "session/service.hpp"

namespace wherry::route {

struct RouteOptions {
  std::size_t budget = std::size_t{256} << 20;  ///< bytes of inboxes, of all jobs together
  std::uint32_t threads = 1;                    ///< routing threads a job; the first is the agent's data thread
  std::vector<int> cores;                       ///< of the further threads, in turn; empty: not pinned
  fabric::StreamOptions network;                ///< of agents among each other, over TCP
  /// For others to take what a job's last rank on this node has sent.
  std::chrono::milliseconds patience = Post::kPatience;
};

class RouteService final : public session::Service {
 public:
  explicit RouteService(RouteOptions options = {});
  ~RouteService() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "route"; }
  Settings settings() override;
  Status start(session::ServiceHost& host) override;
  void on_session_end(session::Client& peer) override;
  Result<Bytes> on_request(session::Client& peer, std::string_view method, ByteView payload) override;
  bool poll() override;
  void start_draining() override { draining_ = true; }
  bool drained() override { return jobs_.empty(); }
  void metrics(session::MetricsWriter& out) const override;

 private:
  struct Job {
    Topology topology;
    std::uint32_t node = 0;
    RingShape shape;
    bool memory_between_nodes = true;
    std::vector<std::unique_ptr<RoutingThread>> threads;
    using Present = std::map<std::uint64_t, Rank>;
    Present present;  ///< by session
    std::set<Rank> joined;
    bool asked_to_connect = false;  ///< whether that worked or not
    bool connected = false;
    bool failed = false;
    std::optional<Rank> died;  ///< of which there was no memory to tell the others: poll() does
    bool ending = false;       ///< its ranks here have left; what they wrote may still lie here, or be on its way
    std::uint64_t ending_since = 0;
    int quiet = 0;                ///< rounds in a row of an ending job that found nothing to do
    std::vector<Notice> notices;  ///< for ranks, to be put as their lanes get room
    std::size_t bytes = 0;
    [[nodiscard]] AgentLayout layout() const noexcept {
      return {topology, node, static_cast<std::uint32_t>(threads.size())};
    }
  };
  Result<Bytes> join(session::Client& peer, const JoinRequest& request);
  Result<Job*> job_for(const JoinRequest& request);
  Status connect(session::Client& peer, const ConnectRequest& request);
  using Jobs = std::map<std::uint64_t, std::unique_ptr<Job>>;
  /// The rank of the session has left, `rounds` collective rounds after the start. The job ends with its last one.
  void leave(Job& job, std::uint64_t session, std::uint32_t rounds);
  static void remove(Job& job, Job::Present::iterator present) noexcept;
  /// Frees what the job held.
  Jobs::iterator end(Jobs::iterator job);
  /// Tells every rank of the job, on its way through the lanes, however long that takes.
  void abort(Job& job, Breakdown breakdown);
  /// Puts the notices for which there is room.
  static bool push_notices(Job& job) noexcept;
  /// Moves on what the ranks of a job that is ending have left. True: nothing is left, and bridges have sent all.
  bool settled(Job& job, bool& worked);
  void warn_of_losses(Job& job) const noexcept;

  RouteOptions options_;
  Jobs jobs_;
  std::size_t used_ = 0;
  RouterCounts past_;  ///< of jobs that are over
  bool draining_ = false;
  unsigned rounds_ = 0;
};

}  // namespace wherry::route
