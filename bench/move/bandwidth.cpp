// SPDX-License-Identifier: Apache-2.0
// Figure 3: a transfer compared with its fastest alternative: one raw get from heap memory, or one memcpy from mapped
// memory. Source, destination's alignment and age, and the number of destinations (two, in turn) are the same on both
// sides.
#include <fmt/core.h>

#include "sources.hpp"

namespace wherry::bench {

namespace {

struct Comparison {
  double move_gbps = 0, baseline_gbps = 0;
  Summary ratio;  ///< baseline's time over move's
};

std::uint32_t repeats(std::size_t size) {
  if (size <= kMiB) return 24;
  if (size <= 4 * kMiB) return 12;
  return size <= 16 * kMiB ? 6 : 4;
}

std::vector<double> move_times(const Source& source, Stream& stream, std::uint32_t repeat) {
  std::vector<double> ns;
  for (std::uint32_t i = 0; i < repeat; ++i) {
    const Ticket ticket = require(stream.post(source.columns()), "post");
    spin(ticket);
    ns.push_back(transfer_ns(ticket));
  }
  return ns;
}

Comparison compare(Bench& bench, std::size_t size, Memory memory, Work baseline) {
  const Source source(bench, 1, size, memory);
  Stream stream = bench.open("bandwidth", Strategy::kIpcPageAligned, {field("x", "g")}, size);
  WorkRequest request;
  request.work = baseline;
  request.repeat = repeats(size);
  request.segments = source.segments();

  move_times(source, stream, 4);
  bench.remote.run(request);
  bench.remote.run(request);
  std::vector<double> move_ns, baseline_ns, ratios;
  for (int round = 0; round < bench.rounds(); ++round) {
    check_interrupted();
    // The two sides' destinations evict each other from the cache, so a side that runs twice in a row has an advantage.
    // So each side is first once and last once.
    double move = 0, raw = 0;
    for (const bool ours : {true, false, false, true}) {
      if (ours) {
        move += median(move_times(source, stream, request.repeat)) / 2;
      } else {
        raw += median(bench.remote.run(request)) / 2;
      }
    }
    move_ns.push_back(move);
    baseline_ns.push_back(raw);
    ratios.push_back(raw / move);
  }
  return {gbps(size, median(move_ns)), gbps(size, median(baseline_ns)), summarize(ratios)};
}

std::vector<std::size_t> sizes_of(const Bench& bench) {
  return bench.sizes({64 * kKiB, 128 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB},
                     {64 * kKiB, kMiB, 16 * kMiB, 64 * kMiB});
}

}  // namespace

void run_bandwidth(Bench& bench) {
  Report::Bar worst{1e9, 0, 0};
  for (const std::size_t size : sizes_of(bench)) {
    bench.progress(fmt::format("bandwidth: {}", size_text(size)));
    const Comparison c = compare(bench, size, Memory::kMemalign, Work::kGet);
    bench.report.row("bandwidth", {{"size", size},
                                   {"move_gbps", c.move_gbps},
                                   {"raw_gbps", c.baseline_gbps},
                                   {"ratio", c.ratio.median},
                                   {"ratio_min", c.ratio.min},
                                   {"ratio_max", c.ratio.max}});
    if (c.ratio.median < worst.value) worst = {c.ratio.median, c.ratio.min, c.ratio.max};
  }
  bench.report.bar("get_vs_raw_min", worst, ">=", 0.95, "", "never less than 0.85 from 64 KiB on");
}

void run_mapped(Bench& bench) {
  if (!bench.session.info().mapped) {
    bench.progress("mapped: left out, the agent cannot map memory of this process");
    return;
  }
  Report::Bar worst{1e9, 0, 0};
  for (const std::size_t size : sizes_of(bench)) {
    bench.progress(fmt::format("mapped: {}", size_text(size)));
    const Comparison c = compare(bench, size, Memory::kMapped, Work::kCopy);
    bench.report.row("mapped", {{"size", size},
                                {"move_gbps", c.move_gbps},
                                {"memcpy_gbps", c.baseline_gbps},
                                {"ratio", c.ratio.median},
                                {"ratio_min", c.ratio.min},
                                {"ratio_max", c.ratio.max}});
    if (c.ratio.median < worst.value) worst = {c.ratio.median, c.ratio.min, c.ratio.max};
  }
  bench.report.bar("get_vs_memcpy_min", worst, ">=", 0.85);
}

}  // namespace wherry::bench
