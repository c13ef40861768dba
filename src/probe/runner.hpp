// SPDX-License-Identifier: Apache-2.0
// Measures cells. Their rounds are interleaved, so a disturbance
// of the machine affects all cells (docs/guide/probe.md, Rules).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "probe/row.hpp"
#include "probe/timer.hpp"

namespace wherry::probe {

class Driver;

struct RunOptions {
  unsigned rounds = 7;
  std::uint64_t budget_ns = 15'000'000'000;  ///< of all; a visit's time is made to fit, down to kLeastSamples
  std::uint64_t warm_up_ns = 1'000'000'000;  ///< of a visit, at most
  std::uint64_t seed = 1;
  bool spoil = false;  ///< for tests: flips a byte of the landed data before each check
};

/// Receives reports during a run. All calls come from run().
class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;
  virtual void on_progress(std::size_t visits, std::size_t of, const Cell& next) = 0;
  /// Called at the end, once for each measured cell, in the order of the cells.
  virtual void on_row(const Cell& cell, const Row& row) = 0;
  /// The cell had wrong data, so it is not measured further and has no row.
  virtual void on_wrong(const Cell& cell, const std::string& why) = 0;
  /// The cell could not be measured.
  virtual void on_failed(const Cell& cell, const std::string& why) = 0;
};

struct Outcome {
  unsigned measured = 0, wrong = 0, refused = 0, failed = 0;  ///< cells
  bool stopped = false;
  std::uint64_t elapsed_ns = 0;
};

class Runner {
 public:
  static constexpr unsigned kLeastSamples = 3;  ///< of a visit
  /// A timed sample lasts at least this many resolutions of the clock. Shorter transfers are timed together.
  static constexpr double kResolutions = 100;

  /// All arguments must outlive this object. `stop`: set by Ctrl-C.
  Runner(Clock& clock, RunOptions options, Listener& listener, const std::atomic<bool>& stop)
      : clock_(clock), options_(options), listener_(listener), stop_(stop) {}

  [[nodiscard]] Outcome run(std::span<const Cell> cells);

 private:
  struct State;
  void visit(State& state, std::uint64_t seed, std::uint64_t slice_ns);
  [[nodiscard]] Status measure(State& state, std::uint64_t seed, std::uint64_t slice_ns);

  Clock& clock_;
  RunOptions options_;
  Listener& listener_;
  const std::atomic<bool>& stop_;
};

/// The runner's share of a transfer's time, measured with a path that does nothing.
struct HarnessCost {
  double batched_ns = 0;  ///< where transfers are timed together: the least of several batches
  double timed_ns = 0;    ///< where each is timed: the median
};
[[nodiscard]] HarnessCost harness_cost(Clock& clock);

}  // namespace wherry::probe
