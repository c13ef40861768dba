// SPDX-License-Identifier: Apache-2.0
// Remembers a network namespace for sockets that are made later, perhaps by a thread that has moved to another one.
#pragma once

#include <functional>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry {

class NetworkNamespace {
 public:
  /// The namespace of the calling thread. If the kernel does not report it, run() does not change the namespace.
  static NetworkNamespace current() noexcept;
  /// Calls `function` in the namespace, and waits for it: directly if the calling thread is in it, else in a new
  /// thread. kPermissionDenied: `function` was not called, because the process may not enter the namespace (this needs
  /// CAP_SYS_ADMIN).
  Status run(const std::function<void()>& function) const;

 private:
  Fd space_;
};

}  // namespace wherry
