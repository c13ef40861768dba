// SPDX-License-Identifier: Apache-2.0
// bypass_rtl_bench: the rates of the Verilated bypass core with NIC models in a simulated PCIe fabric. Every figure
// comes from a simulation, which docs/design/bypass-rtl.md describes. `wherry bench bypass` makes its report from this.
//
// The JSON (schema "wherry.bypass_rtl_bench/1"):
//   schema, versions.verilator, seed, quick, simulated (true)
//   core     clock_mhz, queue_pairs, rx_entries, tx_entries, pack_bytes
//   rows     a list of:
//     name, group         "rates", "latency", "curve", "overload", "cycles", "soak"
//     given               mbits, bytes (as it is called), frame_bytes (without FCS), wire_bytes (with FCS),
//                         way ("in_place", "stream"), topology, nic (personality), nic_prefetch (0: the personality's
//                         own; else a NIC that is not the limit), nic_writeback, rx_batch, nic_link,
//                         card_link ("gen3x16"), frames, offered_mbits, load (share of line rate),
//                         function_interval_ns
//     frames              in, out, wrong, reordered, missing; nic_rx_dropped and nic_tx_dropped {reason: n, ...};
//                         lost_uncounted: in - out - all that was counted as dropped
//     rate                of the frames after the warm-up, while frames come in: packets_per_s, line_packets_per_s,
//                         share_of_line;
//                         link_packets_per_s (what the card's link would carry of such packets, with the bytes that
//                         were measured for each), share_of_link (how much of its time the busier direction was in
//                         use); budget_packets_per_s (by the specification's overheads: docs), share_of_budget;
//                         limit_packets_per_s, share_of_limit, limited_by (the narrowest of "port", "function", "root":
//                         what an ideal core would pass)
//     latency_us          mean, p50, p99, min, max, std: last bit in to last bit out, of those frames
//     per_packet          tails, rx_tails, tx_tails, requests; card_bytes_in, card_bytes_out (TLP payload of writes and
//                         completions at the card), link_bytes_in, link_bytes_out (with headers, framing, DLLPs),
//                         flow_control_bytes (write-backs of transmit descriptors and heads)
//     core                the core's counters (docs/reference/bypass-registers.md), at the end
//     simulated_us, cycles, cpu_s
//   of group "cycles": name, group, cycles {rx, tx, inplace_head, inplace_verdict, inplace}, each {min, max, samples},
//     of frames of one descriptor; cycles_9000_bytes, the same of five descriptors
//   of group "soak": name, group, seeds, frames, out, counted, struck, refused, retries, troubles {name: {in, out,
//     counted, struck, refused, retries}}, violations (a list of sentences; empty if all is well), cycles, cpu_s
//   figures  the bars, those that rows were measured for: rate_64b_10g, rate_64b_25g, rate_64b_40g,
//            rate_64b_100g_of_link, rx_cycles, tx_cycles, inplace_cycles, flow_control_bytes_per_packet,
//            overload_reordered, overload_lost_uncounted, overload_cost, intel_root_loss_10g, intel_root_latency_us,
//            switch_latency_us, tails_per_packet
// Shares are fractions of 1. No figure contains wall-clock time.
#include <fmt/core.h>
#include <verilated.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>

#include "base/command_line.hpp"
#include "sim/bypass/bench.hpp"
#include "sim/bypass/soak.hpp"
#include "sim/json_output.hpp"

namespace {

std::atomic<bool> interrupted{false};
void on_signal(int) { interrupted = true; }

}  // namespace

int main(int argc, char** argv) {
  using namespace wherry::sim;
  CLI::App app{
      "Measures the Verilated bypass core beside NIC models in a simulated PCIe fabric (docs/design/bypass-rtl.md)",
      "bypass_rtl_bench"};
  std::string file;
  bench::Settings settings;
  settings.interrupted = &interrupted;
  std::uint64_t seeds = 0;
  app.add_option("--json", file, "where the results go; otherwise to standard output");
  app.add_flag("--quick", settings.quick, "fewer frames, fewer sizes");
  app.add_option("--only", settings.only, "rows whose name begins so, and groups; may be given several times");
  app.add_option("--tx-credits", settings.tx_credits, "unanswered transmit tails, of all runs");
  app.add_option("--rx-batch", settings.rx_batch, "free slots that are worth a receive tail, of all runs");
  app.add_option("--seed", settings.seed, "of all random choices");
  app.add_option("--frames", settings.frames, "of the soak, over all its seeds");
  app.add_option("--seeds", seeds, "of the soak: so many, from --seed on");
  wherry::parse_command_line(app, argc, argv);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);

  const auto wanted = [&](const std::string& name, const std::string& group) {
    return settings.only.empty() ? group != "soak" : std::ranges::any_of(settings.only, [&](const std::string& one) {
      return group.starts_with(one) || name.starts_with(one);
    });
  };
  const bench::Json core = bench::core_shape();
  settings.rx_entries = core["rx_entries"];
  std::vector<bench::Run> runs = bench::rate_runs(settings);
  for (auto* more : {&bench::latency_runs, &bench::overload_runs}) {
    auto added = (*more)(settings);
    runs.insert(runs.end(), added.begin(), added.end());
  }
  std::vector<std::string> known{"rates", "latency", "curve", "overload", "cycles", "soak"};
  for (const bench::Run& run : runs) known.push_back(run.name);
  wherry::refuse_unknown(app, "--only", settings.only, known);
  std::erase_if(runs, [&](const bench::Run& run) { return !wanted(run.name, run.group); });

  bench::Json rows = bench::Json::array();
  for (std::size_t i = 0; i < runs.size() && !interrupted; ++i) {
    fmt::print(stderr, "[{}/{}] {}: ", i + 1, runs.size(), runs[i].name);
    bench::Json row = bench::measure(runs[i], settings);
    if (row.is_null()) break;
    fmt::print(stderr, "{:.3f} M packets/s, {:.4f} of line rate, {:.2f} us, {} lost ({:.1f} s)\n",
               row["rate"]["packets_per_s"].get<double>() / 1e6, row["rate"]["share_of_line"].get<double>(),
               row["latency_us"]["mean"].get<double>(),
               row["frames"]["in"].get<std::uint64_t>() - row["frames"]["out"].get<std::uint64_t>(),
               row["cpu_s"].get<double>());
    rows.push_back(std::move(row));
  }
  if (wanted("cycles", "cycles") && !interrupted) rows.push_back(bench::measure_cycles(settings));
  bool good = true;
  if (wanted("soak", "soak") && !interrupted) {
    rows.push_back(bench::soak(settings, seeds));
    good = rows.back()["violations"].empty();
  }

  const bench::Json document{{"schema", "wherry.bypass_rtl_bench/1"},
                             {"versions", {{"verilator", Verilated::productVersion()}}},
                             {"seed", settings.seed},
                             {"quick", settings.quick},
                             {"simulated", true},
                             {"core", core},
                             {"rows", rows},
                             {"figures", bench::figures(rows)}};
  if (interrupted) {
    fmt::print(stderr, "bypass_rtl_bench: interrupted, nothing is written\n");
    return 130;
  }
  return wherry::sim::write_document(document, file, "bypass_rtl_bench") && good ? 0 : 1;
}
