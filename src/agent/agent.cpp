// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include "agent/http_metrics.hpp"
#include "agent/peer.hpp"
#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/socket.hpp"
#include "base/version.hpp"
#include "fabric/arena.hpp"
#include "fabric/session_file.hpp"
#include "move/service/catalogue.hpp"
#include "move/service/file_sink.hpp"
#include "move/service/flight_server.hpp"
#include "move/service/local_reader.hpp"
#include "move/service/move_service.hpp"

namespace wherry {

using fabric::ControlType;

namespace {

constexpr std::uint64_t kControlEveryNs = 50'000;                  // looks at the control connections while busy
constexpr std::uint64_t kProbePatienceNs = 250'000'000;            // a one-sided get of 4 KiB takes microseconds
constexpr std::uint64_t kHandshakePatienceNs = 10'000'000'000ULL;  // then a half-open connection is dropped
constexpr int kBackgroundNice = 10;                  // of threads that must not keep the data thread from its core
constexpr std::uint64_t kMovingSpinNs = 50'000'000;  // without progress, while transfers are under way: then it may nap

/// Runs `start` on a thread of lower priority: the threads that it starts inherit that (nice is per thread on Linux).
template <typename Start>
auto in_background(Start start) {
  decltype(start()) result = Status(StatusCode::kInternal, "not started");
  std::thread thread([&] {
    (void)setpriority(PRIO_PROCESS, 0, kBackgroundNice);
    result = start();
  });
  thread.join();
  return result;
}

}  // namespace

struct Agent::Impl {
  AgentConfig config;
  std::string token = fabric::make_token();
  Fd listener, epoll;
  HostPort at;
  std::shared_ptr<Arena> arena;
  move::Catalogue catalogue;
  std::unique_ptr<move::FileSink> sink;
  std::unique_ptr<move::FlightService> flight;
  std::unique_ptr<move::LocalReaderService> local;
  std::unique_ptr<HttpMetrics> http;
  SessionFile session_file;

  std::map<Transport, Plane> planes;
  std::vector<std::unique_ptr<fabric::Service>> services;
  std::list<std::unique_ptr<AgentPeer>> peers;
  std::unordered_map<std::uint64_t, AgentPeer*> by_session;
  bool draining = false;
  std::uint64_t last_work = 0, last_control = 0;  ///< now_ns()
  std::uint64_t sessions_total = 0, refused_total = 0;

  struct Route {
    Impl* agent;
    fabric::Service* service;  ///< null: the ping
  };
  std::vector<std::unique_ptr<Route>> routes;

  Result<Plane*> plane_for(Transport transport);
  void accept_all();
  bool control();
  bool serve(AgentPeer& peer);
  Status handle(AgentPeer& peer, ControlFrame& frame);
  Status greet(AgentPeer& peer, const ControlFrame& frame);
  Status respond(AgentPeer& peer, const ControlFrame& frame);
  bool handshakes();
  Status judge(AgentPeer& peer, bool late);
  void end(AgentPeer& peer, const Status& why);
  void tell(AgentPeer& peer, const Status& why);
  bool mailboxes();
  bool step();
  bool turn(bool may_idle);
  [[nodiscard]] bool moving() const;
  void idle(std::uint64_t since_work_ns);
  void render_metrics();
  void drain();

