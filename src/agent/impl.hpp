// SPDX-License-Identifier: Apache-2.0
// The state that the parts of the agent share. It belongs to the data thread, except the metrics page (own threads).
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/agent.hpp"
#include "agent/client.hpp"
#include "agent/http_metrics.hpp"
#include "agent/port_guard.hpp"
#include "agent/services.hpp"
#include "base/cpu.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/socket.hpp"
#include "fabric/doorway.hpp"
#include "fabric/stream_auth.hpp"
#include "fabric/tls.hpp"
#include "session/service_host.hpp"
#include "session/session_file.hpp"

namespace wherry {

struct Agent::Impl {
  AgentConfig config;
  SessionFileClaim claim;
  Fd listener, epoll;         ///< of the Unix socket
  Fd tcp_listener;            ///< none: clients of this machine only
  session::ServiceHost host;  ///< what the services know of all this
  SessionFile announced;      ///< what the session file will say

  std::map<Transport, session::Plane> planes;
  std::map<Transport, Status> no_planes;  ///< those that cannot be had, and why
  Services services;
  std::vector<bool> unwell;  ///< of each service: the log says that it cannot do its work
  // The threads of the HTTP server and of the port guard call the services.
  std::unique_ptr<HttpMetrics> http;
  std::vector<session::GuardedPort> guarded_ports;
  std::unique_ptr<PortGuard> guard;
  std::list<std::unique_ptr<AgentClient>> clients;
  std::shared_ptr<const fabric::Tls> tls;
  std::unique_ptr<fabric::Doorway> gate;        ///< of both listeners
  const std::string machine = host_identity();  ///< once: it takes descriptors
  std::unordered_map<std::uint64_t, AgentClient*> by_session;
  bool draining = false, closed = false;
  std::uint64_t last_work = 0, last_control = 0;  ///< now_ns()
  std::uint64_t sessions_total = 0, refused_total = 0, links = 0;
  LogLimit turned_away, failed_parts;

  struct Route {
    Impl* agent;
    session::Service* service;  ///< null: the ping
  };
  std::vector<std::unique_ptr<Route>> routes;

  ~Impl();

  // agent.cpp: sockets for clients
  Status listen();
  Status start_guard();
  // agent.cpp: prepares the resources for clients, before any client is accepted
  Status start_services();
  Status start_metrics();
  void announce();

  // messages.cpp: transports and their messages
  Result<session::Plane*> plane_for(Transport transport);
  Status route(const session::Plane& plane, unsigned id, session::Service* service);
  static void on_fabric_message(void* context, ByteView data);
  bool mailboxes();

  // gate.cpp: connections until they are authenticated
  Status open_doors();
  void settle(fabric::Doorway::Proven proven);
  void turn_away(const Status& why) noexcept;
  [[nodiscard]] std::optional<fabric::Secret> secret_for(fabric::Purpose purpose, std::uint64_t key) const;

  // sessions.cpp: control connections, from greeting to end
  bool control();
  void serve(AgentClient& client);
  void watch(AgentClient& client);
  Status advance(AgentClient& client, bool& worked);
  Status handle(AgentClient& client, ControlFrame& frame);
  Status greet(AgentClient& client, const ControlFrame& frame);
  Status respond(AgentClient& client, const ControlFrame& frame);
  bool handshakes();
  Status judge(AgentClient& client, bool late);
  void end(AgentClient& client, const Status& why) noexcept;
  void tell(AgentClient& client, const Status& why) noexcept;

  // loop.cpp: the work of the data thread in a round, when it is idle, and when it must stop
  /// Runs a part of a round. An exception ends only that part of this round, and is logged.
  template <typename Part>
  bool part_of_round(const char* name, Part part) noexcept {
    const Result<bool> worked = guarded([&] { return Result<bool>(part()); });
    if (!worked) note_failed(name, worked.status());
    return !worked || *worked;
  }
  void note_failed(std::string_view part, const Status& why) noexcept;
  bool step();
  bool turn(bool may_idle);
  [[nodiscard]] bool moving() const;
  void idle(std::uint64_t since_work_ns);
  void publish_metrics();
  void metrics_of_services(session::MetricsWriter& out);
  void drain();
};

}  // namespace wherry
