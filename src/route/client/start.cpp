// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.hpp"
#include "route/client/introduction.hpp"
#include "route/client/process_wiring.hpp"
#include "route/client/runtime_core.hpp"

namespace wherry::route {

Result<Runtime> Runtime::start(const Options& options) {
  constexpr std::size_t kDescriptors = 16;  // of a rank, at least
  if (Status s = check_descriptors("this process", kDescriptors); !s) return s;
  const Deadline deadline(options.start_timeout);
  if (Status s = check(options); !s) return s;
  if (ProcessWiring::is_rank()) {
    return Status(StatusCode::kFailedPrecondition,
                  "this process, or the one that it is a fork of, is a rank of the job already: a process has one "
                  "Runtime at a time; destroy it first, or use it in the process that has started it");
  }
  auto file = StatisticsFile::open();  // first: it counts for the threads that are started from here on
  if (!file) return file.status();
  auto bootstrap = find_bootstrap(deadline);
  if (!bootstrap) return bootstrap.status();
  if (*bootstrap != nullptr) {
    auto wiring = wire_processes(options, *std::move(bootstrap), deadline);
    if (!wiring) return wiring.status();
    return Runtime(std::make_unique<detail::RuntimeCore>(options, *std::move(wiring), *std::move(file)));
  }
  // A rank alone needs nobody to route for it, but a name that means nothing is a mistake.
  if (auto placement = resolve_placement(options); !placement) return placement.status();
  auto shape = resolve_shape(options);
  if (!shape) return shape.status();
  return Runtime(
      std::make_unique<detail::RuntimeCore>(options, std::move(wire_threads({0}, *shape).front()), *std::move(file)));
}

}  // namespace wherry::route
