// SPDX-License-Identifier: Apache-2.0
// wherry-probe measures the paths of this machine. `wherry probe` runs it and prints the tables.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/command_line.hpp"
#include "base/cpu.hpp"
#include "base/program.hpp"
#include "base/version.hpp"
#include "probe/cores.hpp"
#include "probe/process/lines.hpp"
#include "probe/process/lists.hpp"
#include "probe/suite.hpp"

namespace {

using namespace wherry::probe;

constexpr int kWrongData = 1, kNothing = 2, kStopped = 130;

struct Options {
  SuiteOptions suite;
  RunOptions run;
  std::vector<std::string> only;
  double seconds = 0;  // 0: the suite's
  unsigned progress_ms = 200;
};

/// The paths that match the patterns, each once, in the registry's order. kNotFound: a pattern matches no path.
wherry::Result<std::vector<Path*>> chosen(const Registry& registry, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return registry.matching("");
  std::vector<Path*> found;
  for (const std::string& pattern : patterns) {
    const auto some = registry.matching(pattern);
    if (some.empty() || pattern.empty())
      return wherry::Status(wherry::StatusCode::kInvalidArgument,
                            "no path or group is named '" + pattern + "'; `wherry-probe list` names them");
    for (Path* const path : some)
      if (std::ranges::find(found, path) == found.end()) found.push_back(path);
  }
  return found;
}

/// Keeps standard output for the lines, because UCX writes warnings to it. Other output goes to standard error.
std::FILE* own_output() {
  const int ours = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  std::FILE* const out = ours < 0 ? nullptr : fdopen(ours, "w");
  if (out != nullptr) dup2(STDERR_FILENO, STDOUT_FILENO);
  return out;
}

int list(const std::vector<Path*>& paths, Lines& lines) {
  for (const Path* const path : paths) lines.path(path->info());
  return lines.lost() ? 1 : 0;
}

int run(const std::vector<Path*>& paths, Options options, MachineClock& clock, Lines& lines,
        const std::atomic<bool>& stop) {
  const auto cells = interleaved(paths, options.suite);
  constexpr double kQuickSeconds = 15, kFullSeconds = 150;
  const double seconds = options.seconds > 0 ? options.seconds : options.suite.quick ? kQuickSeconds : kFullSeconds;
  options.run.budget_ns = static_cast<std::uint64_t>(seconds * 1e9);
  // The second core is for the other side. If a core has been removed meanwhile, the scheduler chooses one.
  (void)wherry::pin_thread({cores().here});
  lines.start(clock, harness_cost(clock), options.run, cells.size());
  Runner runner(clock, options.run, lines, stop);
  const Outcome outcome = runner.run(cells);
  for (const Path* const path : paths) lines.path(path->info());
  lines.end(outcome);
  if (outcome.wrong > 0) return kWrongData;
  if (outcome.stopped) return kStopped;
  return outcome.measured == 0 ? kNothing : 0;
}

}  // namespace

int main(int argc, char** argv) {
  (void)cores();  // before a thread is pinned
  CLI::App app{
      "wherry-probe: measures the paths between memories and threads of this machine (docs/guide/probe.md).\n\n"
      "  wherry-probe list                every path, and why one cannot run here\n"
      "  wherry-probe run --quick         all of them, in 20 seconds\n"
      "  wherry-probe run --only ipc.cma  some of them\n\n"
      "It writes one JSON object a line; `wherry probe` makes tables of them.\n"
      "Exit status: 0 measured, 1 data was wrong, 2 nothing was measured or a wrong command line, 130 stopped.",
      "wherry-probe"};
  app.set_version_flag("--version", std::string("wherry ") + std::string(wherry::kVersion));
  app.require_subcommand(1);
  Options options;
  bool twice = false;
  CLI::App* const listing = app.add_subcommand("list", "every path, and why one cannot run here");
  CLI::App* const running = app.add_subcommand("run", "measures");
  for (CLI::App* const command : {listing, running})
    command->add_option("--only", options.only, "ids, their beginnings (ipc.cma) or groups (cpu)");
  running->add_flag("--quick", options.suite.quick, "fewer sizes and depths");
  running->add_option("--bytes", options.suite.sizes, "sizes of a transfer instead of the suite's")
      ->check(CLI::Range(std::size_t{1}, kMostFootprint));
  running->add_option("--depth", options.suite.depths, "transfers under way instead of the suite's")
      ->check(CLI::Range(1, 256));
  running->add_option("--rounds", options.run.rounds, "of all cells")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  running->add_option("--seconds", options.seconds, "of the whole run, about; default: 15 with --quick, else 150")
      ->check(CLI::Range(0.1, 86400.0));
  running->add_option("--seed", options.run.seed, "of data and pauses")->capture_default_str();
  running->add_flag("--twice", twice, "every cell twice, as two series: what differs is noise");
  running->add_option("--progress-ms", options.progress_ms, "between two lines about progress")->capture_default_str();
  running->add_flag("--spoil", options.run.spoil, "")->group("");
  wherry::parse_command_line(app, argc, argv);
  if (twice) options.suite.series = 2;

  std::FILE* const out = own_output();
  if (out == nullptr)
    return wherry::exit_status("wherry-probe", {wherry::StatusCode::kUnavailable, "standard output is closed"});
  const std::atomic<bool>& stop = wherry::stop_on_signals();
  auto registry = all_paths();
  if (!registry) return wherry::exit_status("wherry-probe", registry.status());
  auto paths = chosen(*registry, options.only);
  if (!paths) return wherry::exit_status("wherry-probe", paths.status());
  // Simulated paths always give the same results, and use a core for seconds. So they run only if they are named.
  if (running->parsed() && options.only.empty())
    std::erase_if(*paths, [](const Path* path) { return path->info().provenance != Provenance::kMeasured; });
  MachineClock clock;
  Lines lines(out, clock, std::uint64_t{options.progress_ms} * 1'000'000);
  return listing->parsed() ? list(*paths, lines) : run(*paths, options, clock, lines, stop);
}
