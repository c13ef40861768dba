// SPDX-License-Identifier: Apache-2.0
// The network namespace in which something began, for sockets that it makes later: the thread that makes them may be in
// another one by then.
#pragma once

#include <functional>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry {

class NetworkNamespace {
 public:
  /// The calling thread's. Where the kernel does not say, run() runs everything where it is called.
  static NetworkNamespace current() noexcept;
  /// Calls `function` in the namespace: at once if the thread is there, else in a thread of its own, which is waited
  /// for. kPermissionDenied: this process may not go there (it takes CAP_SYS_ADMIN); `function` was not called.
  Status run(const std::function<void()>& function) const;

 private:
  Fd space_;
};

}  // namespace wherry
