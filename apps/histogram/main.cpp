// SPDX-License-Identifier: Apache-2.0
#include "common/npy.hpp"
#include "common/options.hpp"
#include "common/program.hpp"
#include "common/random.hpp"
#include "common/together.hpp"
#include "histogram/histogram.hpp"

namespace {

constexpr const char* kAbout =
    "Counts random numbers: every update is a message to the rank that owns the counter, 8 bytes and a header. The\n"
    "smallest messages and the most random memory accesses there are: what is measured is the messaging itself.\n\n"
    "  histogram                                       2^24 updates of 2^20 counters\n"
    "  histogram --counters 16777216 --updates 1e8     a table beyond the caches\n"
    "  histogram --output counts                       counts.<rank>.npy: counter r + i * ranks is element i of rank r";

}  // namespace

int main(int argc, char** argv) {
  using namespace wherry::apps;
  Program program("histogram", kAbout);
  HistogramOptions options;
  add_count(program.command_line(), "--counters", options.counters, "in the table, over all ranks", kMaxElements);
  add_count(program.command_line(), "--updates", options.updates, "to make, over all ranks");
  add_distribution(program.command_line(), options.distribution, "counters");

  return program.run(argc, argv, [&](Runtime& runtime, Report& report) -> wherry::Status {
    options.seed = program.seed();
    const auto histogram = run(runtime, options);
    if (!histogram) return histogram.status();
    const Distribution counters(options.distribution, options.counters, runtime.ranks());
    for (std::uint64_t i = 0; i < histogram->counts.size(); ++i)
      report.checksum += fingerprint(counters.element(runtime.rank(), i), histogram->counts[i]);
    report.seconds = histogram->seconds;
    report.work = {"update", "updates", options.updates};
    report.fields = {{"counters", options.counters}, {"updates", options.updates}, {"seed", options.seed}};
    if (program.output().empty()) return {};
    return together(runtime, write_npy(part_name(program.output(), runtime.rank(), ".npy"), histogram->counts));
  });
}
