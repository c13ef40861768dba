// SPDX-License-Identifier: Apache-2.0
#include "route/service/route_service.hpp"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/try.hpp"
#include "route/internal.hpp"

namespace wherry::route {
namespace {

void add(RouterCounts& sum, const RouterCounts& more) {
  sum.bytes_out += more.bytes_out;
  sum.bytes_in += more.bytes_in;
  sum.forwarded_bytes += more.forwarded_bytes;
  sum.forwarded += more.forwarded;
  sum.transfers += more.transfers;
  sum.blocked += more.blocked;
  for (std::size_t i = 0; i < std::size(sum.flushes); ++i) sum.flushes[i] += more.flushes[i];
}

constexpr std::size_t kMostWords = 2048;  // bytes of what a rank says about the end of its job
constexpr unsigned kCheckEvery = 1024;    // rounds between looks at what went wrong

}  // namespace

RouteService::RouteService(RouteOptions options) : options_(std::move(options)) {}
RouteService::~RouteService() = default;

Settings RouteService::settings() {
  auto set_threads = [this](const std::string& text) -> Status {
    const auto threads = parse_number(text, 1, kMaxThreads);
    if (!threads) return bad_setting("route.routing_threads", text, threads.status().message());
    return options_.threads = static_cast<std::uint32_t>(*threads), ok_status();
  };
  auto set_timeout = [this](const std::string& text) -> Status {
    const auto seconds = parse_number(text, 3, 3600);
    if (!seconds) return bad_setting("route.peer_timeout_s", text, seconds.status().message());
    return options_.network.peer_timeout = std::chrono::seconds(*seconds), ok_status();
  };
  return {
      bytes_setting("route.buffer_budget", "buffer_budget", options_.budget,
                    "memory for the buffers that messages between ranks are routed through"),
      {"route.routing_threads", "routing_threads",
       "threads that route the messages of a job; all its agents must agree",
       [this] { return fmt::format("{}", options_.threads); }, std::move(set_threads), false},
      {"route.peer_timeout_s", "peer_timeout_s",
       "seconds without a sign of life after which another agent of a job, or its machine, counts as lost",
       [this] { return fmt::format("{}", options_.network.peer_timeout.count()); }, std::move(set_timeout), false},
  };
}

Status RouteService::start(session::ServiceHost& host) {
  options_.cores = host.cores;
  if (host.address) options_.network.listen = host.address->host;
  options_.network.tls = host.tls;
  return ok_status();
}

void RouteService::on_session_end(session::Client& peer) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    Job* const job = it->second.get();
    const auto present = job->present.find(peer.id());
    if (present == job->present.end()) {
      ++it;
      continue;
    }
    const bool told = attempt([&] {
      const std::string why = fmt::format("rank {} ({}, pid {}) has died", present->second, peer.name(), peer.pid());
      spdlog::warn("route: {}; its job ends", why);
      abort(*job, {{StatusCode::kUnavailable, why}, present->second});
    });
    if (!told) job->died = present->second;
    remove(*job, present);
    it = job->present.empty() && !job->connected ? end(it) : std::next(it);
  }
}

Result<Bytes> RouteService::on_request(session::Client& peer, std::string_view method, ByteView payload) {
  if (method == "hello") {
    Writer out;
    out.put(options_.threads);
    return std::move(out).take();
  }
  if (method == "network") {
    Writer out;
    out.put(static_cast<std::uint8_t>(fabric::rdma_is_here()));
    return std::move(out).take();
  }
  if (method == "join") {
    WHERRY_ASSIGN(auto request, decode_join(payload));
    return join(peer, request);
  }
  if (method == "connect") {
    WHERRY_ASSIGN(auto request, decode_connect(payload));
    WHERRY_TRY(connect(peer, request));
    return Bytes();
  }
  if (method == "leave") {
    Reader in(payload);
    const auto it = jobs_.find(in.get<std::uint64_t>());
    const auto rounds = in.get<std::uint32_t>();
    if (!in.at_end() || it == jobs_.end() || !it->second->present.contains(peer.id()))
      return Status(StatusCode::kNotFound, "this session is in no such job");
    leave(*it->second, peer.id(), rounds);
    if (it->second->present.empty() && !it->second->connected) end(it);
    return Bytes();
  }
  if (method == "abort") {
    Reader in(payload);
    const auto it = jobs_.find(in.get<std::uint64_t>());
    auto breakdown = decode_breakdown(in.get_bytes());
    if (!in.at_end() || !breakdown || it == jobs_.end() || !it->second->present.contains(peer.id()))
      return Status(StatusCode::kNotFound, "this session is in no such job");
    abort(*it->second, *std::move(breakdown));
    return Bytes();
  }
  return Status(StatusCode::kUnsupported, fmt::format("route has no method '{}'", method));
}

