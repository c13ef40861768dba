// SPDX-License-Identifier: Apache-2.0
// Finds and loads the MPI plugin (src/route/mpi_plugin), because the library itself is not linked with an MPI.
#pragma once

#include "route/client/bootstrap_parts.hpp"
#include "route/mpi_plugin/plugin.hpp"

namespace wherry::route {

/// The variable that names the plugin if it is not in a default directory.
inline constexpr const char* kPluginVariable = "WHERRY_MPI_PLUGIN";

/// The plugin's functions.
struct MpiPlugin {
  decltype(&wherry_mpi_version) version = nullptr;
  decltype(&wherry_mpi_family) family = nullptr;
  decltype(&wherry_mpi_init) init = nullptr;
  decltype(&wherry_mpi_allgatherv) allgatherv = nullptr;
  decltype(&wherry_mpi_error) error = nullptr;
};

/// kNotFound: the plugin cannot be loaded; the message lists the searched paths. kVersionMismatch: the plugin has
/// another version, or was built for another MPI than the program's.
Result<MpiPlugin> load_plugin(const MpiLauncher& launcher);

}  // namespace wherry::route
