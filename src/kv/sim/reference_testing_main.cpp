// SPDX-License-Identifier: Apache-2.0
// kv_sim_reference FLAW FIRST LAST FOLDER [pcap]: writes the reference store's history for each seed from FIRST to LAST
// to FOLDER/FLAW-SEED.jsonl. With `pcap`, also writes the network's traffic. FLAW: none, stale, lost, duplicate.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kv/sim/pcap.hpp"
#include "kv/sim/reference_testing.hpp"

namespace sim = wherry::kv::sim;

int main(int count, char** arguments) {
  const std::array<std::string_view, 4> flaws{"none", "stale", "lost", "duplicate"};
  const std::string name = count >= 5 ? arguments[1] : "";
  std::size_t flaw = 0;
  while (flaw < flaws.size() && flaws[flaw] != name) ++flaw;
  if (flaw == flaws.size()) {
    fmt::print(stderr, "kv_sim_reference none|stale|lost|duplicate FIRST LAST FOLDER [pcap]\n");
    return EXIT_FAILURE;
  }
  std::uint64_t events = 0;
  std::uint64_t operations = 0;
  std::uint64_t unknown = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t seed = std::stoull(arguments[2]); seed <= std::stoull(arguments[3]); ++seed) {
    sim::ReferenceCluster cluster(static_cast<sim::Flaw>(flaw), seed, {.operations = 150});
    const std::string path = fmt::format("{}/{}-{}", arguments[4], name, seed);
    std::unique_ptr<sim::Pcap> pcap;
    if (count > 5) {
      auto created = sim::Pcap::create(path + ".pcap");
      if (!created) {
        fmt::print(stderr, "{}\n", created.status().to_string());
        return EXIT_FAILURE;
      }
      pcap = *std::move(created);
      cluster.network().set_tap(pcap.get());
    }
    const sim::History& history = cluster.run();
    events += cluster.network().events();
    operations += history.size();
    unknown += history.count(sim::Outcome::kUnknown);
    if (const auto written = history.write(path + ".jsonl"); !written.ok()) {
      fmt::print(stderr, "{}\n", written.to_string());
      return EXIT_FAILURE;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} operations, {} unknown, {} events, {:.3f} s\n", operations, unknown, events, took.count());
  return EXIT_SUCCESS;
}
