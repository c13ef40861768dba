// SPDX-License-Identifier: Apache-2.0
// New connections: a peer must prove that it knows the token (fabric/doorway.hpp) before the agent treats it as a
// client.
#include <fmt/core.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/impl.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/try.hpp"

namespace wherry {
namespace {

constexpr std::size_t kMaxHelloBytes = 16'384;  // what a client may say before it is greeted

}  // namespace

Status Agent::Impl::open_doors() {
  WHERRY_ASSIGN(gate,
                fabric::Doorway::create({
                    .secret = [this](fabric::Purpose purpose, std::uint64_t key) { return secret_for(purpose, key); },
                    .proven = [this](fabric::Doorway::Proven proven) { settle(std::move(proven)); },
                    .turned_away = [this](const Status& why) { turn_away(why); },
                    .cannot_accept =
                        [this](int error) {
                          if (std::uint64_t more = 0; turned_away.admit(now_ns(), more))
                            spdlog::warn(
                                "clients wait: the agent cannot accept a connection: {}; raise its limit (ulimit -n, "
                                "LimitNOFILE=)",
                                std::strerror(error));
                        },
                    .accepted = {},
                }));
  WHERRY_TRY(gate->add(listener));
  if (tcp_listener) {
    WHERRY_TRY(gate->add(tcp_listener, tls));
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = gate->fd();
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, gate->fd(), &event) == 0) return ok_status();
  return {StatusCode::kInternal, fmt::format("epoll: {}", std::strerror(errno))};
}

std::optional<fabric::Secret> Agent::Impl::secret_for(fabric::Purpose purpose, std::uint64_t key) const {
  if (purpose == fabric::Purpose::kControl) return host.token;
  if (purpose != fabric::Purpose::kData) return std::nullopt;
  for (const auto& client : clients) {
    if (client->awaits_data() && client->link == key) return fabric::derive(host.token, "data", client->session);
  }
  return std::nullopt;
}

void Agent::Impl::turn_away(const Status& why) noexcept {
  ++refused_total;
  if (std::uint64_t more = 0; turned_away.admit(now_ns(), more)) {
    attempt([&] {
      spdlog::warn("a connection was turned away: {}{}", why.message(),
                   more == 0 ? "" : fmt::format(" (and {} others before)", more));
    });
  }
}

/// Hands an authenticated connection to its session or to the list of clients.
void Agent::Impl::settle(fabric::Doorway::Proven proven) {
  if (proven.purpose == fabric::Purpose::kData) {  // its worker watches it
    for (const auto& client : clients) {
      if (client->awaits_data() && client->link == proven.key) {
        client->data = std::move(proven.stream);
        return;
      }
    }
    return;  // its session has ended meanwhile
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = proven.stream->fd();
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.data.fd, &event) != 0)
    return turn_away({StatusCode::kResourceExhausted, fmt::format("it knows the token, but the agent cannot wait for "
                                                                  "what it says: epoll: {}",
                                                                  std::strerror(errno))});
  clients.push_back(std::make_unique<AgentClient>(std::move(proven.stream), "a client"));  // if it throws, all closes
  clients.back()->credentials = proven.credentials;
  clients.back()->state_since = now_ns();
  clients.back()->channel.limit_received(kMaxHelloBytes);
  clients.back()->watched = EPOLLIN | EPOLLRDHUP;
}

}  // namespace wherry
