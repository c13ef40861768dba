// SPDX-License-Identifier: Apache-2.0
// The socket between QEMU's x-pci-proxy-dev and the card.
#pragma once

#include <utility>

#include "sim/bypass/card.hpp"
#include "sim/qemu/channel.hpp"
#include "sim/qemu/proxy_card.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

class ProxyLink {
 public:
  /// Both outlive it. `target` is the device that `card` represents.
  ProxyLink(ProxyCard& card, DmaTarget& target) : card_(card), target_(target) {}
  void connect(Fd socket) { channel_ = Channel(std::move(socket)); }

  /// Answers the waiting messages and those that follow at once, with a tick after each. True: there were messages.
  /// kUnavailable: QEMU is gone; kProtocol.
  Result<bool> serve();
  Status flush() { return channel_.flush(); }
  [[nodiscard]] bool wants_to_send() const noexcept { return channel_.wants_to_send(); }
  [[nodiscard]] int fd() const noexcept { return channel_.fd(); }

 private:
  ProxyCard& card_;
  DmaTarget& target_;
  Channel channel_;
};

}  // namespace wherry::sim
