// SPDX-License-Identifier: Apache-2.0
#include "probe/runner.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/random.hpp"
#include "base/try.hpp"
#include "probe/driver.hpp"

namespace wherry::probe {
namespace {

constexpr double kAgree = 0.05;                 // of three batches that end the warm-up
constexpr std::uint64_t kMostNs = 100'000'000;  // of a visit's timed part: more rounds are better than longer ones
constexpr double kLeastSampleNs = 20'000;       // where each transfer is timed: of a batch of them
constexpr double kEnoughNs = 2'000'000;         // of the same, at most, once all slots were used
constexpr std::uint64_t kMostTransfers = std::uint64_t{1} << 24;

std::uint64_t beyond(std::uint64_t all, std::uint64_t asking) noexcept { return all > asking ? all - asking : 0; }

/// One visit of a cell whose path is open: its batches.
class Visit {
 public:
  Visit(Clock& clock, const Cell& cell, const Work& work, const std::atomic<bool>& stop)
      : clock_(clock),
        cell_(cell),
        work_(work),
        driver_(clock, *cell.path, work, stop),
        least_ns_(clock.resolution_ns() * Runner::kResolutions) {}

  /// Runs until three batches agree or the time is over. Determines the number of transfers in a sample.
  Status warm_up(std::uint64_t most_ns);
  Status timed(std::uint64_t slice_ns, Tally& tally);

  [[nodiscard]] bool agreed() const { return agreed_; }

 private:
  [[nodiscard]] bool measured() const { return cell_.path->info().provenance == Provenance::kMeasured; }
  /// The ns of a batch of `transfers_`. `cpu` receives its CPU time if restore() takes time that must not count.
  Result<std::uint64_t> batch(Histogram* each, CpuCost* cpu);
  [[nodiscard]] std::uint64_t limited(double transfers) const {
    const double most = static_cast<double>(work_.per_restore > 0 ? work_.per_restore : kMostTransfers);
    return static_cast<std::uint64_t>(std::clamp(std::ceil(transfers), 1.0, most));
  }