Result<RouteService::Job*> RouteService::job_for(const JoinRequest& request) {
  if (const auto it = jobs_.find(request.job); it != jobs_.end()) {
    Job& job = *it->second;
    if (job.topology.node_of_rank() != request.node_of_rank || job.shape != request.shape ||
        job.node != request.node_of_rank[request.rank]) {
      return Status(StatusCode::kFailedPrecondition,
                    fmt::format("rank {} describes its job otherwise than the ranks before it: an agent serves the "
                                "ranks of one node",
                                request.rank));
    }
    return &job;
  }
  if (draining_) return Status(StatusCode::kUnavailable, "the agent is shutting down");
  auto job = std::make_unique<Job>();
  job->topology = Topology(request.node_of_rank);
  job->node = request.node_of_rank[request.rank];
  job->shape = request.shape;
  job->memory_between_nodes = request.memory_between_nodes;
  const AgentLayout layout{job->topology, job->node, options_.threads};
  for (std::uint32_t thread = 0; thread < options_.threads; ++thread)
    job->bytes += InboxShape{std::max(layout.inputs(thread), 1U), request.shape}.bytes();
  if (used_ + job->bytes > options_.budget) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("the buffers of this job take {} bytes; of the agent's {} (route.budget) {} are in use. "
                              "Fewer or smaller buffers would fit",
                              job->bytes, options_.budget, used_));
  }
  for (std::uint32_t thread = 0; thread < options_.threads; ++thread) {
    Post::Options options;
    options.lanes = layout.lanes();
    options.inbox = {std::max(layout.inputs(thread), 1U), request.shape};
    options.network = request.network;
    options.transport = request.transport;
    options.stream = options_.network;
    WHERRY_ASSIGN(auto post, Post::create(options));
    std::vector<std::uint32_t> lane_of_rank(job->topology.ranks());
    std::vector<bool> ends_at_rank(layout.lanes());
    for (Rank rank = 0; rank < job->topology.ranks(); ++rank) {
      const std::uint32_t node = job->topology.node_of(rank);
      lane_of_rank[rank] =
          node == job->node ? layout.lane_to_rank(job->topology.place_of(rank)) : layout.lane_to_node(node);
      if (node == job->node) ends_at_rank[lane_of_rank[rank]] = true;
    }
    post->router().set_table(lane_of_rank, ends_at_rank);
    job->threads.push_back(std::make_unique<RoutingThread>(std::move(post)));
  }
  Job* const made = jobs_.emplace(request.job, std::move(job)).first->second.get();
  used_ += made->bytes;
  return made;
}

Result<Bytes> RouteService::join(session::Client& peer, const JoinRequest& request) {
  WHERRY_ASSIGN(auto found, job_for(request));
  Job& job = *found;
  if (job.joined.contains(request.rank) || job.asked_to_connect) {
    return Status(StatusCode::kAlreadyExists, fmt::format("rank {} of this job has joined already", request.rank));
  }
  const AgentLayout layout = job.layout();
  if (request.card.inbox.inputs != layout.rank_inputs())
    return Status(StatusCode::kProtocol, fmt::format("a rank's inbox must have {} inputs here", layout.rank_inputs()));
  const std::uint32_t place = job.topology.place_of(request.rank);
  std::vector<Card> cards;
  for (std::uint32_t thread = 0; thread < job.threads.size(); ++thread) {
    Post& post = job.threads[thread]->post();
    const std::string who = fmt::format("rank {}", request.rank);
    const bool mapped = post.shares_memory(request.card);
    WHERRY_TRY(post.connect(layout.lane_to_rank(place), request.card, thread, mapped, who));
    if (!mapped && layout.thread_of(place) == thread) {
      WHERRY_TRY(post.expect(layout.input_of_rank(place), request.card, 0, who));
    }
    cards.push_back(post.card());
  }
  job.joined.insert(request.rank);
  job.present.emplace(peer.id(), request.rank);
  return encode(cards);
}

