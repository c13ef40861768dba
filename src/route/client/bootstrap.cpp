// SPDX-License-Identifier: Apache-2.0
#include "route/client/bootstrap.hpp"

#include "route/client/bootstrap_parts.hpp"
#include "route/client/environment.hpp"

namespace wherry::route {

Result<std::unique_ptr<Bootstrap>> find_bootstrap(const Deadline& deadline) {
  if (const auto path = variable("WHERRY_BOOTSTRAP")) return join_launcher(*path, deadline);
  if (const auto launcher = find_mpi_launcher()) return join_mpi(*launcher, deadline);
  return std::unique_ptr<Bootstrap>();
}

}  // namespace wherry::route
