// SPDX-License-Identifier: Apache-2.0
// The interface of a node's transport: UdpPort, on a socket, and XdpPort, past the kernel.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "kv/message.hpp"

namespace wherry::kv {

struct PortCounters {
  std::uint64_t received = 0, sent = 0;
  std::uint64_t bad_length = 0;    ///< lengths that disagree, shorter than a header; on a socket also: reassembled
  std::uint64_t bad_checksum = 0;  ///< IPv4 or UDP; a socket's kernel drops those itself
  std::uint64_t send_failed = 0;   ///< given up: no room, no route, or no MAC is known
};

template <typename T>
concept Port = std::derived_from<T, Output> && requires(T& port, void (*take)(const Endpoint&, const Message&)) {
  { port.local() } -> std::convertible_to<const Endpoint&>;
  { port.fd() } -> std::same_as<int>;  // readable when poll() may find something, for callers that sleep
  { port.counters() } -> std::convertible_to<const PortCounters&>;
  { port.poll(take) } -> std::same_as<std::size_t>;
  { port.flush() } -> std::same_as<std::size_t>;  // how many messages went
};

}  // namespace wherry::kv
