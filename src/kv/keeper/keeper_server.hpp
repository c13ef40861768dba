// SPDX-License-Identifier: Apache-2.0
// A Keeper on TCP: one thread that calls turn(). A ConfigurationStore (a file or etcd) stores configurations in another
// thread. So the thread that grants leases never waits for a disk or for the network.
#pragma once

#include <functional>
#include <memory>

#include "base/socket.hpp"
#include "kv/keeper/configuration_store.hpp"
#include "kv/keeper/keeper.hpp"

namespace wherry::kv {

class KeeperServer {
 public:
  static Result<std::unique_ptr<KeeperServer>> start(const HostPort& at, KeeperOptions options,
                                                     std::unique_ptr<ConfigurationStore> store);
  /// `listener` already listens.
  static Result<std::unique_ptr<KeeperServer>> start(Fd listener, KeeperOptions options,
                                                     std::unique_ptr<ConfigurationStore> store);
  ~KeeperServer();

  /// Waits for the next event, at most `timeout_ms`, and handles it.
  void turn(int timeout_ms);
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] Keeper& keeper() noexcept;
  /// The keeper's time.
  [[nodiscard]] static Cycles now() noexcept;

 private:
  struct Impl;
  explicit KeeperServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
