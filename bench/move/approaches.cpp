// SPDX-License-Identifier: Apache-2.0
// Figure 11: five ways from the application's columns to Arrow IPC in the agent's memory.
#include <fmt/core.h>

#include "arrow_steps.hpp"
#include "base/clock.hpp"
#include "sources.hpp"

namespace wherry::bench {

namespace {

enum Approach : std::size_t { kHost, kSmartNic, kIdpIpc, kIdpPaged, kIdpCAbi, kApproaches };
constexpr const char* kNames[] = {"host_serialization", "smartnic_serialization", "idp_ipc", "idp_page_aligned_ipc",
                                  "idp_c_abi"};

struct Sample {
  double host_us = 0;     ///< the host is busy
  double fresh_gbps = 0;  ///< the agent: first get to finished IPC, of a source that the host has just written
  double gbps = 0;        ///< the same once more: the source is in nobody's cache as modified
};

/// Measures one size and number of columns.
class Contest {
 public:
  Contest(Bench& bench, int columns, std::size_t size)
      : bench_(bench),
        size_(size),
        names_(random_names(columns)),
        blocks_{SourceBlock(bench, block_bytes(), Memory::kMemalign),
                SourceBlock(bench, block_bytes(), Memory::kMemalign)},
        sources_{Source(blocks_[0], columns, size), Source(blocks_[1], columns, size)},
        host_(bench.open("approach-host", Strategy::kRaw, {}, block_bytes())),
        raw_(bench.open("approach-raw", Strategy::kRaw, {}, size)),
        ipc_(bench.open("approach-ipc", Strategy::kIpc, schema_of(names_), size)),
        paged_(bench.open("approach-paged", Strategy::kIpcPageAligned, schema_of(names_), size)),
        c_abi_(bench.open("approach-c-abi", Strategy::kCAbi, schema_of(names_), size)) {
    work_.names = names_;
    swap_blocks();
  }

  /// The columns and the host's serialised bytes swap their memory. The read speed of memory depends on its physical
  /// pages (by up to 15 %), and neither side must have the better ones.
  void swap_blocks() {
    turn_ = 1 - turn_;
    sources_[turn_].reset();
    work_.segments = sources_[turn_].segments();
  }

  /// The application computes before every call, so the host's call runs with the caches that this leaves.
  Sample run(Approach approach) {
    source().compute();
    switch (approach) {
      case kHost:
        return host_serialization();
      case kSmartNic:
        return on_agent(Work::kSmartNic, [&] { return raw_.post_raw(source().raw()); });
      case kIdpIpc:
        return transfer([&] { return ipc_.post(source().columns()); });
      case kIdpPaged:
        return transfer([&] { return paged_.post(source().columns()); });
      default:
        return on_agent(Work::kCAbi, [&] { return c_abi_.post(source().columns()); });
    }
  }

 private:
  [[nodiscard]] std::size_t block_bytes() const { return (ipc_bound(size_, names_.size()) + 7) / 8 * 8; }
  [[nodiscard]] Source& source() noexcept { return sources_[turn_]; }
  [[nodiscard]] SourceBlock& serialized() noexcept { return blocks_[1 - turn_]; }

  template <typename Post>
  double again(Post post) {
    const Ticket ticket = require(post(), "post");
    spin(ticket);
    return gbps(size_, transfer_ns(ticket));
  }

  template <typename Post>
  Sample transfer(Post post) {
    const std::uint64_t start = now_ns();
    Result<Ticket> posted = post();
    const std::uint64_t stop = now_ns();
    const Ticket ticket = require(std::move(posted), "post");
    spin(ticket);
    const double fresh = gbps(size_, transfer_ns(ticket));
    return {static_cast<double>(stop - start) * 1e-3, fresh, again(post)};
  }

  /// Arrays are built with a known size, and serialised once, directly into registered memory that is reused.
  Sample host_serialization() {
    const std::uint64_t start = now_ns();
    const std::size_t bytes = serialize_into(*build(source().values(), names_), serialized().bytes());
    const std::uint64_t stop = now_ns();
    const std::span<const std::byte> whole = serialized().bytes().first(bytes);
    Sample sample = transfer([&] { return host_.post_raw({&whole, 1}); });
    sample.host_us += static_cast<double>(stop - start) * 1e-3;
    return sample;
  }

  /// The host's part is an offload like the others. BenchService times gets and conversion together.
  template <typename Post>
  Sample on_agent(Work work, Post post) {
    Sample sample = transfer(post);
    source().compute();
    work_.work = work;
    work_.repeat = 2;
    const std::vector<double> ns = bench_.remote.run(work_);
    sample.fresh_gbps = gbps(size_, ns[0]);
    sample.gbps = gbps(size_, ns[1]);
    return sample;
  }