  static void on_fabric_message(void* context, ByteView data);
};

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Agent::~Agent() {
  if (!impl_) return;
  Impl& a = *impl_;
  a.catalogue.shut_down();
  while (!a.peers.empty()) a.end(*a.peers.front(), Status(StatusCode::kUnavailable, "the agent ended"));
  a.planes.clear();  // before the services: what UCX still held reports now
  if (a.http) a.http->stop();
  if (a.local) a.local->stop();
  if (a.flight) a.flight->stop();
  if (a.sink) a.sink->stop();
}

Result<std::unique_ptr<Agent>> Agent::create(const AgentConfig& config) {
  if (Status s = check(config); !s) return s;
  auto impl = std::make_unique<Impl>();
  Impl& a = *impl;
  a.config = config;
  if (a.config.session_file.empty()) a.config.session_file = default_session_file();

  auto arena = Arena::create(config.budget);
  if (!arena) return arena.status();
  a.arena = *std::move(arena);

  auto at = parse_host_port(config.listen);
  if (!at) return at.status();
  a.at = *at;
  auto listener = listen_tcp(a.at);
  if (!listener) return listener.status();
  a.listener = *std::move(listener);
  auto port = local_port(a.listener);
  if (!port) return port.status();
  a.at.port = *port;
  a.epoll = Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = a.listener.get();
  if (!a.epoll || epoll_ctl(a.epoll.get(), EPOLL_CTL_ADD, a.listener.get(), &event) != 0) {
    return Status(StatusCode::kInternal, fmt::format("epoll: {}", std::strerror(errno)));
  }

  // Helper threads keep off the cores that others were promised: they share the agent's.
  std::vector<int> cores = config.core < 0 ? allowed_cores() : std::vector<int>{config.core};
  if (config.core >= 0) {
    if (Status s = pin_thread(cores); !s) return s;
  }
  if (Status s = prepare_session_file(a.config.session_file, config.group); !s) return s;
  auto sink = in_background([&] { return Result(std::make_unique<move::FileSink>(a.catalogue)); });
  if (!sink) return sink.status();
  a.sink = *std::move(sink);
  if (config.flight != "off") {
    auto where = parse_host_port(config.flight);
    if (!where) return where.status();
    auto flight = in_background(
        [&] { return move::FlightService::start(a.catalogue, where->host, where->port, a.token, cores); });
    if (!flight) return flight.status();
    a.flight = *std::move(flight);
  }
  auto local = in_background([&] {
    return move::LocalReaderService::start(a.catalogue, a.arena, local_socket_for(a.config.session_file), a.token);
  });
  if (!local) return local.status();
  a.local = *std::move(local);
  if (!config.group.empty()) {
    if (Status s = share_with_group(local_socket_for(a.config.session_file), config.group, 0660); !s) return s;
  }
  if (config.metrics != "off") {
    auto where = parse_host_port(config.metrics);
    if (!where) return where.status();
    auto http = in_background([&] { return HttpMetrics::start(*where); });
    if (!http) return http.status();
    a.http = *std::move(http);
  }

  move::MoveOptions move_options;
  move_options.transfer_unit = config.transfer_unit;
  move_options.window = config.window;
  move_options.streaming_copy_from = config.streaming_copy_from;
  move_options.sink_root = config.sink_root;
  a.services.push_back(std::make_unique<move::MoveService>(move_options, a.arena, a.catalogue));
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

void Agent::add_service(std::unique_ptr<fabric::Service> service) { impl_->services.push_back(std::move(service)); }
std::string Agent::address() const { return impl_->at.to_string(); }
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

// ---------------------------------------------------------------- transports

Result<Plane*> Agent::Impl::plane_for(Transport transport) {
  if (const auto it = planes.find(transport); it != planes.end()) return &it->second;
  auto context = fabric::Context::create(transport, interface_of(listener.get()));
  if (!context) return context.status();
  Plane plane;
  plane.context = *std::move(context);
  auto worker = fabric::Worker::create(plane.context);
  if (!worker) return worker.status();
  plane.worker = *std::move(worker);
  auto region = plane.context->register_memory(arena->memory().data(), arena->memory().size());
  if (!region) return region.status();
  plane.arena = *std::move(region);
  const auto route = [&](unsigned id, fabric::Service* service) {
    routes.push_back(std::make_unique<Route>(Route{this, service}));
    return plane.worker->on_message(id, on_fabric_message, routes.back().get());
  };
  if (Status s = route(fabric::kPingMessage, nullptr); !s) return s;
  for (const auto& service : services) {
    if (Status s = route(service->message_id(), service.get()); !s) return s;
  }
  return &planes.emplace(transport, std::move(plane)).first->second;
}

/// Every fabric message starts with the secret session id that its sender got in the greeting.
void Agent::Impl::on_fabric_message(void* context, ByteView data) {
  const Route& route = *static_cast<Route*>(context);
  std::uint64_t session = 0;
  if (data.size() < sizeof session) return;
  std::memcpy(&session, data.data(), sizeof session);
  const auto it = route.agent->by_session.find(session);
  if (it == route.agent->by_session.end()) return;
  AgentPeer& peer = *it->second;
  if (route.service == nullptr) {
    peer.on_ping();
  } else if (peer.state != AgentPeer::State::kReady) {
    return;
  } else if (peer.has_mailbox()) {
    peer.defer(data);
  } else {
    route.service->on_message(peer, data);
  }
}

/// What clients on this machine have posted.
bool Agent::Impl::mailboxes() {
  bool worked = false;
  for (auto it = peers.begin(); it != peers.end();) {
    AgentPeer& peer = **it++;
    if (peer.state != AgentPeer::State::kReady || !peer.has_mailbox()) continue;
    const auto read = peer.read_mailbox([&](std::uint8_t kind, ByteView message) {
      for (const auto& service : services) {
        if (service->message_id() == kind) service->on_message(peer, message);
      }
    });
    if (!read) {
      tell(peer, read.status());
      end(peer, read.status());
    }
    worked |= !read || *read;
  }
  return worked;
}

// ---------------------------------------------------------------- control connections

void Agent::Impl::accept_all() {
  for (;;) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    Fd socket(accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (peers.size() >= config.max_sessions || draining) {
      FrameChannel channel(std::move(socket));
      const fabric::Failure failure{StatusCode::kUnavailable,
                                    draining
                                        ? "the agent is shutting down"
                                        : fmt::format("the agent serves {} sessions already", config.max_sessions)};
      (void)channel.send(static_cast<std::uint16_t>(ControlType::kFailure), encode(failure),
                         Deadline(std::chrono::milliseconds(0)));
      ++refused_total;
      continue;
    }
    const int fd = socket.get();
    peers.push_back(std::make_unique<AgentPeer>(std::move(socket), "a client"));
    peers.back()->state_since = now_ns();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = fd;
    epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  }
}

bool Agent::Impl::control() {
  std::array<epoll_event, 32> events{};
  const int n = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == listener.get()) {
      accept_all();
      continue;
    }
    for (auto& peer : peers) {
      if (peer->channel.fd() == fd) {
        serve(*peer);
        break;
      }
    }
  }
  return n > 0;
}

