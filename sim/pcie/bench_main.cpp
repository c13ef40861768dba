// SPDX-License-Identifier: Apache-2.0
// Measures the speed of the PCIe model on this machine: packets, TLPs and events per second of CPU time; and the event
// queue compared with std::priority_queue.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <queue>
#include <string>
#include <vector>

#include "base/command_line.hpp"
#include "base/random.hpp"
#include "sim/pcie/paper_traffic.hpp"

namespace {

using namespace wherry::sim::pcie;

/// CPU time of this process, in seconds.
double cpu_time() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Scenario {
  const char* name;
  RootOptions root;
  bool with_switch;
  std::uint32_t bytes;
  Time gap;
  std::uint32_t per_mille;
};

void fabric(const Scenario& scenario, std::uint64_t packets) {
  FabricOptions options{.root = scenario.root};
  options.reordering.per_mille = scenario.per_mille;
  paper::System system(options, scenario.with_switch,
                       {.bytes = scenario.bytes, .gap = scenario.gap, .packets = packets, .check_every = 16});
  const double begin = cpu_time();
  system.queue.run();
  const double seconds = (cpu_time() - begin);
  std::uint64_t tlps = 0;
  for (const Port* port : {system.nic_port, system.fpga_port}) {
    const PortCounters& counters = port->counters();
    tlps += counters.writes_sent + counters.reads_sent + counters.completions_sent;
  }
  const auto count = static_cast<double>(packets);
  fmt::print("{:<34} {:>9} {:>6.2f} {:>7.2f} {:>10.3f} {:>10.2f} {:>11.2f} {:>6} {:>6}\n", scenario.name, packets,
             seconds, static_cast<double>(tlps) / count, count / seconds / 1e6,
             static_cast<double>(tlps) / seconds / 1e6, static_cast<double>(system.queue.events()) / seconds / 1e6,
             system.nic.dropped, system.nic.wrong);
}

struct Again final : EventHandler {
  explicit Again(EventQueue& q) : queue(q) {}
  void on_event(std::uint64_t) override {
    queue.schedule(queue.now() + 1 + static_cast<Time>(random.below(1'000'000)), *this);
  }
  EventQueue& queue;
  wherry::SplitMix64 random{1};
};

/// The "hold" model: each event schedules one more. Returns nanoseconds per event.
double hold_ours(std::size_t pending, std::uint64_t events) {
  EventQueue queue;
  Again handler(queue);
  for (std::size_t i = 0; i < pending; ++i) handler.on_event(0);
  const double begin = cpu_time();
  for (std::uint64_t i = 0; i < events; ++i) queue.step();
  return (cpu_time() - begin) / static_cast<double>(events) * 1e9;
}

double hold_standard(std::size_t pending, std::uint64_t events) {
  struct Event {
    Time at;
    std::uint64_t number;
    void* handler;
    std::uint64_t argument;
  };
  const auto later = [](const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; };
  std::priority_queue<Event, std::vector<Event>, decltype(later)> queue(later);
  wherry::SplitMix64 random(1);
  std::uint64_t number = 0;
  const auto schedule = [&](Time now) {
    queue.push({now + 1 + static_cast<Time>(random.below(1'000'000)), number++, nullptr, 0});
  };
  for (std::size_t i = 0; i < pending; ++i) schedule(0);
  const double begin = cpu_time();
  for (std::uint64_t i = 0; i < events; ++i) {
    const Time now = queue.top().at;
    queue.pop();
    schedule(now);
  }
  return (cpu_time() - begin) / static_cast<double>(events) * 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures the model of PCIe: what a packet costs in events and in time (docs/design/pcie-model.md)",
               "pcie_bench"};
  std::uint64_t packets = 1'000'000;
  app.add_option("packets", packets, "of each row")->check(CLI::PositiveNumber)->capture_default_str();
  wherry::parse_command_line(app, argc, argv);
  const Scenario scenarios[] = {
      {"switch, 300 B at 10 Gbit/s", ideal_root(), true, 300, 259'200 * kPicosecond, 0},
      {"switch, 64 B at 4.9 Mpackets/s", ideal_root(), true, 64, 204 * kNanosecond, 0},
      {"switch, 300 B, reordering 20 %", ideal_root(), true, 300, 259'200 * kPicosecond, 200},
      {"Intel root, 300 B at 10 Gbit/s", intel_xeon_4110(), false, 300, 259'200 * kPicosecond, 0},
      {"AMD root, 300 B at 10 Gbit/s", amd_epyc_7402(), false, 300, 259'200 * kPicosecond, 0},
  };
  fmt::print("{:<34} {:>9} {:>6} {:>7} {:>10} {:>10} {:>11} {:>6} {:>6}\n", "fabric and traffic", "packets", "CPU s",
             "TLP/pkt", "Mpkt/s", "MTLP/s", "Mevents/s", "lost", "wrong");
  for (const Scenario& scenario : scenarios) fabric(scenario, packets);
  fmt::print("\nevent queue, ns an event    {:>10} {:>22}\n", "4-ary heap", "std::priority_queue");
  for (const std::size_t pending : {16U, 128U, 1024U, 16384U}) {
    fmt::print("{:>8} pending            {:>10.1f} {:>22.1f}\n", pending, hold_ours(pending, 4'000'000),
               hold_standard(pending, 4'000'000));
  }
  return 0;
}
