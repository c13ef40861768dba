// SPDX-License-Identifier: Apache-2.0
// New connections: who comes must prove that it knows the token, in a handshake of fixed size and within a few seconds,
// before it is anything to the agent.
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/impl.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"

namespace wherry {
namespace {

constexpr std::size_t kMaxArrivals = 1024;                   // then one of the source that has most of them goes
constexpr std::uint64_t kRestNs = 100'000'000;               // for which a door is shut when there are no descriptors
constexpr std::uint64_t kArrivalPatienceNs = 5'000'000'000;  // from the connection to its proof
constexpr std::size_t kMaxHelloBytes = 16'384;               // what a client may say before it is greeted
constexpr int kAcceptAtATime = 32;                           // then those that are there get their turn

}  // namespace

Status Agent::Impl::open_door(Door& door, const Fd& from) {
  door.events = Fd(epoll_create1(EPOLL_CLOEXEC));
  door.listener = &from;
  for (const auto& [where, what] : {std::pair(door.events.get(), from.get()), {epoll.get(), door.events.get()}}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = what;
    if (epoll_ctl(where, EPOLL_CTL_ADD, what, &event) != 0)
      return {StatusCode::kInternal, fmt::format("epoll: {}", std::strerror(errno))};
  }
  return ok_status();
}

/// Connections at this door wait until then: neither accepted nor read.
void Agent::Impl::shut(Door& door, std::uint64_t until) {
  epoll_event event{};
  event.data.fd = door.events.get();
  door.open = epoll_ctl(epoll.get(), EPOLL_CTL_MOD, event.data.fd, &event) != 0;
  door.opens_at = until;
}

void Agent::Impl::open_doors() {
  for (Door* door : {&local_door, &remote_door}) {
    if (door->open || now_ns() < door->opens_at) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = door->events.get();
    door->open = epoll_ctl(epoll.get(), EPOLL_CTL_MOD, event.data.fd, &event) == 0;
  }
}

/// TLS handshakes cost milliseconds of CPU time, also for strangers: they get a share of the data thread's. Returns
/// false if that is used up; the door is shut until more is due.
bool Agent::Impl::charge(Door& door, std::uint64_t since) {
  if (&door != &remote_door || !tls) return true;  // without TLS a handshake is a few microseconds of HMAC
  const std::uint64_t next = handshake_time.charge(since, now_ns());
  if (next != 0) shut(door, next);
  return next == 0;
}

void Agent::Impl::answer(Door& door) {
  std::array<epoll_event, 32> events{};
  const int n = epoll_wait(door.events.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n && door.open; ++i) {
    const std::uint64_t since = now_ns();
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == door.listener->get()) {
      accept_all(door);
      continue;
    }
    const auto arrival = std::ranges::find_if(arrivals, [&](const Arrival& one) { return one.stream->fd() == fd; });
    if (arrival == arrivals.end()) continue;
    advance(arrival);
    (void)charge(door, since);
  }
}

void Agent::Impl::accept_all(Door& door) {
  const Fd& from = *door.listener;
  for (int i = 0; i < kAcceptAtATime; ++i) {
    const std::uint64_t since = now_ns();
    Fd socket(accept4(from.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // The connection stays queued, and epoll would report it again at once.
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
      const int error = errno;
      if (std::uint64_t more = 0; turned_away.admit(now_ns(), more))
        spdlog::warn(
            "clients wait: the agent cannot accept a connection: {}; raise its limit (ulimit -n, LimitNOFILE=)",
            std::strerror(error));
      shut(door, now_ns() + kRestNs);
      return;
    }
    Arrival arrival{.handshake = fabric::StreamHandshake::server(
                        [this](fabric::Purpose purpose, std::uint64_t key) { return secret_for(purpose, key); })};
    if (&from == &listener) {
      auto known = peer_credentials(socket.get());
      if (!known) continue;
      arrival.credentials = *known;
    }
    if (&from == &tcp_listener && tls) {
      auto under = tls->accept(std::move(socket));
      if (!under) continue;
      arrival.stream = *std::move(under);
    } else {
      arrival.stream = plain_stream(std::move(socket));
    }
    arrival.door = &door;
    arrival.source = crowd.enter(source_of(arrival.stream->fd()));
    if (arrivals.size() >= kMaxArrivals) {
      turn_away({StatusCode::kResourceExhausted, "too many that prove nothing"});
      forget(crowd.makes_way(arrivals.begin(), arrivals.end(),
                             [](const Arrival& one) -> const Crowd::Source& { return one.source; }));
    }
    arrival.since = now_ns();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = arrival.stream->fd();
    if (epoll_ctl(door.events.get(), EPOLL_CTL_ADD, arrival.stream->fd(), &event) == 0)
      arrivals.push_back(std::move(arrival));
    if (!charge(door, since)) return;
  }
}

std::optional<fabric::Secret> Agent::Impl::secret_for(fabric::Purpose purpose, std::uint64_t key) const {
  if (purpose == fabric::Purpose::kControl) return token;
  if (purpose != fabric::Purpose::kData) return std::nullopt;
  for (const auto& peer : peers) {
    if (peer->awaits_data() && peer->link == key) return fabric::derive(token, "data", peer->session);
  }
  return std::nullopt;
}

void Agent::Impl::forget(std::list<Arrival>::iterator arrival) {
  if (arrival->stream) epoll_ctl(arrival->door->events.get(), EPOLL_CTL_DEL, arrival->stream->fd(), nullptr);
  arrivals.erase(arrival);
}

void Agent::Impl::turn_away(const Status& why) {
  ++refused_total;
  if (std::uint64_t more = 0; turned_away.admit(now_ns(), more)) {
    spdlog::warn("a connection was turned away: {}{}", why.message(),
                 more == 0 ? "" : fmt::format(" (and {} others before)", more));
  }
}

/// The next steps of a connection's handshake, and the connection's place when it is proven.
void Agent::Impl::advance(std::list<Arrival>::iterator arrival) {
  auto done = arrival->handshake.advance(*arrival->stream);
  if (!done) {
    turn_away(done.status());
    forget(arrival);
    return;
  }
  if (!*done) return;
  std::unique_ptr<ByteStream> stream = std::move(arrival->stream);
  const auto credentials = arrival->credentials;
  const fabric::Purpose purpose = arrival->handshake.purpose();
  const std::uint64_t key = arrival->handshake.key();
  epoll_ctl(arrival->door->events.get(), EPOLL_CTL_DEL, stream->fd(), nullptr);
  arrivals.erase(arrival);
  if (purpose == fabric::Purpose::kData) {  // its worker watches it
    for (const auto& peer : peers) {
      if (peer->awaits_data() && peer->link == key) {
        peer->data = std::move(stream);
        return;
      }
    }
    return;  // its session has ended meanwhile
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = stream->fd();
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.data.fd, &event) != 0) return;
  peers.push_back(std::make_unique<AgentPeer>(std::move(stream), "a client"));
  peers.back()->credentials = credentials;
  peers.back()->state_since = now_ns();
  peers.back()->channel.limit_received(kMaxHelloBytes);
  peers.back()->watched = EPOLLIN | EPOLLRDHUP;
}

void Agent::Impl::expire_arrivals() {
  while (!arrivals.empty() && now_ns() - arrivals.front().since > kArrivalPatienceNs) {
    turn_away({StatusCode::kDeadlineExceeded, "the handshake was not finished in time"});
    forget(arrivals.begin());
  }
}

}  // namespace wherry
