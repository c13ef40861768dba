// SPDX-License-Identifier: Apache-2.0
// bench_route: what `wherry bench route` runs.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/cpu.hpp"
#include "base/log.hpp"
#include "experiments.hpp"

namespace wherry::bench {

RouteBench::RouteBench(RouteBenchOptions options)
    : options_(std::move(options)),
      report_("route", allowed_cores().size(), {{"a", options_.core_a}, {"b", options_.core_b}}, rounds()) {}

JobOptions RouteBench::pair() const {
  JobOptions job;
  job.ranks_per_node = 2;
  job.rank_cores = {options_.core_a, options_.core_b};
  return job;
}

void RouteBench::bar(const std::string& name, const std::vector<double>& values, const std::string& comparison,
                     double target, const std::string& unit) {
  const Summary summary = summarize(values);
  report_.bar(name, {summary.median, summary.min, summary.max}, comparison, target, unit);
}

void RouteBench::progress(const std::string& text) const {
  fmt::print(stderr, "{}\n", text);
  std::fflush(stderr);
}

namespace {

struct Experiment {
  const char* name;
  void (*run)(RouteBench&);
};
constexpr Experiment kExperiments[] = {{"histogram", run_histogram},
                                       {"random_sizes", run_random_sizes},
                                       {"agent_rate", run_agent_rate},
                                       {"latency", run_latency},
                                       {"weak_scaling", run_weak_scaling}};

}  // namespace
}  // namespace wherry::bench

int main(int argc, char** argv) {
  using namespace wherry;
  using namespace wherry::bench;
  CLI::App app("Measures route: messages between ranks, inline and through agents, on two cores of this machine.");
  RouteBenchOptions options;
  std::vector<std::string> peers;
  app.add_option("--json", options.json, "where the results go")->required();
  app.add_flag("--quick", options.quick, "fewer and shorter rounds");
  app.add_option("--only", options.only,
                 "these experiments: histogram, random_sizes, agent_rate, latency, weak_scaling")
      ->delimiter(',');
  app.add_option("--peer", peers,
                 "NAME=COMMAND: a peer's histogram to take turns with; {lg} and {n} in it become log2 of the counters "
                 "and the updates a rank; its last line of output is {\"mups\": M updates/s in total}");
  app.add_option(
         "--cores",
         [&](const CLI::results_t& cores) {
           options.core_a = std::stoi(cores.at(0));
           options.core_b = std::stoi(cores.at(1));
           return true;
         },
         "the two cores")
      ->expected(2);
  CLI11_PARSE(app, argc, argv);
  catch_signals();
  try {
    for (const std::string& peer : peers) {
      const std::size_t equals = peer.find('=');
      if (equals == std::string::npos) throw std::runtime_error("--peer wants NAME=COMMAND, not " + peer);
      options.peers[peer.substr(0, equals)] = peer.substr(equals + 1);
    }
    if (allowed_cores().size() < 2) throw std::runtime_error("two cores are needed");
    if (Status s = init_log("warn", ""); !s) throw std::runtime_error(s.message());
    RouteBench bench(options);
    for (const std::string& name : options.only) {
      if (name != "none" && std::none_of(std::begin(kExperiments), std::end(kExperiments),
                                         [&](const Experiment& e) { return e.name == name; }))
        throw std::runtime_error("no experiment " + name);
    }
    for (const Experiment& experiment : kExperiments) {
      if (options.only.empty() ||
          std::find(options.only.begin(), options.only.end(), experiment.name) != options.only.end())
        experiment.run(bench);
    }
    bench.write();
    return 0;
  } catch (const Interrupted&) {
    fmt::print(stderr, "bench_route: interrupted; nothing was written\n");
    return 130;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_route: {}\n", error.what());
    return 1;
  }
}
