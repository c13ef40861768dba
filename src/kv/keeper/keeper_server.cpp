// SPDX-License-Identifier: Apache-2.0
#include "kv/keeper/keeper_server.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "kv/clock.hpp"
#include "kv/control/line_connection.hpp"
#include "kv/keeper/store_thread.hpp"
#include "kv/wait.hpp"

namespace wherry::kv {
namespace {

constexpr std::size_t kMaxClients = 960;
// The most connections that belong to no node and no client: operators, and peers that have not introduced themselves.
// With all connections of nodes and clients, this leaves some of the usual 1024 descriptors free.
constexpr std::size_t kMaxStrangers = 40;
constexpr std::size_t kMaxStrangersOfOneAddress = 24;
constexpr int kAcceptedATurn = 8;                     // a peer that floods is read before its connection is closed
constexpr Cycles kIdle = 5000 * kMillisecond;         // of a stranger, since it came or asked last
constexpr Cycles kNoDescriptor = 100 * kMillisecond;  // until the next try
constexpr std::uint32_t kNobody = kMaxNodes;

std::uint64_t address_of(const sockaddr_storage& from) noexcept {
  if (from.ss_family == AF_INET) return reinterpret_cast<const sockaddr_in&>(from).sin_addr.s_addr;
  if (from.ss_family != AF_INET6) return 0;
  std::uint64_t network = 0;  // a machine may have any address of its network
  std::memcpy(&network, &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr, sizeof network);
  return network;
}

}  // namespace

struct KeeperServer::Impl final : KeeperOutput {
  struct Connection {
    LineConnection lines;
    std::uint64_t number = 0;  ///< of the connection, from 1 on
    std::uint32_t node = kNobody;
    bool operator_asked = false;
    std::uint64_t session = 0;  ///< of a client that has lanes, or wants some
    bool lanes_over = false;    ///< it needs them no more
    std::uint64_t address = 0;  ///< where it came from, without the port
    Cycles heard = 0;           ///< when it came, or asked last
    bool broken = false;
    [[nodiscard]] bool stranger() const noexcept { return node == kNobody && session == 0 && !broken; }
  };

  Fd listener;
  std::uint16_t port = 0;
  KeeperOptions options;
  std::unique_ptr<StoreThread> store_;
  std::unique_ptr<Keeper> keeper;
  std::list<Connection> connections;
  std::uint64_t numbers = 0;
  Cycles listen_from = 0;  ///< no descriptors were left: until then nobody is accepted

