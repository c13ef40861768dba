// SPDX-License-Identifier: Apache-2.0
// kv_rtl_bench: measures the kv core's latencies and rates, in simulation. `wherry bench kv` takes its rows rtl_latency
// and line_rate from this program: docs/reference/bench-json.md.
#include <fmt/core.h>
#include <verilated.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/command_line.hpp"
#include "sim/bench.hpp"
#include "sim/json_output.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Measures the Verilated kv core with the memory model of docs/design/kv-hbm.md"};
  std::string file;
  std::vector<std::string> only{"rtl_latency", "line_rate"};
  bool quick = false;
  app.add_option("--json", file, "where the rows go; otherwise to standard output");
  app.add_option("--only", only, "rtl_latency, line_rate")
      ->delimiter(',')
      ->check(CLI::IsMember({"rtl_latency", "line_rate"}));
  app.add_flag("--quick", quick, "fewer requests, fewer numbers of followers");
  wherry::parse_command_line(app, argc, argv);

  const auto wanted = [&](const char* name) { return std::ranges::find(only, name) != only.end(); };
  nlohmann::json document{{"versions", {{"verilator", Verilated::productVersion()}}}};
  if (wanted("rtl_latency")) document["rtl_latency"] = wherry::kv::rtl::measure_latencies(quick);
  if (wanted("line_rate")) document["line_rate"] = wherry::kv::rtl::measure_rates(quick);
  return wherry::sim::write_document(document, file, "kv_rtl_bench") ? 0 : 1;
}
