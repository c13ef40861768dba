// SPDX-License-Identifier: Apache-2.0
// __terminate for linked members of libstdc++.a (WHERRY_PORTABLE). A process may have the original only once.
#include <cstdlib>
#include <exception>

namespace __cxxabiv1 {

/// Called if an exception's destruction fails. `handler` is the one that was set when the exception was thrown.
[[noreturn]] __attribute__((visibility("hidden"))) void __terminate(std::terminate_handler handler) noexcept {
  handler();
  std::abort();
}

}  // namespace __cxxabiv1
