// SPDX-License-Identifier: Apache-2.0
// What the kernel knows about an interface and about the neighbours that it leads to.
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

/// The MAC to send to, so that a frame reaches `ip` through `interface`: the host's, or its gateway's. Asks the kernel,
/// which asks the network; blocks until it knows, or `patience` is over (kDeadlineExceeded). Not for a hot path.
/// Without patience it does not wait, and a later call finds what this one had asked for. By default it outlasts the
/// kernel's three questions, a second apart (arp(7): mcast_solicit, retrans_time).
Result<std::uint64_t> resolve_mac(const std::string& interface, std::uint32_t ip,
                                  std::chrono::milliseconds patience = std::chrono::seconds(4));

/// Whether the kernel leaves UDP checksums to the interface. A veth has nothing that would compute them, so what takes
/// frames off its other end past the kernel sees wrong ones: docs/kv-xdp.md.
wherry::Status leave_checksums_to_device(const std::string& interface, bool leave);

// The files in which the kernel says so, parsed; for tests.
[[nodiscard]] std::optional<std::uint64_t> mac_in_arp_table(std::string_view table, std::string_view interface,
                                                            std::uint32_t ip);
/// `ip` itself if it is on the link; nothing if there is no route.
[[nodiscard]] std::optional<std::uint32_t> next_hop_in_route_table(std::string_view table, std::string_view interface,
                                                                   std::uint32_t ip);

}  // namespace wherry::kv
