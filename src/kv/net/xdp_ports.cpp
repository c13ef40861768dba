// SPDX-License-Identifier: Apache-2.0
#include "kv/net/xdp_ports.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/try.hpp"

namespace wherry::kv {

Result<XdpPorts> XdpPorts::open(const Endpoint& at, std::span<const XdpPort::Options> interfaces) {
  if (interfaces.empty()) return wherry::Status(StatusCode::kInvalidArgument, "AF_XDP on no interface");
  std::vector<std::string> names;
  for (const XdpPort::Options& one : interfaces) names.push_back(one.interface);
  XdpPorts ports({.ip = at.ip, .port = at.port}, NeighbourTable(std::move(names)), Fd(epoll_create1(EPOLL_CLOEXEC)));
  if (!ports.any_)
    return wherry::Status(StatusCode::kUnavailable, fmt::format("AF_XDP: no epoll: {}", std::strerror(errno)));
  for (const XdpPort::Options& one : interfaces) {
    WHERRY_ASSIGN(auto port, XdpPort::open(ports.local_, one));
    ports.ports_.push_back(std::move(port));
  }
  return ports;
}

int XdpPorts::fd() noexcept {
  for (std::size_t i = 0; i < ports_.size() && !watched_; ++i) {
    epoll_event readable{.events = EPOLLIN, .data = {}};
    epoll_ctl(any_.get(), EPOLL_CTL_ADD, ports_[i].fd(), &readable);  // an open socket that is not there yet
  }
  watched_ = true;
  return any_.get();
}

XdpPorts::Counters XdpPorts::counters() const noexcept {
  Counters sum;
  sum.no_neighbour = sum.send_failed = no_neighbour_;
  for (const XdpPort& port : ports_) {
    const Counters& one = port.counters();
    sum.received += one.received;
    sum.sent += one.sent;
    sum.bad_length += one.bad_length;
    sum.bad_checksum += one.bad_checksum;
    sum.send_failed += one.send_failed;
    sum.partial_checksum += one.partial_checksum;
    sum.foreign += one.foreign;
    sum.no_neighbour += one.no_neighbour;
  }
  return sum;
}

std::string XdpPorts::describe() const {
  std::string all;
  for (const XdpPort& port : ports_) all += (all.empty() ? "" : "; ") + port.describe();
  return all;
}

std::uint64_t XdpPorts::lost() const noexcept {
  std::uint64_t sum = 0;
  for (const XdpPort& port : ports_) sum += port.lost();
  return sum;
}

void XdpPorts::send(const Endpoint& to, const Message& message) {
  NeighbourTable::Path path;
  if (const std::uint64_t mark = to.mac >> kMacBits; mark != 0)
    path = {.mac = to.mac & ((std::uint64_t{1} << kMacBits) - 1), .interface = mark - 1};
  else
    path = neighbours_.find(to.ip);
  if (path.mac == 0 || path.interface >= ports_.size()) {
    ++no_neighbour_;
    return;
  }
  if (first_ == kNone) first_ = path.interface;
  ports_[path.interface].send({.mac = path.mac, .ip = to.ip, .port = to.port}, message);
}

std::size_t XdpPorts::flush() {
  // Flush all ports, because one may hold frames for which its kernel had no room.
  std::size_t sent = 0;
  std::size_t at = first_ == kNone ? 0 : first_;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    sent += ports_[at].flush();
    at = at + 1 == ports_.size() ? 0 : at + 1;
  }
  first_ = kNone;
  return sent;
}

}  // namespace wherry::kv
