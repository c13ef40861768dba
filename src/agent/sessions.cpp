// SPDX-License-Identifier: Apache-2.0
// Sessions, from the connection to the end: admission, the steps of the handshake, requests.
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
#include "base/try.hpp"
#include "base/version.hpp"

namespace wherry {

using session::ControlType;

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
    for (auto& client : clients) {
      if (client->channel.fd() == fd) {
        serve(*client);
        break;
      }
    }
  }
  return n > 0;
}

/// Handles the client's requests. While a client does not read its answers, its further requests wait.
void Agent::Impl::serve(AgentClient& client) {
  const Status s = guarded([&]() -> Status {
    for (;;) {
      WHERRY_TRY(client.channel.flush());
      if (client.channel.unsent() != 0) return ok_status();
      if (client.state == AgentClient::State::kProbing) {
        // Bytes that follow the verdict stay in the socket until the session is ready.
        if (client.channel.peer_gone()) return {StatusCode::kUnavailable, "the client left during the handshake"};
        return ok_status();
      }
      WHERRY_ASSIGN(auto frame, client.channel.try_receive());
      if (!frame) return ok_status();
      if (Status handled = guarded([&] { return handle(client, *frame); }); !handled) {
        tell(client, handled);
        return handled;
      }
    }
  });
  if (s)
    watch(client);
  else
    end(client, s);
}

/// Selects the events that epoll reports: writable while output is unsent, else readable.
void Agent::Impl::watch(AgentClient& client) {
  const std::uint32_t wanted = EPOLLRDHUP | (client.channel.unsent() != 0 ? EPOLLOUT : EPOLLIN);
  if (client.watched == wanted) return;
  client.watched = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.fd = client.channel.fd();
  epoll_ctl(epoll.get(), EPOLL_CTL_MOD, event.data.fd, &event);
}

Status Agent::Impl::handle(AgentClient& client, ControlFrame& frame) {
  const auto type = static_cast<ControlType>(frame.type);
  if (client.state == AgentClient::State::kConnected && type == ControlType::kHello) return greet(client, frame);
  if (client.state == AgentClient::State::kGreeted && type == ControlType::kAttach) {
    WHERRY_ASSIGN(auto attach, session::decode_attach(frame.payload));
    if (attach.completions.size / sizeof(session::CompletionRecord) > config.max_tickets) {
      return {StatusCode::kInvalidArgument,
              fmt::format("{} tickets asked for; the agent allows {}",
                          attach.completions.size / sizeof(session::CompletionRecord), config.max_tickets)};
    }
    client.state = AgentClient::State::kAttached;
    client.state_since = now_ns();
    return client.attach(std::move(attach));
  }
  if (client.state == AgentClient::State::kWired && type == ControlType::kAsleep) {
    client.state = AgentClient::State::kProbing;
    client.state_since = now_ns();
    return client.post_probe();
  }
  if (client.state == AgentClient::State::kReady && type == ControlType::kRequest) return respond(client, frame);
  return {StatusCode::kProtocol, "a control message out of turn"};
}

Status Agent::Impl::greet(AgentClient& client, const ControlFrame& frame) {
  WHERRY_ASSIGN(session::Hello hello, session::decode_hello(frame.payload));
  if (hello.version != session::kProtocolVersion) {
    return {
        StatusCode::kVersionMismatch,
        fmt::format(
            "the client speaks protocol {}, this agent (wherry {}) speaks {}: install the same version on both sides",
            hello.version, kVersion, session::kProtocolVersion)};
  }
  // Refuse only after all of the client's bytes were read; otherwise the refusal could be lost with the connection.
  if (draining) return {StatusCode::kUnavailable, "the agent is shutting down"};
  const auto sessions =
      std::ranges::count_if(clients, [](const auto& one) { return one->state != AgentClient::State::kConnected; });
  if (static_cast<std::uint64_t>(sessions) >= config.max_sessions) {
    return {StatusCode::kUnavailable,
            fmt::format("the agent serves {} sessions already (agent.max_sessions)", config.max_sessions)};
  }
  Status room = check_descriptors("the agent", kSessionDescriptors);
  while (!room && gate->make_way("its file descriptor is needed for a session, and it has proven nothing"))
    room = check_descriptors("the agent", kSessionDescriptors);
  if (!room) return room;
  client.hello = std::move(hello);
  client.channel.limit_received(kMaxFrameBytes);

  if (client.credentials) client.hello.pid = static_cast<std::uint32_t>(client.credentials->pid);
  // The memory's owner must be known before any memory is read. For clients over TCP it is not known.
  const bool same_host = client.credentials && client.credentials->pid != 0 && client.hello.host == machine;
  Transport transport = client.hello.transport;
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
    spdlog::info("{} (pid {}) gets transport 'tcp': {}", client.name(), client.pid(), plane.status().message());
    transport = Transport::kTcp;
    plane = plane_for(transport);
  }
  if (!plane) return plane.status();
  client.plane = *plane;
  client.session = random_u64();
  client.link = ++links;
  by_session.emplace(client.session, &client);

  session::Greeting greeting;
  greeting.session = client.session;
  greeting.link = client.link;
  greeting.transport = transport;
  greeting.agent_version = kVersion;
  greeting.pid = static_cast<std::uint32_t>(getpid());
  greeting.max_tickets = static_cast<std::uint32_t>(config.max_tickets);
  greeting.flight_uri = announced.flight;
  greeting.worker_address = client.plane->worker->address();
  client.state = AgentClient::State::kGreeted;
  client.state_since = now_ns();
  return client.channel.post(static_cast<std::uint16_t>(ControlType::kGreeting), encode(greeting));
}