Status RouteService::connect(session::Client& peer, const ConnectRequest& request) {
  const auto it = jobs_.find(request.job);
  if (it == jobs_.end() || !it->second->present.contains(peer.id()))
    return {StatusCode::kNotFound, "this session is in no such job"};
  Job& job = *it->second;
  const AgentLayout layout = job.layout();
  if (job.asked_to_connect || job.joined.size() != layout.local_ranks() ||
      request.agents.size() != job.topology.nodes())
    return {StatusCode::kFailedPrecondition, "connect comes once, when every rank of the node has joined"};
  job.asked_to_connect = true;
  for (std::uint32_t node = 0; node < job.topology.nodes(); ++node) {
    if (node == job.node) continue;
    const std::vector<Card>& agent = request.agents[node];
    if (agent.size() != job.threads.size()) {
      return {StatusCode::kFailedPrecondition,
              fmt::format("{} has {} routing threads, this one {}: they must agree (route.threads)",
                          job.topology.agent_name(node), agent.size(), job.threads.size())};
    }
    const AgentLayout theirs{job.topology, node, layout.threads};
    const std::string who = job.topology.agent_name(node);
    for (std::uint32_t thread = 0; thread < agent.size(); ++thread) {
      Post& post = job.threads[thread]->post();
      const bool mapped = job.memory_between_nodes && post.shares_memory(agent[thread]);
      Status s =
          post.connect(layout.lane_to_node(node), agent[thread], theirs.input_of_node(thread, job.node), mapped, who);
      if (s && !mapped)
        s = post.expect(layout.input_of_node(thread, node), agent[thread], theirs.lane_to_node(job.node), who);
      if (!s) return {s.code(), fmt::format("{} cannot be reached: {}", who, s.message())};
    }
  }
  for (std::size_t thread = 1; thread < job.threads.size(); ++thread) {
    const std::vector<int>& cores = options_.cores;
    job.threads[thread]->start(cores.empty() ? -1 : cores[(thread - 1) % cores.size()]);
  }
  job.connected = true;
  spdlog::info("route: job of {} ranks on {} nodes; node {} has {} ranks, {} routing threads, {} bytes of buffers",
               job.topology.ranks(), job.topology.nodes(), job.node, layout.local_ranks(), job.threads.size(),
               job.bytes);
  return {};
}

void RouteService::leave(Job& job, std::uint64_t session, std::uint32_t rounds) {
  const auto present = job.present.find(session);
  const Departure departure{present->second, rounds};
  if (job.connected && !job.failed) {
    // Only next to it, in the tree by which ranks agree, can a rank wait for it.
    const Family family = job.topology.family(departure.rank);
    std::vector<Rank> concerned = family.children;
    if (family.parent) concerned.push_back(*family.parent);
    const auto message = std::as_bytes(std::span(&departure, 1));
    for (const Rank rank : concerned)
      job.notices.push_back({rank, kLeftHandler, Bytes(message.begin(), message.end())});
  }
  remove(job, present);
}

/// Needs no memory.
void RouteService::remove(Job& job, Job::Present::iterator present) noexcept {
  job.present.erase(present);
  if (!job.connected || !job.present.empty()) return;
  job.ending = true;
  job.ending_since = now_ns();
  for (auto& thread : job.threads) thread->stop();  // from here on, poll() makes their rounds
}

RouteService::Jobs::iterator RouteService::end(Jobs::iterator job) {
  for (auto& thread : job->second->threads) {
    thread->stop();
    thread->post().presence().leave();  // other agents map the inbox, and read this after the post has gone
    add(past_, thread->counts());
  }
  used_ -= job->second->bytes;
  return jobs_.erase(job);
}

void RouteService::abort(Job& job, Breakdown breakdown) {
  if (job.failed || !job.connected) return;
  const Bytes message = encode(breakdown, std::min(kMostWords, job.shape.buffer_bytes - sizeof(Header)));
  std::vector<Notice> notices;
  for (Rank rank = 0; rank < job.topology.ranks(); ++rank) notices.push_back({rank, kAbortHandler, message});
  job.notices.swap(notices);
  job.failed = true;
  push_notices(job);
}

