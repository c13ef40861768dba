// SPDX-License-Identifier: Apache-2.0
// The measurements of bench_route. Each figure with a target is the ratio of two measurements that alternate in one
// run. Absolute figures are printed for information.
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
  std::vector<std::string> set;  ///< "route.buffer_bytes=65536": of the other jobs of experiment `profile`
  /// A peer's histogram. In the command, {lg} and {n} stand for log2 of the counters and the updates per rank. The last
  /// line of its output has "mups": M updates/s in total.
  struct Peer {
    std::string command;
    double target = 0;  ///< how many times faster than the peer Wherry must be; 0: no target
  };
  std::map<std::string, Peer> peers;
  int core_a = -1, core_b = -1;  ///< unset: the first two that the process may use
};

class RouteBench {
 public:
  explicit RouteBench(RouteBenchOptions options);
  [[nodiscard]] const RouteBenchOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool quick() const noexcept { return options_.quick; }
  [[nodiscard]] int rounds() const noexcept { return quick() ? 3 : 9; }
  void row(const std::string& experiment, Row values) { report_.row(experiment, std::move(values)); }
  /// Reports the median of `values` with a target. `comparison`: ">=" or "<="; empty: no target.
  void bar(const std::string& name, const std::vector<double>& values, const std::string& comparison, double target,
           const std::string& unit = "");
  void progress(const std::string& text) const;
  /// Two ranks of one node with inline placement, each on its own core.
  [[nodiscard]] JobOptions pair() const;
  /// Two nodes of one rank each, on two cores. kInline: a rank on each core. kShared: a rank and its agent on each
  /// core. kHost: ranks on one core, agents on the other.
  [[nodiscard]] JobOptions two_nodes(route::Placement placement) const;
  void write() const { report_.write(options_.json); }

 private:
  RouteBenchOptions options_;
  Report report_;
};

void run_histogram(RouteBench& bench);
void run_random_sizes(RouteBench& bench);
void run_agent_rate(RouteBench& bench);
void run_latency(RouteBench& bench);
void run_message_sizes(RouteBench& bench);
void run_sweeps(RouteBench& bench);
void run_weak_scaling(RouteBench& bench);
void run_agent_memory(RouteBench& bench);
void run_link(RouteBench& bench);
/// Runs only if the user names it.
void run_profile(RouteBench& bench);

}  // namespace wherry::bench