Status Agent::Impl::respond(AgentClient& client, const ControlFrame& frame) {
  WHERRY_ASSIGN(auto request, session::decode_request(frame.payload));
  session::Response response;
  response.id = request.id;
  Result<Bytes> result =
      Status(StatusCode::kUnsupported, fmt::format("this agent has no service '{}'", request.service));
  for (const auto& service : services) {
    if (service->name() == request.service) result = service->on_request(client, request.method, request.payload);
  }
  if (result) {
    response.payload = *std::move(result);
  } else {
    response.code = result.status().code();
    response.message = result.status().message();
  }
  return client.channel.post(static_cast<std::uint16_t>(ControlType::kResponse), encode(response));
}

/// Advances sessions in the handshake: wire-up, then the probe. Also resends lost outcomes of ready sessions.
bool Agent::Impl::handshakes() {
  bool worked = false;
  for (auto it = clients.begin(); it != clients.end();) {
    AgentClient& client = **it++;
    if (Status s = guarded([&] { return advance(client, worked); }); !s) {
      tell(client, s);
      end(client, s);
    }
  }
  return worked;
}

Status Agent::Impl::advance(AgentClient& client, bool& worked) {
  using State = AgentClient::State;
  const std::uint64_t waited = now_ns() - client.state_since;
  if (client.state == State::kReady) return client.tend();
  // The data connection failed, so end the session now and do not wait for the time limit below.
  if (client.endpoint().streams() && client.endpoint().failed()) return client.endpoint().status();
  if (client.state == State::kAttached && client.pinged()) {
    WHERRY_TRY(client.post_wireup());
    if (client.wired()) {
      WHERRY_TRY(client.channel.post(static_cast<std::uint16_t>(ControlType::kAttached), {}));
      client.state = State::kWired;
      client.state_since = now_ns();
    }
    worked = true;
  } else if (client.state == State::kProbing) {
    if (!client.verdict_sent) {
      WHERRY_TRY(judge(client, waited > kProbePatienceNs || client.endpoint().streams()));
    }
    // An emulated get may still write into the probe's page. The session becomes ready when the get has ended; the
    // client makes progress now.
    if (client.verdict_sent && !client.probe_pending()) {
      client.end_probe();
      client.state = State::kReady;
      client.number = ++sessions_total;
      for (const auto& service : services) service->on_session_start(client);
      worked = true;
    }
  }
  if (client.channel.unsent() != 0) watch(client);
  if (client.state == State::kConnected && waited > kHelloPatienceNs)
    return {StatusCode::kDeadlineExceeded, "the client did not identify itself in time"};
  if (client.state != State::kReady && now_ns() - client.state_since > kHandshakePatienceNs)
    return {StatusCode::kDeadlineExceeded, "the handshake was not finished in time"};
  return ok_status();
}

/// Sends the client the verdict of its probe as soon as it is known.
Status Agent::Impl::judge(AgentClient& client, bool late) {
  WHERRY_ASSIGN(auto known, client.probe_done(late));
  if (!known) return ok_status();
  client.verdict_sent = true;
  spdlog::info("session of {} (pid {}): {}, heap {}, allocated {}{}", client.name(), client.pid(),
               client.verdict.transports, to_string(client.verdict.heap), to_string(client.verdict.allocated),
               client.verdict.mapped ? ", mapped" : "");
  return client.channel.post(static_cast<std::uint16_t>(ControlType::kVerdict), encode(client.verdict));
}

/// If there is no memory for the message, the client only sees its connection close.
void Agent::Impl::tell(AgentClient& client, const Status& why) noexcept {
  attempt([&] {
    const session::Failure failure{why.code(), why.message()};
    (void)client.channel.post(static_cast<std::uint16_t>(ControlType::kFailure), encode(failure));
  });
}

/// Needs no memory.
void Agent::Impl::end(AgentClient& client, const Status& why) noexcept {
  if (client.state == AgentClient::State::kReady) {
    for (const auto& service : services) {
      if (const Status s = guarded([&] { return service->on_session_end(client), ok_status(); }); !s)
        note_failed(service->name(), s);
    }
    attempt([&] { spdlog::info("session of {} (pid {}) ended: {}", client.name(), client.pid(), why.message()); });
  } else if (!attempt([&] {
               turn_away({why.code(), fmt::format("{} (pid {}): {}", client.name(), client.pid(), why.message())});
             })) {
    turn_away(why);
  }
  by_session.erase(client.session);
  epoll_ctl(epoll.get(), EPOLL_CTL_DEL, client.channel.fd(), nullptr);
  clients.remove_if([&](const auto& p) { return p.get() == &client; });
}

}  // namespace wherry