  void send(std::uint32_t node, const FromKeeper& message) override {
    for (Connection& c : connections) {
      // turn() closes a connection that fails, because this function must not call the keeper.
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

  /// Closes the idlest stranger, but first those that have already got an answer. False: there is none.
  bool end_one(const std::function<bool(const Connection&)>& of) {
    Connection* longest = nullptr;
    const auto before = [](const Connection& a, const Connection& b) {
      return a.operator_asked != b.operator_asked ? a.operator_asked : a.heard < b.heard;
    };
    for (Connection& c : connections)
      if (c.stranger() && of(c) && (longest == nullptr || before(c, *longest))) longest = &c;
    if (longest == nullptr) return false;
    longest->broken = true;
    connections.remove_if([&](const Connection& c) { return &c == longest; });
    return true;
  }

  void make_room(std::uint64_t address) {
    const auto all = [](const Connection&) { return true; };
    const auto its = [&](const Connection& c) { return c.address == address; };
    const auto count = [&](const std::function<bool(const Connection&)>& of) {
      return static_cast<std::size_t>(
          std::ranges::count_if(connections, [&](const Connection& c) { return c.stranger() && of(c); }));
    };
    if (count(its) >= kMaxStrangersOfOneAddress) end_one(its);
    if (count(all) >= kMaxStrangers) end_one(all);
  }

  void accept_some() {
    for (int i = 0; i < kAcceptedATurn; ++i) {
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      Fd socket(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        // Without a free descriptor, the connection would stay in the kernel's queue, and poll() would return at once.
        if (end_one([](const Connection&) { return true; })) continue;
        if (listen_from == 0) spdlog::warn("kv keeper: no connection can be accepted: {}", std::strerror(errno));
        listen_from = now() + kNoDescriptor;
        return;
      }
      if (!socket) return;
      listen_from = 0;
      const std::uint64_t address = address_of(from);
      make_room(address);
      connections.emplace_back();
      notice_death(socket.get());
      connections.back().lines = LineConnection(std::move(socket));
      connections.back().number = ++numbers;
      connections.back().address = address;
      connections.back().heard = now();
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
    for (const std::uint64_t number : keeper->take_ousted())
      for (Connection& other : connections)
        if (other.number == number) refuse(other, "these lanes were granted to another client since");
    if (!c.lines.send(encode(answer)) || std::holds_alternative<Answer>(answer)) c.broken = true;  // refused
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
      c.heard = now();
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
    // From now on another keeper may be elected, and clients must go to it.
    const bool over = !keeper->mandated(now());
    for (auto it = connections.begin(); it != connections.end();) {
      const bool idle = (it->stranger() && now() - it->heard > kIdle) || (it->session != 0 && over);
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

Cycles KeeperServer::now() noexcept { return lease_clock(); }

KeeperServer::KeeperServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KeeperServer::~KeeperServer() = default;

Result<std::unique_ptr<KeeperServer>> KeeperServer::start(const HostPort& at, KeeperOptions options,
                                                          std::unique_ptr<ConfigurationStore> store) {
  WHERRY_ASSIGN(auto listener, listen_tcp(at));
  return start(std::move(listener), std::move(options), std::move(store));
}

Result<std::unique_ptr<KeeperServer>> KeeperServer::start(Fd listener, KeeperOptions options,
                                                          std::unique_ptr<ConfigurationStore> store) {
  auto impl = std::make_unique<Impl>();
  impl->listener = std::move(listener);
  WHERRY_ASSIGN(const auto port, local_port(impl->listener));
  impl->port = port;
  WHERRY_ASSIGN(auto kept, store->load());
  options.first_grant =
      std::max(options.first_grant, static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                                   std::chrono::system_clock::now().time_since_epoch())
                                                                   .count()));
  impl->options = options;
  impl->store_ = std::make_unique<StoreThread>(std::move(store));
  impl->keeper = std::make_unique<Keeper>(std::move(options), *impl, std::move(kept), now());
  return std::unique_ptr<KeeperServer>(new KeeperServer(std::move(impl)));
}

std::uint16_t KeeperServer::port() const noexcept { return impl_->port; }
Keeper& KeeperServer::keeper() noexcept { return *impl_->keeper; }

void KeeperServer::turn(int timeout_ms) {
  Impl& h = *impl_;
  const bool listens = h.listen_from == 0 || now() >= h.listen_from;
  std::vector<pollfd> fds{{listens ? h.listener.get() : -1, POLLIN, 0}, {h.store_->fd(), POLLIN, 0}};
  const std::size_t first = fds.size();
  std::vector<Impl::Connection*> whose;
  for (Impl::Connection& c : h.connections) {
    fds.push_back(c.lines.awaited());
    whose.push_back(&c);
  }
  const Cycles next = listens ? h.keeper->next_time() : std::min(h.keeper->next_time(), h.listen_from);
  const Cycles before = now();
  wait_for(fds, std::min(next - std::min(next, before), static_cast<Cycles>(timeout_ms) * kMillisecond));
  for (std::size_t i = 0; i < whose.size(); ++i) {
    if ((fds[first + i].revents & POLLOUT) != 0 && !whose[i]->lines.flush()) whose[i]->broken = true;
    if ((fds[first + i].revents & ~POLLOUT) != 0) h.read(*whose[i]);
  }
  if (fds[0].revents != 0) h.accept_some();
  if (h.keeper->next_time() <= now()) h.keeper->on_time(now());
  h.keep();
  h.close_broken();
}

}  // namespace wherry::kv
