// SPDX-License-Identifier: Apache-2.0
// What bench_route measures. Every figure is a ratio of neighbours in one run, or an absolute one that is printed and
// not tested for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/measure.hpp"
#include "common/report.hpp"
#include "forked_job.hpp"

namespace wherry::bench {

struct RouteBenchOptions {
  std::string json;
  bool quick = false;
  std::vector<std::string> only;
  /// NAME=COMMAND: a peer's histogram; {lg} and {n} become log2 of the counters and the updates a rank. Its last line
  /// holds "mups": M updates/s in total.
  std::map<std::string, std::string> peers;
  int core_a = 0, core_b = 1;
};

class RouteBench {
 public:
  explicit RouteBench(RouteBenchOptions options);
  [[nodiscard]] const RouteBenchOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool quick() const noexcept { return options_.quick; }
  [[nodiscard]] int rounds() const noexcept { return quick() ? 5 : 11; }
  void row(const std::string& experiment, Row values) { report_.row(experiment, std::move(values)); }
  /// A claim: the median of `values`. `comparison`: ">=" or "<="; none: reported only.
  void bar(const std::string& name, const std::vector<double>& values, const std::string& comparison, double target,
           const std::string& unit = "");
  void progress(const std::string& text) const;
  /// Two ranks, one on each core.
  [[nodiscard]] JobOptions pair() const;
  void write() const { report_.write(options_.json); }

 private:
  RouteBenchOptions options_;
  Report report_;
};

void run_histogram(RouteBench& bench);
void run_random_sizes(RouteBench& bench);
void run_agent_rate(RouteBench& bench);
void run_latency(RouteBench& bench);
void run_weak_scaling(RouteBench& bench);

}  // namespace wherry::bench
