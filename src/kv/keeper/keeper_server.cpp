// SPDX-License-Identifier: Apache-2.0
#include "kv/keeper/keeper_server.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <list>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "kv/keeper/line_connection.hpp"
#include "kv/keeper/store_thread.hpp"

namespace wherry::kv {
namespace {

constexpr std::size_t kMaxConnections = 1024;
constexpr std::size_t kMaxClients = 960;                    // the others' connections are for nodes and operators
constexpr Cycles kIntroduction = 5'000'000'000 / kCycleNs;  // to say who one is
constexpr std::uint32_t kNobody = kMaxNodes;

}  // namespace

struct KeeperServer::Impl final : KeeperOutput {
  struct Connection {
    LineConnection lines;
    std::uint64_t number = 0;  ///< of the connection, from 1 on
    std::uint32_t node = kNobody;
    bool operator_asked = false;
    std::uint64_t session = 0;  ///< of a client that has lanes, or wants some
    bool lanes_over = false;    ///< it needs them no more
    Cycles opened = 0;
    bool broken = false;
  };

  Fd listener;
  std::uint16_t port = 0;
  KeeperOptions options;
  std::unique_ptr<StoreThread> store_;
  std::unique_ptr<Keeper> keeper;
  std::list<Connection> connections;
  std::uint64_t numbers = 0;

  void send(std::uint32_t node, const FromKeeper& message) override {
    for (Connection& c : connections) {
      // One that fails is closed by turn(): the keeper must not be called from here.
      if (c.node == node && !c.broken && !c.lines.send(encode(message))) c.broken = true;
    }
  }
  void store(const Configuration& configuration) override { store_->keep(configuration); }

  void keep() {
    const auto kept = store_->take();
    if (!kept) return;
    if (!*kept) spdlog::error("kv keeper: {}; another keeper is elected", kept->message());
    keeper->stored(kept->ok(), now());
  }

  void accept_all() {
    for (;;) {
      Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      if (connections.size() >= kMaxConnections) continue;
      connections.emplace_back();
      notice_death(socket.get());
      connections.back().lines = LineConnection(std::move(socket));
      connections.back().number = ++numbers;
      connections.back().opened = now();
    }
  }

  void refuse(Connection& c, std::string why) {
    (void)c.lines.send(encode(FromKeeper(Answer{false, std::move(why)})));
    c.broken = true;
  }

  void take_client(Connection& c, const OpenLanes& open) {
    if (c.node != kNobody || (c.session != 0 && c.session != open.session))
      return refuse(c, "a connection is for one node, or for one client's lanes");
    const auto clients = std::ranges::count_if(connections, [](const Connection& one) { return one.session != 0; });
    if (c.session == 0 && clients >= static_cast<std::ptrdiff_t>(kMaxClients))
      return refuse(c, fmt::format("{} clients have lanes already: as many as this keeper serves", kMaxClients));
    c.session = open.session;
    const FromKeeper answer = keeper->open_lanes(c.number, open, now());
    if (const auto* refusal = std::get_if<Answer>(&answer)) return refuse(c, refusal->text);
    if (!c.lines.send(encode(answer))) c.broken = true;
  }

  void take(Connection& c, const ToKeeper& message) {
    if (const auto* open = std::get_if<OpenLanes>(&message)) return take_client(c, *open);
    if (std::holds_alternative<CloseLanes>(message)) {
      c.lanes_over = c.broken = true;
      return;
    }
    if (c.session != 0) return refuse(c, "this connection is for a client's lanes");
    if (const auto* command = std::get_if<Command>(&message)) {
      c.operator_asked = true;
      if (!c.lines.send(encode(FromKeeper(keeper->command(*command, now()))))) c.broken = true;
      return;
    }
    if (const auto* hello = std::get_if<Hello>(&message)) {
      if (std::string why = keeper->mismatch(*hello); !why.empty()) {
        keeper->refused(hello->node, why);
        return refuse(c, std::move(why));
      }
      if (c.node != kNobody && c.node != hello->node) return refuse(c, "a connection is for one node");
      for (Connection& other : connections) {
        if (&other == &c || other.node != hello->node) continue;
        other.node = kNobody;  // the latest connection of a node is its connection
        other.broken = true;
        keeper->disconnected(hello->node, now());
      }
      c.node = hello->node;
    }
    if (c.node == kNobody) return refuse(c, "say hello first");
    keeper->on_message(c.node, message, now());
  }

