// SPDX-License-Identifier: Apache-2.0
// The agent from its first socket to its last.
#include "agent/agent.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "agent/impl.hpp"
#include "base/absolute_path.hpp"
#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "base/unix_socket.hpp"
#include "move/service/move_service.hpp"
#include "route/service/route_service.hpp"
#include "session/session_file.hpp"

namespace wherry {
namespace {

constexpr int kBackgroundNice = 10;  // of threads that must not keep the data thread from its core

/// Runs `start` on a thread of lower priority: the threads that it starts inherit that (nice is per thread on Linux).
template <typename Start>
auto in_background(Start start) {
  decltype(start()) result = Status(StatusCode::kInternal, "not started");
  std::thread thread([&] {
    (void)setpriority(PRIO_PROCESS, 0, kBackgroundNice);
    try {
      result = start();
    } catch (const std::exception& error) {  // threads that it needs cannot be had, say
      result =
          Status(StatusCode::kResourceExhausted, fmt::format("a part of the agent did not start: {}", error.what()));
    }
  });
  thread.join();
  return result;
}

}  // namespace

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Agent::~Agent() { (void)close(); }

Status Agent::close() {
  if (!impl_ || std::exchange(impl_->closed, true)) return ok_status();
  Impl& a = *impl_;
  a.catalogue.shut_down();
  while (!a.clients.empty()) a.end(*a.clients.front(), Status(StatusCode::kUnavailable, "the agent ended"));
  a.guard.reset();
  a.planes.clear();  // before the services: what UCX still held reports now
  if (a.http) a.http->stop();
  if (a.local) a.local->stop();
  if (a.flight) a.flight->stop();
  if (!a.sink) return ok_status();
  // After drain() all of agent.drain_ms is over, or nothing is left to be written.
  Status files = a.sink->stop(std::chrono::milliseconds(a.draining ? 0 : a.config.drain_ms));
  if (!files) spdlog::error("the agent goes without waiting: {}", files.message());
  return files;
}

Agent::Impl::~Impl() {
  if (listener) ::unlink(control_socket_for(config.session_file).c_str());
}

Status Agent::Impl::listen() {
  WHERRY_ASSIGN(listener, listen_unix(control_socket_for(config.session_file)));
  if (!config.group.empty()) {
    WHERRY_TRY(share_with_group(control_socket_for(config.session_file), config.group, 0660));
  }
  if (config.listen != "off") {
    WHERRY_ASSIGN(auto where, parse_host_port(config.listen));
    WHERRY_ASSIGN(auto remote, listen_tcp(where));
    WHERRY_ASSIGN(auto port, local_port(remote));
    tcp_listener = std::move(remote);
    WHERRY_ASSIGN(tls, fabric::Tls::server(config.tls));
    at = HostPort{where.host, port};
  }
  epoll = Fd(epoll_create1(EPOLL_CLOEXEC));
  return open_doors();
}

Status Agent::Impl::start_services(const std::vector<int>& cores) {
  move::MoveOptions move_options;
  move_options.transfer_unit = config.transfer_unit;
  move_options.window = config.window;
  move_options.streaming_copy_from = config.streaming_copy_from;
  move_options.sink_root = config.sink_root;
  move_options.sink_needs_root = !config.group.empty();
  services.push_back(std::make_unique<move::MoveService>(move_options, arena, catalogue));
  route::RouteOptions route_options;
  route_options.budget = config.route_budget;
  route_options.threads = static_cast<std::uint32_t>(config.route_threads);
  route_options.cores = cores;
  if (at) route_options.network.listen = at->host;
  route_options.network.tls = config.tls;
  route_options.network.peer_timeout = std::chrono::seconds(config.route_peer_timeout_s);
  services.push_back(std::make_unique<route::RouteService>(std::move(route_options)));
  // A transport that was asked for by name and cannot be had is an error now, not when the first client comes. Shared
  // memory is made ready in any case: UCX starts a thread with its first transport, and when it is out of descriptors
  // just then (strangers may have taken them), its second attempt ends the process.
  const Transport first = config.transport == Transport::kAuto ? Transport::kShm : config.transport;
  if (const Status s = plane_for(first).status(); !s && config.transport != Transport::kAuto)
    return Status(s.code(), fmt::format("agent.transport: {}", s.message()));
  return ok_status();
}

Status Agent::Impl::start_guard() {
  std::vector<PortGuard::Port> ports;
  if (flight) {
    ports.push_back({.port = static_cast<std::uint16_t>(flight->port()),
                     .proven = [this](const auto& connected) { return flight->proven(connected); }});
  }
  if (http) ports.push_back({.port = http->port(), .limit = 16});
  if (ports.empty()) return ok_status();
  WHERRY_ASSIGN(guard, in_background([&] { return PortGuard::start(std::move(ports), {tcp_listener.get()}); }));
  return ok_status();
}

Result<std::unique_ptr<Agent>> Agent::create(const AgentConfig& config) {
  WHERRY_TRY(check(config));
  auto impl = std::make_unique<Impl>();
  Impl& a = *impl;
  a.config = config;
  if (a.config.session_file.empty()) a.config.session_file = default_session_file();
  // Clients and readers find its sockets by what it says, wherever they run.
  const auto session_file = absolute_path(a.config.session_file);
  if (!session_file) return session_file.status();
  a.config.session_file = session_file->string();

  auto arena = Arena::create(config.budget);
  if (!arena) return arena.status();
  a.arena = *std::move(arena);
  a.catalogue.loans().limit(config.reader_budget != 0 ? config.reader_budget : config.budget / 2, config.budget);

  // Helper threads keep off the cores that others were promised: they share the agent's.
  std::vector<int> cores = config.core < 0 ? allowed_cores() : std::vector<int>{config.core};
  if (config.core >= 0) {
    WHERRY_TRY(pin_thread(cores));
  }
  auto claim = SessionFileClaim::make(a.config.session_file, config.group);
  if (!claim) return claim.status();
  a.claim = *std::move(claim);
  WHERRY_TRY(a.listen());
  WHERRY_TRY(a.start_services(cores));
  auto sink = in_background([&] { return Result(std::make_unique<move::FileSink>(a.catalogue)); });
  if (!sink) return sink.status();
  a.sink = *std::move(sink);
  if (config.flight != "off") {
    WHERRY_ASSIGN(auto where, parse_host_port(config.flight));
    auto flight =
        in_background([&] { return move::FlightService::start(a.catalogue, where.host, where.port, a.token, cores); });
    if (!flight) return flight.status();
    a.flight = *std::move(flight);
  }
  auto local = in_background([&] {
    return move::LocalReaderService::start(a.catalogue, a.arena, local_socket_for(a.config.session_file), a.token);
  });
  if (!local) return local.status();
  a.local = *std::move(local);
  if (!config.group.empty()) {
    WHERRY_TRY(share_with_group(local_socket_for(a.config.session_file), config.group, 0660));
  }
  if (config.metrics != "off") {
    WHERRY_ASSIGN(auto where, parse_host_port(config.metrics));
    HttpMetrics::Options options{where, config.metrics_public ? "" : a.token, [&a] {
                                   session::MetricsWriter out;
                                   a.metrics_of_streams(out);
                                   return out.text();
                                 }};
    auto http = in_background([&] { return HttpMetrics::start(std::move(options)); });
    if (!http) return http.status();
    a.http = *std::move(http);
  }
  WHERRY_TRY(a.start_guard());
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

Status Agent::add_service(std::unique_ptr<session::Service> service) {
  for (auto& [transport, plane] : impl_->planes) {
    WHERRY_TRY(impl_->route(plane, service->message_id(), service.get()));
  }
  impl_->services.push_back(std::move(service));
  return ok_status();
}
std::string Agent::address() const { return impl_->at ? impl_->at->to_string() : std::string(); }
std::string Agent::control_socket() const { return control_socket_for(impl_->config.session_file); }
const std::string& Agent::token() const noexcept { return impl_->token; }
const std::string& Agent::session_file() const noexcept { return impl_->config.session_file; }
const std::shared_ptr<Arena>& Agent::arena() const noexcept { return impl_->arena; }
std::string Agent::local_socket() const { return local_socket_for(impl_->config.session_file); }

std::string Agent::flight_uri() const {
  if (!impl_->flight) return {};
  HostPort where = *parse_host_port(impl_->config.flight);
  where.port = static_cast<std::uint16_t>(impl_->flight->port());
  return "grpc://" + where.to_string();
}

}  // namespace wherry
