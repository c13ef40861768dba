// SPDX-License-Identifier: Apache-2.0
// Measures the agent's rate alone and beside a neighbour that streams through memory (paper 001, section 6.0.1).
//
// Two cores suffice. The second core fills the agent's inputs, is the neighbour while the agent routes, and then takes
// the output. So the data come from another core, and the time is only the agent's.
#include <linux/perf_event.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>

#include "base/clock.hpp"
#include "base/event_counter.hpp"
#include "common/measure.hpp"
#include "probe/agent_work.hpp"
#include "probe/cache_bench.hpp"
#include "probe/other_core.hpp"

namespace wherry::bench {
namespace {

AgentShape shape_of(std::size_t buffer_bytes) {
  AgentShape shape;
  const std::size_t each = std::size_t{shape.inputs + shape.lanes} * shape.ring.buffer_bytes;
  shape.ring.buffers = static_cast<std::uint32_t>(std::clamp<std::size_t>(buffer_bytes / each, 4, 1024));
  return shape;
}

struct Turn {
  std::size_t bytes = 0;
  std::uint64_t ns = 0;
  [[nodiscard]] double rate() const noexcept { return static_cast<double>(bytes) / static_cast<double>(ns); }
};

/// Fills, routes and drains. `meanwhile`: the other core's work while the agent routes, until its flag is set.
/// `around(after)`: called on the agent's core before and after the measured time.
template <typename Around>
Turn turn(AgentWork& work, OtherCore& other, const std::function<void(std::atomic<bool>&)>& meanwhile, Around around) {
  other.run_there([&] { work.fill(work.shape().ring.buffers / 2, [](AgentWork::Filled) {}); });
  std::atomic<bool> begun = false, ended = false;
  if (meanwhile) {
    other.start([&] {
      begun.store(true, std::memory_order_release);
      meanwhile(ended);
    });
    Spinner spinner;
    while (!begun.load(std::memory_order_acquire)) spinner.pause(now_ns());
  }
  around(false);
  const std::uint64_t begin = cpu_ns();
  const std::size_t bytes = work.route();
  const std::uint64_t end = cpu_ns();
  around(true);
  ended.store(true, std::memory_order_release);
  if (meanwhile) other.finish();
  other.run_there([&] { work.drain(); });
  if (!work.complete()) throw std::logic_error("the agent lost messages");
  return {bytes, std::max<std::uint64_t>(end - begin, 1)};
}

constexpr auto kNothing = [](bool) {};

/// Computes a = b + c over a working set, as in the paper: blocks of work with pauses between them.
class Neighbour {
 public:
  explicit Neighbour(std::size_t working_set)
      : elements_(working_set / 3 / sizeof(double) / kBlock * kBlock),
        a_(elements_),
        b_(elements_, 1),
        c_(elements_, 2) {}
  /// Adds for a fraction `share` of the time, until `ended` is set.
  void run(double share, const std::atomic<bool>& ended) {
    while (!ended.load(std::memory_order_acquire)) {
      const std::uint64_t begin = now_ns();
      for (std::size_t i = 0; i < kBlock; ++i) a_[at_ + i] = b_[at_ + i] + c_[at_ + i];
      at_ = (at_ + kBlock) % elements_;
      std::uint64_t now = now_ns();
      bytes_ += 3 * kBlock * sizeof(double);
      const std::uint64_t pause = static_cast<std::uint64_t>(static_cast<double>(now - begin) * (1 - share) / share);
      for (const std::uint64_t until = now + pause; now < until && !ended.load(std::memory_order_acquire);) {
        cpu_relax();
        now = now_ns();
      }
      ns_ += now - begin;
    }
  }
  /// GB/s that it read and wrote since the last call.
  double rate() noexcept {
    const double found = ns_ == 0 ? 0 : static_cast<double>(bytes_) / static_cast<double>(ns_);
    bytes_ = ns_ = 0;
    return found;
  }