  Clock& clock_;
  const Cell& cell_;
  Work work_;
  Driver driver_;
  double least_ns_;
  std::uint64_t transfers_ = 1;
  double transfer_ns_ = 0;  // of one, by the last batch of the warm-up
  bool each_ = false;       // transfers are long enough to be timed one by one
  bool agreed_ = false;
};

Result<std::uint64_t> Visit::batch(Histogram* each, CpuCost* cpu) {
  if (work_.per_restore == 0) return driver_.closed_loop(transfers_, each);
  cell_.path->restore();
  const CpuCost before = cpu != nullptr ? thread_cpu_cost() : CpuCost{};
  auto ns = driver_.closed_loop(transfers_, each);
  if (cpu != nullptr) *cpu += thread_cpu_cost() - before;
  return ns;
}

Status Visit::warm_up(std::uint64_t most_ns) {
  const std::uint64_t begin = clock_.now_ns();
  transfers_ = limited(work_.slots);
  double before[2] = {0, 0};
  for (unsigned count = 0;; ++count) {
    WHERRY_ASSIGN(const std::uint64_t ns, batch(nullptr, nullptr));
    const double each = std::max(static_cast<double>(ns), 1e-3) / static_cast<double>(transfers_);
    transfer_ns_ = each;
    // One transfer's latency while all slots are in flight.
    each_ = !measured() || each * work_.slots >= least_ns_;
    // Several times the number in flight, unless that takes long, so that a batch's begin and end have less weight.
    const double several = std::clamp(kEnoughNs / each, static_cast<double>(work_.slots), 4.0 * work_.slots);
    const double wanted =
        each_ ? std::max(several, kLeastSampleNs / each) : std::max(least_ns_ / each, static_cast<double>(work_.slots));
    const std::uint64_t next = limited(wanted);
    const bool right = next <= transfers_ * 2 && transfers_ <= next * 4;
    const auto near = [&](double other) { return std::abs(other - each) <= kAgree * std::max(other, each); };
    agreed_ = count >= 2 && right && near(before[0]) && near(before[1]) &&
              std::abs(before[0] - before[1]) <= kAgree * std::max(before[0], before[1]);
    before[0] = before[1], before[1] = each;
    if (!right) transfers_ = next;
    const std::uint64_t took = clock_.now_ns() - begin;
    if (agreed_ || (took >= most_ns && (right || took >= 4 * most_ns))) return ok_status();
  }
}

Status Visit::timed(std::uint64_t slice_ns, Tally& tally) {
  const bool open = cell_.offered_share > 0;
  const double per_sample = static_cast<double>(transfers_) * work_.units;
  auto histogram = std::make_unique<Histogram>();
  Histogram& latency = *histogram;
  tally.batch = each_ || open ? 1 : transfers_;
  if (!each_ && !open && measured() && transfer_ns_ * static_cast<double>(transfers_) * 2 < least_ns_)
    return {StatusCode::kUnsupported, "a batch is too short for the clock"};
  CpuCost cpu;
  // other_side() itself costs the other side CPU time: measured as the difference of two successive calls.
  const Path::CpuTime other_before = cell_.path->other_side();
  const Path::CpuTime other = cell_.path->other_side();
  const std::uint64_t steal = steal_ns();
  const CpuCost before = thread_cpu_cost();
  std::uint64_t busy_ns = 0, samples = 0;
  const std::uint64_t begin = clock_.now_ns();
  const std::uint64_t least = each_ && transfers_ >= Runner::kLeastSamples ? 1 : Runner::kLeastSamples;
  while (samples < least || clock_.now_ns() - begin < slice_ns) {
    std::uint64_t ns = 0;
    if (open) {
      const double interval = transfer_ns_ / cell_.offered_share;
      WHERRY_ASSIGN(ns, driver_.open_loop(transfers_, interval, latency));
      tally.offered_per_s.push_back(1e9 / interval);
    } else {
      WHERRY_ASSIGN(ns, batch(each_ ? &latency : nullptr, &cpu));
      // Little's law: a transfer's mean latency is the number in flight divided by the rate.
      if (!each_) latency.add(static_cast<std::uint64_t>(static_cast<double>(ns) * 1000 * work_.slots / per_sample));
    }
    busy_ns += ns;
    ++samples;
  }
  const CpuCost all = thread_cpu_cost() - before;
  tally.cpu += work_.per_restore > 0 && !open ? cpu : all;
  const Path::CpuTime other_after = cell_.path->other_side();
  tally.other.user_ns += beyond(other_after.user_ns - other.user_ns, other.user_ns - other_before.user_ns);
  tally.other.system_ns += beyond(other_after.system_ns - other.system_ns, other.system_ns - other_before.system_ns);
  const double units = per_sample * static_cast<double>(samples);
  tally.units += static_cast<std::uint64_t>(units);
  tally.samples += latency.count();
  tally.latency.merge(latency);
  // The time of each transfer covers `units` units.
  const double p50_ns = static_cast<double>(latency.percentile(0.5)) / 1000;
  tally.rounds.push_back({p50_ns, busy_ns == 0 ? 0 : units * 1e9 / static_cast<double>(busy_ns),
                          all.involuntary_switches > 0 || steal_ns() != steal, agreed_});
  return ok_status();
}

}  // namespace

struct Runner::State {
  Cell cell;
  std::unique_ptr<Tally> tally = std::make_unique<Tally>();
  bool out = false;  // wrong or failed
  Outcome* outcome = nullptr;
};

Status Runner::measure(State& state, std::uint64_t seed, std::uint64_t slice_ns) {
  Path& path = *state.cell.path;
  Tally& tally = *state.tally;
  tally.work = path.work(state.cell.shape);
  WHERRY_ASSIGN(tally.bound, path.open(state.cell.shape));
  path.prepare(seed);
  Visit visit(clock_, state.cell, tally.work, stop_);
  WHERRY_TRY(visit.warm_up(std::min(options_.warm_up_ns, std::max<std::uint64_t>(slice_ns, 1'000'000))));
  return visit.timed(slice_ns, tally);
}

void Runner::visit(State& state, std::uint64_t seed, std::uint64_t slice_ns) {
  Path& path = *state.cell.path;
  Status status = measure(state, seed, slice_ns);
  if (status) {
    if (options_.spoil && !path.spoil(splitmix64(seed, 1)))
      status = {StatusCode::kUnsupported, "the path cannot spoil its data"};
    const Status right = path.verify(seed);
    if (!right) {
      listener_.on_wrong(state.cell, right.message());
      state.out = true;
      ++state.outcome->wrong;
    }
  }
  path.close();
  if (status || state.out) return;
  state.out = true;
  if (status.code() == StatusCode::kCancelled) return;
  ++state.outcome->failed;
  listener_.on_failed(state.cell, status.message());
}

Outcome Runner::run(std::span<const Cell> cells) {
  Outcome outcome;
  const std::uint64_t begin = clock_.now_ns();
  std::vector<State> states(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) states[i].cell = cells[i], states[i].outcome = &outcome;
  const std::size_t all = cells.size() * options_.rounds;
  std::size_t visits = 0;
  double overhead_ns = 0;  // of a visit, without its slice
  for (unsigned round = 0; round < options_.rounds; ++round) {
    for (std::size_t i = 0; i < states.size(); ++i, ++visits) {
      // Every other round runs backwards, so that a cell does not always follow the same one.
      State& state = states[round % 2 == 0 ? i : states.size() - 1 - i];
      if (stop_.load(std::memory_order_relaxed)) break;
      if (state.out) continue;
      listener_.on_progress(visits, all, state.cell);
      const std::uint64_t now = clock_.now_ns();
      const double left = static_cast<double>(options_.budget_ns) - static_cast<double>(now - begin);
      const double slice =
          std::clamp(left / static_cast<double>(all - visits) - overhead_ns, 0.0, static_cast<double>(kMostNs));
      visit(state, splitmix64(options_.seed, visits), static_cast<std::uint64_t>(slice));
      const double took = static_cast<double>(clock_.now_ns() - now) - slice;
      const double weight = visits < 20 ? 1.0 / static_cast<double>(visits + 1) : 0.05;
      overhead_ns += weight * (std::max(took, 0.0) - overhead_ns);
    }
  }
  outcome.stopped = stop_.load(std::memory_order_relaxed);
  for (State& state : states) {
    if (state.out || state.tally->rounds.empty() || (outcome.stopped && state.tally->rounds.size() < 3)) continue;
    const Row row = row_of(*state.tally);
    ++(row.refused.empty() ? outcome.measured : outcome.refused);
    listener_.on_row(state.cell, row);
  }
  outcome.elapsed_ns = clock_.now_ns() - begin;
  return outcome;
}

namespace {

/// A path whose transfers do nothing and end at once.
class Nothing final : public Path {
 public:
  [[nodiscard]] const PathInfo& info() const override { return info_; }
  [[nodiscard]] Status accepts(const Shape& /*shape*/) const override { return ok_status(); }
  [[nodiscard]] Result<Bound> open(const Shape& /*shape*/) override { return Bound{}; }
  void prepare(std::uint64_t /*seed*/) override {}
  [[nodiscard]] bool try_post(unsigned slot) override {
    slot_ = slot;
    return true;
  }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    done[0] = slot_;
    return 1U;
  }
  [[nodiscard]] Status verify(std::uint64_t /*seed*/) override { return ok_status(); }
  void close() noexcept override {}

 private:
  PathInfo info_{.id = "nothing", .group = "harness", .from = "here", .to = "here"};
  unsigned slot_ = 0;
};

}  // namespace

HarnessCost harness_cost(Clock& clock) {
  Nothing nothing;
  const std::atomic<bool> go{false};
  Driver driver(clock, nothing, {.slots = 1}, go);
  const auto each = std::make_unique<Histogram>();
  constexpr std::uint64_t kTransfers = 20'000;
  double batched = 1e18;
  for (int batch = 0; batch < 9; ++batch) {
    const auto ns = driver.closed_loop(kTransfers, nullptr);
    if (ns) batched = std::min(batched, static_cast<double>(*ns) / kTransfers);
    (void)driver.closed_loop(kTransfers, each.get());  // it cannot fail
  }
  return {batched, static_cast<double>(each->percentile(0.5)) / 1000};
}

}  // namespace wherry::probe
