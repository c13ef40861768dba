// SPDX-License-Identifier: Apache-2.0
// A Driver on TCP: keeps a connection to the keeper, or to another one of those that are named. Thread: the node's own,
// which calls turn() beside its other work.
#pragma once

#include <memory>
#include <vector>

#include "base/socket.hpp"
#include "kv/node/driver/driver.hpp"

namespace wherry::kv {

class DriverClient {
 public:
  /// `core` stays the caller's, and must outlive this.
  DriverClient(std::vector<HostPort> keepers, DriverOptions options, RegisterIo& core);
  ~DriverClient();

  /// Does what is due; never blocks longer than it takes to resolve a name (numeric addresses: not at all).
  void turn();
  /// Also waits for what comes first, at most so long.
  void turn(int timeout_ms);
  [[nodiscard]] Driver& driver() noexcept;
  [[nodiscard]] bool connected() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