 private:
  static constexpr std::size_t kBlock = 2048;  // elements: 48 KiB of the three arrays
  std::size_t elements_, at_ = 0;
  std::vector<double> a_, b_, c_;
  std::uint64_t bytes_ = 0, ns_ = 0;
};

}  // namespace

void run_agent(CacheBench& bench) {
  OtherCore other(bench.other_core);
  // The kernel's generic events. Their cache level depends on the processor (AMD: level 2; Intel, Arm: the last).
  EventCounter references(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES);
  EventCounter misses = EventCounter::cache_misses();
  const std::size_t sizes[] = {std::size_t{1} << 20, std::size_t{8} << 20, 2 * bench.last_level()};
  const int repetitions = bench.quick ? 3 : 7;
  struct Point {
    explicit Point(AgentShape shape) : work(shape, 7) {}
    AgentWork work;
    std::vector<double> rates;
    std::uint64_t references = 0, misses = 0, routed = 0;
  };
  std::vector<std::unique_ptr<Point>> points;
  for (const std::size_t size : sizes) points.push_back(std::make_unique<Point>(shape_of(size)));
  for (int repetition = 0; repetition <= repetitions; ++repetition) {  // the first one warms up
    for (const auto& point : points) {
      check_interrupted();
      const std::size_t all = point->work.shape().buffer_bytes();
      const std::size_t turns = std::max<std::size_t>((bench.quick ? 4 << 20 : 64 << 20) / all, 1);
      std::vector<double> rates;
      for (std::size_t i = 0; i < turns; ++i) {
        std::uint64_t before[2] = {};
        const Turn done = turn(point->work, other, {}, [&](bool after) {
          const std::uint64_t now[2] = {references.read().value_or(0), misses.read().value_or(0)};
          if (after) {
            point->references += now[0] - before[0];
            point->misses += now[1] - before[1];
          }
          before[0] = now[0];
          before[1] = now[1];
        });
        rates.push_back(done.rate());
        point->routed += done.bytes;
      }
      if (repetition != 0) {
        point->rates.push_back(median(rates));
      } else {
        point->references = point->misses = point->routed = 0;
      }
    }
  }
  for (const auto& point : points) {
    const Summary found = summarize(point->rates);
    const auto per_line = [&](const EventCounter& counter, std::uint64_t count) {
      return counter.missing().empty()
                 ? Row(static_cast<double>(count * CacheShape::kLine) / static_cast<double>(point->routed))
                 : Row(nullptr);
    };
    bench.report.row("cache_agent", {{"buffer_bytes", point->work.shape().buffer_bytes()},
                                     {"payload", point->work.shape().payload},
                                     {"gbytes_per_s", found.median},
                                     {"least", found.min},
                                     {"most", found.max},
                                     {"references_per_line", per_line(references, point->references)},
                                     {"misses_per_line", per_line(misses, point->misses)},
                                     {"not_counted", misses.missing()},
                                     {"samples", point->rates}});
  }
}

void run_neighbour(CacheBench& bench) {
  OtherCore other(bench.other_core);
  // As in the paper, 32 MB; twice the last level if that is more.
  const std::size_t streaming = std::max(std::size_t{32'000'000}, 2 * bench.last_level());
  Neighbour far(streaming);
  Neighbour near(bench.level2() / 4);
  struct Point {
    double share;
    Neighbour* who;
    std::size_t working_set;
    std::vector<double> kept, rates, streamed;
  };
  std::vector<Point> points;
  for (const double share : {0.1, 0.25, 0.5, 0.75, 1.0}) points.push_back({share, &far, streaming, {}, {}, {}});
  points.push_back({1.0, &near, bench.level2() / 4, {}, {}, {}});
  AgentWork work(shape_of(std::size_t{8} << 20), 11);
  const int repetitions = bench.quick ? 3 : 9;
  const int turns = bench.quick ? 2 : 24;
  std::vector<double> alone;
  for (int repetition = 0; repetition <= repetitions; ++repetition) {  // the first one warms up
    check_interrupted();
    std::vector<std::vector<double>> rates(points.size() + 1);
    for (Neighbour* who : {&far, &near}) (void)who->rate();
    std::vector<double> streamed(points.size());
    for (int i = 0; i < turns; ++i) {
      rates.back().push_back(turn(work, other, {}, kNothing).rate());
      for (std::size_t p = 0; p < points.size(); ++p) {
        Point& point = points[p];
        const auto meanwhile = [&](std::atomic<bool>& ended) { point.who->run(point.share, ended); };
        rates[p].push_back(turn(work, other, meanwhile, kNothing).rate());
        streamed[p] += point.who->rate() / turns;
      }
    }
    if (repetition == 0) continue;
    const double quiet = median(rates.back());
    alone.push_back(quiet);
    for (std::size_t p = 0; p < points.size(); ++p) {
      points[p].rates.push_back(median(rates[p]));
      points[p].kept.push_back(points[p].rates.back() / quiet);
      points[p].streamed.push_back(streamed[p]);
    }
  }
  const auto add = [&](const char* kind, double share, std::size_t working_set, double streamed,
                       const std::vector<double>& rates, const std::vector<double>& kept) {
    const Summary found = summarize(kept);
    bench.report.row("cache_neighbour", {{"neighbour", kind},
                                         {"intensity", share},
                                         {"working_set_bytes", working_set},
                                         {"neighbour_gbytes_per_s", streamed},
                                         {"agent_gbytes_per_s", median(rates)},
                                         {"kept", found.median},
                                         {"least", found.min},
                                         {"most", found.max},
                                         {"samples", kept}});
  };
  add("none", 0, 0, 0, alone, std::vector<double>(alone.size(), 1.0));
  for (const Point& point : points)
    add(point.who == &far ? "streams through memory" : "stays in its level 2", point.share, point.working_set,
        median(point.streamed), point.rates, point.kept);
}

}  // namespace wherry::bench
