// SPDX-License-Identifier: Apache-2.0
// A server that speaks Redis' protocol and stores strings in a cluster: docs/guide/kv-resp.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/socket.hpp"
#include "wherry/kv.hpp"
#include "wherry/status.hpp"

namespace wherry::kv::resp {

struct GatewayOptions {
  HostPort listen;             ///< port 0: one that the kernel chooses
  std::string password = {};   ///< AUTH must say it first; empty: nobody is asked
  bool open = false;           ///< without a password at an address that other machines reach, too
  bool key_by_key = false;     ///< MGET and MSET
  std::size_t clients = 1000;  ///< connections at once; one more is told so, and closed
};

/// One thread. The commands of a connection take effect in their order: each begins when the one before it has been
/// answered.
class Gateway {
 public:
  /// kUnavailable: the address is in use, or does not belong to this machine. kInvalidArgument: other machines can
  /// reach it, but there is no password.
  static Result<Gateway> open(Client client, GatewayOptions options);
  Gateway(Gateway&& other) noexcept;
  Gateway& operator=(Gateway&& other) noexcept;
  ~Gateway();

  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Runs until `stop`. Then it takes no more commands, answers those in progress, and returns.
  wherry::Status run(const std::atomic<bool>& stop);

 private:
  struct Impl;
  explicit Gateway(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv::resp
