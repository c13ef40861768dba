// SPDX-License-Identifier: Apache-2.0
// A Driver on TCP. It keeps a connection to the keeper, or to another one of the named keepers. Thread: the node's own,
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

  /// Does the work that is due. It blocks only to resolve a name (numeric addresses: not at all).
  void turn();
  /// Also waits for the first event, at most that long.
  void turn(int timeout_ms);
  [[nodiscard]] Driver& driver() noexcept;
  [[nodiscard]] bool connected() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
