// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "base/command_line.hpp"
#include "base/cpu.hpp"

namespace wherry::bench {

namespace {

constexpr const char* kAbout =
    "bench_move: measures Wherry's move service against what a good engineer would do without it.\n"
    "Starts an agent and an Arrow Flight server of its own; `wherry bench move` runs it and prints the tables.\n\n"
    "  bench_move --json move.json                          everything, 5 to 6 minutes\n"
    "  bench_move --json look.json --quick                  fewer sizes and repetitions, under a minute\n"
    "  bench_move --json bw.json --only bandwidth,mapped    two experiments\n\n"
    "Experiments (figures are those of paper 004):\n"
    "  initiate    host time of one offload call, by columns and size (figure 2)\n"
    "  bandwidth   a transfer from heap memory against a raw UCX get (figure 3)\n"
    "  mapped      a transfer from memory that Wherry allocated against memcpy\n"
    "  buffers     allocators and caching of buffers, eight combinations (figure 4)\n"
    "  conversion  the steps from columns to Arrow IPC on the host (figures 7 and 8)\n"
    "  approaches  host time and throughput of five ways to Arrow IPC (figure 11)\n"
    "  flight      against Arrow Flight's DoPut: throughput and host CPU\n"
    "  profile     an agent with the settings of --set against one with the defaults; only if it is named\n\n"
    "What is compared alternates within one run; the JSON is described in docs/reference/bench-json.md.\n"
    "Two cores that nothing else uses are needed for figures worth keeping. Ctrl-C ends it with its children.";

}  // namespace

bool Options::wants(const std::string& experiment) const {
  if (only.empty()) return experiment != "profile";  // which compares two agents, and wants the other's settings
  return std::find(only.begin(), only.end(), experiment) != only.end();
}

Options parse_command_line(int argc, char** argv) {
  Options options;
  const std::vector<int> cores = allowed_cores();
  options.app_core = cores.empty() ? 0 : cores.front();
  options.agent_core = cores.size() < 2 ? options.app_core : cores[1];

  CLI::App app{kAbout, "bench_move"};
  app.add_option("--json", options.json, "file for the results")->required()->type_name("FILE");
  app.add_flag("--quick", options.quick, "fewer sizes and repetitions, under a minute");
  app.add_option("--only", options.only, "experiments, separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"initiate", "bandwidth", "mapped", "buffers", "conversion", "approaches", "flight", "profile"}))
      ->type_name("NAMES");
  app.add_option("--set", options.set, "a setting of the other agent of experiment profile; may be repeated")
      ->type_name("KEY=VALUE");
  app.add_option("--app-core", options.app_core, "core of the application")->capture_default_str();
  app.add_option("--agent-core", options.agent_core, "core of the agent, and of the Flight server")
      ->capture_default_str();
  wherry::parse_command_line(app, argc, argv);
  return options;
}

}  // namespace wherry::bench
