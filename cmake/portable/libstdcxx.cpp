// SPDX-License-Identifier: Apache-2.0
// What the members of libstdc++.a that WHERRY_PORTABLE links take from others, which a process may have one of only.
#include <cstdlib>
#include <exception>

namespace __cxxabiv1 {

/// Of an exception whose destruction fails. The handler is the one that was set when it was thrown.
[[noreturn]] __attribute__((visibility("hidden"))) void __terminate(std::terminate_handler handler) noexcept {
  handler();
  std::abort();
}

}  // namespace __cxxabiv1
