// SPDX-License-Identifier: Apache-2.0
// For tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <random>

#include "base/clock.hpp"
#include "base/socket.hpp"

namespace wherry::testing_support {

/// For what never happens: a machine that has much else to do must not make a test fail.
constexpr std::chrono::minutes kPatience{5};

/// Asks `condition`, which makes the progress itself, until it is true, for as long as there is patience. Whether it
/// was.
template <typename Condition>
bool turn_until(Condition condition) {
  for (const Deadline deadline(kPatience); !condition();) {
    if (deadline.passed()) return false;
  }
  return true;
}

/// A port of 127.0.0.1 on which nobody listens, for a program that is told its port before it runs. The kernel gives
/// none of these to connections: with one of those, the program might not start, on a machine where others run.
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
