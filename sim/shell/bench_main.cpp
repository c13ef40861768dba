// SPDX-License-Identifier: Apache-2.0
// shell_bench: computes Tables 5.1 to 5.6 of thesis 003 by simulating its shell. `wherry bench probe --only thesis`
// runs it. docs/design/shell-model.md.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/command_line.hpp"
#include "sim/json_output.hpp"
#include "sim/shell/bed.hpp"
#include "sim/shell/load/sweep.hpp"

namespace {

using nlohmann::json;
using namespace wherry::sim::shell;

constexpr std::array<std::uint32_t, 6> kSizes{128, 256, 512, 1024, 2048, 4096};

json row_of(const PathName& path, std::uint32_t bytes, const Measured& found) {
  json sections = json::array();
  for (const Section& section : found.sections) sections.push_back({{"name", section.name}, {"ns", section.ns}});
  return {{"case", path.number},
          {"way", path.name},
          {"bytes", bytes},
          {"descriptor_ns", found.descriptor},
          {"total_ns", found.total},
          {"sections", sections},
          {"transactions", found.transactions},
          {"wrong", found.wrong}};
}

/// What 4 KiB from HBM to the host would take without the causes of the spike, one by one.
json spike_rows(const Parameters& given) {
  struct Variant {
    const char* name;
    std::uint32_t card, host, one_at_a_time;
  };
  const std::array variants{
      Variant{"as in Table 5.5", given.card_offset, given.host_offset, given.one_at_a_time},
      Variant{"both buffers start at a page", 0, 0, 1},
      Variant{"only the card's buffer crosses a boundary", given.card_offset, 0, 1},
      Variant{"both buffers cross at the same byte", given.card_offset, given.card_offset, 1},
      Variant{"as in Table 5.5, but transactions overlap", given.card_offset, given.host_offset, 0}};
  json rows = json::array();
  for (const Variant& variant : variants) {
    Parameters parameters = given;
    parameters.card_offset = variant.card;
    parameters.host_offset = variant.host;
    parameters.one_at_a_time = variant.one_at_a_time;
    const Measured found = run(Path::kHbmToHost, kSizes.back(), parameters);
    rows.push_back({{"variant", variant.name},
                    {"transactions", found.transactions},
                    {"total_ns", found.total},
                    {"wrong", found.wrong}});
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Simulates the shell of thesis 003 (docs/design/shell-model.md)", "shell_bench"};
  std::string file;
  std::vector<std::string> assignments;
  app.add_option("--json", file, "where the rows go; otherwise to standard output");
  app.add_option("--set", assignments, "name=value: another value of a parameter");
  std::uint32_t packets = 0;
  app.add_option("--load", packets, "many packets under way, too: so many in each run (docs/design/shell-load.md)")
      ->check(CLI::Range(100, 100000));
  wherry::parse_command_line(app, argc, argv);
  Parameters parameters;
  for (const std::string& assignment : assignments) {
    const wherry::Status status = set(parameters, assignment);
    if (status.ok()) continue;
    fmt::print(stderr, "shell_bench: {}\n", status.message());
    return 2;
  }
  json document{{"program", "shell_bench"}, {"parameters", json::array()}, {"rows", json::array()}};
  for (const Parameter& one : wherry::sim::shell::parameters())
    document["parameters"].push_back({{"name", one.name},
                                      {"value", parameters.*one.member},
                                      {"unit", one.unit},
                                      {"mark", one.mark},
                                      {"source", one.source}});
  for (const PathName& path : paths())
    for (const std::uint32_t bytes : kSizes) {
      if (path.number == 1 && bytes > 2048) continue;  // the thesis has none: Table 5.1
      document["rows"].push_back(row_of(path, bytes, run(path.path, bytes, parameters)));
    }
  document["spike"] = spike_rows(parameters);
  if (packets != 0) document["load"] = load::sweep(parameters, packets);
  return wherry::sim::write_document(document, file, "shell_bench") ? 0 : 1;
}
