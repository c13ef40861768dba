// SPDX-License-Identifier: Apache-2.0
// Figures 7 and 8: the parts of a host's time if it makes Arrow IPC itself.
#include <fmt/core.h>

#include "arrow_steps.hpp"
#include "sources.hpp"

namespace wherry::bench {

void run_conversion(Bench& bench) {
  const auto sizes = bench.sizes({64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB},
                                 {64 * kKiB, kMiB, 16 * kMiB});
  for (const int columns : {1, 4, 16}) {
    const auto names = random_names(columns);
    for (const std::size_t size : sizes) {
      bench.progress(fmt::format("conversion: {} columns, {}", columns, size_text(size)));
      const Source source(bench, columns, size);
      struct Api {
        const char* name;
        StepTimes (*convert)(ColumnValues, Names);
        std::vector<double> arrays, schema, batch, ipc, total;
      };
      Api apis[] = {{"cpp", convert_cpp, {}, {}, {}, {}, {}}, {"c_abi", convert_c_abi, {}, {}, {}, {}, {}}};
      for (Api& api : apis) api.convert(source.values(), names);
      for (int round = 0; round < bench.rounds(); ++round) {
        for (Api& api : apis) {
          check_interrupted();
          const StepTimes t = api.convert(source.values(), names);
          api.arrays.push_back(t.arrays_ns);
          api.schema.push_back(t.schema_ns);
          api.batch.push_back(t.batch_ns);
          api.ipc.push_back(t.ipc_ns);
          api.total.push_back(t.total_ns());
        }
      }
      for (const Api& api : apis) {
        bench.report.row("conversion", {{"api", api.name},
                                        {"columns", columns},
                                        {"size", size},
                                        {"arrays_us", median(api.arrays) * 1e-3},
                                        {"schema_us", median(api.schema) * 1e-3},
                                        {"batch_us", median(api.batch) * 1e-3},
                                        {"ipc_us", median(api.ipc) * 1e-3},
                                        {"total_us", median(api.total) * 1e-3}});
      }
    }
  }
}

}  // namespace wherry::bench
