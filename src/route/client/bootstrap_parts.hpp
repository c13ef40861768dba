// SPDX-License-Identifier: Apache-2.0
// The kinds of Bootstrap.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "route/client/bootstrap.hpp"

namespace wherry::route {

/// Joins the job of `wherry run`, whose launcher listens at `socket_path`.
Result<std::unique_ptr<Bootstrap>> join_launcher(const std::string& socket_path, const Deadline& deadline);

/// An MPI launcher, detected by the variables that it sets.
struct MpiLauncher {
  std::string variable;                ///< one of them
  std::optional<std::uint32_t> ranks;  ///< nullopt: it does not say
};
/// Nullopt: there is no launcher, or it started a single process.
std::optional<MpiLauncher> find_mpi_launcher();
/// Joins through the plugin (src/route/mpi_plugin). Initialises MPI if the program has not done so.
Result<std::unique_ptr<Bootstrap>> join_mpi(const MpiLauncher& launcher, const Deadline& deadline);

/// Whether a PMIx server has started this process: PMIX_NAMESPACE and PMIX_RANK are set.
bool find_pmix_server();
/// Joins through libpmix, which this loads. `others`: the number of ranks that another launcher states, if any. Null:
/// the job is this process alone. kNotFound: no libpmix, or the server's job has one rank but the other launcher's has
/// several. kVersionMismatch: libpmix has another major version. kInvalidArgument: the launchers disagree.
Result<std::unique_ptr<Bootstrap>> join_pmix(std::optional<std::uint32_t> others, const Deadline& deadline);

}  // namespace wherry::route
