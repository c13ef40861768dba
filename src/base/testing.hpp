// SPDX-License-Identifier: Apache-2.0
// Helpers for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <random>

#include "base/clock.hpp"
#include "base/socket.hpp"

namespace wherry::testing_support {

/// The time limit for conditions that must become true. It is long, so a busy machine does not fail a test.
constexpr std::chrono::minutes kPatience{5};

/// Calls `condition`, which itself makes progress, until it is true or the time limit is over. Returns whether it
/// became true.
template <typename Condition>
bool turn_until(Condition condition) {
  for (const Deadline deadline(kPatience); !condition();) {
    if (deadline.passed()) return false;
  }
  return true;
}

/// Returns a free port of 127.0.0.1, for a program that needs its port number before it starts. The port lies outside
/// the kernel's ephemeral range, so another program is unlikely to take it first.
inline std::uint16_t free_port() {
  constexpr std::uint32_t kFirst = 10'000;
  std::uint32_t limit = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> limit;
  std::random_device random;
  for (const Deadline deadline(kPatience); limit > kFirst && !deadline.passed();) {
    const auto port = static_cast<std::uint16_t>(std::uniform_int_distribution(kFirst, limit - 1)(random));
    if (listen_tcp({"127.0.0.1", port})) return port;
  }
  const auto any = listen_tcp({"127.0.0.1", 0});
  return any ? *local_port(*any) : std::uint16_t{0};
}

}  // namespace wherry::testing_support
