// SPDX-License-Identifier: Apache-2.0
// New connections: who comes must prove that it knows the token, in a handshake of fixed size and within a few seconds,
// before it is anything to the agent.
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/impl.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"

namespace wherry {
namespace {

constexpr std::size_t kMaxArrivals = 128;                    // then the one that has been at it longest goes
constexpr std::uint64_t kArrivalPatienceNs = 5'000'000'000;  // from the connection to its proof
constexpr std::size_t kMaxHelloBytes = 16'384;               // what a client may say before it is greeted
constexpr int kAcceptAtATime = 32;                           // then those that are there get their turn

}  // namespace

void Agent::Impl::accept_all(const Fd& from) {
  for (int i = 0; i < kAcceptAtATime; ++i) {
    Fd socket(accept4(from.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
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
    if (arrivals.size() >= kMaxArrivals) {
      turn_away({StatusCode::kResourceExhausted, "too many that prove nothing"});
      forget(arrivals.begin());
    }
    arrival.since = now_ns();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = arrival.stream->fd();
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, arrival.stream->fd(), &event) == 0)
      arrivals.push_back(std::move(arrival));
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
  if (arrival->stream) epoll_ctl(epoll.get(), EPOLL_CTL_DEL, arrival->stream->fd(), nullptr);
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
  arrivals.erase(arrival);
  if (purpose == fabric::Purpose::kData) {
    epoll_ctl(epoll.get(), EPOLL_CTL_DEL, stream->fd(), nullptr);  // its worker watches it
    for (const auto& peer : peers) {
      if (peer->awaits_data() && peer->link == key) {
        peer->data = std::move(stream);
        return;
      }
    }
    return;  // its session has ended meanwhile
  }
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
