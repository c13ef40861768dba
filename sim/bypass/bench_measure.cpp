// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "bypass/generated/registers.hpp"
#include "sim/bypass/bench.hpp"
#include "sim/bypass/echo.hpp"
#include "sim/bypass/stream_functions.hpp"

namespace wherry::sim::bench {
namespace {

using pcie::Time;

constexpr double kPicosecondsASecond = 1e12;
constexpr Time kSettle = 20 * pcie::kMicrosecond;  ///< the NIC fetches its first descriptors
constexpr Time kStep = 20 * pcie::kMicrosecond;    ///< between looks at Ctrl-C
constexpr std::uint32_t kRxBatchAtReset = bypass::registers::kDoorbellsRxBatch.get(bypass::registers::kDoorbellsReset);
constexpr double kWarmUp = 0.2;  ///< share of the frames that are not measured

double seconds(Time time) { return static_cast<double>(time) / kPicosecondsASecond; }
double ratio(double a, double b) { return b == 0 ? 0 : a / b; }
std::string name_of(const pcie::LinkOptions& link) { return fmt::format("gen{}x{}", link.generation, link.lanes); }

/// All counters at one instant.
struct Snapshot {
  explicit Snapshot(const Rig& rig)
      : at(rig.queue.now()),
        out(rig.nic.counters().sent),
        requests(rig.fabric.counters().peer_requests),
        nic(rig.nic.counters()),
        port(rig.card_port->counters()),
        busy_in(rig.fabric.link_counters(rig.card_node, false).busy),
        busy_out(rig.fabric.link_counters(rig.card_node, true).busy) {}
  Time at;
  std::uint64_t out, requests;
  nic::NicCounters nic;
  pcie::PortCounters port;
  Time busy_in, busy_out;
};

Json latency_of(std::vector<Time> all) {
  if (all.empty()) return {{"mean", 0.0}, {"p50", 0.0}, {"p99", 0.0}, {"min", 0.0}, {"max", 0.0}, {"std", 0.0}};
  std::sort(all.begin(), all.end());
  const auto us = [](double time) { return time / pcie::kMicrosecond; };
  const auto at = [&](double share) {
    return us(static_cast<double>(all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))]));
  };
  const auto count = static_cast<double>(all.size());
  const double mean = std::accumulate(all.begin(), all.end(), 0.0) / count;
  double squares = 0;
  for (const Time one : all) squares += (static_cast<double>(one) - mean) * (static_cast<double>(one) - mean);
  return {{"mean", us(mean)}, {"p50", at(0.5)}, {"p99", at(0.99)},
          {"min", at(0)},     {"max", at(1)},   {"std", us(std::sqrt(squares / count))}};
}

template <std::size_t N>
Json drops_of(const std::array<std::uint64_t, N>& counts, const std::array<std::string_view, N>& names) {
  Json drops = Json::object();
  for (std::size_t i = 0; i < N; ++i)
    if (counts[i] != 0) drops[std::string(names[i])] = counts[i];
  return drops;
}

Json given_of(const Run& run, std::uint32_t frame) {
  const std::uint32_t offered = run.source_mbits != 0 ? run.source_mbits : run.rig.mbits;
  return {{"mbits", run.rig.mbits},
          {"bytes", run.bytes},
          {"frame_bytes", frame},
          {"wire_bytes", nic::padded(frame)},
          {"way", run.rig.in_place ? "in_place" : "stream"},
          {"topology", std::string(sim::name_of(run.rig.topology))},
          {"nic", std::string(run.rig.nic)},
          {"nic_prefetch", run.rig.nic_prefetch},
          {"nic_writeback", run.rig.nic_writeback},
          {"rx_batch", run.rig.rx_batch.value_or(kRxBatchAtReset)},
          {"nic_link", name_of(run.rig.nic_link)},
          {"card_link", name_of(run.rig.card_link)},
          {"frames", run.frames},
          {"offered_mbits", offered},
          {"load", run.load_per_mille / 1000.0},
          {"function_interval_ns", static_cast<double>(run.function_interval) / pcie::kNanosecond}};
}

}  // namespace

std::uint32_t frame_bytes(std::uint32_t bytes) noexcept {
  return bytes == 300 || bytes == 1514 ? bytes : bytes - nic::kFcsBytes;
}