  Bench& bench_;
  std::size_t size_;
  std::vector<std::string> names_;
  SourceBlock blocks_[2];
  Source sources_[2];
  std::size_t turn_ = 0;
  Stream host_, raw_, ipc_, paged_, c_abi_;
  WorkRequest work_;
};

struct Samples {
  std::vector<double> host_us[kApproaches], fresh[kApproaches], gbps[kApproaches];
};

/// Bars compare neighbours. Each approach follows itself as often as the other one, and is first as often as last.
/// Without a bar, each approach runs once in each order.
std::vector<Approach> order_of(int round, std::size_t size) {
  std::vector<Approach> order = {kSmartNic, kIdpIpc};
  if (size <= 16 * kMiB) {
    order.insert(order.end(), {kHost, kIdpPaged, kIdpPaged, kHost, kIdpPaged, kHost, kHost, kIdpPaged});
  } else if (round % 2 == 0) {
    order.insert(order.end(), {kHost, kIdpPaged});
  } else {
    order.insert(order.end(), {kIdpPaged, kHost});
  }
  order.push_back(kIdpCAbi);
  return order;
}

/// Every approach runs once with the columns in the first block and once with them in the second. Their number is even,
/// so an approach's median lies between the two blocks.
Samples contest_round(Contest& contest, int round, std::size_t size) {
  Samples taken;
  for (int turn = 0; turn < 2; ++turn) {
    contest.swap_blocks();
    for (const Approach approach : order_of(round + turn, size)) {
      const Sample sample = contest.run(approach);
      taken.host_us[approach].push_back(sample.host_us);
      taken.fresh[approach].push_back(sample.fresh_gbps);
      taken.gbps[approach].push_back(sample.gbps);
    }
  }
  return taken;
}

Report::Bar ratio_of(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < above.size(); ++i) ratios.push_back(above[i] / below[i]);
  const Summary s = summarize(std::move(ratios));
  return {s.median, s.min, s.max};
}

void report_bars(Bench& bench, int columns, std::size_t size, const Samples& samples) {
  const Report::Bar throughput = ratio_of(samples.gbps[kIdpPaged], samples.gbps[kHost]);
  const Report::Bar saved = ratio_of(samples.host_us[kHost], samples.host_us[kIdpPaged]);
  const auto at = [&](int c, std::size_t s) { return columns == c && size == s; };
  if (at(1, 128 * kKiB)) bench.report.bar("idp_paged_vs_host_1col_128k", throughput, ">=", 0.95, "", "0.87");
  if (at(1, kMiB)) bench.report.bar("idp_paged_vs_host_1col_1m", throughput, ">=", 0.98, "", "0.95");
  if (at(16, kMiB)) {
    bench.report.bar("idp_paged_vs_host_16col_1m", throughput, ">=", 0.90);
    bench.report.bar("host_time_saved_1m", saved, ">=", 20, "", "nearly two orders of magnitude in some cases");
  }
  if (at(16, 16 * kMiB)) {
    bench.report.bar("idp_paged_vs_host_16col_16m", throughput, ">=", 0.97);
    bench.report.bar("host_time_saved_16m", saved, ">=", 700);
  }
}

}  // namespace

void run_approaches(Bench& bench) {
  const auto sizes = bench.sizes({64 * kKiB, 128 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB},
                                 {128 * kKiB, kMiB, 16 * kMiB});
  for (const int columns : {1, 4, 16}) {
    for (const std::size_t size : sizes) {
      bench.progress(fmt::format("approaches: {} columns, {}", columns, size_text(size)));
      Contest contest(bench, columns, size);
      Samples samples;
      const int rounds = size <= kMiB ? 2 * bench.rounds() : bench.rounds();
      const int warm = 3;
      for (int round = -warm; round < rounds; ++round) {
        check_interrupted();
        const Samples one = contest_round(contest, round, size);
        if (round < 0) continue;
        for (std::size_t approach = 0; approach < kApproaches; ++approach) {
          samples.host_us[approach].push_back(median(one.host_us[approach]));
          samples.fresh[approach].push_back(median(one.fresh[approach]));
          samples.gbps[approach].push_back(median(one.gbps[approach]));
        }
      }
      for (std::size_t approach = 0; approach < kApproaches; ++approach) {
        bench.report.row("approaches", {{"approach", kNames[approach]},
                                        {"columns", columns},
                                        {"size", size},
                                        {"host_us", median(samples.host_us[approach])},
                                        {"gbps", median(samples.gbps[approach])},
                                        {"fresh_gbps", median(samples.fresh[approach])}});
      }
      report_bars(bench, columns, size, samples);
    }
  }
}

}  // namespace wherry::bench
