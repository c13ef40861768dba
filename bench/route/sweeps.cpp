// SPDX-License-Identifier: Apache-2.0
// Sweeps of buffer size, number of buffers and number of routing threads (paper 001, figure 7). Each changes one of
// them from its default.
#include <fmt/core.h>

#include "all_to_all.hpp"
#include "experiments.hpp"
#include "route/ring.hpp"

namespace wherry::bench {
namespace {

using route::Placement;

struct Point {
  Placement placement;
  const char* parameter;
  std::uint32_t value;
  bool is_default;
};

constexpr std::uint32_t kNodes = 2, kRanksPerNode = 4;  // a rank for each of four routing threads

std::vector<Point> points() {
  std::vector<Point> all;
  const route::RingShape usual;
  for (const Placement placement : {Placement::kInline, Placement::kHost}) {
    for (const std::uint32_t kib : {2U, 4U, 8U, 16U, 32U, 64U, 128U})
      all.push_back({placement, "buffer_bytes", kib << 10, kib << 10 == usual.buffer_bytes});
    for (const std::uint32_t buffers : {2U, 4U, 8U, 16U, 32U})
      all.push_back({placement, "buffers", buffers, buffers == usual.buffers});
  }
  for (const std::uint32_t threads : {1U, 2U, 4U})
    all.push_back({Placement::kHost, "routing_threads", threads, threads == 1});
  return all;
}

JobOptions job_at(const RouteBench& bench, const Point& point) {
  JobOptions job = bench.two_nodes(point.placement);
  job.nodes = kNodes;
  job.ranks_per_node = kRanksPerNode;
  const std::string_view parameter = point.parameter;
  if (parameter == "buffer_bytes") job.route.buffer_bytes = point.value;
  if (parameter == "buffers") job.route.buffers = point.value;
  if (parameter == "routing_threads") job.routing_threads = point.value;
  return job;
}

}  // namespace

void run_sweeps(RouteBench& bench) {
  const std::vector<Point> all = points();
  const std::size_t messages = bench.quick() ? 200'000 : 500'000;
  struct Samples {
    std::vector<double> mmps, transfer, blocked, agent_transfer, agent_blocked;
  };
  std::vector<Samples> samples(all.size());
  const int rounds = bench.quick() ? 3 : bench.rounds();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool agents = all[i].placement != Placement::kInline;
      std::vector<AgentCounts> counts;
      const auto results = run_job(
          job_at(bench, all[i]),
          [&](route::Runtime& runtime, const SharedMemory&) { return all_to_all(runtime, messages, 3).pack(); },
          agents ? &counts : nullptr);
      const AllToAll first = AllToAll::unpack(results.front());
      samples[i].mmps.push_back(kNodes * kRanksPerNode * static_cast<double>(messages) * 1e-6 / first.seconds);
      double transfer = 0, blocked = 0;
      for (const Results& one : results) {
        transfer += AllToAll::unpack(one).transfer_bytes / static_cast<double>(results.size());
        blocked += AllToAll::unpack(one).blocked_share / static_cast<double>(results.size());
      }
      samples[i].transfer.push_back(transfer);
      samples[i].blocked.push_back(blocked);
      if (!agents) continue;
      samples[i].agent_transfer.push_back(average_transfer(counts));
      samples[i].agent_blocked.push_back(blocked_per_transfer(counts));
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool agents = all[i].placement != Placement::kInline;
    Row row{{"placement", to_string(all[i].placement)},
            {"parameter", all[i].parameter},
            {"value", all[i].value},
            {"is_default", all[i].is_default},
            {"mmps", median(samples[i].mmps)},
            {"rank_transfer_bytes", median(samples[i].transfer)},
            {"blocked_share", median(samples[i].blocked)},
            {"agent_transfer_bytes", nullptr},
            {"agent_blocked_per_transfer", nullptr}};
    std::string text =
        fmt::format("sweep, {}, {} {}{}: {:.0f} M messages/s, transfers of {:.0f} bytes", to_string(all[i].placement),
                    all[i].parameter, all[i].value, all[i].is_default ? " (default)" : "", median(samples[i].mmps),
                    median(samples[i].transfer));
    if (agents) {
      row["agent_transfer_bytes"] = median(samples[i].agent_transfer);
      row["agent_blocked_per_transfer"] = median(samples[i].agent_blocked);
      text += fmt::format(" (agents: {:.0f})", median(samples[i].agent_transfer));
    }
    bench.row("sweeps", std::move(row));
    bench.progress(text);
  }
}

}  // namespace wherry::bench
