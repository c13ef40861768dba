// SPDX-License-Identifier: Apache-2.0
// Ranks whose messages an agent routes. Each rank has one lane, to the agent of its node, and receives only from it.
#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/try.hpp"
#include "route/client/environment.hpp"
#include "route/client/process_wiring.hpp"
#include "route/client/settings.hpp"
#include "route/explain.hpp"
#include "route/layout.hpp"
#include "route/request.hpp"
#include "session/connection.hpp"

namespace wherry::route {
namespace {

class RouteSession final : public session::Connection {
 public:
  static Result<std::unique_ptr<RouteSession>> open(const SessionOptions& options) {
    WHERRY_ASSIGN(auto session,
                  Connection::open(options, [] { return std::unique_ptr<Connection>(new RouteSession); }));
    return std::unique_ptr<RouteSession>(static_cast<RouteSession*>(session.release()));
  }
  ~RouteSession() override { close(); }
  using Connection::tell;

 private:
  RouteSession() = default;
};

class AgentWiring final : public ProcessWiring {
 public:
  AgentWiring(Place place, std::unique_ptr<Bootstrap> bootstrap, std::unique_ptr<RouteSession> session,
              std::unique_ptr<Hop> hop)
      : ProcessWiring(std::move(place), std::move(bootstrap), std::move(hop)), session_(std::move(session)) {}
  ~AgentWiring() override { leave_agent(); }
  void leave() noexcept override {
    Wiring::leave();  // NOLINT(bugprone-parent-virtual-call): the agent is told before the connections end
    leave_agent();
    ProcessWiring::leave();
  }
  void conclude(std::uint32_t rounds) noexcept override {
    rounds_ = rounds;
    ProcessWiring::conclude(rounds);
  }
  /// Does not wait for the agent, which may be stopped: the application must be able to report the failure.
  void fail(const JobFailure& failure) noexcept override {
    ProcessWiring::fail(failure);
    try {
      Writer out;
      out.put(bootstrap_->job());
      out.put_bytes(encode(failure));
      // If the agent is gone, the other ranks detect that themselves.
      if (const auto told = session_->tell("route", "abort", out.bytes()); !told)
        spdlog::debug("route: {}", told.status().message());
    } catch (const std::exception&) {  // no memory: the other ranks will notice the end of this process
    }
  }
  Status health() noexcept override {
    if (Status s = session_->health(); !s)
      return explain(place_.topology.agent_name(place_.topology.node_of(place_.rank)), std::move(s));
    return ProcessWiring::health();
  }

 private:
  void leave_agent() noexcept {
    if (std::exchange(left_agent_, true)) return;
    Writer out;
    out.put(bootstrap_->job());
    out.put(rounds_);
    // Wait only briefly: the agent may be gone or stopped, and it also sees the end of this session.
    session_->request_patience = kLeavePatience;
    if (const auto left = session_->request("route", "leave", out.bytes()); !left)
      spdlog::debug("route: {}", left.status().message());
  }

