// SPDX-License-Identifier: Apache-2.0
// Finds and loads the MPI plugin (src/route/mpi_plugin): the library itself is not linked with any MPI.
#pragma once

#include "route/client/bootstrap_parts.hpp"
#include "route/mpi_plugin/plugin.hpp"

namespace wherry::route {

/// Names the plugin if it is not in one of the default places.
inline constexpr const char* kPluginVariable = "WHERRY_MPI_PLUGIN";

/// Its functions.
struct MpiPlugin {
  decltype(&wherry_mpi_version) version = nullptr;
  decltype(&wherry_mpi_family) family = nullptr;
  decltype(&wherry_mpi_init) init = nullptr;
  decltype(&wherry_mpi_allgatherv) allgatherv = nullptr;
  decltype(&wherry_mpi_error) error = nullptr;
};

/// kNotFound: it cannot be loaded, and the error lists the places. kVersionMismatch: it has another version, or was
/// made for another MPI than the program's.
Result<MpiPlugin> load_plugin(const MpiLauncher& launcher);

}  // namespace wherry::route
