// SPDX-License-Identifier: Apache-2.0
// Finds and loads libpmix: the library itself is not linked with it.
#pragma once

#include <string>
#include <string_view>

#include "route/client/pmix_abi.hpp"
#include "wherry/status.hpp"

namespace wherry::route::pmix {

/// Names libpmix.so.2 if the dynamic linker does not find it, or finds another one.
inline constexpr const char* kLibraryVariable = "WHERRY_PMIX_LIBRARY";

/// kNotFound: it cannot be loaded. kVersionMismatch: it is of another major version, or is not PMIx. It is never
/// unloaded: it has a thread.
Result<Library> load_library();

/// The major version in what PMIx_Get_version() says: "OpenPMIx 4.2.2 (PMIx Standard: 4.2, ...)"; 0: there is none.
int major_version(std::string_view text) noexcept;

}  // namespace wherry::route::pmix
