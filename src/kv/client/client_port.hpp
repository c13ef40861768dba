// SPDX-License-Identifier: Apache-2.0
// The transport of a client's messages: a UDP socket, or AF_XDP. Each is the same few lines over a Port.
#pragma once

#include <memory>
#include <span>

#include "kv/client/core.hpp"

namespace wherry::kv {

class ClientPort {
 public:
  virtual ~ClientPort() = default;
  ClientPort(const ClientPort&) = delete;
  ClientPort& operator=(const ClientPort&) = delete;

  virtual Output& output() noexcept = 0;
  [[nodiscard]] virtual int fd() noexcept = 0;
  /// Hands the core the messages that have arrived. Returns their number.
  virtual std::size_t receive(ClientCore& core, Cycles now) = 0;
  virtual void flush() = 0;
  /// The work that is due from time to time.
  virtual void look_after(Cycles now) = 0;

 protected:
  ClientPort() = default;
};

/// On a port that the kernel chooses.
Result<std::unique_ptr<ClientPort>> open_udp_client_port();
/// The same at an interface's address: "eth0", "eth0:3"; or at the common address of several: "eth0,eth1". Waits a
/// moment for the MACs of `nodes`.
Result<std::unique_ptr<ClientPort>> open_xdp_client_port(const std::string& interfaces,
                                                         std::span<const Endpoint> nodes);

}  // namespace wherry::kv
