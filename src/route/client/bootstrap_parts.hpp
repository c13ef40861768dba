// SPDX-License-Identifier: Apache-2.0
// The two kinds of Bootstrap.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

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

/// Numbers the nodes in the order of their first ranks. A host with more than `ranks_per_node` ranks is divided into
/// several nodes; 0: no host is.
std::vector<std::uint32_t> number_nodes(const std::vector<std::string>& host_of_rank, std::uint32_t ranks_per_node);

}  // namespace wherry::route
