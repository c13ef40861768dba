// SPDX-License-Identifier: Apache-2.0
// A Driver on TCP. It keeps a connection to one of the named keepers. Thread: the node's own, which calls turn()
// besides its other work.
#pragma once

#include <memory>
#include <vector>

#include "base/socket.hpp"
#include "kv/node/driver/driver.hpp"

namespace wherry::kv {

class DriverClient {
 public:
  /// The caller keeps `core`, which must outlive this object.
  DriverClient(std::vector<HostPort> keepers, DriverOptions options, RegisterIo& core);
  ~DriverClient();

  /// Does the work that is due. It blocks only to resolve a name, and never with numeric addresses.
  void turn();
  /// As turn(), but first waits for an event, at most `timeout_ms`.
  void turn(int timeout_ms);
  [[nodiscard]] Driver& driver() noexcept;
  [[nodiscard]] bool connected() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