bool Agent::Impl::serve(AgentPeer& peer) {
  for (;;) {
    if (peer.state == AgentPeer::State::kProbing) {
      // What comes after the verdict waits in the socket until the session is ready.
      if (peer.channel.peer_gone()) end(peer, Status(StatusCode::kUnavailable, "the client left during the handshake"));
      return false;
    }
    auto frame = peer.channel.try_receive();
    if (!frame) {
      end(peer, frame.status());
      return true;
    }
    if (!frame->has_value()) return false;
    if (Status s = handle(peer, **frame); !s) {
      tell(peer, s);
      end(peer, s);
      return true;
    }
  }
}

Status Agent::Impl::handle(AgentPeer& peer, ControlFrame& frame) {
  const auto type = static_cast<ControlType>(frame.type);
  if (peer.state == AgentPeer::State::kConnected && type == ControlType::kHello) return greet(peer, frame);
  if (peer.state == AgentPeer::State::kGreeted && type == ControlType::kAttach) {
    auto attach = fabric::decode_attach(frame.payload);
    if (!attach) return attach.status();
    if (attach->completions.size / sizeof(fabric::CompletionRecord) > config.max_tickets) {
      return {StatusCode::kInvalidArgument,
              fmt::format("{} tickets asked for; the agent allows {}",
                          attach->completions.size / sizeof(fabric::CompletionRecord), config.max_tickets)};
    }
    peer.state = AgentPeer::State::kAttached;
    peer.state_since = now_ns();
    return peer.attach(*std::move(attach));
  }
  if (peer.state == AgentPeer::State::kWired && type == ControlType::kAsleep) {
    peer.state = AgentPeer::State::kProbing;
    peer.state_since = now_ns();
    return peer.post_probe();
  }
  if (peer.state == AgentPeer::State::kReady && type == ControlType::kRequest) return respond(peer, frame);
  return {StatusCode::kProtocol, "a control message out of turn"};
}

