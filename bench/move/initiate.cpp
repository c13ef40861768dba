// SPDX-License-Identifier: Apache-2.0
// Figure 2: the host's cost of one offload, by size.
#include <fmt/core.h>

#include <algorithm>

#include "arrow_steps.hpp"
#include "base/clock.hpp"
#include "sources.hpp"

namespace wherry::bench {

namespace {

constexpr std::size_t kSmall = 64 * kKiB;

struct Case {
  std::size_t size = 0;
  Source source;
  std::vector<Column> columns;
  Stream stream;
  std::vector<double> us;            ///< of every call
  std::vector<double> round_median;  ///< of one round's calls
  std::vector<double> idle_us;       ///< of calls right after the wait for a transfer of this size
};

std::size_t calls_a_round(std::size_t size, bool quick) {
  if (size >= 64 * kMiB) return quick ? 2 : 4;
  return quick ? 5 : 20;
}

/// One call, in microseconds. Then waits until the transfer is done, by ready() alone. So every call pays for the
/// clean-up of earlier tickets.
double offload(std::span<const Column> columns, Stream& stream) {
  const std::uint64_t start = now_ns();
  auto ticket = stream.post(columns);
  const std::uint64_t stop = now_ns();
  spin(require(std::move(ticket), "post"));
  return static_cast<double>(stop - start) * 1e-3;
}

/// One ticket in flight at a time. A core that only waits loses its caches within milliseconds (a virtual machine's
/// neighbours share them). So the cost of a call right after a long wait is reported separately. The timed calls are in
/// the steady state: small offloads of the same columns come first, once around the ring of tickets, so that all sizes
/// find the same caches.
void measure(Case& c, std::size_t calls) {
  const std::size_t ring = SessionOptions{}.max_tickets;
  std::vector<double> us;
  us.reserve(calls);
  for (std::size_t i = 0; i < calls; ++i) {
    const auto set_rows = [&](std::size_t bytes) {
      for (Column& column : c.columns)
        column.length = static_cast<std::int64_t>(bytes / sizeof(double) / c.columns.size());
    };
    set_rows(kSmall);
    for (std::size_t k = 0; k < ring; ++k) {
      const double small = offload(c.columns, c.stream);
      if (k == 0 && i > 0) c.idle_us.push_back(small);
    }
    set_rows(c.size);
    us.push_back(offload(c.columns, c.stream));
  }
  c.round_median.push_back(median(us));
  c.us.insert(c.us.end(), us.begin(), us.end());
}

Case make_case(Bench& bench, const std::vector<std::string>& names, std::size_t size) {
  Source source(bench, static_cast<int>(names.size()), size);
  std::vector<Column> columns(source.columns().begin(), source.columns().end());
  return {size,
          std::move(source),
          std::move(columns),
          bench.open(fmt::format("initiate-{}", size), Strategy::kIpcPageAligned, schema_of(names), size),
          {},
          {},
          {}};
}

}  // namespace

void run_initiate(Bench& bench) {
  const auto sizes = bench.sizes({64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB},
                                 {64 * kKiB, kMiB, 16 * kMiB, 64 * kMiB});
  for (const int columns : {1, 4, 16}) {
    bench.progress(fmt::format("initiate: {} columns", columns));
    const auto names = random_names(columns);
    std::vector<Case> cases;
    cases.reserve(sizes.size());
    for (const std::size_t size : sizes) {
      Case& c = cases.emplace_back(make_case(bench, names, size));
      for (int i = 0; i < 4; ++i) offload(c.source.columns(), c.stream);  // the destination's page faults
    }
    // The sizes alternate, so that a drift of the machine does not look like an effect of size.
    for (int round = 0; round < bench.rounds(); ++round) {
      for (Case& c : cases) {
        check_interrupted();
        measure(c, calls_a_round(c.size, bench.options.quick));
      }
    }
    require(bench.session.drain(std::chrono::seconds(10)), "drain");

    Report::Bar worst;
    for (const Case& c : cases) {
      const Summary s = summarize(c.us);
      bench.report.row("initiate", {{"columns", columns},
                                    {"size", c.size},
                                    {"p50_us", s.median},
                                    {"min_us", s.min},
                                    {"max_us", s.max},
                                    {"p99_us", s.p99},
                                    {"after_wait_p50_us", median(c.idle_us)}});
      const Summary rounds = summarize(c.round_median);
      if (s.median > worst.value) worst = {s.median, rounds.min, rounds.max};
    }
    if (columns == 4) continue;
    bench.report.bar(fmt::format("host_us_p50_{}col", columns), worst, "<=", columns == 1 ? 2 : 5, "us",
                     "250 to 350 us");
    if (columns != 1) continue;
    const auto spread_of = [&](auto figure) {
      double least = figure(cases.front()), most = least;
      for (const Case& c : cases) least = std::min(least, figure(c)), most = std::max(most, figure(c));
      return most / least;
    };
    std::vector<double> spreads;
    for (int round = 0; round < bench.rounds(); ++round) {
      spreads.push_back(spread_of([&](const Case& c) { return c.round_median[static_cast<std::size_t>(round)]; }));
    }
    const Summary rounds = summarize(spreads);
    bench.report.bar("host_us_size_spread",
                     {spread_of([](const Case& c) { return median(c.us); }), rounds.min, rounds.max}, "<=", 1.5, "",
                     "no correlation with size");
  }
}

}  // namespace wherry::bench
