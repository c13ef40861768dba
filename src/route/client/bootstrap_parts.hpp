// SPDX-License-Identifier: Apache-2.0
// The two kinds of Bootstrap, and what they need of the environment.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "route/client/bootstrap.hpp"

namespace wherry::route {

/// The value of an environment variable; nullopt when it is unset or empty.
std::optional<std::string> variable(const char* name);
/// A whole number from `least` to `most`; the error names the variable.
Result<std::uint32_t> parse_number(const char* name, const std::string& text, std::uint32_t least, std::uint32_t most);
/// The same of a variable that must be set.
Result<std::uint32_t> number_variable(const char* name, std::uint32_t least, std::uint32_t most);

/// Joins the job of `wherry run`, whose launcher listens at `socket_path`.
Result<std::unique_ptr<Bootstrap>> join_launcher(const std::string& socket_path, const Deadline& deadline);

/// An MPI launcher's traces in the environment.
struct MpiLauncher {
  std::string variable;                ///< that gave it away
  std::optional<std::uint32_t> ranks;  ///< unless it does not say
};
/// Nullopt: none, or one that started a single process.
std::optional<MpiLauncher> find_mpi_launcher();
/// Through the plugin (src/route/mpi_plugin). Initialises MPI unless the program has.
Result<std::unique_ptr<Bootstrap>> join_mpi(const MpiLauncher& launcher, const Deadline& deadline);

/// Numbers the nodes in the order of their first ranks. `ranks_per_node` is 0, or parts a host with more ranks into
/// several nodes.
std::vector<std::uint32_t> number_nodes(const std::vector<std::string>& host_of_rank, std::uint32_t ranks_per_node);

}  // namespace wherry::route