Status Agent::Impl::greet(AgentPeer& peer, const ControlFrame& frame) {
  auto hello = fabric::decode_hello(frame.payload);
  if (!hello) return hello.status();
  if (hello->version != fabric::kProtocolVersion) {
    return {
        StatusCode::kVersionMismatch,
        fmt::format(
            "the client speaks protocol {}, this agent (wherry {}) speaks {}: install the same version on both sides",
            hello->version, kVersion, fabric::kProtocolVersion)};
  }
  if (!fabric::equal_secrets(hello->token, token)) {
    return {StatusCode::kPermissionDenied, "wrong token: take it from the session file that this agent wrote"};
  }
  peer.hello = *std::move(hello);

  const bool same_host = peer.hello.host == host_identity();
  Transport transport = peer.hello.transport;
  if (transport == Transport::kAuto) transport = config.transport;
  const bool by_name = transport != Transport::kAuto;
  if (!by_name) transport = same_host ? Transport::kShm : Transport::kRdma;
  if (config.transport != Transport::kAuto && transport != config.transport) {
    return {StatusCode::kUnsupported, fmt::format("this agent was started for transport '{}' only; '{}' was asked for",
                                                  to_string(config.transport), to_string(transport))};
  }
  if (transport == Transport::kShm && !same_host) {
    return {StatusCode::kUnsupported,
            "transport 'shm' needs client and agent on one machine and in one PID namespace; they are not"};
  }
  auto plane = plane_for(transport);
  if (!plane && !by_name) {
    spdlog::info("{} (pid {}) gets transport 'tcp': {}", peer.name(), peer.pid(), plane.status().message());
    transport = Transport::kTcp;
    plane = plane_for(transport);
  }
  if (!plane) return plane.status();
  peer.plane = *plane;
  peer.session = fabric::random_u64();
  by_session.emplace(peer.session, &peer);

  fabric::Greeting greeting;
  greeting.session = peer.session;
  greeting.transport = transport;
  greeting.agent_version = kVersion;
  greeting.pid = static_cast<std::uint32_t>(getpid());
  greeting.max_tickets = static_cast<std::uint32_t>(config.max_tickets);
  if (flight) {
    HostPort where = *parse_host_port(config.flight);
    where.port = static_cast<std::uint16_t>(flight->port());
    greeting.flight_uri = "grpc://" + where.to_string();
  }
  greeting.worker_address = peer.plane->worker->address();
  peer.state = AgentPeer::State::kGreeted;
  peer.state_since = now_ns();
  return peer.channel.send(static_cast<std::uint16_t>(ControlType::kGreeting), encode(greeting),
                           Deadline(std::chrono::seconds(1)));
}

Status Agent::Impl::respond(AgentPeer& peer, const ControlFrame& frame) {
  auto request = fabric::decode_request(frame.payload);
  if (!request) return request.status();
  fabric::Response response;
  response.id = request->id;
  Result<Bytes> result =
      Status(StatusCode::kUnsupported, fmt::format("this agent has no service '{}'", request->service));
  for (const auto& service : services) {
    if (service->name() == request->service) result = service->on_request(peer, request->method, request->payload);
  }
  if (result) {
    response.payload = *std::move(result);
  } else {
    response.code = result.status().code();
    response.message = result.status().message();
  }
  return peer.channel.send(static_cast<std::uint16_t>(ControlType::kResponse), encode(response),
                           Deadline(std::chrono::seconds(1)));
}

/// Moves half-made sessions on: wire-up, then the probe; and looks after the outcomes that ready ones wait for.
bool Agent::Impl::handshakes() {
  bool worked = false;
  for (auto it = peers.begin(); it != peers.end();) {
    AgentPeer& peer = **it++;
    const std::uint64_t waited = now_ns() - peer.state_since;
    Status s;
    if (peer.state == AgentPeer::State::kReady) {
      s = peer.tend();
    } else if (peer.state == AgentPeer::State::kAttached) {
      if (peer.pinged()) s = peer.post_wireup();
      if (s && peer.pinged() && peer.wired()) {
        s = peer.channel.send(static_cast<std::uint16_t>(ControlType::kAttached), {},
                              Deadline(std::chrono::seconds(1)));
        if (s) {
          peer.state = AgentPeer::State::kWired;
          peer.state_since = now_ns();
        }
        worked = true;
      }
    } else if (peer.state == AgentPeer::State::kProbing) {
      if (!peer.verdict_sent) s = judge(peer, waited > kProbePatienceNs);
      // An emulated get still writes into the probe's page; the session is ready when it has ended (the client makes
      // progress now).
      if (s && peer.verdict_sent && !peer.probe_pending()) {
        peer.end_probe();
        peer.state = AgentPeer::State::kReady;
        peer.number = ++sessions_total;
        for (const auto& service : services) service->on_session_start(peer);
        worked = true;
      }
    }
    if (s && peer.state != AgentPeer::State::kReady && now_ns() - peer.state_since > kHandshakePatienceNs) {
      s = Status(StatusCode::kDeadlineExceeded, "the handshake was not finished in time");
    }
    if (!s) {
      tell(peer, s);
      end(peer, s);
    }
  }
  return worked;
}

