// SPDX-License-Identifier: Apache-2.0
// host_bypassing_bench: computes the figures of paper 002 from models of its core, its NIC, its topologies and its
// baselines. `wherry bench bypass` runs it for these figures. docs/reference/bench-bypass.md.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/command_line.hpp"
#include "sim/host_bypassing/figures.hpp"
#include "sim/json_output.hpp"

int main(int argc, char** argv) {
  using namespace wherry::sim::host_bypassing;
  CLI::App app{"Simulates the evaluation of paper 002, host bypassing (docs/reference/bench-bypass.md)",
               "host_bypassing_bench"};
  const std::vector<std::string> all{"latency", "rates", "overload", "tcp", "batching"};
  std::vector<std::string> only = all;
  std::string file;
  Effort effort;
  app.add_option("--json", file, "where the rows go; otherwise to standard output");
  app.add_option("--only", only, "latency, rates, overload, tcp, batching")->delimiter(',')->check(CLI::IsMember(all));
  app.add_flag("--quick", effort.quick, "fewer packets, fewer rates");
  wherry::parse_command_line(app, argc, argv);

  effort.say = [&](const std::string& line) {
    fmt::print(stderr, "{}\n", line);
    static_cast<void>(std::fflush(stderr));
  };
  const auto wanted = [&](const char* name) { return std::ranges::find(only, name) != only.end(); };
  nlohmann::json document{{"program", "host_bypassing_bench"}, {"constants", constants()}};
  if (wanted("latency")) latency(effort, document);
  if (wanted("rates")) rates(effort, document);
  if (wanted("overload")) overload(effort, document);
  if (wanted("tcp")) tcp(effort, document);
  if (wanted("batching")) batching(effort, document);
  return wherry::sim::write_document(document, file, "host_bypassing_bench") ? 0 : 1;
}
