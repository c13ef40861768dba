// SPDX-License-Identifier: Apache-2.0 The kernel's data about an interface and its neighbours.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry::kv {

/// An interface's number, and its MAC.
struct Interface {
  int index = 0;
  std::uint64_t mac = 0;
};
Result<Interface> find_interface(const std::string& name);
/// Its IPv4 address, the first if there are several.
Result<std::uint32_t> find_address(const std::string& name);
/// How many queues it receives with; 1 if the driver does not say.
[[nodiscard]] std::uint32_t receive_queues(const std::string& name);

/// The destination MAC for a frame to `ip` through `interface`: the host's, or its gateway's. Asks the kernel, which
/// asks the network. Blocks until the kernel knows, or `patience` is over (kDeadlineExceeded). Not for a hot path.
/// Without patience it does not wait, and a later call finds the answer to this one's question. By default it outlasts
/// the kernel's three questions, a second apart (arp(7): mcast_solicit, retrans_time).
Result<std::uint64_t> resolve_mac(const std::string& interface, std::uint32_t ip,
                                  std::chrono::milliseconds patience = std::chrono::seconds(4));

/// Whether the kernel leaves UDP checksums to the interface. A veth has no hardware that would compute them, so a
/// program that takes frames off its other end past the kernel sees wrong ones: docs/guide/kv-xdp.md.
wherry::Status leave_checksums_to_device(const std::string& interface, bool leave);

// Parses the kernel's files with this information. For tests.
[[nodiscard]] std::optional<std::uint64_t> mac_in_arp_table(std::string_view table, std::string_view interface,
                                                            std::uint32_t ip);
/// `ip` itself if it is on the link. Nothing if there is no route.
[[nodiscard]] std::optional<std::uint32_t> next_hop_in_route_table(std::string_view table, std::string_view interface,
                                                                   std::uint32_t ip);

}  // namespace wherry::kv
