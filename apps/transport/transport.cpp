// SPDX-License-Identifier: Apache-2.0
#include "transport/transport.hpp"

#include <fmt/core.h>

#include <numeric>
#include <utility>

#include "common/together.hpp"
#include "transport/tracker.hpp"

namespace wherry::apps {
namespace {

constexpr unsigned kFlightsBetweenPolls = 8;

/// A rank's particles.
class Population {
 public:
  Population(Runtime& runtime, const Domains& domains, Tracker& tracker)
      : runtime_(runtime),
        domains_(domains),
        tracker_(tracker),
        arrive_(runtime.on<Particle>([this](const Particle& particle) { waiting_.push_back(particle); })) {}

  /// One time step, with the source's particles from `first` to before `last`.
  Status step(Share source, double step_time) {
    for (Particle& particle : census_) particle.time = step_time;
    waiting_.insert(waiting_.end(), census_.begin(), census_.end());
    census_.clear();
    return until_all_idle(runtime_, [&] {
      if (waiting_.empty()) return source.first < source.last && emit(source.first++);
      return fly_one();
    });
  }
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return census_.size(); }

 private:
  bool emit(std::uint64_t number) {
    const Particle particle = tracker_.emit(number);
    ++tracker_.tallies.emitted;
    const Rank owner = domains_.owner(particle.cell);
    if (owner != runtime_.rank()) return deliver(runtime_, owner, arrive_, particle);
    waiting_.push_back(particle);
    return true;
  }
  bool fly_one() {
    Particle particle = waiting_.back();
    waiting_.pop_back();
    if (++flights_ % kFlightsBetweenPolls == 0) runtime_.poll();  // or others wait for the particles that enter
    switch (tracker_.fly(particle, waiting_)) {
      case Tracker::Fate::kLeftBox:
        return deliver(runtime_, domains_.owner(particle.cell), arrive_, particle);
      case Tracker::Fate::kCensus:
        census_.push_back(particle);
        break;
      case Tracker::Fate::kEnded:
        break;
    }
    return true;
  }

  Runtime& runtime_;
  const Domains& domains_;
  Tracker& tracker_;
  route::Handler<Particle> arrive_;
  std::vector<Particle> waiting_;  ///< to be flown in this time step
  std::vector<Particle> census_;   ///< to be flown in the next
  unsigned flights_ = 0;
};

/// The sum over all ranks, and a check that the particles add up.
Result<Tallies> sum(Runtime& runtime, Tallies tallies) {
  for (std::uint64_t* const count :
       {&tallies.emitted, &tallies.born, &tallies.captured, &tallies.fissions, &tallies.scattered, &tallies.escaped[0],
        &tallies.escaped[1], &tallies.escaped[2], &tallies.escaped[3], &tallies.escaped[4], &tallies.escaped[5],
        &tallies.facets, &tallies.in_flight, &tallies.track_length}) {
    const auto all = runtime.reduce(*count);
    if (!all) return all.status();
    *count = *all;
  }
  const std::uint64_t begun = tallies.emitted + tallies.born;
  const std::uint64_t ended = std::accumulate(tallies.escaped.begin(), tallies.escaped.end(),
                                              tallies.captured + tallies.fissions + tallies.in_flight);
  if (begun == ended) return tallies;
  return Status(StatusCode::kInternal,
                fmt::format("{} particles began, {} ended or are in flight: some were lost or doubled", begun, ended));
}

}  // namespace

Result<Transport> simulate(Runtime& runtime, const TransportOptions& options) {
  const auto domains = Domains::cut(options.mesh, runtime.ranks());
  if (!domains) return domains.status();
  Transport result{.box = domains->box(runtime.rank()), .boxes = domains->boxes()};
  Tracker tracker(options, result.box);
  Population population(runtime, *domains, tracker);

  if (Status ready = barrier(runtime); !ready) return ready;
  const Stopwatch watch;
  for (std::uint64_t step = 0; step < options.steps; ++step) {
    Share source = Share::of(options.particles, runtime.rank(), runtime.ranks());
    source.first += step * options.particles;
    source.last += step * options.particles;
    if (Status done = population.step(source, options.step_time); !done) return done;
    // No rank moves a particle of the next step during this one.
    if (Status ready = barrier(runtime); !ready) return ready;
  }
  result.seconds = watch.seconds();

  tracker.tallies.in_flight = population.in_flight();
  auto totals = sum(runtime, tracker.tallies);
  if (!totals) return totals.status();
  result.totals = *totals;
  result.cells = std::move(tracker.cells);
  return result;
}

}  // namespace wherry::apps