LinkBound link_bound(const bypass::Personality& nic, std::uint32_t frame, const pcie::LinkOptions& link) {
  // Research, section 3, "Budget": headers of 16 bytes (addresses beyond 4 GiB; completions 12), framing 8, MPS 256,
  // MRRS 512. A write-back covers 4 receive descriptors, a descriptor read 8, a tail 16 packets. Without DLLPs.
  constexpr double kRequest = 16 + 8, kCompletion = 12 + 8, kTail = 12 + 8 + 4;
  constexpr double kWritebacks = 4, kFetched = 8, kTold = 16, kMps = 256, kMrrs = 512;
  const double bytes = frame, writes = std::ceil(bytes / kMps), reads = std::ceil(bytes / kMrrs);
  const double rx = nic.rx_descriptor_bytes, tx = nic.tx_descriptor_bytes;
  const double in =
      bytes + writes * kRequest + rx + kRequest / kWritebacks + reads * kRequest + 2 * kRequest / kFetched;
  const double out = bytes + writes * kCompletion + rx + kCompletion * std::ceil(rx * kFetched / kMps) / kFetched + tx +
                     kCompletion / kFetched + 2 * kTail / kTold;
  const double rate = kPicosecondsASecond / (static_cast<double>(pcie::byte_time(link)) / (1 << 20));
  return {.to_card = rate / in, .from_card = rate / out};
}

Json core_shape() {
  pcie::EventQueue queue;
  Rig rig({}, nullptr, nullptr);
  const bypass::CardShape& shape = rig.host().shape();
  const std::uint32_t capability = rig.card.read(bypass::registers::kCapabilityOffset);
  return {{"clock_mhz", 250},
          {"queue_pairs", shape.queue_pairs},
          {"rx_entries", shape.rx_entries},
          {"tx_entries", shape.tx_entries},
          {"pack_bytes", kLineBytes << bypass::registers::kCapabilityPackBits.get(capability)}};
}

