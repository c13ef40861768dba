// SPDX-License-Identifier: Apache-2.0
// bench_route: what `wherry bench route` runs.
#include <fmt/core.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <thread>

#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "experiments.hpp"
#include "fabric/fabric.hpp"

namespace wherry::bench {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

RouteBench::RouteBench(RouteBenchOptions options) : options_(std::move(options)) {
  std::string cpu = "unknown", line;
  for (std::ifstream info("/proc/cpuinfo"); std::getline(info, line);) {
    if (line.starts_with("model name")) {
      cpu = line.substr(line.find(':') + 2);
      break;
    }
  }
  utsname name{};
  uname(&name);
  char when[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(when, sizeof when, "%FT%TZ", std::gmtime(&now));
  head_ = {{"schema", 1},
           {"name", "route"},
           {"when", when},
           {"wherry", kVersion},
           {"machine", {{"cpu", cpu}, {"cores", allowed_cores().size()}, {"kernel", name.release}}},
           {"versions", {{"ucx", fabric::ucx_version()}, {"compiler", __VERSION__}}},
           {"pinning", {{"a", options_.core_a}, {"b", options_.core_b}}},
           {"repetitions", rounds()}};
}

JobOptions RouteBench::pair() const {
  JobOptions job;
  job.ranks_per_node = 2;
  job.rank_cores = {options_.core_a, options_.core_b};
  return job;
}

void RouteBench::row(const std::string& experiment, Row values) { results_[experiment].push_back(std::move(values)); }

void RouteBench::bar(const std::string& name, const std::vector<double>& values, const std::string& comparison,
                     double target, const std::string& unit) {
  const double value = median(values);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  Row bar{{"value", value}, {"min", *min}, {"max", *max}, {"unit", unit}};
  if (!comparison.empty()) {
    bar["target"] = fmt::format("{} {}", comparison, target);
    bar["pass"] = comparison == ">=" ? value >= target : value <= target;
  }
  bars_[name] = std::move(bar);
}

void RouteBench::progress(const std::string& text) const {
  fmt::print(stderr, "{}\n", text);
  std::fflush(stderr);
}

void RouteBench::write() const {
  Row all = head_;
  all["bars"] = bars_;
  all["results"] = results_;
  std::ofstream out(options_.json + ".part");
  out << all.dump(2) << '\n';
  out.close();
  if (!out || std::rename((options_.json + ".part").c_str(), options_.json.c_str()) != 0)
    throw std::runtime_error("cannot write " + options_.json);
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
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_route: {}\n", error.what());
    return 1;
  }
}
