// SPDX-License-Identifier: Apache-2.0
// Ranks whose messages an agent routes: each has one lane, to the agent of its node, and hears from that agent only.
#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>

#include "base/try.hpp"
#include "route/client/introduction.hpp"
#include "route/client/process_wiring.hpp"
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
              std::unique_ptr<Post> post)
      : ProcessWiring(std::move(place), std::move(bootstrap), std::move(post)), session_(std::move(session)) {}
  ~AgentWiring() override { say_farewell(); }
  void leave() noexcept override {
    Wiring::leave();  // NOLINT(bugprone-parent-virtual-call): the farewell comes before ProcessWiring says goodbye
    say_farewell();
    ProcessWiring::leave();
  }
  void conclude(std::uint32_t rounds) noexcept override {
    rounds_ = rounds;
    ProcessWiring::conclude(rounds);
  }
  /// Waits for nobody: the agent may be stopped, and the application wants to say why the job is over.
  void fail(const Breakdown& breakdown) noexcept override {
    ProcessWiring::fail(breakdown);
    try {
      Writer out;
      out.put(bootstrap_->job());
      out.put_bytes(encode(breakdown));
      // Without an agent there is nobody to tell: the others notice that, too.
      if (const auto told = session_->tell("route", "abort", out.bytes()); !told)
        spdlog::debug("route: {}", told.status().message());
    } catch (const std::exception&) {  // no memory: the others notice the end of this process
    }
  }
  Status health() noexcept override {
    if (Status s = session_->health(); !s)
      return {s.code(),
              fmt::format("{}: {}", place_.topology.agent_name(place_.topology.node_of(place_.rank)), s.message())};
    return ProcessWiring::health();
  }

 private:
  void say_farewell() noexcept {
    if (std::exchange(said_farewell_, true)) return;
    Writer out;
    out.put(bootstrap_->job());
    out.put(rounds_);
    // An agent that is gone needs no farewell, and one that does not answer is not waited for: it sees this session
    // end.
    session_->request_patience = kFarewell;
    if (const auto left = session_->request("route", "leave", out.bytes()); !left)
      spdlog::debug("route: {}", left.status().message());
  }

  static constexpr std::chrono::seconds kFarewell{2};
  std::unique_ptr<RouteSession> session_;
  std::uint32_t rounds_ = 0;
  bool said_farewell_ = false;
};

Result<std::unique_ptr<RouteSession>> open_session(const Introduction& mine, Rank rank, const Deadline& deadline) {
  SessionOptions options;
  options.name = fmt::format("rank {}", rank);
  options.max_tickets = 1;
  options.connect_timeout = std::chrono::milliseconds(deadline.left_ms(3'600'000));
  const char* agent = std::getenv("WHERRY_AGENT");
  options.agent = agent != nullptr && *agent != 0 ? agent : default_session_file();
  auto session = RouteSession::open(options);
  if (session) {
    // start() has a time limit of its own.
    (*session)->request_patience = std::chrono::milliseconds(deadline.left_ms(30'000));
    return session;
  }
  return Status(
      session.status().code(),
      fmt::format("placement {} needs an agent on every node (`wherry run` starts them; or start one a node with "
                  "`wherry agent start` and let WHERRY_AGENT name its session file): {}",
                  to_string(mine.placement), session.status().message()));
}

}  // namespace

Result<std::unique_ptr<Wiring>> wire_agents(const Introduction& mine, const std::vector<Introduction>& all,
                                            std::unique_ptr<Bootstrap> bootstrap, const Deadline& deadline) {
  const Rank me = bootstrap->rank();
  Place place{me, topology_of(all), mine.placement};
  const Topology& topology = place.topology;
  WHERRY_ASSIGN(auto session, open_session(mine, me, deadline));
  WHERRY_ASSIGN(auto hello, session->request("route", "hello", {}));
  Reader reader(hello);
  const auto threads = reader.get<std::uint32_t>();
  if (!reader.at_end() || threads == 0 || threads > kMaxThreads)
    return Status(StatusCode::kProtocol, "the agent's answer to hello makes no sense");
  const AgentLayout layout{topology, mine.node, threads};

  Post::Options options;
  options.mine = me;
  options.lanes = 1;
  options.inbox = {layout.rank_inputs(), mine.shape};
  options.network = session->context().transport() != Transport::kShm;
  const Transport own = session->context().transport();
  // An agent has one transport for its ranks on other machines and for other agents.
  const auto has_rdma = [&]() -> Result<bool> {
    if (options.network && own != Transport::kRdma) return false;
    WHERRY_ASSIGN(auto answer, session->request("route", "network", {}));
    return answer.size() == 1 && answer.front() == std::byte{1};
  };
  WHERRY_ASSIGN(const auto network, choose_network(mine, all, *bootstrap, deadline, has_rdma));
  options.transport = options.network && network == Transport::kAuto ? own : network;
  WHERRY_ASSIGN(options.stream, network_options());
  WHERRY_ASSIGN(auto post, Post::create(options));

  JoinRequest join;
  join.job = bootstrap->job();
  join.rank = me;
  for (const Introduction& rank : all) join.node_of_rank.push_back(rank.node);
  join.shape = mine.shape;
  join.memory_between_nodes = mine.memory_between_nodes;
  join.network = options.network ||
                 !std::ranges::all_of(all, [&](const Introduction& other) { return reached_by_memory(mine, other); });
  join.transport = options.transport;
  join.card = post->card();
  WHERRY_ASSIGN(auto joined, session->request("route", "join", encode(join)));
  WHERRY_ASSIGN(auto agent, decode_cards(joined));
  if (agent.size() != threads) return Status(StatusCode::kProtocol, "the agent has other threads than it said");

  const std::uint32_t position = topology.place_of(me);
  const std::uint32_t thread = layout.thread_of(position);
  const std::string agent_name = topology.agent_name(mine.node);
  const bool mapped = post->shares_memory(agent[thread]);
  if (Status s = post->connect(0, agent[thread], layout.input_of_rank(position), mapped, agent_name); !s)
    return Status(s.code(), fmt::format("rank {} cannot reach its agent: {}", me, s.message()));
  for (std::uint32_t i = 0; i < threads && !mapped; ++i) {
    if (Status s = post->expect(i, agent[i], layout.lane_to_rank(position), agent_name); !s)
      return Status(s.code(), fmt::format("rank {} cannot hear its agent: {}", me, s.message()));
  }
  post->router().set_table(std::vector<std::uint32_t>(topology.ranks(), 0));

  WHERRY_ASSIGN(auto gathered, bootstrap->exchange(joined, deadline));
  if (position == 0) {
    ConnectRequest connect;
    connect.job = join.job;
    for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
      WHERRY_ASSIGN(auto cards, decode_cards(gathered[topology.on_node(node).front()]));
      connect.agents.push_back(std::move(cards));
    }
    WHERRY_TRY(session->request("route", "connect", encode(connect)));
  }
  if (Status s = post->open(deadline); !s) return Status(s.code(), fmt::format("rank {}: {}", me, s.message()));
  WHERRY_TRY(bootstrap->exchange({}, deadline));
  return std::unique_ptr<Wiring>(
      std::make_unique<AgentWiring>(std::move(place), std::move(bootstrap), std::move(session), std::move(post)));
}

}  // namespace wherry::route
