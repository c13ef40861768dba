// SPDX-License-Identifier: Apache-2.0
// Gives the library's own parts (the C interface, conveyors, benches, tests) access to a Runtime's internals.
#pragma once

#include <memory>
#include <utility>

#include "route/client/runtime_core.hpp"
#include "wherry/route.hpp"

namespace wherry::route::detail {

struct RuntimeAccess {
  /// The result lives as long as the runtime, which may be moved meanwhile.
  [[nodiscard]] static RuntimeCore& core(const Runtime& runtime) noexcept { return *runtime.core_; }
  [[nodiscard]] static Runtime make(std::unique_ptr<RuntimeCore> core) noexcept { return Runtime(std::move(core)); }
};

[[nodiscard]] inline RuntimeCore& core_of(const Runtime& runtime) noexcept { return RuntimeAccess::core(runtime); }

/// Makes a Runtime on the caller's wiring.
[[nodiscard]] inline Runtime make_runtime(const Options& options, std::unique_ptr<Wiring> wiring,
                                          std::unique_ptr<StatisticsFile> file = nullptr) {
  return RuntimeAccess::make(std::make_unique<RuntimeCore>(options, std::move(wiring), std::move(file)));
}

}  // namespace wherry::route::detail
