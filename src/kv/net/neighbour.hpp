// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel's data about an interface and its neighbours.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry::kv {

/// An interface's number and MAC address.
struct Interface {
  int index = 0;
  std::uint64_t mac = 0;
};
Result<Interface> find_interface(const std::string& name);
/// The interface's IPv4 address; the first one if there are several.
Result<std::uint32_t> find_address(const std::string& name);
/// The interface's number of receive queues; 1 if the driver does not report it.
[[nodiscard]] std::uint32_t receive_queues(const std::string& name);

/// Returns the destination MAC for a frame to `ip` through `interface`: of the host or of its gateway. Asks the kernel,
/// which asks the network; blocks until the kernel knows or `patience` is over (kDeadlineExceeded). Not for a hot path.
/// With patience 0 the call does not wait, and a later call gets the answer. The default is longer than the kernel's
/// three requests, which are a second apart (arp(7): mcast_solicit, retrans_time).
Result<std::uint64_t> resolve_mac(const std::string& interface, std::uint32_t ip,
                                  std::chrono::milliseconds patience = std::chrono::seconds(4));

/// Sets whether the kernel leaves UDP checksums to the interface. A veth has no hardware to compute them, so a program
/// that bypasses the kernel at the other end sees wrong checksums: docs/guide/kv-xdp.md.
wherry::Status leave_checksums_to_device(const std::string& interface, bool leave);

// Parsers of the kernel's files with this information; declared for tests.
[[nodiscard]] std::optional<std::uint64_t> mac_in_arp_table(std::string_view table, std::string_view interface,
                                                            std::uint32_t ip);
/// Returns `ip` itself if it is on the link. No value if there is no route.
[[nodiscard]] std::optional<std::uint32_t> next_hop_in_route_table(std::string_view table, std::string_view interface,
                                                                   std::uint32_t ip);

}  // namespace wherry::kv
