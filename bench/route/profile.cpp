// SPDX-License-Identifier: Apache-2.0
// Messages by size: compares the buffers of --set with the default ones, in alternating jobs of one run.
#include <fmt/core.h>

#include <charconv>
#include <stdexcept>

#include "experiments.hpp"
#include "message_stream.hpp"
#include "route/ring.hpp"

namespace wherry::bench {
namespace {

using route::Placement;
using route::Runtime;

constexpr std::size_t kProfileSizes[] = {8, 64, 1 << 10, 16 << 10, 256 << 10};

StreamEffort profile_effort(bool quick) {
  return quick ? StreamEffort{std::size_t{8} << 20, 250'000} : StreamEffort{std::size_t{48} << 20, 1'500'000};
}

Results seconds_by_size(Runtime& runtime, bool quick) {
  Results results;
  for (const OfSize& of : stream_sizes(runtime, kProfileSizes, profile_effort(quick))) results.push_back(of.seconds);
  return results;
}

/// "route.buffer_bytes=65536".
route::Options options_of(const std::vector<std::string>& words) {
  route::Options options;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), text = equals == std::string::npos ? "" : word.substr(equals + 1);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
        (key != "route.buffer_bytes" && key != "route.buffers"))
      throw std::runtime_error("--set " + word + ": want route.buffer_bytes=NUMBER or route.buffers=NUMBER");
    (key == "route.buffers" ? options.buffers : options.buffer_bytes) = number;
  }
  return options;
}

}  // namespace

void run_profile(RouteBench& bench) {
  const route::Options advised = options_of(bench.options().set);
  for (const Placement placement : {Placement::kInline, Placement::kHost}) {
    // Environment variables must not change the defaults.
    JobOptions job = bench.two_nodes(placement);
    job.route.buffer_bytes = route::RingShape{}.buffer_bytes;
    job.route.buffers = route::RingShape{}.buffers;
    JobOptions other = job;
    if (advised.buffer_bytes) other.route.buffer_bytes = advised.buffer_bytes;
    if (advised.buffers) other.route.buffers = advised.buffers;
    const auto run = [&](const JobOptions& of) {
      return run_job(of,
                     [&](Runtime& runtime, const SharedMemory&) { return seconds_by_size(runtime, bench.quick()); })[0];
    };
    std::vector<std::vector<double>> usual(std::size(kProfileSizes)), with(std::size(kProfileSizes)),
        ratios(std::size(kProfileSizes));
    for (int round = 0; round < bench.rounds(); ++round) {
      check_interrupted();
      const bool first = round % 2 == 0;  // the one, the other, the other, the one: a drift meets both alike
      std::vector<Results> seconds;
      for (const bool mine : {first, !first, !first, first}) seconds.push_back(run(mine ? other : job));
      for (std::size_t i = 0; i < std::size(kProfileSizes); ++i) {
        const double outer = seconds[0][i] + seconds[3][i], inner = seconds[1][i] + seconds[2][i];
        const double ours = (first ? outer : inner) / 2, theirs = (first ? inner : outer) / 2;
        with[i].push_back(ours);
        usual[i].push_back(theirs);
        ratios[i].push_back(theirs / ours);
      }
    }
    for (std::size_t i = 0; i < std::size(kProfileSizes); ++i) {
      const double messages = 2.0 * static_cast<double>(profile_effort(bench.quick()).messages(kProfileSizes[i]));
      const Summary ratio = summarize(ratios[i]);
      bench.row("profile", {{"placement", to_string(placement)},
                            {"size", kProfileSizes[i]},
                            {"default_mmps", messages * 1e-6 / median(usual[i])},
                            {"profile_mmps", messages * 1e-6 / median(with[i])},
                            {"ratio", ratio.median},
                            {"ratio_min", ratio.min},
                            {"ratio_max", ratio.max},
                            {"ratios", ratios[i]}});
      bench.progress(fmt::format("profile, {}, {} bytes: {:.3f} times as fast as with the defaults [{:.3f}, {:.3f}]",
                                 to_string(placement), kProfileSizes[i], ratio.median, ratio.min, ratio.max));
    }
  }
}

}  // namespace wherry::bench