  void read(Connection& c) {
    while (!c.broken) {
      const auto line = c.lines.next();
      if (!line) {
        c.broken = true;
        return;
      }
      if (!line->has_value()) return;
      const auto message = decode_to_keeper(**line);
      if (!message) return refuse(c, message.status().message());
      take(c, *message);
    }
  }

  void close_broken() {
    // From here on another keeper may be elected, to which clients must turn.
    const bool over = !keeper->mandated(now());
    for (auto it = connections.begin(); it != connections.end();) {
      const bool silent = it->node == kNobody && !it->operator_asked && it->session == 0;
      const bool idle = (silent && now() - it->opened > kIntroduction) || (it->session != 0 && over);
      if (!it->broken && !idle) {
        ++it;
        continue;
      }
      const std::uint32_t node = it->node;
      if (it->session != 0) keeper->close_lanes(it->number, it->lanes_over, now());
      it = connections.erase(it);
      if (node != kNobody) keeper->disconnected(node, now());
    }
  }
};

Cycles KeeperServer::now() noexcept { return boot_ns() / kCycleNs; }

KeeperServer::KeeperServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KeeperServer::~KeeperServer() = default;

Result<std::unique_ptr<KeeperServer>> KeeperServer::start(const HostPort& at, KeeperOptions options,
                                                          std::unique_ptr<ConfigurationStore> store) {
  auto listener = listen_tcp(at);
  if (!listener) return listener.status();
  return start(*std::move(listener), std::move(options), std::move(store));
}

Result<std::unique_ptr<KeeperServer>> KeeperServer::start(Fd listener, KeeperOptions options,
                                                          std::unique_ptr<ConfigurationStore> store) {
  auto impl = std::make_unique<Impl>();
  impl->listener = std::move(listener);
  const auto port = local_port(impl->listener);
  if (!port) return port.status();
  impl->port = *port;
  auto kept = store->load();
  if (!kept) return kept.status();
  impl->options = options;
  impl->store_ = std::make_unique<StoreThread>(std::move(store));
  impl->keeper = std::make_unique<Keeper>(std::move(options), *impl, *std::move(kept), now());
  return std::unique_ptr<KeeperServer>(new KeeperServer(std::move(impl)));
}

std::uint16_t KeeperServer::port() const noexcept { return impl_->port; }
Keeper& KeeperServer::keeper() noexcept { return *impl_->keeper; }

void KeeperServer::turn(int timeout_ms) {
  Impl& h = *impl_;
  std::vector<pollfd> fds{{h.listener.get(), POLLIN, 0}, {h.store_->fd(), POLLIN, 0}};
  const std::size_t first = fds.size();
  std::vector<Impl::Connection*> whose;
  for (Impl::Connection& c : h.connections) {
    fds.push_back({c.lines.fd(), static_cast<short>(c.lines.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
    whose.push_back(&c);
  }
  const Cycles next = h.keeper->next_time();
  const Cycles before = now();
  const std::uint64_t left = next > before ? ((next - before) * kCycleNs + 999'999) / 1'000'000 : 0;
  ::poll(fds.data(), fds.size(),
         static_cast<int>(std::min<std::uint64_t>(left, static_cast<std::uint64_t>(timeout_ms))));
  for (std::size_t i = 0; i < whose.size(); ++i) {
    if ((fds[first + i].revents & POLLOUT) != 0 && !whose[i]->lines.flush()) whose[i]->broken = true;
    if ((fds[first + i].revents & ~POLLOUT) != 0) h.read(*whose[i]);
  }
  if (fds[0].revents != 0) h.accept_all();
  if (h.keeper->next_time() <= now()) h.keeper->on_time(now());
  h.keep();
  h.close_broken();
}

}  // namespace wherry::kv
