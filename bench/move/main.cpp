// SPDX-License-Identifier: Apache-2.0
// bench_move: this process is the application; an agent and a Flight server are its children.
#include <arrow/config.h>
#include <fmt/core.h>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/log.hpp"
#include "sources.hpp"

namespace wherry::bench {

namespace {

struct Experiment {
  const char* name;
  void (*run)(Bench&);
};
// Flight is last, because its threads would disturb the other experiments.
constexpr Experiment kExperiments[] = {
    {"initiate", run_initiate},     {"bandwidth", run_bandwidth},   {"mapped", run_mapped},   {"buffers", run_buffers},
    {"conversion", run_conversion}, {"approaches", run_approaches}, {"profile", run_profile}, {"flight", run_flight}};

void run(const Options& options) {
  const std::size_t cores = allowed_cores().size();
  Children children(options);
  require(pin_thread({options.app_core}), "--app-core");
  require(init_log("warn", ""), "log");

  SessionOptions wanted;
  wanted.agent = children.wait_for_agent();
  wanted.name = "bench_move";
  Session session = require(Session::open(wanted), "session");
  Remote remote(session);
  Report report("move", cores, {{"application", options.app_core}, {"agent", options.agent_core}},
                options.quick ? 5 : 11);
  report.version("arrow", arrow::GetBuildInfo().version_string);
  report.head("transports", session.info().transports);
  report.head("one_sided", std::string(to_string(session.info().heap)));
  Bench bench{options, session, remote, children, report};
  bench.progress(session.info().to_string());
  if (cores < 2 || options.app_core == options.agent_core) {
    bench.progress("application and agent share a core: what follows says little about either");
  }
  const std::uint64_t start = now_ns();
  for (const Experiment& experiment : kExperiments) {
    if (!options.wants(experiment.name)) continue;
    experiment.run(bench);
    remote.release();
  }
  report.write(options.json);
  bench.progress(fmt::format("{} written after {:.0f} s", options.json, static_cast<double>(now_ns() - start) * 1e-9));
}

}  // namespace

}  // namespace wherry::bench

int main(int argc, char** argv) {
  using namespace wherry::bench;
  const Options options = parse_command_line(argc, argv);
  catch_signals();
  try {
    run(options);
    return 0;
  } catch (const Interrupted&) {
    fmt::print(stderr, "bench_move: interrupted; nothing was written\n");
    return 130;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_move: {}\n", error.what());
    return 1;
  }
}
