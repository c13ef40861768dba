// SPDX-License-Identifier: Apache-2.0
#include "agent/port_guard.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/fd.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/try.hpp"

namespace wherry {
namespace {

constexpr int kEveryMs = 100;

struct Address {
  std::string host;  ///< IPv4 in IPv6 as IPv4
  std::uint16_t port = 0;
  [[nodiscard]] std::string text() const { return host + ":" + std::to_string(port); }
};

Address address_of(const sockaddr_storage& from) {
  char text[INET6_ADDRSTRLEN] = {};
  if (from.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &from, sizeof in);
    ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return {text, ntohs(in.sin_port)};
  }
  sockaddr_in6 in{};
  std::memcpy(&in, &from, sizeof in);
  if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr))
    ::inet_ntop(AF_INET, reinterpret_cast<const char*>(&in.sin6_addr) + 12, text, sizeof text);
  else
    ::inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
  return {text, ntohs(in.sin6_port)};
}

/// The local address of a TCP socket.
std::optional<Address> here_of(int fd) {
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0) return std::nullopt;
  if (here.ss_family != AF_INET && here.ss_family != AF_INET6) return std::nullopt;
  return address_of(here);
}

struct Ends {
  Address here;
  std::string there;
};

/// Both addresses of a connected TCP socket.
std::optional<Ends> ends_of(int fd) {
  auto here = here_of(fd);
  sockaddr_storage there{};
  socklen_t size = sizeof there;
  if (!here || ::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &size) != 0) return std::nullopt;
  return Ends{*std::move(here), address_of(there).text()};
}

bool listens(int fd) {
  int on = 0;
  socklen_t size = sizeof on;
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &size) == 0 && on != 0;
}

/// The number of an entry of /proc/self/fd; nullopt for ".", ".." and the standard streams.
std::optional<int> descriptor_of(const dirent& entry) {
  const int fd = std::atoi(entry.d_name);
  return fd > STDERR_FILENO ? std::optional(fd) : std::nullopt;
}

}  // namespace

struct PortGuard::Impl {
  struct Seen {
    int fd = -1;
    std::uint64_t since = 0;  ///< in rounds
    std::string there;
  };
  std::vector<Port> ports;
  std::vector<std::set<std::string>> hosts;  ///< on which the library listens, for each of the ports
  DIR* directory = nullptr;                  ///< open all the time: there may be no descriptor when it is needed
  Fd stop, spare;
  std::map<std::string, std::uint64_t> since;
  std::uint64_t round = 0;
  LogLimit failed;
  std::thread thread;

  ~Impl() {
    if (directory != nullptr) ::closedir(directory);
  }
  void run();
  void look();
  void end(std::size_t port, const Seen& one) const;
  [[nodiscard]] bool comes_to(std::size_t port, const Address& here) const;
  Status find_listeners(const std::vector<int>& others);
};

/// If a listener binds a port on all addresses, no other listener can bind the port on a single address.
bool PortGuard::Impl::comes_to(std::size_t port, const Address& here) const {
  if (ports[port].port != here.port) return false;
  const std::set<std::string>& at = hosts[port];
  const bool ipv6 = here.host.find(':') != std::string::npos;
  return at.contains(here.host) || at.contains("::") || (!ipv6 && at.contains("0.0.0.0"));
}

Status PortGuard::Impl::find_listeners(const std::vector<int>& others) {
  hosts.resize(ports.size());
  ::rewinddir(directory);
  while (const dirent* const entry = ::readdir(directory)) {
    const auto fd = descriptor_of(*entry);
    if (!fd || !listens(*fd) || std::ranges::find(others, *fd) != others.end()) continue;
    const auto here = here_of(*fd);
    for (std::size_t i = 0; here && i < ports.size(); ++i) {
      if (ports[i].port == here->port) hosts[i].insert(here->host);
    }
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (hosts[i].empty())
      return {StatusCode::kUnavailable, "cannot limit the connections to port " + std::to_string(ports[i].port) +
                                            ": this process does not listen there"};
  }
  return ok_status();
}

void PortGuard::Impl::run() {
  name_thread("wherry-guard");
  for (;;) {
    pollfd over{stop.get(), POLLIN, 0};
    if (::poll(&over, 1, kEveryMs) > 0) return;
    if (const Status s = guarded([this] { return look(), ok_status(); }); !s) {  // the next round may have the memory
      if (std::uint64_t more = 0; failed.admit(now_ns(), more))
        attempt([&] { spdlog::warn("the connections to Flight and metrics were not counted: {}", s.message()); });
    }
  }
}

void PortGuard::Impl::look() {
  ++round;
  std::vector<std::vector<Seen>> found(ports.size());
  std::map<std::string, std::uint64_t> still;
  ::rewinddir(directory);
  while (const dirent* const entry = ::readdir(directory)) {
    const auto fd = descriptor_of(*entry);
    const auto ends = fd ? ends_of(*fd) : std::nullopt;
    if (!ends) continue;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (!comes_to(i, ends->here)) continue;
      const std::string key = ends->here.text() + " " + ends->there;
      const auto known = since.find(key);
      const std::uint64_t first = known == since.end() ? round : known->second;
      still.emplace(key, first);
      found[i].push_back({*fd, first, ends->there});
    }
  }
  since.swap(still);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    std::vector<Seen>& all = found[i];
    if (ports[i].proven) {
      std::set<std::string> connected;
      for (const Seen& one : all) connected.insert(one.there);
      const std::set<std::string> proven = ports[i].proven(connected);
      std::erase_if(all, [&](const Seen& one) { return proven.contains(one.there); });
    }
    if (all.size() <= ports[i].limit) continue;
    std::ranges::stable_sort(all, {}, &Seen::since);
    all.resize(all.size() - ports[i].limit);
    for (const Seen& one : all) end(i, one);
  }
}

/// The library that owns the descriptor may close it at any time. So this function inspects the connection, and shuts
/// it down, through a duplicate.
void PortGuard::Impl::end(std::size_t port, const Seen& one) const {
  if (::dup3(one.fd, spare.get(), O_CLOEXEC) < 0) return;
  const auto ends = ends_of(spare.get());
  if (ends && comes_to(port, ends->here) && ends->there == one.there) (void)::shutdown(spare.get(), SHUT_RDWR);
  (void)::dup3(stop.get(), spare.get(), O_CLOEXEC);
}

PortGuard::PortGuard(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PortGuard::~PortGuard() {
  const std::uint64_t one = 1;
  (void)!::write(impl_->stop.get(), &one, sizeof one);
  if (impl_->thread.joinable()) impl_->thread.join();
}

Result<std::unique_ptr<PortGuard>> PortGuard::start(std::vector<Port> ports, const std::vector<int>& others) {
  auto impl = std::make_unique<Impl>();
  impl->ports = std::move(ports);
  impl->directory = ::opendir("/proc/self/fd");
  impl->stop = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  impl->spare = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (impl->directory == nullptr || !impl->stop || !impl->spare)
    return Status(StatusCode::kUnavailable,
                  std::string("cannot limit the connections to Flight and metrics: ") + std::strerror(errno));
  WHERRY_TRY(impl->find_listeners(others));
  impl->thread = std::thread([raw = impl.get()] { raw->run(); });
  return std::unique_ptr<PortGuard>(new PortGuard(std::move(impl)));
}

}  // namespace wherry
