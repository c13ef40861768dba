// SPDX-License-Identifier: Apache-2.0
#include "kv/net/neighbour.hpp"

#include <fmt/core.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/clock.hpp"
#include "base/socket.hpp"
#include "base/try.hpp"
#include "kv/net/address.hpp"

namespace wherry::kv {
namespace {

constexpr unsigned kArpComplete = 2, kRouteUp = 1, kRouteGateway = 2;

/// Reads a whole table of the calling thread's network namespace.
std::string read_table(const char* name) {
  std::ifstream file(fmt::format("/proc/thread-self/net/{}", name));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::uint32_t> ip_of(const std::string& text) {
  std::array<unsigned, 4> bytes{};
  if (std::sscanf(text.c_str(), "%u.%u.%u.%u", &bytes[0], &bytes[1], &bytes[2], &bytes[3]) != 4)  // NOLINT(*-err34-c)
    return std::nullopt;
  return bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

std::uint64_t mac_of(const std::string& text) {
  std::uint64_t mac = 0;
  std::istringstream in(text);
  for (std::string byte; std::getline(in, byte, ':');) mac = mac << 8 | std::strtoul(byte.c_str(), nullptr, 16);
  return mac;
}

bool fits(const std::string& name) { return !name.empty() && name.size() < IFNAMSIZ; }

/// Makes an ioctl(2) about an interface. The request is zero except for the name and the fields that `fill` sets.
template <typename Fill>
bool ask(const std::string& name, unsigned long what, ifreq& request, Fill&& fill) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  request = {};
  std::memcpy(request.ifr_name, name.c_str(), name.size() + 1);
  fill(request);
  return socket && ioctl(socket.get(), what, &request) == 0;
}

/// Sends an empty datagram to the discard port, so that the kernel looks up the neighbour's MAC address.
bool provoke(const std::string& interface, std::uint32_t ip) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                 static_cast<socklen_t>(interface.size())) != 0)
    return false;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = htonl(ip);
  return sendto(socket.get(), nullptr, 0, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

}  // namespace

Result<Interface> find_interface(const std::string& name) {
  Interface found{.index = fits(name) ? static_cast<int>(if_nametoindex(name.c_str())) : 0};
  if (found.index == 0) return wherry::Status(StatusCode::kNotFound, fmt::format("no network interface {}", name));
  ifreq request;
  if (!ask(name, SIOCGIFHWADDR, request, [](ifreq&) {}))
    return wherry::Status(StatusCode::kUnavailable, fmt::format("MAC of {}: {}", name, std::strerror(errno)));
  for (int i = 0; i < 6; ++i) found.mac = found.mac << 8 | static_cast<unsigned char>(request.ifr_hwaddr.sa_data[i]);
  return found;
}

Result<std::uint32_t> find_address(const std::string& name) {
  WHERRY_TRY(find_interface(name));
  ifreq request;
  if (!ask(name, SIOCGIFADDR, request, [](ifreq& r) { r.ifr_addr.sa_family = AF_INET; }))
    return wherry::Status(StatusCode::kUnavailable, fmt::format("{} has no IPv4 address", name));
  sockaddr_in address{};
  std::memcpy(&address, &request.ifr_addr, sizeof address);
  return ntohl(address.sin_addr.s_addr);
}

std::uint32_t receive_queues(const std::string& name) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request;
  if (!fits(name) ||
      !ask(name, SIOCETHTOOL, request, [&](ifreq& r) { r.ifr_data = reinterpret_cast<char*>(&channels); }))
    return 1;
  return std::max<std::uint32_t>(1, channels.rx_count + channels.combined_count);
}

Result<std::uint64_t> resolve_mac(const std::string& interface, std::uint32_t ip, std::chrono::milliseconds patience) {
  using namespace std::chrono_literals;
  WHERRY_TRY(find_interface(interface));
  const auto hop = next_hop_in_route_table(read_table("route"), interface, ip);
  if (!hop)
    return wherry::Status(StatusCode::kUnavailable,
                          fmt::format("no route to {} through {}", ip_to_string(ip), interface));
  const Deadline deadline(patience);
  for (int turn = 0;; ++turn) {
    if (const auto mac = mac_in_arp_table(read_table("arp"), interface, *hop)) return *mac;
    if (turn % 64 == 0 && !provoke(interface, *hop))
      return wherry::Status(StatusCode::kUnavailable, fmt::format("cannot look for {} through {}: {}",
                                                                  ip_to_string(*hop), interface, std::strerror(errno)));
    if (deadline.passed()) break;
    std::this_thread::sleep_for(2ms);
  }
  return wherry::Status(StatusCode::kDeadlineExceeded,
                        fmt::format("no answer to ARP for {} on {}", ip_to_string(*hop), interface));
}

wherry::Status leave_checksums_to_device(const std::string& interface, bool leave) {
  ethtool_value value{.cmd = ETHTOOL_STXCSUM, .data = leave ? 1U : 0U};
  ifreq request;
  if (!fits(interface) ||
      !ask(interface, SIOCETHTOOL, request, [&](ifreq& r) { r.ifr_data = reinterpret_cast<char*>(&value); }))
    return {StatusCode::kUnavailable, fmt::format("checksums of {}: {}", interface, std::strerror(errno))};
  return {};
}

std::optional<std::uint64_t> mac_in_arp_table(std::string_view table, std::string_view interface, std::uint32_t ip) {
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string address, type, flags, mac, mask, device;
    words >> address >> type >> flags >> mac >> mask >> device;
    if (device == interface && ip_of(address) == ip && (std::strtoul(flags.c_str(), nullptr, 16) & kArpComplete) != 0)
      return mac_of(mac);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> next_hop_in_route_table(std::string_view table, std::string_view interface,
                                                     std::uint32_t ip) {
  std::istringstream lines{std::string(table)};
  std::optional<std::uint32_t> hop;
  std::uint32_t best_mask = 0, best_metric = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device, skipped;
    std::uint32_t to = 0, gateway = 0, flags = 0, metric = 0, mask = 0;
    words >> device >> std::hex >> to >> gateway >> flags >> skipped >> skipped >> std::dec >> metric >> std::hex >>
        mask;
    if (!words || device != interface || (flags & kRouteUp) == 0) continue;
    to = ntohl(to), gateway = ntohl(gateway), mask = ntohl(mask);
    if ((ip & mask) != to || (hop && (mask < best_mask || (mask == best_mask && metric >= best_metric)))) continue;
    hop = (flags & kRouteGateway) != 0 ? gateway : ip;
    best_mask = mask, best_metric = metric;
  }
  return hop;
}

}  // namespace wherry::kv
