// SPDX-License-Identifier: Apache-2.0
// designs_bench: simulates the four FPGA designs of paper 000. Every figure comes from a simulation.
// docs/design/designs.md describes it, and has the JSON (schema "wherry.designs_bench/1"). The exit status is 1 if a
// byte was wrong, or a run failed.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/command_line.hpp"
#include "sim/designs/experiments.hpp"
#include "sim/designs/neighbours.hpp"
#include "sim/json_output.hpp"

int main(int argc, char** argv) {
  using namespace wherry::sim::designs;
  CLI::App app{"Simulates the four FPGA designs of paper 000 (docs/design/designs.md)"};
  std::string file;
  bool quick = false;
  app.add_option("--json", file, "where the results go; default: standard output");
  std::vector<std::string> parts;
  app.add_flag("--quick", quick, "fewer sizes and channels, no polling");
  app.add_option("--part", parts, "figures, turns, interconnect, linux, firmwares; may be given several times")
      ->check(CLI::IsMember({"figures", "turns", "interconnect", "linux", "firmwares"}));
  wherry::parse_command_line(app, argc, argv);
  const std::clock_t begin = std::clock();
  const auto seconds = [begin] { return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC; };
  const Say say = [&](const std::string& text) { fmt::print(stderr, "{:5.1f} s  {}\n", seconds(), text); };
  nlohmann::json out{{"schema", "wherry.designs_bench/1"}, {"simulated", true}, {"traffic", linux_traffic_name()}};
  const auto wanted = [&](const char* part) { return parts.empty() || std::ranges::find(parts, part) != parts.end(); };
  if (wanted("figures")) {
    out["figures"] = figures(quick, say);
    out["figures_cpu_s"] = seconds();
  }
  if (wanted("turns")) out["turns"] = turns(say);
  if (wanted("interconnect")) out["interconnect"] = interconnect(say);
  if (wanted("linux")) out["linux"] = linux_beside(say);
  if (wanted("firmwares")) out["firmwares"] = firmwares(say);
  out["cpu_s"] = seconds();
  int wrong = 0;
  for (const char* part : {"figures", "turns", "interconnect", "linux", "firmwares"})
    for (const nlohmann::json& row : out.value(part, nlohmann::json::array()))
      if (!row["error"].get<std::string>().empty()) {
        fmt::print(stderr, "{}: {}\n", part, row.dump());
        ++wrong;
      }
  return wherry::sim::write_document(out, file, "designs_bench") && wrong == 0 ? 0 : 1;
}
