// SPDX-License-Identifier: Apache-2.0
// Starts, runs and closes the agent.
#include "agent/agent.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "agent/impl.hpp"
#include "base/absolute_path.hpp"
#include "base/background.hpp"
#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"
#include "base/try.hpp"
#include "base/unix_socket.hpp"

namespace wherry {

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Agent::~Agent() { (void)close(); }

Status Agent::close() {
  if (!impl_ || std::exchange(impl_->closed, true)) return ok_status();
  Impl& a = *impl_;
  while (!a.clients.empty()) a.end(*a.clients.front(), Status(StatusCode::kUnavailable, "the agent ended"));
  a.guard.reset();
  a.planes.clear();  // before the services: what UCX still held reports now
  if (a.http) a.http->stop();
  // After drain(), either agent.drain_ms is over or no work is left.
  const std::chrono::milliseconds patience(a.draining ? 0 : a.config.drain_ms);
  Status outcome;
  for (const auto& service : a.services) {
    Status stopped = service->stop(patience);
    if (stopped) continue;
    spdlog::error("the agent goes without waiting: {}", stopped.message());
    outcome = std::move(stopped);
  }
  return outcome;
}

Agent::Impl::~Impl() {
  if (listener) ::unlink(control_socket_for(config.session_file).c_str());
}

Status Agent::Impl::listen() {
  WHERRY_ASSIGN(listener, listen_unix(control_socket_for(config.session_file)));
  if (!config.group.empty()) WHERRY_TRY(share_with_group(control_socket_for(config.session_file), config.group, 0660));
  if (config.listen != "off") {
    WHERRY_ASSIGN(const HostPort where, parse_host_port(config.listen));
    WHERRY_ASSIGN(Fd remote, listen_tcp(where));
    WHERRY_ASSIGN(const std::uint16_t port, local_port(remote));
    tcp_listener = std::move(remote);
    WHERRY_ASSIGN(tls, fabric::Tls::server(config.tls));
    host.address = HostPort{where.host, port};
  }
  epoll = Fd(epoll_create1(EPOLL_CLOEXEC));
  return open_doors();
}

Status Agent::Impl::start_services() {
  host.session_file = config.session_file;
  host.group = config.group;
  host.tls = config.tls;
  host.plane = [this](Transport transport) { return plane_for(transport); };
  host.guard = [this](session::GuardedPort port) { guarded_ports.push_back(std::move(port)); };
  // If a transport was requested by name and is not available, start-up fails here, before the first client connects.
  // Shared memory is always prepared here: UCX starts a thread for its first transport. If that fails because strangers
  // hold all descriptors, a second attempt inside UCX ends the process.
  const Transport first = config.transport == Transport::kAuto ? Transport::kShm : config.transport;
  if (const Status s = plane_for(first).status(); !s && config.transport != Transport::kAuto)
    return {s.code(), fmt::format("agent.transport: {}", s.message())};
  for (const auto& service : services) WHERRY_TRY(service->start(host));
  return ok_status();
}

Status Agent::Impl::start_metrics() {
  if (config.metrics == "off") return ok_status();
  WHERRY_ASSIGN(HostPort where, parse_host_port(config.metrics));
  HttpMetrics::Options options{std::move(where), config.metrics_public ? "" : host.token, [this] {
                                 session::MetricsWriter out;
                                 for (const auto& service : services) service->shared_metrics(out);
                                 return out.text();
                               }};
  WHERRY_ASSIGN(http, in_background([&] { return HttpMetrics::start(std::move(options)); }));
  guarded_ports.push_back({.port = http->port(), .limit = 16, .proven = {}});
  return ok_status();
}

Status Agent::Impl::start_guard() {
  if (guarded_ports.empty()) return ok_status();
  WHERRY_ASSIGN(guard, in_background([&] { return PortGuard::start(std::move(guarded_ports), {tcp_listener.get()}); }));
  return ok_status();
}

void Agent::Impl::announce() {
  announced.pid = getpid();
  // Announce file names without a directory: a process in a container may see the directory at another path, and must
  // still find the sockets beside the session file.
  announced.control = std::filesystem::path(control_socket_for(config.session_file)).filename().string();
  if (host.address) {
    announced.host = host.address->host;
    announced.port = host.address->port;
  }
  announced.token = host.token;
  announced.metrics = http ? http->url() : "";
  announced.group = config.group;
  for (const auto& service : services) service->announce(announced);
}

Result<std::unique_ptr<Agent>> Agent::create(const AgentConfig& config, Services services) {
  WHERRY_TRY(check(config));
  WHERRY_TRY(configure(config, services));
  WHERRY_TRY(check(services));
  auto impl = std::make_unique<Impl>();
  Impl& a = *impl;
  a.config = config;
  a.services = std::move(services);
  a.unwell.resize(a.services.size());
  if (a.config.session_file.empty()) a.config.session_file = default_session_file();
  // Make the path absolute, so that clients and readers with another current directory find the sockets.
  WHERRY_ASSIGN(const std::filesystem::path session_file, absolute_path(a.config.session_file));
  a.config.session_file = session_file.string();
  a.host.token = make_token();
  WHERRY_ASSIGN(a.host.arena, Arena::create(config.budget));

  // Helper threads share the agent's cores and do not use cores that were promised to others.
  a.host.cores = config.core < 0 ? allowed_cores() : std::vector<int>{config.core};
  if (config.core >= 0) WHERRY_TRY(pin_thread(a.host.cores));
  WHERRY_ASSIGN(a.claim, SessionFileClaim::make(a.config.session_file, config.group));
  WHERRY_TRY(a.listen());
  WHERRY_TRY(a.start_services());
  WHERRY_TRY(a.start_metrics());
  WHERRY_TRY(a.start_guard());
  a.announce();
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

std::string Agent::address() const { return impl_->host.address ? impl_->host.address->to_string() : std::string(); }
std::string Agent::control_socket() const { return control_socket_for(impl_->config.session_file); }
const std::string& Agent::token() const noexcept { return impl_->host.token; }
const std::string& Agent::session_file() const noexcept { return impl_->config.session_file; }
const SessionFile& Agent::announced() const noexcept { return impl_->announced; }

}  // namespace wherry
