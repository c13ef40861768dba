// SPDX-License-Identifier: Apache-2.0 Remembers a network namespace for sockets that are made later, perhaps by a
// thread that has moved to another one.
#pragma once

#include <functional>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry {

class NetworkNamespace {
 public:
  /// The namespace of the calling thread. If the kernel does not name it, run() stays in the caller's namespace.
  static NetworkNamespace current() noexcept;
  /// Calls `function` in the namespace: directly if the thread is there, else in a new thread, and waits for it.
  /// kPermissionDenied: the process may not enter the namespace (this takes CAP_SYS_ADMIN), and `function` was not
  /// called.
  Status run(const std::function<void()>& function) const;

 private:
  Fd space_;
};

}  // namespace wherry
