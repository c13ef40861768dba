// SPDX-License-Identifier: Apache-2.0
#include "kv/resp/gateway.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"
#include "base/try.hpp"
#include "base/version.hpp"
#include "kv/resp/connection.hpp"
#include "kv/resp/edit_runner.hpp"

namespace wherry::kv::resp {
namespace {

using std::chrono::nanoseconds;
using Words = std::span<const std::string_view>;
constexpr nanoseconds kNoDescriptor = std::chrono::milliseconds(500);  // until the next try to accept
constexpr std::uint64_t kListener = 0, kStore = 1, kFirstConnection = 2;

bool is_loopback(const Fd& socket) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) return false;
  constexpr std::uint32_t kNetwork = 127;
  if (at.ss_family == AF_INET) return ntohl(reinterpret_cast<const sockaddr_in&>(at).sin_addr.s_addr) >> 24 == kNetwork;
  return at.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(at).sin6_addr);
}

}  // namespace

struct Gateway::Impl {
  Impl(Client from, GatewayOptions with)
      : options(std::move(with)),
        client(std::move(from)),
        edits(client, [this](std::uint64_t owner, std::uint32_t part, Answer answer) {
          edit_done(owner, part, std::move(answer));
        }) {}

  wherry::Status open() {
    WHERRY_ASSIGN(listener, listen_tcp(options.listen));
    WHERRY_ASSIGN(port, local_port(listener));
    poller = Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!poller) return {StatusCode::kUnavailable, fmt::format("epoll: {}", std::strerror(errno))};
    if (options.password.empty() && !options.open && !is_loopback(listener))
      return {StatusCode::kInvalidArgument,
              fmt::format("{} can be reached from other machines: a password is needed, or the word that none is",
                          options.listen.to_string())};
    watch(listener.get(), kListener, EPOLLIN);
    watch(client.descriptor(), kStore, EPOLLIN);
    return ok_status();
  }

  void watch(int fd, std::uint64_t what, std::uint32_t events) const {
    epoll_event event{.events = events, .data = {.u64 = what}};
    if (::epoll_ctl(poller.get(), EPOLL_CTL_MOD, fd, &event) != 0 && errno == ENOENT)
      ::epoll_ctl(poller.get(), EPOLL_CTL_ADD, fd, &event);
  }

  // Connections.

  void accept_some() {
    constexpr int kATurn = 64;
    for (int i = 0; i < kATurn; ++i) {
      Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        const bool none_left = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (none_left) pause_listening();
        return;
      }
      tune_socket(socket.get());
      if (connections.size() >= options.clients) {
        constexpr std::string_view kFull = "-ERR max number of clients reached\r\n";
        (void)::send(socket.get(), kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        continue;
      }
      const std::uint64_t number = next_number++;
      const int fd = socket.get();
      const auto [made, fresh] = connections.try_emplace(number, std::move(socket), number, options.password.empty());
      made->second.watched = EPOLLIN;
      watch(fd, number, EPOLLIN);
    }
  }

  /// For when no descriptor is left: the connection stays in the kernel's queue, so epoll would return at once.
  void pause_listening() {
    spdlog::warn("kv resp: no connection can be accepted: {}", std::strerror(errno));
    ::epoll_ctl(poller.get(), EPOLL_CTL_DEL, listener.get(), nullptr);
    listens = false;
    listen_again = Deadline(kNoDescriptor);
  }

  void listen_once_more() {
    if (listens || stopping || !listen_again.passed()) return;
    watch(listener.get(), kListener, EPOLLIN);
    listens = true;
  }

  void drop(std::uint64_t number) {
    connections.erase(number);  // edits under way take effect; nobody is told
  }

  /// Takes commands until one of them needs the store, or there are no more.
  void serve(Connection& c) {
    while (!c.busy() && !c.ending && !c.congested() && !stopping) {
      const auto there = c.next(words);
      if (!there) {
        c.answer(Answer::error(fmt::format("ERR Protocol error: {}", there.status().message())));
        c.ending = true;
        break;
      }
      if (!*there) {
        c.ending = c.silent;
        break;
      }
      take(c, words);
    }
    mark(c.number());
  }

  void mark(std::uint64_t number) {
    if (marked.empty() || marked.back() != number) marked.push_back(number);
  }

  void take(Connection& c, Words a) {
    const auto is = [&](std::string_view name) { return same_word(a[0], name); };
    // These are lines of an HTTP request, sent by a page in a browser of this machine. Its body would be taken for
    // commands.
    if (is("POST") || is("Host:")) {
      c.ending = true;
      return;
    }
    if (is("AUTH")) return auth(c, a);
    if (is("HELLO")) return hello(c, a);
    if (is("QUIT")) {
      c.answer(Answer::ok());
      c.ending = true;
      return;
    }
    if (!c.trusted()) return c.answer(Answer::error("NOAUTH Authentication required."));
    if (is("SELECT"))
      return c.answer(a.size() == 2 && a[1] == "0" ? Answer::ok()
                                                   : Answer::error("ERR DB index is out of range: there is only 0"));
    if (is("CLIENT")) return about_client(c, a);
    if (is("RESET")) {
      c.protocol = 2;
      c.name.clear();
      return c.answer(Answer::simple("RESET"));
    }
    Plan what = plan(a, {.key_by_key = options.key_by_key});
    if (what.edits.empty()) return c.answer(what.answer);
    c.begin(what.join, what.edits.size());
    std::uint32_t part = 0;
    for (Edit& edit : what.edits) edits.start(std::move(edit), c.number(), part++);
  }

  [[nodiscard]] bool right(Words name_and_password) const {
    const std::string_view password = name_and_password.back();
    const bool by_name = name_and_password.size() == 1 || name_and_password.front() == "default";
    return equal_secrets(password, options.password) && by_name && !options.password.empty();
  }

  void auth(Connection& c, Words a) const {
    if (a.size() != 2 && a.size() != 3)
      return c.answer(Answer::error("ERR wrong number of arguments for 'auth' command"));
    if (options.password.empty()) return c.answer(Answer::error("ERR this gateway does not use a password"));
    if (!right(a.subspan(1)))
      return c.answer(Answer::error("WRONGPASS invalid username-password pair or user is disabled."));
    c.trust();
    c.answer(Answer::ok());
  }

  void hello(Connection& c, Words a) const {
    int protocol = c.protocol;
    std::size_t i = 1;
    if (a.size() > 1) {
      if (a[1] != "2" && a[1] != "3") return c.answer(Answer::error("NOPROTO unsupported protocol version"));
      protocol = a[1] == "3" ? 3 : 2;
      i = 2;
    }
    std::string name = c.name;
    for (; i < a.size(); ++i) {
      if (same_word(a[i], "AUTH") && i + 2 < a.size()) {
        if (!right(a.subspan(i + 1, 2)))
          return c.answer(Answer::error("WRONGPASS invalid username-password pair or user is disabled."));
        c.trust();
        i += 2;
      } else if (same_word(a[i], "SETNAME") && i + 1 < a.size()) {
        name = a[++i];
      } else {
        return c.answer(Answer::error("ERR Syntax error in HELLO"));
      }
    }
    if (!c.trusted())
      return c.answer(
          Answer::error("NOAUTH HELLO must be called with the client already authenticated, otherwise the "
                        "HELLO <proto> AUTH <user> <pass> option can be used"));
    c.protocol = protocol;
    c.name = std::move(name);
    c.answer(Answer::map({Answer::text("server"), Answer::text("wherry-kv"), Answer::text("version"),
                          Answer::text(kVersion), Answer::text("proto"), Answer::number(protocol), Answer::text("id"),
                          Answer::number(static_cast<std::int64_t>(c.number())), Answer::text("mode"),
                          Answer::text("standalone"), Answer::text("role"), Answer::text("master"),
                          Answer::text("modules"), Answer::list({})}));
  }

  static void about_client(Connection& c, Words a) {
    if (a.size() == 4 && same_word(a[1], "SETINFO")) return c.answer(Answer::ok());
    if (a.size() == 3 && same_word(a[1], "SETNAME")) {
      c.name = a[2];
      return c.answer(Answer::ok());
    }
    if (a.size() == 2 && same_word(a[1], "GETNAME"))
      return c.answer(c.name.empty() ? Answer::null() : Answer::text(c.name));
    if (a.size() == 2 && same_word(a[1], "ID")) return c.answer(Answer::number(static_cast<std::int64_t>(c.number())));
    c.answer(Answer::error("ERR of CLIENT there are SETINFO, SETNAME, GETNAME and ID here"));
  }

  void edit_done(std::uint64_t owner, std::uint32_t part, Answer answer) {
    const auto found = connections.find(owner);
    if (found == connections.end() || !found->second.done(part, std::move(answer))) return;
    ready.push_back(owner);
  }

  /// After all received bytes were handled: sends output, and removes closed connections.
  void settle() {
    std::vector<std::uint64_t> now;
    now.swap(marked);
    for (const std::uint64_t number : now) {
      const auto found = connections.find(number);
      if (found == connections.end()) continue;
      Connection& c = found->second;
      const bool was_congested = c.congested();
      if (!c.transmit() || (c.ending && !c.busy() && !c.has_output())) {
        drop(number);
        continue;
      }
      if (was_congested && !c.congested()) serve(c);
      rewatch(c);
    }
  }

  void rewatch(Connection& c) const {
    const std::uint32_t wanted = (c.full() || c.silent ? 0U : EPOLLIN) | (c.has_output() ? EPOLLOUT : 0U);
    if (wanted == c.watched) return;
    c.watched = wanted;
    watch(c.fd(), c.number(), wanted);
  }

  void on_event(const epoll_event& event) {
    if (event.data.u64 == kListener) return accept_some();
    if (event.data.u64 == kStore) return;  // every turn looks there
    const auto found = connections.find(event.data.u64);
    if (found == connections.end()) return;
    Connection& c = found->second;
    if ((event.events & EPOLLIN) != 0 && !c.receive()) c.silent = true;
    if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) return drop(event.data.u64);
    serve(c);
  }

  /// The number of milliseconds that epoll may wait.
  [[nodiscard]] int patience() const {
    constexpr nanoseconds kLongest = std::chrono::milliseconds(100);  // a signal may come just before epoll waits
    const auto due = std::min(client.due(), kLongest);
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::max(due, nanoseconds(0))).count());
  }

  wherry::Status run(const std::atomic<bool>& stop) {
    constexpr std::size_t kEvents = 256;
    std::array<epoll_event, kEvents> events{};
    while (!stopping || edits.running() > 0) {
      const int count = ::epoll_wait(poller.get(), events.data(), kEvents, patience());
      if (count < 0 && errno != EINTR) return {StatusCode::kInternal, fmt::format("epoll: {}", std::strerror(errno))};
      if (stop.load(std::memory_order_relaxed) && !stopping) {
        stopping = true;
        if (listens) ::epoll_ctl(poller.get(), EPOLL_CTL_DEL, listener.get(), nullptr);
        listens = false;
      }
      listen_once_more();
      for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(count, 0))))
        on_event(event);
      do {
        while (edits.turn()) serve_ready();
        serve_ready();
        settle();
      } while (!marked.empty() || !ready.empty());
      client.flush();
    }
    return ok_status();
  }

  void serve_ready() {
    std::vector<std::uint64_t> now;
    now.swap(ready);
    for (const std::uint64_t number : now)
      if (const auto found = connections.find(number); found != connections.end()) serve(found->second);
  }

  GatewayOptions options;
  Client client;
  EditRunner edits;
  Fd listener, poller;
  std::uint16_t port = 0;
  bool listens = true, stopping = false;
  Deadline listen_again{kNoDescriptor};
  std::unordered_map<std::uint64_t, Connection> connections;
  std::uint64_t next_number = kFirstConnection;
  std::vector<std::uint64_t> marked;  ///< may have something to send
  std::vector<std::uint64_t> ready;   ///< their command was answered
  std::vector<std::string_view> words;
};

Result<Gateway> Gateway::open(Client client, GatewayOptions options) {
  auto impl = std::make_unique<Impl>(std::move(client), std::move(options));
  WHERRY_TRY(impl->open());
  return Gateway(std::move(impl));
}

Gateway::Gateway(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Gateway::Gateway(Gateway&& other) noexcept = default;
Gateway& Gateway::operator=(Gateway&& other) noexcept = default;
Gateway::~Gateway() = default;
std::uint16_t Gateway::port() const noexcept { return impl_->port; }
wherry::Status Gateway::run(const std::atomic<bool>& stop) { return impl_->run(stop); }

}  // namespace wherry::kv::resp
