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

/// An MPI launcher, known by the variables that it sets.
struct MpiLauncher {
  std::string variable;                ///< one of them
  std::optional<std::uint32_t> ranks;  ///< nullopt: it does not say
};
/// Nullopt: none, or it started a single process.
std::optional<MpiLauncher> find_mpi_launcher();
/// Through the plugin (src/route/mpi_plugin). Initialises MPI unless the program has.
Result<std::unique_ptr<Bootstrap>> join_mpi(const MpiLauncher& launcher, const Deadline& deadline);

/// A PMIx server has started this process: PMIX_NAMESPACE and PMIX_RANK are set.
bool find_pmix_server();
/// Through libpmix, which is loaded. `others`: the number of ranks that another launcher claims, if there is one. Null:
/// the job is this process alone. kNotFound: no libpmix, or the server's job is one rank and the other launcher's is
/// several. kVersionMismatch: libpmix of another major version. kInvalidArgument: the launchers disagree.
Result<std::unique_ptr<Bootstrap>> join_pmix(std::optional<std::uint32_t> others, const Deadline& deadline);

}  // namespace wherry::route