/// Tells the client what its probe proved, once that is known.
Status Agent::Impl::judge(AgentPeer& peer, bool late) {
  auto known = peer.probe_done(late);
  if (!known) return known.status();
  if (!*known) return Status::ok();
  peer.verdict_sent = true;
  spdlog::info("session of {} (pid {}): {}, heap {}, allocated {}{}", peer.name(), peer.pid(), peer.verdict.transports,
               to_string(peer.verdict.heap), to_string(peer.verdict.allocated), peer.verdict.mapped ? ", mapped" : "");
  return peer.channel.send(static_cast<std::uint16_t>(ControlType::kVerdict), encode(peer.verdict),
                           Deadline(std::chrono::seconds(1)));
}

void Agent::Impl::tell(AgentPeer& peer, const Status& why) {
  const fabric::Failure failure{why.code(), why.message()};
  (void)peer.channel.send(static_cast<std::uint16_t>(ControlType::kFailure), encode(failure),
                          Deadline(std::chrono::milliseconds(100)));
}

void Agent::Impl::end(AgentPeer& peer, const Status& why) {
  if (peer.state == AgentPeer::State::kReady) {
    for (const auto& service : services) service->on_session_end(peer);
    spdlog::info("session of {} (pid {}) ended: {}", peer.name(), peer.pid(), why.message());
  } else {
    ++refused_total;
    spdlog::warn("{} (pid {}) was turned away: {}", peer.name(), peer.pid(), why.message());
  }
  by_session.erase(peer.session);
  epoll_ctl(epoll.get(), EPOLL_CTL_DEL, peer.channel.fd(), nullptr);
  peers.remove_if([&](const auto& p) { return p.get() == &peer; });
}

// ---------------------------------------------------------------- the loop

bool Agent::Impl::step() {
  bool worked = false;
  for (auto& [transport, plane] : planes) worked |= plane.worker->progress() != 0;
  worked |= mailboxes();
  for (const auto& peer : peers) worked |= peer->puts_pending() && peer->push_puts();
  for (const auto& service : services) worked |= service->poll();
  return worked;
}

/// One round of everything that the data thread does.
bool Agent::Impl::turn(bool may_idle) {
  bool worked = step();
  const std::uint64_t now = now_ns();
  if (now - last_control > kControlEveryNs) {
    last_control = now;
    worked |= control();
    worked |= handshakes();
    if (http && http->wanted()) render_metrics();
  }
  if (worked) {
    last_work = now;
  } else if (may_idle) {
    idle(now - last_work);
  }
  return worked;
}

/// Whether something ends that nothing but progress calls will notice.
bool Agent::Impl::moving() const {
  for (const auto& service : services) {
    if (service->moving()) return true;
  }
  for (const auto& peer : peers) {
    if (peer->puts_pending() || peer->probe_pending()) return true;
  }
  return false;
}

void Agent::Impl::idle(std::uint64_t since_work_ns) {
  if (since_work_ns < config.spin_us * 1000 || (since_work_ns < kMovingSpinNs && moving())) {
    cpu_relax();
  } else if (config.nap_us == 0) {
    sched_yield();
  } else {
    // The nap watches the control connections, so that a request does not wait for its end. Data messages do: that is
    // its price.
    timespec nap{static_cast<time_t>(config.nap_us / 1'000'000), static_cast<long>(config.nap_us % 1'000'000) * 1000};
    epoll_event event{};
    epoll_pwait2(epoll.get(), &event, 1, &nap, nullptr);
  }
}

