// SPDX-License-Identifier: Apache-2.0
// Sessions, from the first connection to the last word: who may come in, the steps of the handshake, requests.
#include <fmt/core.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "agent/impl.hpp"
#include "base/clock.hpp"
#include "base/descriptors.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"
#include "base/version.hpp"

namespace wherry {

using fabric::ControlType;

namespace {

constexpr std::uint64_t kProbePatienceNs = 250'000'000;            // a one-sided get of 4 KiB takes microseconds
constexpr std::uint64_t kHelloPatienceNs = 5'000'000'000ULL;       // of a client that has shown the token
constexpr std::size_t kSessionDescriptors = 16;                    // what it may open for a session, at least
constexpr std::uint64_t kHandshakePatienceNs = 10'000'000'000ULL;  // then a half-open connection is dropped

}  // namespace

bool Agent::Impl::control() {
  if (gate->busy()) gate->tend(now_ns());
  std::array<epoll_event, 32> events{};
  const int n = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == gate->fd()) {
      gate->step();
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

/// Takes what the client asks, as long as it reads its answers: none of its requests before that.
void Agent::Impl::serve(AgentPeer& peer) {
  const Status s = guarded([&]() -> Status {
    for (;;) {
      if (Status flushed = peer.channel.flush(); !flushed) return flushed;
      if (peer.channel.unsent() != 0) return ok_status();
      if (peer.state == AgentPeer::State::kProbing) {
        // What comes after the verdict waits in the socket until the session is ready.
        if (peer.channel.peer_gone()) return {StatusCode::kUnavailable, "the client left during the handshake"};
        return ok_status();
      }
      auto frame = peer.channel.try_receive();
      if (!frame) return frame.status();
      if (!frame->has_value()) return ok_status();
      if (Status handled = guarded([&] { return handle(peer, **frame); }); !handled) {
        tell(peer, handled);
        return handled;
      }
    }
  });
  if (s)
    watch(peer);
  else
    end(peer, s);
}

/// What epoll shall report: room for what the client has not read yet, else what it says.
void Agent::Impl::watch(AgentPeer& peer) {
  const std::uint32_t wanted = EPOLLRDHUP | (peer.channel.unsent() != 0 ? EPOLLOUT : EPOLLIN);
  if (peer.watched == wanted) return;
  peer.watched = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.fd = peer.channel.fd();
  epoll_ctl(epoll.get(), EPOLL_CTL_MOD, event.data.fd, &event);
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
  // Refused here, when all that the client has said was read: else the refusal could be lost with the connection.
  if (draining) return {StatusCode::kUnavailable, "the agent is shutting down"};
  const auto sessions =
      std::ranges::count_if(peers, [](const auto& one) { return one->state != AgentPeer::State::kConnected; });
  if (static_cast<std::uint64_t>(sessions) >= config.max_sessions) {
    return {StatusCode::kUnavailable,
            fmt::format("the agent serves {} sessions already (agent.max_sessions)", config.max_sessions)};
  }
  Status room = check_descriptors("the agent", kSessionDescriptors);
  while (!room && gate->make_way("its file descriptor is needed for a session, and it has proven nothing"))
    room = check_descriptors("the agent", kSessionDescriptors);
  if (!room) return room;
  peer.hello = *std::move(hello);
  peer.channel.limit_received(kMaxFrameBytes);

  if (peer.credentials) peer.hello.pid = static_cast<std::uint32_t>(peer.credentials->pid);
  // Whose memory it is must be known before any is looked at: of who came over TCP nothing is.
  const bool same_host = peer.credentials && peer.credentials->pid != 0 && peer.hello.host == host;
  Transport transport = peer.hello.transport;
  if (transport == Transport::kAuto) transport = config.transport;
  const bool by_name = transport != Transport::kAuto;
  if (!by_name) transport = same_host ? Transport::kShm : Transport::kRdma;
  if (config.transport != Transport::kAuto && transport != config.transport) {
    return {StatusCode::kUnsupported, fmt::format("this agent was started for transport '{}' only; '{}' was asked for",
                                                  to_string(config.transport), to_string(transport))};
  }
  if (transport == Transport::kShm && !same_host) {
    return {
        StatusCode::kUnsupported,
        "transport 'shm' needs client and agent on one machine and in one PID namespace, and the agent's Unix socket "
        "(name its session file, not host:port)"};
  }
  auto plane = plane_for(transport);
  if (!plane && !by_name) {
    spdlog::info("{} (pid {}) gets transport 'tcp': {}", peer.name(), peer.pid(), plane.status().message());
    transport = Transport::kTcp;
    plane = plane_for(transport);
  }
  if (!plane) return plane.status();
  peer.plane = *plane;
  peer.session = random_u64();
  peer.link = ++links;
  by_session.emplace(peer.session, &peer);

  fabric::Greeting greeting;
  greeting.session = peer.session;
  greeting.link = peer.link;
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
  return peer.channel.post(static_cast<std::uint16_t>(ControlType::kGreeting), encode(greeting));
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
  return peer.channel.post(static_cast<std::uint16_t>(ControlType::kResponse), encode(response));
}

/// Moves half-made sessions on: wire-up, then the probe; and looks after the outcomes that ready ones wait for.
bool Agent::Impl::handshakes() {
  bool worked = false;
  for (auto it = peers.begin(); it != peers.end();) {
    AgentPeer& peer = **it++;
    if (Status s = guarded([&] { return advance(peer, worked); }); !s) {
      tell(peer, s);
      end(peer, s);
    }
  }
  return worked;
}

Status Agent::Impl::advance(AgentPeer& peer, bool& worked) {
  using State = AgentPeer::State;
  const std::uint64_t waited = now_ns() - peer.state_since;
  if (peer.state == State::kReady) return peer.tend();
  // Nothing more comes over it: the client must not wait for the end of the patience below.
  if (peer.endpoint().streams() && peer.endpoint().failed()) return peer.endpoint().status();
  if (peer.state == State::kAttached && peer.pinged()) {
    if (Status s = peer.post_wireup(); !s) return s;
    if (peer.wired()) {
      if (Status s = peer.channel.post(static_cast<std::uint16_t>(ControlType::kAttached), {}); !s) return s;
      peer.state = State::kWired;
      peer.state_since = now_ns();
    }
    worked = true;
  } else if (peer.state == State::kProbing) {
    if (!peer.verdict_sent) {
      if (Status s = judge(peer, waited > kProbePatienceNs || peer.endpoint().streams()); !s) return s;
    }
    // An emulated get still writes into the probe's page; the session is ready when it has ended (the client makes
    // progress now).
    if (peer.verdict_sent && !peer.probe_pending()) {
      peer.end_probe();
      peer.state = State::kReady;
      peer.number = ++sessions_total;
      for (const auto& service : services) service->on_session_start(peer);
      worked = true;
    }
  }
  if (peer.channel.unsent() != 0) watch(peer);
  if (peer.state == State::kConnected && waited > kHelloPatienceNs)
    return {StatusCode::kDeadlineExceeded, "the client did not say who it is in time"};
  if (peer.state != State::kReady && now_ns() - peer.state_since > kHandshakePatienceNs)
    return {StatusCode::kDeadlineExceeded, "the handshake was not finished in time"};
  return ok_status();
}

/// Tells the client what its probe proved, once that is known.
Status Agent::Impl::judge(AgentPeer& peer, bool late) {
  auto known = peer.probe_done(late);
  if (!known) return known.status();
  if (!*known) return ok_status();
  peer.verdict_sent = true;
  spdlog::info("session of {} (pid {}): {}, heap {}, allocated {}{}", peer.name(), peer.pid(), peer.verdict.transports,
               to_string(peer.verdict.heap), to_string(peer.verdict.allocated), peer.verdict.mapped ? ", mapped" : "");
  return peer.channel.post(static_cast<std::uint16_t>(ControlType::kVerdict), encode(peer.verdict));
}

/// Without memory for the message the client learns from the end of its connection.
void Agent::Impl::tell(AgentPeer& peer, const Status& why) noexcept {
  attempt([&] {
    const fabric::Failure failure{why.code(), why.message()};
    (void)peer.channel.post(static_cast<std::uint16_t>(ControlType::kFailure), encode(failure));
  });
}

/// Needs no memory.
void Agent::Impl::end(AgentPeer& peer, const Status& why) noexcept {
  if (peer.state == AgentPeer::State::kReady) {
    for (const auto& service : services) {
      if (const Status s = guarded([&] { return service->on_session_end(peer), ok_status(); }); !s)
        note_failed(service->name(), s);
    }
    attempt([&] { spdlog::info("session of {} (pid {}) ended: {}", peer.name(), peer.pid(), why.message()); });
  } else if (!attempt([&] {
               turn_away({why.code(), fmt::format("{} (pid {}): {}", peer.name(), peer.pid(), why.message())});
             })) {
    turn_away(why);
  }
  by_session.erase(peer.session);
  epoll_ctl(epoll.get(), EPOLL_CTL_DEL, peer.channel.fd(), nullptr);
  peers.remove_if([&](const auto& p) { return p.get() == &peer; });
}

}  // namespace wherry
