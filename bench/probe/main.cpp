// SPDX-License-Identifier: Apache-2.0
// bench_probe_cache: the measured half of `wherry bench probe --only cache`. route_trace is the simulated half.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "base/command_line.hpp"
#include "base/cpu.hpp"
#include "common/measure.hpp"
#include "probe/cache_bench.hpp"

int main(int argc, char** argv) {
  using namespace wherry;
  using namespace wherry::bench;
  CLI::App app("Measures caches and memory under an agent, on two cores of this machine.");
  std::string json;
  bool quick = false;
  app.add_option("--json", json, "where the results go")->required();
  app.add_flag("--quick", quick, "fewer and shorter rounds");
  wherry::parse_command_line(app, argc, argv);
  catch_signals();
  try {
    const std::vector<int> cores = allowed_cores();
    if (cores.size() < 2) throw std::runtime_error("two cores are needed");
    const int agent = cores[0], other = cores[1];
    require(pin_thread({other}), "the other core");
    require(pin_thread({agent}), "the agent's core");
    Report report("probe", cores.size(), {{"agent", agent}, {"other", other}}, quick ? 3 : 7);
    CacheBench bench{agent, other, quick, this_machine(agent), report};
    struct Experiment {
      const char* name;
      void (*run)(CacheBench&);
    };
    for (const Experiment& one : {Experiment{"the agent alone", run_agent},
                                  {"receive and touch each byte", run_touch},
                                  {"the agent beside a neighbour", run_neighbour}}) {
      fmt::print(stderr, "  {}\n", one.name);
      one.run(bench);
    }
    report.write(json);
    return 0;
  } catch (const Interrupted&) {
    return 130;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_probe_cache: {}\n", error.what());
    return 1;
  }
}