bool RouteService::push_notices(Job& job) noexcept {
  if (job.notices.empty()) return false;
  RoutingThread& thread = *job.threads.front();
  const std::size_t put =
      std::erase_if(job.notices, [&](const Notice& one) { return thread.try_put(one.to, one.handler, one.message); });
  if (put != 0) thread.post().router().flush(Flush::kExplicit);
  return put != 0;
}

void RouteService::warn_of_losses(Job& job) const noexcept {
  (void)attempt([&] {
    for (auto& thread : job.threads) {
      const std::string who = thread->post().unsettled();
      if (who.empty()) continue;
      spdlog::warn("route: {} ends its part of a job and drops messages: {} did not take them within {} ms",
                   job.topology.agent_name(job.node), who, options_.patience.count());
    }
  });
}

bool RouteService::settled(Job& job, bool& worked) {
  bool moved = push_notices(job), over = true;
  for (auto& thread : job.threads) moved |= thread->turn();
  worked |= moved;
  job.quiet = moved ? 0 : job.quiet + 1;
  if (job.quiet < 2) return false;
  // What ranks that do not read have no room for cannot be waited for longer than bridges are.
  constexpr std::uint64_t kPatienceNs = 1'000'000'000;
  if (!job.notices.empty() && now_ns() - job.ending_since < kPatienceNs) return false;
  for (auto& thread : job.threads) over &= thread->post().settled(options_.patience);
  if (over && !job.failed) warn_of_losses(job);
  return over;
}

bool RouteService::poll() {
  bool worked = false;
  const bool check = ++rounds_ % kCheckEvery == 0;
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    Job& job = *it->second;
    // Nothing to route yet; but a rank that is waiting for its agent sends nothing either.
    if (!job.connected) {
      ++it;
      continue;
    }
    if (job.died && !job.failed &&
        !attempt([&] { abort(job, {{StatusCode::kUnavailable, "a rank has died"}, *job.died}); })) {
      ++it;
      continue;
    }
    if (job.ending) {
      it = settled(job, worked) ? end(it) : std::next(it);
      continue;
    }
    ++it;
    worked |= job.threads.front()->turn();
    worked |= push_notices(job);
    if (!check || job.failed) continue;
    for (auto& thread : job.threads) {
      if (Breakdown failure = thread->failure(); !failure.ok()) {
        spdlog::warn("route: {}; its job ends", failure.why.message());
        abort(job, std::move(failure));
      }
    }
  }
  return worked;
}

void RouteService::metrics(session::MetricsWriter& out) const {
  RouterCounts sum = past_;
  std::size_t ranks = 0;
  for (const auto& [id, job] : jobs_) {
    ranks += job->present.size();
    for (const auto& thread : job->threads) add(sum, thread->counts());
  }
  out.gauge("wherry_route_jobs", "Jobs with ranks on this node.", static_cast<double>(jobs_.size()));
  out.gauge("wherry_route_ranks", "Ranks that this agent routes for.", static_cast<double>(ranks));
  out.gauge("wherry_route_buffer_bytes", "Memory of the buffers of all jobs.", static_cast<double>(used_));
  out.counter("wherry_route_messages_total", "Messages forwarded.", sum.forwarded);
  out.counter("wherry_route_bytes_total", "Bytes forwarded, headers included.", sum.forwarded_bytes);
  out.counter("wherry_route_transfers_total", "Times that a buffer, or a part of one, was handed on.", sum.transfers);
  out.counter("wherry_route_blocked_total", "Times that the next hop had no room.", sum.blocked);
  constexpr std::pair<Flush, const char*> kCauses[] = {
      {Flush::kFull, "full"}, {Flush::kIdle, "idle"}, {Flush::kTimeout, "timeout"}, {Flush::kExplicit, "explicit"}};
  for (const auto& [cause, label] : kCauses) {
    out.counter("wherry_route_flushes_total", "Why buffers were handed on.",
                sum.flushes[static_cast<std::size_t>(cause)], session::MetricsWriter::label("cause", label));
  }
}

}  // namespace wherry::route
