// SPDX-License-Identifier: Apache-2.0
#include "probe/process/lists.hpp"

#include "base/try.hpp"
#include "probe/device/device_paths.hpp"
#include "probe/host/paths.hpp"
#ifdef WHERRY_SIMULATED
#include "probe/simulated/paths.hpp"
#endif

namespace wherry::probe {

Result<Registry> all_paths() {
  Registry registry;
  WHERRY_TRY(registry.add(host_paths));
  WHERRY_TRY(registry.add(device_paths));
#ifdef WHERRY_SIMULATED
  WHERRY_TRY(registry.add(simulated_paths));
#endif
  return registry;
}

}  // namespace wherry::probe
