// SPDX-License-Identifier: Apache-2.0
// bench_route: the program that `wherry bench route` runs.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/command_line.hpp"
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

JobOptions RouteBench::two_nodes(route::Placement placement) const {
  JobOptions job;
  job.nodes = 2;
  job.placement = placement;
  job.rank_cores = {options_.core_a, options_.core_b};
  job.agent_cores = job.rank_cores;
  if (placement == route::Placement::kHost) {
    job.rank_cores = {options_.core_a};
    job.agent_cores = {options_.core_b};
  }
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
                                       {"message_sizes", run_message_sizes},
                                       {"sweeps", run_sweeps},
                                       {"weak_scaling", run_weak_scaling},
                                       {"agent_memory", run_agent_memory},
                                       {"link", run_link},
                                       {"profile", run_profile}};

std::string names() {
  std::string all;
  for (const Experiment& experiment : kExperiments) all += (all.empty() ? "" : ", ") + std::string(experiment.name);
  return all;
}

/// `text`: "NAME=COMMAND", or "NAME:TIMES=COMMAND".
void add_peer(RouteBenchOptions& options, const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::size_t colon = text.substr(0, equals).find(':');
  const std::string name = text.substr(0, std::min(equals, colon));
  RouteBenchOptions::Peer peer;
  bool good = equals != std::string::npos && !name.empty();
  if (good && colon != std::string::npos) {
    const std::string times = text.substr(colon + 1, equals - colon - 1);
    char* end = nullptr;
    peer.target = std::strtod(times.c_str(), &end);
    good = !times.empty() && *end == 0 && peer.target > 0;
  }
  if (!good) throw std::runtime_error("--peer wants NAME=COMMAND or NAME:TIMES=COMMAND, not " + text);
  peer.command = text.substr(equals + 1);
  if (!options.peers.emplace(name, std::move(peer)).second) throw std::runtime_error("--peer: two are named " + name);
}

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
  app.add_option("--only", options.only, "these experiments: " + names())->delimiter(',');
  app.add_option(
      "--set", options.set,
      "KEY=VALUE: route.buffer_bytes or route.buffers of the other jobs of experiment profile, which runs only "
      "if it is named");
  app.add_option("--peer", peers,
                 "NAME=COMMAND: a peer's histogram to take turns with; {lg} and {n} in it become log2 of the counters "
                 "and the updates a rank; its last line of output is {\"mups\": M updates/s in total}. "
                 "NAME:4=COMMAND: Wherry must be 4 times as fast");
  app.add_option(
         "--cores",
         [&](const CLI::results_t& cores) {
           options.core_a = std::stoi(cores.at(0));
           options.core_b = std::stoi(cores.at(1));
           return true;
         },
         "the two cores")
      ->expected(2);
  wherry::parse_command_line(app, argc, argv);
  catch_signals();
  struct EndAgents {
    ~EndAgents() { end_agents(); }
  } end_agents_at_last;
  try {
    for (const std::string& peer : peers) add_peer(options, peer);
    const std::vector<int> cores = allowed_cores();
    if (cores.size() < 2) throw std::runtime_error("two cores are needed");
    if (options.core_a < 0) std::tie(options.core_a, options.core_b) = std::pair(cores[0], cores[1]);
    if (Status s = init_log("warn", ""); !s) throw std::runtime_error(s.message());
    RouteBench bench(options);
    for (const std::string& name : options.only) {
      if (std::none_of(std::begin(kExperiments), std::end(kExperiments),
                       [&](const Experiment& e) { return e.name == name; }))
        throw std::runtime_error(fmt::format("--only {}: there is no such experiment, only {}", name, names()));
    }
    for (const Experiment& experiment : kExperiments) {
      if ((options.only.empty() && experiment.run != run_profile) ||
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
