// SPDX-License-Identifier: Apache-2.0
// The source addresses that a node answers, in software and in hardware.
#pragma once

#include <ifaddrs.h>
#include <netinet/in.h>

#include <vector>

#include "kv/control/cluster_file.hpp"
#include "kv/net/subnet.hpp"

namespace wherry::kv {

/// Returns the IPv4 subnets of this machine's interfaces (in the caller's network namespace).
inline std::vector<Subnet> local_subnets() {
  std::vector<Subnet> all;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return all;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_netmask == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const std::uint32_t ip = ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr);
    const std::uint32_t mask = ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_netmask)->sin_addr.s_addr);
    all.push_back({.ip = ip & mask, .mask = mask});
  }
  freeifaddrs(first);
  return all;
}

/// A node answers the members, and the clients that the cluster file names. If the file names none, it answers the
/// subnets of this machine that contain a member; if there are none, the 256 addresses around each member. It answers
/// the loopback only if a member is there. A frame from the network can have such a source, and with AF_XDP or hardware
/// no kernel drops the frame.
inline Subnets allowed_sources(const ClusterFile& cluster, const std::vector<Subnet>& local) {
  Subnets allowed;
  constexpr Subnet kLoopback{.ip = 0x7f000000, .mask = 0xff000000};
  for (const Subnet& subnet : cluster.clients) allowed.add(subnet);
  const bool named = !allowed.empty();
  bool near = false;
  for (const ClusterNode& member : cluster.nodes) {
    if (!member.configured) continue;
    allowed.add({.ip = member.endpoint.ip, .mask = ~std::uint32_t{0}});
    near = near || kLoopback.has(member.endpoint.ip);
  }
  if (named) return allowed;
  if (near) allowed.add(kLoopback);
  for (const Subnet& subnet : local) {
    for (const ClusterNode& member : cluster.nodes) {
      if (!member.configured || !subnet.has(member.endpoint.ip) || kLoopback.has(member.endpoint.ip)) continue;
      allowed.add(subnet);
      near = true;
      break;
    }
  }
  for (const ClusterNode& member : cluster.nodes)
    if (!near && member.configured) allowed.add({.ip = member.endpoint.ip & ~255U, .mask = ~255U});
  return allowed;
}

}  // namespace wherry::kv
