// SPDX-License-Identifier: Apache-2.0
#include "route/service/route_service.hpp"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "base/try.hpp"

namespace wherry::route {
namespace {

Status no_such_job() { return {StatusCode::kNotFound, "this session is in no such job"}; }

}  // namespace

RouteService::RouteService(RouteOptions options) : options_(std::move(options)) {}
RouteService::~RouteService() = default;

Settings RouteService::settings() {
  auto set_threads = [this](const std::string& text) -> Status {
    const auto threads = parse_number(text, 1, kMaxThreads);
    if (!threads) return bad_setting("route.routing_threads", text, threads.status().message());
    return options_.job.threads = static_cast<std::uint32_t>(*threads), ok_status();
  };
  auto set_timeout = [this](const std::string& text) -> Status {
    const auto seconds = parse_number(text, 3, 3600);
    if (!seconds) return bad_setting("route.peer_timeout_s", text, seconds.status().message());
    return options_.job.network.peer_timeout = std::chrono::seconds(*seconds), ok_status();
  };
  return {
      bytes_setting("route.buffer_budget", "buffer_budget", options_.budget,
                    "memory for the buffers that messages between ranks are routed through"),
      {"route.routing_threads", "routing_threads",
       "threads that route the messages of a job; all its agents must agree",
       [this] { return fmt::format("{}", options_.job.threads); }, std::move(set_threads), false},
      {"route.peer_timeout_s", "peer_timeout_s",
       "seconds without a sign of life after which another agent of a job, or its machine, counts as lost",
       [this] { return fmt::format("{}", options_.job.network.peer_timeout.count()); }, std::move(set_timeout), false},
  };
}

Status RouteService::start(session::ServiceHost& host) {
  options_.job.cores = host.cores;
  if (host.address) options_.job.network.listen = host.address->host;
  options_.job.network.tls = host.tls;
  return ok_status();
}

void RouteService::on_session_end(session::Client& client) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    Job& job = *it->second;
    const bool concerned = job.has(client.id());
    if (concerned) job.die(client.id(), client.name(), client.pid());
    it = concerned && job.abandoned() ? end(it) : std::next(it);
  }
}

Result<Bytes> RouteService::on_request(session::Client& client, std::string_view method, ByteView payload) {
  if (method == "threads") {
    Writer out;
    out.put(options_.job.threads);
    return std::move(out).take();
  }
  if (method == "network") {
    Writer out;
    out.put(static_cast<std::uint8_t>(fabric::rdma_is_here()));
    return std::move(out).take();
  }
  if (method == "join") {
    WHERRY_ASSIGN(const auto request, decode_join(payload));
    WHERRY_ASSIGN(const auto job, job_for(request));
    const auto addresses = job->second->join(client.id(), request);
    if (job->second->abandoned()) end(job);  // no rank has got in: its memory is not kept for it
    WHERRY_TRY(addresses);
    return encode(*addresses);
  }
  if (method == "connect") {
    WHERRY_ASSIGN(const auto request, decode_connect(payload));
    const auto it = find(request.job, client);
    if (it == jobs_.end()) return no_such_job();
    WHERRY_TRY(it->second->connect(request));
    return Bytes();
  }
  if (method == "leave") {
    Reader in(payload);
    const auto it = find(in.get<std::uint64_t>(), client);
    const auto rounds = in.get<std::uint32_t>();
    if (!in.at_end() || it == jobs_.end()) return no_such_job();
    it->second->leave(client.id(), rounds);
    if (it->second->abandoned()) end(it);
    return Bytes();
  }
  if (method == "abort") {
    Reader in(payload);
    const auto it = find(in.get<std::uint64_t>(), client);
    auto failure = decode_failure(in.get_bytes());
    if (!in.at_end() || !failure || it == jobs_.end()) return no_such_job();
    it->second->fail(*std::move(failure));
    return Bytes();
  }
  return Status(StatusCode::kUnsupported, fmt::format("route has no method '{}'", method));
}

RouteService::Jobs::iterator RouteService::find(std::uint64_t number, const session::Client& client) {
  const auto it = jobs_.find(number);
  return it != jobs_.end() && it->second->has(client.id()) ? it : jobs_.end();
}

Result<RouteService::Jobs::iterator> RouteService::job_for(const JoinRequest& request) {
  if (const auto it = jobs_.find(request.job); it != jobs_.end()) return it;
  if (draining_) return Status(StatusCode::kUnavailable, "the agent is shutting down");
  const std::size_t bytes = Job::bytes_for(request, options_.job.threads);
  if (used_ + bytes > options_.budget) {
    return Status(
        StatusCode::kResourceExhausted,
        fmt::format("the buffers of this job take {} bytes; of the agent's {} (route.buffer_budget) {} are in "
                    "use. Fewer or smaller buffers would fit",
                    bytes, options_.budget, used_));
  }
  WHERRY_ASSIGN(auto job, Job::create(request, options_.job));
  used_ += bytes;
  return jobs_.emplace(request.job, std::move(job)).first;
}

RouteService::Jobs::iterator RouteService::end(Jobs::iterator job) {
  past_ += job->second->end();
  used_ -= job->second->bytes();
  return jobs_.erase(job);
}

bool RouteService::poll() {
  bool worked = false;
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    worked |= it->second->poll();
    it = it->second->over() ? end(it) : std::next(it);
  }
  return worked;
}

void RouteService::metrics(session::MetricsWriter& out) const {
  RouterCounts sum = past_;
  std::size_t ranks = 0;
  for (const auto& [id, job] : jobs_) {
    ranks += job->ranks();
    sum += job->counts();
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