  static constexpr std::chrono::seconds kLeavePatience{2};
  std::unique_ptr<RouteSession> session_;
  std::uint32_t rounds_ = 0;
  bool left_agent_ = false;
};

Result<std::unique_ptr<RouteSession>> open_session(const Hello& mine, Rank rank, const Deadline& deadline) {
  SessionOptions options;
  options.name = fmt::format("rank {}", rank);
  options.max_tickets = 1;
  options.connect_timeout = std::chrono::milliseconds(deadline.left_ms(3'600'000));
  options.agent = variable("WHERRY_AGENT").value_or(default_session_file());
  auto session = RouteSession::open(options);
  if (session) {
    // Requests may take the rest of start()'s time limit.
    (*session)->request_patience = std::chrono::milliseconds(deadline.left_ms(30'000));
    return session;
  }
  return explain(fmt::format("placement {} needs an agent on every node (`wherry run` starts them; or start one a node "
                             "with `wherry agent start` and let WHERRY_AGENT name its session file)",
                             to_string(mine.placement)),
                 std::move(session));
}

}  // namespace

Result<std::unique_ptr<Wiring>> wire_agents(const Hello& mine, const std::vector<Hello>& all,
                                            std::unique_ptr<Bootstrap> bootstrap, const Deadline& deadline) {
  const Rank me = bootstrap->rank();
  Place place{me, topology_of(all), mine.placement, mine.shape_why};
  const Topology& topology = place.topology;
  WHERRY_ASSIGN(auto session, open_session(mine, me, deadline));
  WHERRY_ASSIGN(const auto answer, session->request("route", "threads", {}));
  Reader reader(answer);
  const auto threads = reader.get<std::uint32_t>();
  if (!reader.at_end() || threads == 0 || threads > kMaxThreads)
    return Status(StatusCode::kProtocol, "the agent's answer to 'threads' is malformed: is it of another version?");
  const AgentLayout layout{topology, mine.node, threads};

  Hop::Options options;
  options.mine = me;
  options.lanes = 1;
  options.inbox = {layout.rank_inputs(), mine.shape};
  options.network = session->context().transport() != Transport::kShm;
  const Transport own = session->context().transport();
  // An agent uses one transport for ranks on other machines and for other agents.
  const auto has_rdma = [&]() -> Result<bool> {
    if (options.network && own != Transport::kRdma) return false;
    WHERRY_ASSIGN(const auto yes, session->request("route", "network", {}));
    return yes.size() == 1 && yes.front() == std::byte{1};
  };
  WHERRY_ASSIGN(const auto network, choose_network(mine, all, *bootstrap, deadline, has_rdma));
  options.transport = options.network && network == Transport::kAuto ? own : network;
  WHERRY_ASSIGN(options.stream, network_options());
  WHERRY_ASSIGN(auto hop, Hop::create(options));

  JoinRequest join;
  join.job = bootstrap->job();
  join.rank = me;
  for (const Hello& rank : all) join.node_of_rank.push_back(rank.node);
  join.shape = mine.shape;
  join.memory_between_nodes = mine.memory_between_nodes;
  join.network =
      options.network || !std::ranges::all_of(all, [&](const Hello& other) { return reached_by_memory(mine, other); });
  join.transport = options.transport;
  join.address = hop->address();
  WHERRY_ASSIGN(auto joined, session->request("route", "join", encode(join)));
  WHERRY_ASSIGN(auto agent, decode_addresses(joined));
  if (agent.size() != threads)
    return Status(StatusCode::kProtocol,
                  fmt::format("the agent has {} routing threads, but said that it has {}", agent.size(), threads));

  const std::uint32_t local = topology.local_rank(me);
  const std::uint32_t thread = layout.thread_of(local);
  const std::string agent_name = topology.agent_name(mine.node);
  const bool mapped = hop->shares_memory(agent[thread]);
  WHERRY_TRY(explain(fmt::format("rank {} cannot reach its agent", me),
                     hop->connect(0, agent[thread], layout.input_of_rank(local), mapped, agent_name)));
  for (std::uint32_t i = 0; i < threads && !mapped; ++i) {
    WHERRY_TRY(explain(fmt::format("rank {} cannot receive from its agent", me),
                       hop->expect(i, agent[i], layout.lane_to_rank(local), agent_name)));
  }
  hop->router().set_table(std::vector<std::uint32_t>(topology.ranks(), 0));

  WHERRY_ASSIGN(auto gathered, bootstrap->exchange(joined, deadline));
  if (local == 0) {
    ConnectRequest connect;
    connect.job = join.job;
    for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
      WHERRY_ASSIGN(auto addresses, decode_addresses(gathered[topology.on_node(node).front()]));
      connect.agents.push_back(std::move(addresses));
    }
    WHERRY_TRY(session->request("route", "connect", encode(connect)));
  }
  WHERRY_TRY(explain(fmt::format("rank {}", me), hop->open(deadline)));
  WHERRY_TRY(bootstrap->exchange({}, deadline));
  return std::unique_ptr<Wiring>(
      std::make_unique<AgentWiring>(std::move(place), std::move(bootstrap), std::move(session), std::move(hop)));
}

}  // namespace wherry::route
