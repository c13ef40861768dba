// SPDX-License-Identifier: Apache-2.0
#include "route/service/job.hpp"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/try.hpp"
#include "route/explain.hpp"

namespace wherry::route {
namespace {

constexpr std::size_t kMaxFailureBytes = 2048;  // of the reason that ranks are told
constexpr unsigned kTurnsBetweenChecks = 1024;

/// An inbox has at least one ring.
InboxShape inbox_of(const AgentLayout& layout, std::uint32_t thread, RingShape ring) {
  return {std::max(layout.inputs(thread), 1U), ring};
}

}  // namespace

std::size_t Job::bytes_for(const JoinRequest& request, std::uint32_t threads) {
  const Topology topology(request.node_of_rank);
  const AgentLayout layout{topology, request.node_of_rank[request.rank], threads};
  std::size_t bytes = 0;
  for (std::uint32_t thread = 0; thread < threads; ++thread) bytes += inbox_of(layout, thread, request.shape).bytes();
  return bytes;
}

Job::Job(const JoinRequest& request, Options options)
    : options_(std::move(options)),
      topology_(request.node_of_rank),
      node_(request.node_of_rank[request.rank]),
      shape_(request.shape),
      memory_between_nodes_(request.memory_between_nodes),
      bytes_(bytes_for(request, options_.threads)) {}

Result<std::unique_ptr<Job>> Job::create(const JoinRequest& request, const Options& options) {
  std::unique_ptr<Job> job(new Job(request, options));
  for (std::uint32_t thread = 0; thread < options.threads; ++thread) {
    WHERRY_ASSIGN(auto hop, job->make_hop(request, thread));
    job->threads_.push_back(std::make_unique<RoutingThread>(std::move(hop)));
  }
  return job;
}

Result<std::unique_ptr<Hop>> Job::make_hop(const JoinRequest& request, std::uint32_t thread) const {
  const AgentLayout layout = this->layout();
  Hop::Options options;
  options.lanes = layout.lanes();
  options.inbox = inbox_of(layout, thread, shape_);
  options.network = request.network;
  options.transport = request.transport;
  options.stream = options_.network;
  WHERRY_ASSIGN(auto hop, Hop::create(options));
  std::vector<std::uint32_t> lane_of_rank(topology_.ranks());
  std::vector<bool> ends_at_rank(layout.lanes());
  for (Rank rank = 0; rank < topology_.ranks(); ++rank) {
    const std::uint32_t node = topology_.node_of(rank);
    lane_of_rank[rank] = node == node_ ? layout.lane_to_rank(topology_.local_rank(rank)) : layout.lane_to_node(node);
    if (node == node_) ends_at_rank[lane_of_rank[rank]] = true;
  }
  hop->router().set_table(lane_of_rank, ends_at_rank);
  return hop;
}

// ---------------------------------------------------------------- what ranks request

Status Job::check(const JoinRequest& request) const {
  if (topology_.node_of_rank() != request.node_of_rank || shape_ != request.shape ||
      node_ != request.node_of_rank[request.rank]) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("rank {} describes its job otherwise than the ranks before it: an agent serves the ranks of "
                        "one node",
                        request.rank)};
  }
  if (joined_.contains(request.rank) || asked_to_connect_)
    return {StatusCode::kAlreadyExists, fmt::format("rank {} of this job has joined already", request.rank)};
  if (const std::uint32_t inputs = layout().rank_inputs(); request.address.inbox.inputs != inputs)
    return {StatusCode::kProtocol, fmt::format("a rank's inbox must have {} inputs here", inputs)};
  return {};
}

Result<std::vector<Address>> Job::join(std::uint64_t session, const JoinRequest& request) {
  WHERRY_TRY(check(request));
  const AgentLayout layout = this->layout();
  const std::uint32_t local_rank = topology_.local_rank(request.rank);
  const std::string who = fmt::format("rank {}", request.rank);
  std::vector<Address> addresses;
  for (std::uint32_t thread = 0; thread < threads_.size(); ++thread) {
    Hop& hop = threads_[thread]->hop();
    const bool mapped = hop.shares_memory(request.address);
    WHERRY_TRY(hop.connect(layout.lane_to_rank(local_rank), request.address, thread, mapped, who));
    if (!mapped && layout.thread_of(local_rank) == thread)
      WHERRY_TRY(hop.expect(layout.input_of_rank(local_rank), request.address, 0, who));
    addresses.push_back(hop.address());
  }
  joined_.insert(request.rank);
  present_.emplace(session, request.rank);
  return addresses;
}

Status Job::connect(const ConnectRequest& request) {
  if (asked_to_connect_ || joined_.size() != layout().local_ranks() || request.agents.size() != topology_.nodes())
    return {StatusCode::kFailedPrecondition, "connect comes once, when every rank of the node has joined"};
  asked_to_connect_ = true;
  for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
    if (node != node_) WHERRY_TRY(connect_node(node, request.agents[node]));
  }
  const std::vector<int>& cores = options_.cores;
  for (std::size_t thread = 1; thread < threads_.size(); ++thread)
    threads_[thread]->start(cores.empty() ? -1 : cores[(thread - 1) % cores.size()]);
  connected_ = true;
  spdlog::info("route: job of {} ranks on {} nodes; node {} has {} ranks, {} routing threads, {} bytes of buffers",
               topology_.ranks(), topology_.nodes(), node_, layout().local_ranks(), threads_.size(), bytes_);
  return {};
}

