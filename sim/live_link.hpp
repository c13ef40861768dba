// SPDX-License-Identifier: Apache-2.0
// How frames travel between a live core and the world: by a UDP socket, or by two TAP devices.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kv/clock.hpp"
#include "sim/core.hpp"
#include "wherry/status.hpp"

namespace wherry::kv::rtl {

[[nodiscard]] inline Cycles now_cycles() { return lease_clock(); }

/// Use it on one thread at a time. It never blocks.
class LiveLink {
 public:
  LiveLink() = default;
  LiveLink(const LiveLink&) = delete;
  LiveLink& operator=(const LiveLink&) = delete;
  virtual ~LiveLink() = default;

  /// Gives the core the received frames, after its clock was set to the time of their arrival. Returns their number.
  virtual std::size_t receive(Core& core) = 0;
  /// Takes the core's output.
  virtual void send(Core& core) = 0;
  /// Descriptors that are readable when receive() would find something.
  [[nodiscard]] virtual std::span<const int> fds() const noexcept = 0;
  /// For the log.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Frames that reached no receiver: wrong frames, or frames that the kernel did not take.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 protected:
  std::uint64_t lost_ = 0;
};

/// Datagrams of a socket become frames on the core's network side. No other frames reach the core.
Result<std::unique_ptr<LiveLink>> open_socket_link(const Endpoint& self);

struct TapNames {
  std::string network;        ///< the cable: every frame there enters the core's network side
  std::string network_space;  ///< a file: the network namespace in which that is; empty: this one
  std::string host;           ///< what the host sees of its card: it has the node's MAC and address
};

/// Passes whole frames on both sides. Errors: no rights, no such device, or the host's device lacks the node's MAC.
Result<std::unique_ptr<LiveLink>> open_tap_link(const TapNames& names, const Endpoint& self);

}  // namespace wherry::kv::rtl
