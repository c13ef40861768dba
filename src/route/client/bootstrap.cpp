// SPDX-License-Identifier: Apache-2.0
#include "route/client/bootstrap.hpp"

#include <fmt/core.h>

#include "base/try.hpp"
#include "route/client/bootstrap_parts.hpp"
#include "route/client/environment.hpp"

namespace wherry::route {
namespace {

/// The error if WHERRY_BOOTSTRAP requests a kind of launcher that did not start this process.
Status not_started_by(const std::string& kind, const char* variables) {
  return {StatusCode::kInvalidArgument,
          fmt::format("WHERRY_BOOTSTRAP is '{}', but no such launcher has started this process ({} not set): unset it, "
                      "or start the program by one",
                      kind, variables)};
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> find_bootstrap(const Deadline& deadline) {
  const std::string asked = variable("WHERRY_BOOTSTRAP").value_or("");
  const bool only_pmix = asked == "pmix";
  const bool only_mpi = asked == "mpi";
  if (!asked.empty() && !only_pmix && !only_mpi) return join_launcher(asked, deadline);
  Status no_pmix;
  if (!only_mpi && find_pmix_server()) {
    // A rank of a PMIx job may have started this launcher, which then passes on that job's variables.
    std::optional<std::uint32_t> others;
    if (const auto size = variable("PMI_SIZE"); size && !only_pmix) {
      WHERRY_ASSIGN(others, number_of("PMI_SIZE", *size, 1, kMaxRanks));
    }
    auto joined = join_pmix(others, deadline);
    const StatusCode code = joined.status().code();
    // Otherwise try MPI, which may reach the same ranks in another way.
    if (only_pmix || (code != StatusCode::kNotFound && code != StatusCode::kVersionMismatch)) return joined;
    no_pmix = joined.status();
  }
  if (only_pmix) return not_started_by(asked, "PMIX_NAMESPACE and PMIX_RANK are");
  if (const auto launcher = find_mpi_launcher()) {
    auto joined = join_mpi(*launcher, deadline);
    if (joined || no_pmix) return joined;
    const Status& why = joined.status();
    return Status(why.code(), fmt::format("{}\nNor does PMIx help, which this process's launcher has: {}",
                                          why.message(), no_pmix.message()));
  }
  return std::unique_ptr<Bootstrap>();
}

}  // namespace wherry::route
