// SPDX-License-Identifier: Apache-2.0
// The function behind the card: the Verilated kv core takes every frame, answers requests to its port, and passes on
// the rest. Among the rest, C++ code here answers ARP and echo requests.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "kv/message.hpp"
#include "sim/bypass/card.hpp"
#include "sim/core.hpp"

namespace wherry::sim {

/// The answer to an ARP request for `self` (RFC 826), or to an ICMP echo request to it in IPv4 without options or
/// fragments (RFC 792). Other frames get no answer.
[[nodiscard]] std::optional<std::vector<std::byte>> answer(std::span<const std::byte> frame, const kv::Endpoint& self);

struct FunctionCounters {
  std::uint64_t frames_in = 0, frames_out = 0;
  std::uint64_t arp = 0, icmp = 0, kv = 0;  ///< answers
  std::uint64_t ignored = 0;                ///< frames that nobody here answers
};

class KvFunction {
 public:
  explicit KvFunction(const kv::Endpoint& self) : self_(self), kv_(kv::rtl::CoreOptions{}) {}

  /// Moves as many frames as possible, and runs the core's clock. True: there is more work at once.
  bool turn(StreamPort& port);
  [[nodiscard]] kv::RegisterIo& registers() noexcept { return kv_; }
  [[nodiscard]] const FunctionCounters& counters() const noexcept { return counters_; }
  /// Computed cycles of the core's clock.
  [[nodiscard]] std::uint64_t cycles() const noexcept { return kv_.now() - kv_.skipped(); }

 private:
  kv::Endpoint self_;
  kv::rtl::Core kv_;
  std::deque<Frame> out_;
  FunctionCounters counters_;
};

}  // namespace wherry::sim
