// SPDX-License-Identifier: Apache-2.0
// Random increments of counters that are divided between two inline ranks (bale's histo). Its turns alternate with
// those of the hand-written exchange in the same processes, and with peers that the caller names.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "base/random.hpp"
#include "exchange.hpp"
#include "experiments.hpp"
#include "huge.hpp"
#include "turns.hpp"

namespace wherry::bench {
namespace {

using route::Runtime;

/// Returns for each turn: M updates/s of route, M updates/s of the exchange.
Results histogram(Runtime& runtime, const SharedMemory& shared, int lg, std::size_t updates, int turns) {
  auto& exchange = *reinterpret_cast<Exchange*>(shared.extra.data());
  const route::Rank me = runtime.rank();
  const std::span<std::uint64_t> table = huge_table((std::size_t{1} << lg) / 2);
  std::uint64_t* const counters = table.data();
  const std::span<std::uint64_t> targets = huge_table(std::size_t{1} << 20);
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = splitmix64(i + (std::uint64_t{me} << 32)) & ((std::uint64_t{1} << lg) - 1);
  const auto add =
      runtime.on<std::uint64_t>([counters](const std::uint64_t& i) { ++counters[i]; },
                                [counters](const std::uint64_t& i) { __builtin_prefetch(&counters[i], 1); });
  Results results;
  std::uint32_t round = 0;
  const std::size_t mask = targets.size() - 1;
  for (int turn = 0; turn < turns; ++turn) {
    double ours = 0, theirs = 0;
    for (int side = 0; side < 2; ++side) {
      if ((side + turn) % 2 == 0) {
        ours = seconds(runtime, [&] {
          for (std::size_t i = 0; i < updates; ++i) {
            const std::uint64_t target = targets[i & mask];
            send(runtime, static_cast<route::Rank>(target & 1), add, target >> 1);
          }
          quiesce(runtime);
        });
      } else {
        theirs = seconds(runtime, [&] { exchange_histogram(exchange, me, targets, updates, counters, ++round); });
      }
    }
    results.push_back(2e-6 * static_cast<double>(updates) / ours);
    results.push_back(2e-6 * static_cast<double>(updates) / theirs);
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t count : table) sum += count;
  const auto all = runtime.reduce(sum);
  if (!all || *all != 4 * updates * static_cast<std::uint64_t>(turns))
    throw std::runtime_error("some updates were lost or made twice");
  return results;
}

/// Runs a peer's `command`; returns "mups" of its last line.
double run_peer(std::string command, int lg, std::size_t updates) {
  const auto replace = [&](std::string_view what, const std::string& by) {
    for (std::size_t at; (at = command.find(what)) != std::string::npos;) command.replace(at, what.size(), by);
  };
  replace("{lg}", std::to_string(lg));
  replace("{n}", std::to_string(updates));
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string line, last;
  for (int c; (c = std::fgetc(pipe)) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    if (!line.empty()) last = line;
    line.clear();
  }
  if (!line.empty()) last = line;
  const int status = pclose(pipe);
  const auto said = nlohmann::json::parse(last, nullptr, false);
  if (status != 0 || !said.is_object() || !said.contains("mups"))
    throw std::runtime_error(
        fmt::format("'{}' ended with status {} and '{}': want a last line {{\"mups\": ...}}", command, status, last));
  return said["mups"].get<double>();
}

}  // namespace

void run_histogram(RouteBench& bench) {
  const std::size_t updates = bench.quick() ? 4'000'000 : 20'000'000;
  for (const int lg : {20, 24}) {
    JobOptions job = bench.pair();
    job.shared_bytes = sizeof(Exchange);
    std::vector<double> ours, limit, ratio;
    std::map<std::string, std::vector<double>> peers, over;
    for (int round = 0; round < bench.rounds(); ++round) {
      const auto all = run_job(job, [&](Runtime& runtime, const SharedMemory& shared) {
        return histogram(runtime, shared, lg, updates, 3);
      });
      // The first turn is a warm-up. Rank 0's times suffice, because both ranks begin and end together.
      for (std::size_t turn = 1; turn < 3; ++turn) {
        ours.push_back(all[0][2 * turn]);
        limit.push_back(all[0][2 * turn + 1]);
        ratio.push_back(ours.back() / limit.back());
      }
      for (const auto& [name, peer] : bench.options().peers) {
        check_interrupted();
        peers[name].push_back(run_peer(peer.command, lg, updates));
        over[name].push_back(ours.back() / peers[name].back());
      }
    }
    const Row row{
        {"counters_log2", lg}, {"updates", 2 * updates}, {"mups", median(ours)}, {"limit_mups", median(limit)}};
    std::string text =
        fmt::format("histogram 2^{}: {:.0f} M updates/s, hand-written {:.0f}", lg, median(ours), median(limit));
    for (const auto& [name, values] : peers) {
      const Summary ratios = summarize(over[name]);
      bench.row("peers", {{"peer", name},
                          {"counters_log2", lg},
                          {"mups", median(values)},
                          {"inline_mups", median(ours)},
                          {"ratio", ratios.median},
                          {"ratio_min", ratios.min},
                          {"ratio_max", ratios.max},
                          {"samples", values}});
      text += fmt::format(", {} {:.0f} ({:.1f} x)", name, median(values), ratios.median);
    }
    bench.row("histogram", row);
    bench.progress(text);
    bench.bar(fmt::format("histogram_inline_mups_{}", lg), ours, "", 0, "M updates/s");
    bench.bar(fmt::format("histogram_vs_limit_{}", lg), ratio, ">=", 0.7);
    for (const auto& [name, peer] : bench.options().peers) {
      const std::string bar = fmt::format("histogram_inline_vs_{}_{}", name, lg);
      bench.bar(bar, over[name], peer.target > 0 ? ">=" : "", peer.target);
    }
  }
}

}  // namespace wherry::bench
