// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.hpp"
#include "base/try.hpp"
#include "route/client/process_wiring.hpp"
#include "route/client/runtime_access.hpp"
#include "route/client/settings.hpp"

namespace wherry::route {

Result<Runtime> Runtime::start(const Options& options) {
  constexpr std::size_t kDescriptors = 16;  // of a rank, at least
  WHERRY_TRY(check_descriptors("this process", kDescriptors));
  const Deadline deadline(options.start_timeout);
  WHERRY_TRY(check(options));
  if (ProcessWiring::is_rank()) {
    return Status(StatusCode::kFailedPrecondition,
                  "this process, or the one that it is a fork of, is a rank of the job already: a process has one "
                  "Runtime at a time; destroy it first, or use it in the process that has started it");
  }
  // Open the file first, because its counter counts only threads that are started afterwards.
  WHERRY_ASSIGN(auto file, StatisticsFile::open());
  WHERRY_ASSIGN(auto bootstrap, find_bootstrap(deadline));
  if (bootstrap != nullptr) {
    WHERRY_ASSIGN(auto wiring, wire_processes(options, std::move(bootstrap), deadline));
    return detail::make_runtime(options, std::move(wiring), std::move(file));
  }
  // A single rank does not need routing, but an unknown placement is still an error.
  WHERRY_TRY(resolve_placement(options));
  WHERRY_ASSIGN(const auto resolved, resolve_shape(options));
  return detail::make_runtime(options, std::move(wire_threads({0}, resolved.shape).front()), std::move(file));
}

}  // namespace wherry::route