Status Job::connect_node(std::uint32_t node, const std::vector<Address>& agent) {
  const std::string who = topology_.agent_name(node);
  if (agent.size() != threads_.size()) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("{} has {} routing threads, this one {}: they must agree (route.routing_threads)", who,
                        agent.size(), threads_.size())};
  }
  const AgentLayout mine = layout(), theirs{topology_, node, mine.threads};
  for (std::uint32_t thread = 0; thread < agent.size(); ++thread) {
    Hop& hop = threads_[thread]->hop();
    const bool mapped = memory_between_nodes_ && hop.shares_memory(agent[thread]);
    Status s = hop.connect(mine.lane_to_node(node), agent[thread], theirs.input_of_node(thread, node_), mapped, who);
    if (s && !mapped) s = hop.expect(mine.input_of_node(thread, node), agent[thread], theirs.lane_to_node(node_), who);
    WHERRY_TRY(explain(who + " cannot be reached", std::move(s)));
  }
  return {};
}

void Job::leave(std::uint64_t session, std::uint32_t rounds) {
  const auto rank = present_.find(session);
  const Departure departure{rank->second, rounds};
  if (connected_ && !failed_) {
    // Only this rank's neighbours in the agreement tree can be waiting for it.
    const TreeLinks links = topology_.tree_links(departure.rank);
    std::vector<Rank> concerned = links.children;
    if (links.parent) concerned.push_back(*links.parent);
    const auto message = std::as_bytes(std::span(&departure, 1));
    for (const Rank to : concerned) notices_.push_back({to, kLeftHandler, Bytes(message.begin(), message.end())});
  }
  remove(rank);
}

void Job::die(std::uint64_t session, const std::string& name, std::uint32_t pid) noexcept {
  const auto rank = present_.find(session);
  const bool told = attempt([&] {
    const std::string why = fmt::format("rank {} ({}, pid {}) has died", rank->second, name, pid);
    spdlog::warn("route: {}; its job ends", why);
    fail({{StatusCode::kUnavailable, why}, rank->second});
  });
  if (!told) died_ = rank->second;
  remove(rank);
}

/// Does not allocate memory.
void Job::remove(Present::iterator rank) noexcept {
  present_.erase(rank);
  if (!connected_ || !present_.empty()) return;
  ending_since_ = now_ns();
  for (auto& thread : threads_) thread->stop();  // from now on, poll() takes their turns
}

void Job::fail(JobFailure failure) {
  if (failed_ || !connected_) return;
  const Bytes message = encode(failure, std::min(kMaxFailureBytes, shape_.buffer_bytes - sizeof(Header)));
  std::vector<Notice> notices;
  for (Rank rank = 0; rank < topology_.ranks(); ++rank) notices.push_back({rank, kAbortHandler, message});
  notices_.swap(notices);
  failed_ = true;
  push_notices();
}

// ---------------------------------------------------------------- work

bool Job::push_notices() noexcept {
  if (notices_.empty()) return false;
  RoutingThread& thread = *threads_.front();
  const std::size_t put =
      std::erase_if(notices_, [&](const Notice& one) { return thread.try_put(one.to, one.handler, one.message); });
  if (put != 0) thread.hop().router().flush(Flush::kExplicit);
  return put != 0;
}

bool Job::poll() noexcept {
  if (!connected_) return false;  // a rank that waits for its agent sends nothing
  const auto tell_of_death = [this] { fail({{StatusCode::kUnavailable, "a rank has died"}, *died_}); };
  if (died_ && !failed_ && !attempt(tell_of_death)) return false;
  if (ending_since_ != 0) return finish();
  bool worked = threads_.front()->turn();
  worked |= push_notices();
  if (++turns_ % kTurnsBetweenChecks == 0 && !failed_) attempt([this] { check_threads(); });
  return worked;
}

void Job::check_threads() {
  for (auto& thread : threads_) {
    JobFailure failure = thread->failure();
    if (failure.ok()) continue;
    spdlog::warn("route: {}; its job ends", failure.why.message());
    fail(std::move(failure));
  }
}

/// Runs a turn after all ranks have left. Their messages may still be in inboxes here, or in flight.
bool Job::finish() {
  constexpr int kQuietTurns = 2;
  constexpr std::uint64_t kNoticePatienceNs = 1'000'000'000;  // for ranks that do not read
  bool worked = push_notices();
  for (auto& thread : threads_) worked |= thread->turn();
  quiet_turns_ = worked ? 0 : quiet_turns_ + 1;
  if (quiet_turns_ < kQuietTurns) return worked;
  if (!notices_.empty() && now_ns() - ending_since_ < kNoticePatienceNs) return worked;
  bool settled = true;
  for (auto& thread : threads_) settled &= thread->hop().settled(options_.patience);
  if (settled && !failed_) warn_of_losses();
  over_ = settled;
  return worked;
}

void Job::warn_of_losses() const noexcept {
  (void)attempt([&] {
    for (const auto& thread : threads_) {
      const std::string who = thread->hop().unsettled();
      if (who.empty()) continue;
      spdlog::warn("route: {} ends its part of a job and drops messages: {} did not take them within {} ms",
                   topology_.agent_name(node_), who, options_.patience.count());
    }
  });
}

RouterCounts Job::end() noexcept {
  for (auto& thread : threads_) {
    thread->stop();
    thread->hop().presence().leave();
  }
  return counts();
}

RouterCounts Job::counts() const {
  RouterCounts sum;
  for (const auto& thread : threads_) sum += thread->counts();
  return sum;
}

}  // namespace wherry::route
