// SPDX-License-Identifier: Apache-2.0
// The way of frames between a live core and the world: a UDP socket, or two TAP devices.
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

  /// Gives the core the received frames, after its clock was set to the time of their discovery. Returns their number.
  virtual std::size_t receive(Core& core) = 0;
  /// Takes the core's output.
  virtual void send(Core& core) = 0;
  /// Readable when receive() finds something.
  [[nodiscard]] virtual std::span<const int> fds() const noexcept = 0;
  /// For the log.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Frames that were delivered to no receiver: wrong ones, or ones that the kernel did not take.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 protected:
  std::uint64_t lost_ = 0;
};

/// Datagrams of a socket become frames on the core's network side; nothing else reaches it.
Result<std::unique_ptr<LiveLink>> open_socket_link(const Endpoint& self);

struct TapNames {
  std::string network;        ///< the cable: every frame there enters the core's network side
  std::string network_space;  ///< a file: the network namespace in which that is; empty: this one
  std::string host;           ///< what the host sees of its card: it has the node's MAC and address
};

/// Whole frames on both sides. An error: no rights, no such device, or the host's has not the node's MAC.
Result<std::unique_ptr<LiveLink>> open_tap_link(const TapNames& names, const Endpoint& self);

}  // namespace wherry::kv::rtl
