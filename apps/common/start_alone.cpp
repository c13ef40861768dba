// SPDX-License-Identifier: Apache-2.0
// Runtime::start() of one rank alone, for as long as the library has none.
#include "route/client/runtime_core.hpp"

namespace wherry::route {

Result<Runtime> Runtime::start(const Options& options) {
  return Runtime(std::make_unique<detail::RuntimeCore>(options, std::move(wire_threads({0}, {}).front())));
}

}  // namespace wherry::route
