// SPDX-License-Identifier: Apache-2.0
#include "histogram/histogram.hpp"

#include "common/random.hpp"
#include "common/together.hpp"

namespace wherry::apps {
namespace {

/// An update's rank and index, in one word. The list of updates is read once, and the counters need the cache.
struct Target {
  std::uint64_t word;
  static Target of(Distribution::Home home) noexcept { return {std::uint64_t{home.local} << 24 | home.rank}; }
  [[nodiscard]] Rank rank() const noexcept { return static_cast<Rank>(word & 0xffffff); }
  [[nodiscard]] std::uint64_t counter() const noexcept { return word >> 24; }
};
static_assert(route::kMaxRanks <= Rank{1} << 24);

/// Update u of the whole job increments counter splitmix(seed, u), scaled to the number of counters.
HugeVector<Target> targets_of(const HistogramOptions& options, const Distribution& counters, Share updates) {
  HugeVector<Target> targets;
  targets.reserve(updates.last - updates.first);
  for (std::uint64_t u = updates.first; u < updates.last; ++u)
    targets.push_back(Target::of(counters.home(below(splitmix(options.seed, u), options.counters))));
  return targets;
}

}  // namespace

Result<Histogram> run(Runtime& runtime, const HistogramOptions& options) {
  const Rank rank = runtime.rank(), ranks = runtime.ranks();
  const Distribution counters(options.distribution, options.counters, ranks);
  const auto targets = targets_of(options, counters, Share::of(options.updates, rank, ranks));
  Histogram histogram;
  histogram.counts.resize(counters.count(rank));
  std::uint64_t* const counts = histogram.counts.data();

  const auto count =
      runtime.on<std::uint64_t>([counts](const std::uint64_t& counter) { ++counts[counter]; },
                                [counts](const std::uint64_t& counter) { __builtin_prefetch(counts + counter, 1); });
  if (Status ready = barrier(runtime); !ready) return ready;
  const Stopwatch watch;
  for (const Target target : targets) {
    if (!deliver(runtime, target.rank(), count, target.counter())) return runtime.status();
  }
  if (Status done = runtime.quiesce(); !done) return done;
  histogram.seconds = watch.seconds();
  return histogram;
}

}  // namespace wherry::apps