Json measure(const Run& run, const Settings& settings) {
  const std::clock_t begin = std::clock();
  InPlaceEcho in_place;
  EchoStream stream(run.function_interval);
  RigOptions options = run.rig;
  options.seed = settings.seed;
  if (settings.tx_credits) options.tx_credits = settings.tx_credits;
  if (settings.rx_batch) options.rx_batch = settings.rx_batch;
  Rig rig(options, &in_place, options.in_place ? nullptr : &stream);
  if (!rig.ready) {
    fmt::print(stderr, "{}\n", rig.ready.message());
    return nullptr;
  }
  const auto stopped = [&] { return settings.interrupted != nullptr && *settings.interrupted; };
  rig.queue.run(rig.queue.now() + kSettle);
  const Time start = rig.queue.now();
  const std::uint32_t frame = frame_bytes(run.bytes);
  const std::uint32_t offered = run.source_mbits != 0 ? run.source_mbits : options.mbits;
  const nic::Source source(
      rig.queue, rig.meter,
      {.mbits = offered, .frames = run.frames, .sizes = {frame}, .load_per_mille = run.load_per_mille, .start = start});
  rig.meter.warm_up = static_cast<std::uint64_t>(kWarmUp * static_cast<double>(run.frames));
  // The warm-up ends at a fixed time, because the losses by overload are not known in advance.
  const Time slot = nic::slot_time(frame, offered) * 1000 / run.load_per_mille;
  const Time warm = start + static_cast<Time>(kWarmUp * static_cast<double>(run.frames)) * slot;
  while (rig.queue.now() < warm && !stopped()) rig.queue.run(std::min(warm, rig.queue.now() + kStep));
  rig.meter.warm_up = rig.meter.checker().frames;
  const Snapshot before(rig);
  const Time end = start + static_cast<Time>(run.frames) * slot;
  while (rig.queue.now() < end && !stopped()) rig.queue.run(std::min(end, rig.queue.now() + kStep));
  const Snapshot after(rig);
  const double gaps = static_cast<double>(rig.meter.measured_out()) - 1;
  const double rate = gaps <= 0 ? 0 : gaps / seconds(rig.meter.last_out() - rig.meter.first_out());
  const std::vector<Time> latencies = rig.meter.latencies();
  while (rig.queue.pending() != 0 && !stopped()) rig.queue.run(rig.queue.now() + kStep);
  if (stopped()) return nullptr;

  Json core = Json::object();
  if (const auto counters = rig.host().counters())
    for (const bypass::Counter& one : *counters) core[std::string(one.name)] = one.value;
  const nic::NicCounters& n = rig.nic.counters();
  nic::Checker& checker = rig.meter.checker();
  const std::uint64_t counted = n.rx_dropped_all() + n.tx_dropped_all() + core["rx_error"].get<std::uint64_t>() +
                                core["rx_size"].get<std::uint64_t>() + core["verdicts_drop"].get<std::uint64_t>() +
                                core["tx_size"].get<std::uint64_t>() + core["tx_refused"].get<std::uint64_t>();
  const double line = 1 / seconds(nic::slot_time(frame, options.mbits));
  const auto packets = static_cast<double>(after.out - before.out);
  const double span = seconds(after.at - before.at);
  const double busy_in = seconds(after.busy_in - before.busy_in), busy_out = seconds(after.busy_out - before.busy_out);
  const double byte = static_cast<double>(pcie::byte_time(options.card_link)) / (1 << 20) / kPicosecondsASecond;
  const double busiest = std::max(busy_in, busy_out) / span;
  const double budget = link_bound(rig.nic.options().nic, frame, options.card_link).least();
  // The bottleneck: the sending port, the function, or the root's request server.
  double limit = line;
  std::string narrowest = "port";
  if (run.function_interval != 0 && kPicosecondsASecond / static_cast<double>(run.function_interval) < limit) {
    limit = kPicosecondsASecond / static_cast<double>(run.function_interval);
    narrowest = "function";
  }
  const double requests = ratio(static_cast<double>(after.requests - before.requests), packets);
  const pcie::Time interval = options.topology == Topology::kIntel ? pcie::intel_xeon_4110().peer_interval : 0;
  if (interval != 0 && requests != 0 && kPicosecondsASecond / (static_cast<double>(interval) * requests) < limit) {
    limit = kPicosecondsASecond / (static_cast<double>(interval) * requests);
    narrowest = "root";
  }
  const auto each = [packets](auto now, auto then) { return ratio(static_cast<double>(now - then), packets); };
  return {{"name", run.name},
          {"group", run.group},
          {"given", given_of(run, frame)},
          {"frames",
           {{"in", source.sent()},
            {"out", checker.frames},
            {"wrong", checker.wrong},
            {"reordered", checker.reordered},
            {"missing", checker.missing},
            {"nic_rx_dropped", drops_of(n.rx_dropped, nic::kRxDropNames)},
            {"nic_tx_dropped", drops_of(n.tx_dropped, nic::kTxDropNames)},
            {"lost_uncounted", static_cast<std::int64_t>(source.sent() - checker.frames - counted)}}},
          {"rate",
           {{"packets_per_s", rate},
            {"line_packets_per_s", line},
            {"share_of_line", rate / line},
            {"link_packets_per_s", ratio(rate, busiest)},
            {"share_of_link", busiest},
            {"budget_packets_per_s", budget},
            {"share_of_budget", rate / budget},
            {"limit_packets_per_s", limit},
            {"share_of_limit", rate / limit},
            {"limited_by", narrowest}}},
          {"latency_us", latency_of(latencies)},
          {"per_packet",
           {{"tails", each(after.nic.rx_tails + after.nic.tx_tails, before.nic.rx_tails + before.nic.tx_tails)},
            {"rx_tails", each(after.nic.rx_tails, before.nic.rx_tails)},
            {"tx_tails", each(after.nic.tx_tails, before.nic.tx_tails)},
            {"rx_fetches", each(after.nic.rx_fetches, before.nic.rx_fetches)},
            {"tx_fetches", each(after.nic.tx_fetches, before.nic.tx_fetches)},
            {"requests", each(after.requests, before.requests)},
            {"card_bytes_in", each(after.port.write_bytes_received, before.port.write_bytes_received)},
            {"card_bytes_out", each(after.port.write_bytes_sent + after.port.completion_bytes_sent,
                                    before.port.write_bytes_sent + before.port.completion_bytes_sent)},
            {"link_bytes_in", ratio(busy_in / byte, packets)},
            {"link_bytes_out", ratio(busy_out / byte, packets)},
            {"flow_control_bytes",
             each((after.nic.tx_writebacks * bypass::kDescriptorBytes) + after.nic.head_writebacks * 4,
                  (before.nic.tx_writebacks * bypass::kDescriptorBytes) + before.nic.head_writebacks * 4)}}},
          {"core", core},
          {"simulated_us", static_cast<double>(rig.queue.now()) / pcie::kMicrosecond},
          {"cycles", rig.card.counters().cycles},
          {"cpu_s", static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC}};
}

}  // namespace wherry::sim::bench
