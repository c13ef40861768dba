// SPDX-License-Identifier: Apache-2.0
// Finds and loads libpmix, because Wherry's library is not linked with it.
#pragma once

#include <string>
#include <string_view>

#include "route/client/pmix_abi.hpp"
#include "wherry/status.hpp"

namespace wherry::route::pmix {

/// The variable that names libpmix.so.2 if the dynamic linker does not find it, or finds a wrong one.
inline constexpr const char* kLibraryVariable = "WHERRY_PMIX_LIBRARY";

/// kNotFound: it cannot be loaded. kVersionMismatch: it has another major version, or is not PMIx. It is never
/// unloaded, because it has a thread.
Result<Library> load_library();

/// The major version in the text of PMIx_Get_version(): "OpenPMIx 4.2.2 (PMIx Standard: 4.2, ...)"; 0: not found.
int major_version(std::string_view text) noexcept;

}  // namespace wherry::route::pmix
