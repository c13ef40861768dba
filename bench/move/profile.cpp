// SPDX-License-Identifier: Apache-2.0
// Compares an agent that has the settings of --set with one that has the defaults. Both exist all the time, and the one
// that is not being measured is stopped.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "sources.hpp"

namespace wherry::bench {
namespace {

constexpr std::size_t kSmall = 64 * kKiB;     // of the offload that waits for its turn
constexpr std::uint64_t kPaceNs = 1'000'000;  // between offloads of an application that computes meanwhile
constexpr std::size_t kUnderWay = 2;          // offloads, where throughput is measured
constexpr std::size_t kSizes[] = {256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};

/// The figures of one agent, for one size and kind of memory.
struct Figures {
  double ns = 0;       ///< for an offload, where one follows the other
  double turn_ns = 0;  ///< until an offload of kSmall is there, posted behind a large one
  double pace_ns = 0;  ///< the same of one of this size, where an application posts one each kPaceNs
};

class Side {
 public:
  Side(Bench& bench, std::size_t bytes, Memory memory)
      : large_(bench, 1, bytes, memory),
        small_(bench, 1, kSmall, memory),
        large_stream_(bench.open("profile", Strategy::kIpcPageAligned, {field("x", "g")}, bytes)),
        small_stream_(bench.open("turn", Strategy::kIpcPageAligned, {field("x", "g")}, kSmall)),
        count_(std::clamp<std::size_t>(32 * kMiB / bytes, 3, 64)) {}

  Figures measure() {
    spin(post(large_stream_, large_));  // the agent wakes up, caches fill
    spin(post(small_stream_, small_));
    return {one_after_another(), turn(), paced()};
  }

 private:
  static Ticket post(Stream& stream, const Source& source) { return require(stream.post(source.columns()), "post"); }
  static void done(const Ticket& ticket) {
    spin(ticket);
    (void)transfer_ns(ticket);  // throws if it failed
  }

  double one_after_another() {
    std::deque<Ticket> under_way;
    std::vector<double> ns;  // from end to end: the median leaves out what else had the core meanwhile
    std::uint64_t last = now_ns();
    const auto end = [&](const Ticket& ticket) {
      done(ticket);
      const std::uint64_t now = now_ns();
      ns.push_back(static_cast<double>(now - std::exchange(last, now)));
    };
    for (std::size_t i = 0; i < count_; ++i) {
      if (under_way.size() == kUnderWay) {
        end(under_way.front());
        under_way.pop_front();
      }
      under_way.push_back(post(large_stream_, large_));
    }
    for (const Ticket& ticket : under_way) end(ticket);
    return median(ns);
  }

  double turn() {
    std::vector<double> ns;
    for (int i = 0; i < 5; ++i) {
      const Ticket large = post(large_stream_, large_);
      const std::uint64_t start = now_ns();
      done(post(small_stream_, small_));
      ns.push_back(static_cast<double>(now_ns() - start));
      done(large);
    }
    return median(ns);
  }

  double paced() {
    std::vector<double> ns;
    for (int i = 0; i < 8; ++i) {
      for (const std::uint64_t begin = now_ns(); now_ns() - begin < kPaceNs;) {
      }
      const std::uint64_t start = now_ns();
      done(post(large_stream_, large_));
      ns.push_back(static_cast<double>(now_ns() - start));
    }
    return median(ns);
  }

  Source large_, small_;
  Stream large_stream_, small_stream_;
  std::size_t count_;
};

struct Ratios {
  std::vector<double> throughput, turn, pace;
};

void report(Bench& bench, std::size_t size, const char* memory, const Ratios& ratios, const Ratios& usual,
            const Ratios& with) {
  const Summary throughput = summarize(ratios.throughput);
  bench.report.row("profile", {{"size", size},
                               {"memory", memory},
                               {"default_gbps", gbps(size, median(usual.throughput))},
                               {"profile_gbps", gbps(size, median(with.throughput))},
                               {"default_turn_us", median(usual.turn) * 1e-3},
                               {"profile_turn_us", median(with.turn) * 1e-3},
                               {"default_paced_us", median(usual.pace) * 1e-3},
                               {"profile_paced_us", median(with.pace) * 1e-3},
                               {"ratio", throughput.median},
                               {"ratio_min", throughput.min},
                               {"ratio_max", throughput.max},
                               {"ratios", ratios.throughput},
                               {"turn_ratios", ratios.turn},
                               {"paced_ratios", ratios.pace}});
  bench.progress(
      fmt::format("profile, {}, {}: throughput {:.3f} [{:.3f}, {:.3f}], turn {:.0f} us to {:.0f}, paced {:.0f} us to "
                  "{:.0f}",
                  memory, size_text(size), throughput.median, throughput.min, throughput.max, median(usual.turn) * 1e-3,
                  median(with.turn) * 1e-3, median(usual.pace) * 1e-3, median(with.pace) * 1e-3));
}

}  // namespace

void run_profile(Bench& bench) {
  SessionOptions wanted;
  wanted.agent = bench.children.wait_for_advised();
  wanted.name = "bench_move";
  Session session = require(Session::open(wanted), "session with the other agent");
  {
    Remote remote(session);
    Bench other{bench.options, session, remote, bench.children, bench.report};
    for (const auto& [memory, name] : {std::pair{Memory::kMemalign, "heap"}, {Memory::kMapped, "mapped"}}) {
      if (memory == Memory::kMapped && !bench.session.info().mapped) continue;
      for (const std::size_t size : kSizes) {
        Side usual(bench, size, memory), advised(other, size, memory);
        const auto run = [&](bool with) {
          (with ? bench.children.stop_agent() : bench.children.stop_advised());
          const Figures found = (with ? advised : usual).measure();
          (with ? bench.children.resume_agent() : bench.children.resume_advised());
          return found;
        };
        Ratios ratios, of_usual, of_advised;
        for (int round = 0; round < bench.rounds(); ++round) {
          check_interrupted();
          const bool first = round % 2 == 0;
          constexpr double kNone = std::numeric_limits<double>::infinity();
          std::array<Figures, 2> best{Figures{kNone, kNone, kNone}, Figures{kNone, kNone, kNone}};
          for (const bool with : {first, !first, !first, first}) {
            const Figures found = run(with);
            Figures& of = best[with ? 1 : 0];
            of = {std::min(of.ns, found.ns), std::min(of.turn_ns, found.turn_ns), std::min(of.pace_ns, found.pace_ns)};
          }
          const auto add = [](Ratios& to, double a, double b, double c) {
            to.throughput.push_back(a), to.turn.push_back(b), to.pace.push_back(c);
          };
          add(of_usual, best[0].ns, best[0].turn_ns, best[0].pace_ns);
          add(of_advised, best[1].ns, best[1].turn_ns, best[1].pace_ns);
          add(ratios, best[0].ns / best[1].ns, best[0].turn_ns / best[1].turn_ns, best[0].pace_ns / best[1].pace_ns);
        }
        report(bench, size, name, ratios, of_usual, of_advised);
      }
    }
    remote.release();
  }
}

}  // namespace wherry::bench
