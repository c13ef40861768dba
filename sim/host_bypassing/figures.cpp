// SPDX-License-Identifier: Apache-2.0
#include "sim/host_bypassing/figures.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/host_bypassing/software.hpp"

namespace wherry::sim::host_bypassing {
namespace {

using nlohmann::json;

constexpr double kLineGbps = 10;
constexpr std::uint32_t kLine = 1000;  // per mille
/// Enough frames to fill the NIC's 512 KiB if one packet in a hundred is too many.
constexpr std::uint64_t kFill = 120'000;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
/// The share of packets that went in and did not come out: lost, or still inside.
double lost_percent(const Interval& interval) {
  return interval.received <= interval.out ? 0 : 100 * share(interval.received - interval.out, interval.received);
}
std::uint32_t load_of(double gbps) { return static_cast<std::uint32_t>(std::lround(1000 * gbps / rate_gbps(kLine))); }

json slice_row(const Slice& slice) {
  return {{"frames", slice.frames},
          {"mean_us", slice.mean_us()},
          {"deviation_ns", slice.deviation_ns()},
          {"min_us", slice.least_us},
          {"max_us", slice.most_us}};
}

/// Adds rows for slices, with times in microseconds since the first. The last slice is incomplete and left out.
void add_slices(json& rows, const json& what, const std::vector<Slice>& slices, pcie::Time slice) {
  for (std::size_t i = 0; i + 1 < slices.size(); ++i) {
    if (slices[i].frames == 0) continue;
    json row = what;
    row["at_us"] = static_cast<double>(static_cast<pcie::Time>(i) * slice) / pcie::kMicrosecond;
    row.update(json{{"mean_us", slices[i].mean_us()},
                    {"min_us", slices[i].least_us},
                    {"max_us", slices[i].most_us},
                    {"reordered", slices[i].reordered}});
    rows.push_back(row);
  }
}

struct Point {
  double gbps, latency_us, nic_loss, loss;
  std::uint64_t frames;
};
json point_row(const char* system, const char* topology, const char* reading, const Point& point) {
  return {{"system", system},           {"topology", topology},           {"reading", reading},
          {"rate_gbps", point.gbps},    {"latency_us", point.latency_us}, {"nic_loss_percent", point.nic_loss},
          {"loss_percent", point.loss}, {"frames", point.frames}};
}

std::vector<double> points_of(const Effort& effort, std::vector<double> all, std::vector<double> few) {
  return effort.quick ? few : all;
}

}  // namespace

const char* name_of(Reading reading) noexcept { return reading == Reading::kPlain ? "any_fetches" : "one_fetch"; }

TestbedOptions with(Reading reading, TestbedOptions options) {
  if (reading == Reading::kPlain) return options;
  options.nic.tx_fetches = 1;
  options.nic.nic.rx_ns = kOneFetchRxNs;
  options.nic.nic.tx_ns = kOneFetchTxNs;
  options.core.joined = true;
  return options;
}

double rate_gbps(std::uint32_t load_per_mille) noexcept {
  const auto bytes = static_cast<double>(nic::padded(kPacket));
  return kLineGbps * load_per_mille / 1000 * bytes / (bytes + nic::kPreambleBytes + nic::kGapBytes);
}

json constants() {
  const nic::NicOptions nic;
  const SoftwareOptions software;
  const auto row = [](const char* name, double value, const char* unit, const char* mark, const char* source) {
    return json{{"name", name}, {"value", value}, {"unit", unit}, {"mark", mark}, {"source", source}};
  };
  const auto ns = [](pcie::Time time) { return static_cast<double>(time) / pcie::kNanosecond; };
  return json::array(
      {row("intel_request_ns", ns(pcie::intel_xeon_4110().peer_interval), "ns", "fitted",
           "8.42 Gbit/s, first loss (IV-C), 15 requests a packet"),
       row("reads_outstanding", nic.nic.reads_outstanding, "", "fitted",
           "15.79 % loss: descriptor reads do not merge under overload; chosen after that figure was seen"),
       row("rx_ns", nic.nic.rx_ns, "ns", "fitted", "3.37 us one way (IV-B), by arithmetic"),
       row("tx_ns", nic.nic.tx_ns, "ns", "fitted", "4.56 us one way (IV-B), by arithmetic"),
       row("one_fetch_rx_ns", kOneFetchRxNs, "ns", "fitted", "3.37 us one way (IV-B), in this testbed"),
       row("one_fetch_tx_ns", kOneFetchTxNs, "ns", "fitted", "4.56 us one way (IV-B), in this testbed"),
       row("one_fetch", 1, "", "chosen",
           "no source; chosen after 9.43 us (batches of 8) and 6.3 us (Intel, low rate) were seen"),
       row("amd_crossing_ns", ns(pcie::amd_epyc_7402().peer_latency - pcie::intel_xeon_4110().peer_latency), "ns",
           "fitted", "13.89 - 13.12 us over six crossings (Table I)"),
       row("propagation_ns", ns(pcie::LinkOptions{}.propagation), "ns", "fitted", "350 ns one way (research)"),
       row("switch_ns", ns(pcie::SwitchOptions{}.latency), "ns", "given", "PEX 8747 product brief"),
       row("ring", CoreOptions{}.descriptors, "descriptors", "given", "IV"),
       row("software_ring", software.descriptors, "descriptors", "given", "IV"),
       row("software_packet_ns", ns(software.per_packet), "ns", "chosen", "about 125 cycles at 2.1 GHz"),
       row("software_burst_ns", ns(software.per_burst), "ns", "chosen", ""),
       row("software_poll_ns", ns(software.poll), "ns", "chosen", ""),
       row("software_burst", software.burst, "packets", "chosen", "what DPDK's examples take at once"),
       row("fpga_packet_ns", ns(software.per_packet_fpga), "ns", "fitted",
           "first loss between 2.35 and 2.4 Gbit/s (IV-C)"),
       row("memory_ns", ns(pcie::RootOptions{}.memory_latency), "ns", "chosen", "pcie-bench, SIGCOMM 2018"),
       row("tcp_payload", 1448, "bytes", "given", "of 1514: Ethernet 14, IP 20, TCP 20, timestamps 12")});
}

void latency(const Effort& effort, json& document) {
  const std::uint64_t warm = 1000, frames = effort.quick ? 3000 : 200'000;
  const pcie::Time slice = (effort.quick ? 50 : 1000) * pcie::kMicrosecond;
  json& rows = document["latency"] = json::array();
  json& over = document["latency_over_time"] = json::array();
  const auto add = [&](const char* scenario, Reading reading, const Meter& meter) {
    json row{{"scenario", scenario}, {"reading", name_of(reading)}};
    add_slices(over, row, meter.slices(), slice);
    row.update(slice_row(meter.total()));
    rows.push_back(row);
    effort.say(fmt::format("latency, {}, {}: {:.2f} us, deviation {:.0f} ns", scenario, name_of(reading),
                           meter.total().mean_us(), meter.total().deviation_ns()));
  };
  for (const Reading reading : {Reading::kPlain, Reading::kOneFetch}) {
    for (const Scenario scenario : {Scenario::kBoth, Scenario::kReceive, Scenario::kTransmit}) {
      Testbed bed(with(reading, {.scenario = scenario, .slice = slice}));
      bed.run(warm, frames, kPacket, kLine);
      add(scenario == Scenario::kBoth      ? "both"
          : scenario == Scenario::kReceive ? "receive"
                                           : "transmit",
          reading, bed.meter);
    }
    SoftwareTestbed software({}, with(reading, {}).nic, slice);
    software.run(warm, frames, kPacket, kLine);
    add("software", reading, software.meter());
  }
}

void rates(const Effort& effort, json& document) {
  json& rows = document["rates"] = json::array();
  const auto hardware = [&](Topology topology, Reading reading, const std::vector<double>& at) {
    for (const double gbps : at) {
      const bool near = topology == Topology::kIntel && gbps > 8.2;
      Testbed bed(with(reading, {.topology = topology}));
      const Interval found = bed.run(near && !effort.quick ? kFill
                                     : near                ? 20'000
                                                           : 1000,
                                     effort.quick ? 2000
                                     : near       ? 60'000
                                                  : 20'000,
                                     kPacket, load_of(gbps));
      rows.push_back(point_row("host_bypassing", name_of(topology), name_of(reading),
                               {rate_gbps(load_of(gbps)), bed.meter.total().mean_us(), found.loss_percent(),
                                near ? lost_percent(found) : found.loss_percent(), found.received}));
    }
    effort.say(fmt::format("rates, {}, {}: {} points, {:.2f} to {:.2f} us", name_of(topology), name_of(reading),
                           at.size(), rows[rows.size() - at.size()]["latency_us"].get<double>(),
                           rows.back()["latency_us"].get<double>()));
  };
  const double line = rate_gbps(kLine);
  const std::vector<double> sweep = points_of(
      effort, {0.1, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, line}, {0.1, 3, 7, line});
  for (const Reading reading : {Reading::kPlain, Reading::kOneFetch}) {
    hardware(Topology::kSwitch, reading, sweep);
    hardware(Topology::kAmd, reading, sweep);
  }
  std::vector<double> calm;  // where the reading holds: without a queue at the root
  std::ranges::copy_if(sweep, std::back_inserter(calm), [](double gbps) { return gbps <= 7; });
  hardware(Topology::kIntel, Reading::kOneFetch, calm);
  hardware(Topology::kIntel, Reading::kPlain,
           points_of(effort, {0.1, 1, 2, 3, 4, 5, 6, 6.5, 7, 7.25, 7.5, 7.75, 8, 8.2, 8.35, 8.5, 8.65, 8.8, 9, line},
                     {0.1, 7, 8.3, line}));
  const auto software = [&](bool fpga, const std::vector<double>& at) {
    const char* system = fpga ? "dpdk_fpga" : "dpdk";
    for (const double gbps : at) {
      SoftwareTestbed bed({.fpga = fpga}, with(Reading::kOneFetch, {}).nic);
      const bool near = fpga && gbps > 2.2;
      const Interval found = bed.run(near && !effort.quick ? kFill
                                     : near                ? 6000
                                                           : 1000,
                                     effort.quick ? 2000
                                     : near       ? 40'000
                                                  : 20'000,
                                     kPacket, load_of(gbps));
      rows.push_back(point_row(system, "host", name_of(Reading::kOneFetch),
                               {rate_gbps(load_of(gbps)), bed.meter().total().mean_us(), found.loss_percent(),
                                near ? lost_percent(found) : found.loss_percent(), found.received}));
    }
    effort.say(fmt::format("rates, {}: {} points, {:.2f} to {:.2f} us", system, at.size(),
                           rows[rows.size() - at.size()]["latency_us"].get<double>(),
                           rows.back()["latency_us"].get<double>()));
  };
  software(false, sweep);
  software(true, points_of(effort, {0.1, 0.25, 0.5,  0.75, 1,   1.25, 1.5, 1.75, 2, 2.1,
                                    2.2, 2.3,  2.35, 2.4,  2.5, 3,    4,   6,    8, line},
                           {0.1, 1, 2, 2.35, 3, line}));
}

void overload(const Effort& effort, json& document) {
  json& rows = document["overload"] = json::array();
  json& over = document["overload_over_time"] = json::array();
  const pcie::Time slice = (effort.quick ? 200 : 1000) * pcie::kMicrosecond;
  for (const Topology topology : {Topology::kIntel, Topology::kSwitch}) {
    for (const bool writeback : {false, true}) {
      Testbed bed(with(Reading::kPlain, {.topology = topology, .core = {.writeback = writeback}, .slice = slice}));
      const std::uint64_t warm = effort.quick ? 22'000 : 60'000;
      const Interval found = bed.run(warm, effort.quick ? 10'000 : 200'000, kPacket, kLine);
      const json what{{"topology", name_of(topology)}, {"writeback", writeback}};
      add_slices(over, what, bed.meter.slices(), slice);
      json row = what;
      row["loss_percent"] = found.loss_percent();
      row["end_to_end_loss_percent"] = lost_percent(found);
      row["reordered_percent"] = 100 * share(found.reordered, found.out);
      row["requests_per_packet"] = share(found.requests, found.out);
      row["latency_us"] = bed.meter.total().mean_us();
      row["frames"] = found.received;
      rows.push_back(row);
      effort.say(fmt::format("overload, {}, write-back {}: {:.2f} % lost, {:.3g} % out of order, {:.1f} us",
                             name_of(topology), writeback ? "on" : "off", found.loss_percent(),
                             row["reordered_percent"].get<double>(), bed.meter.total().mean_us()));
    }
  }
}

void tcp(const Effort& effort, json& document) {
  json& rows = document["tcp"] = json::array();
  constexpr std::uint32_t kPayload = kLongest - 14 - 20 - 20 - 12;
  for (const Topology topology : {Topology::kIntel, Topology::kAmd, Topology::kSwitch}) {
    const std::uint64_t frames = effort.quick ? 2000 : 50'000;
    Testbed bed(with(Reading::kOneFetch, {.topology = topology}));
    const Interval found = bed.run(1000, frames, kLongest, kLine);
    const auto seconds =
        static_cast<double>(static_cast<pcie::Time>(frames) * nic::slot_time(kLongest, 10'000)) / pcie::kSecond;
    const double goodput = static_cast<double>(found.out) * kPayload * 8 / seconds / 1e9;
    rows.push_back({{"topology", name_of(topology)},
                    {"goodput_gbps", goodput},
                    {"latency_us", bed.meter.total().mean_us()},
                    {"loss_percent", found.loss_percent()},
                    {"frames", found.received}});
    effort.say(fmt::format("tcp, {}: {:.2f} Gbit/s, {:.2f} us, {:.2f} % lost", name_of(topology), goodput,
                           bed.meter.total().mean_us(), found.loss_percent()));
  }
}

void batching(const Effort& effort, json& document) {
  json& rows = document["batching"] = json::array();
  struct Row {
    std::uint32_t batch;
    pcie::Time timeout;
  };
  for (const Reading reading : {Reading::kPlain, Reading::kOneFetch}) {
    for (const Row& row : {Row{1, 0}, Row{8, 2500}, Row{16, 2500}}) {
      Testbed bed(with(reading, {.core = {.batch = row.batch, .timeout = row.timeout * pcie::kNanosecond}}));
      bed.run(2000, effort.quick ? 10'000 : 200'000, kPacket, kLine);
      bed.queue.run();  // each packet that went in is out: all that belongs to it is counted
      const CoreCounters& c = bed.core.counters();
      rows.push_back({{"reading", name_of(reading)},
                      {"batch", row.batch},
                      {"timeout_ns", row.timeout},
                      {"latency_us", bed.meter.total().mean_us()},
                      {"deviation_ns", bed.meter.total().deviation_ns()},
                      {"outgoing", share(c.sent_payload + c.sent_tx_descriptors + c.sent_tails, c.packets_in)},
                      {"ingoing", share(c.received_payload + c.received_writebacks, c.packets_in)},
                      {"packets_per_tail", share(2 * c.packets_in, c.tail_writes)},
                      {"frames", bed.meter.total().frames}});
      effort.say(fmt::format("batching, {}, {}: {:.2f} us, {:.2f} bytes out, {:.2f} in", name_of(reading), row.batch,
                             bed.meter.total().mean_us(), rows.back()["outgoing"].get<double>(),
                             rows.back()["ingoing"].get<double>()));
    }
  }
}

}  // namespace wherry::sim::host_bypassing
