// SPDX-License-Identifier: Apache-2.0
#include "probe/process/lists.hpp"

#include "base/try.hpp"
#include "probe/device/device_paths.hpp"
#include "probe/host/paths.hpp"

namespace wherry::probe {

Result<Registry> all_paths() {
  Registry registry;
  WHERRY_TRY(registry.add(host_paths));
  WHERRY_TRY(registry.add(device_paths));
  return registry;
}

}  // namespace wherry::probe