void Agent::Impl::render_metrics() {
  fabric::MetricsWriter out;
  out.gauge("wherry_agent_sessions", "Clients connected.", static_cast<double>(by_session.size()));
  out.counter("wherry_agent_sessions_total", "Sessions that were opened.", sessions_total);
  out.counter("wherry_agent_refused_total", "Connections that were turned away.", refused_total);
  out.gauge("wherry_agent_budget_bytes", "Memory for frames.", static_cast<double>(arena->capacity()));
  out.gauge("wherry_agent_used_bytes", "Memory that frames hold now.", static_cast<double>(arena->in_use()));
  out.gauge("wherry_agent_touched_bytes", "Part of the budget that was ever used.",
            static_cast<double>(arena->touched()));
  for (const auto& peer : peers) {
    if (peer->state != AgentPeer::State::kReady) continue;
    out.gauge("wherry_session_info", "A client: who it is and how it is reached.", 1,
              fmt::format("{},{},{},{},{},{}", peer->label(),
                          fabric::MetricsWriter::label("pid", std::to_string(peer->pid())),
                          fabric::MetricsWriter::label("transports", peer->verdict.transports),
                          fabric::MetricsWriter::label("heap", to_string(peer->verdict.heap)),
                          fabric::MetricsWriter::label("allocated", to_string(peer->verdict.allocated)),
                          fabric::MetricsWriter::label("mapped", peer->verdict.mapped ? "true" : "false")));
  }
  for (const auto& peer : peers) {
    if (peer->state != AgentPeer::State::kReady) continue;
    out.counter("wherry_session_bytes_total", "Bytes moved from a client's memory.", peer->moved(), peer->label());
  }
  for (const auto& service : services) service->metrics(out);
  const move::FileSinkStatus files = sink->status();
  out.counter("wherry_sink_files_total", "Files written.", files.files);
  out.counter("wherry_sink_errors_total", "Frames that did not become a file.", files.errors);
  for (const move::StreamStatus& s : catalogue.list()) {
    const std::string label = fmt::format("stream=\"{}\"", s.info->name);
    out.gauge("wherry_stream_held_frames", "Frames held.", static_cast<double>(s.held_frames), label);
  }
  for (const move::StreamStatus& s : catalogue.list()) {
    out.counter("wherry_stream_frames_total", "Frames delivered.", s.total_frames,
                fmt::format("stream=\"{}\"", s.info->name));
  }
  for (const move::StreamStatus& s : catalogue.list()) {
    out.counter("wherry_stream_evicted_unread_total", "Frames that went before anybody read them.", s.evicted_unread,
                fmt::format("stream=\"{}\"", s.info->name));
  }
  http->publish(out.text());
}

/// Accepted offloads finish and files are written; meanwhile clients may close streams, and whoever offloads more is
/// told that the agent ends.
void Agent::Impl::drain() {
  for (int i = 0; i < 64; ++i) step();  // what was posted before the signal may still lie in UCX's queues
  draining = true;
  for (const auto& service : services) service->start_draining();
  const Deadline deadline{std::chrono::milliseconds(config.drain_ms)};
  const auto drained = [&] {
    for (const auto& service : services) {
      if (!service->drained()) return false;
    }
    return std::none_of(peers.begin(), peers.end(), [](const auto& peer) { return peer->puts_pending(); });
  };
  while (!drained() && !deadline.passed()) turn(true);
  if (!drained()) spdlog::warn("not everything that was accepted was done within agent.drain_ms = {}", config.drain_ms);
  Status files = sink->drain(std::chrono::milliseconds(0));
  while (!files && !deadline.passed()) {
    turn(false);
    files = sink->drain(std::chrono::milliseconds(1));
  }
  if (!files) spdlog::warn("{}", files.message());
  const Status bye(StatusCode::kUnavailable, "the agent was shut down");
  while (!peers.empty()) {
    tell(*peers.front(), bye);
    end(*peers.front(), bye);
  }
}

Status Agent::run(const std::atomic<bool>& stop, bool embedded) {
  Impl& a = *impl_;
  SessionFile file;
  file.pid = getpid();
  file.host = a.at.host;
  file.port = a.at.port;
  file.token = a.token;
  file.local_socket = local_socket();
  file.flight = flight_uri();
  file.metrics = a.http ? a.http->url() : "";
  file.group = a.config.group;
  if (Status s = write_session_file(a.config.session_file, file); !s) return s;
  spdlog::info("wherry {} agent on {}, budget {} MiB, UCX {}, session file {}", kVersion, address(),
               a.arena->capacity() >> 20, fabric::ucx_version(), a.config.session_file);

  a.last_work = now_ns();
  std::uint64_t last_look = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    a.turn(true);
    if (!embedded || now_ns() - last_look < kControlEveryNs) continue;
    last_look = now_ns();
    pollfd owner{STDIN_FILENO, POLLIN, 0};
    if (poll(&owner, 1, 0) > 0 && (owner.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) break;
  }
  spdlog::info("draining");
  a.drain();
  remove_session_file(a.config.session_file, file.pid);
  return Status::ok();
}

}  // namespace wherry
