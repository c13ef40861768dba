// SPDX-License-Identifier: Apache-2.0
// Plays arbitrary interleavings of sends, polls and try_quiesce() on all ranks of a job in one thread. Compares the
// results of try_quiesce() with its own counts: it knows when each message was accepted and when it was handled. For
// tests and for a fuzz target.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "route/client/runtime_access.hpp"

namespace wherry::route::testing_support {

/// A message that is forwarded `hops` times. It belongs to an episode, which is the number of successful quiesces that
/// the first sender had seen.
struct Spark {
  std::uint32_t episode = 0;
  std::uint32_t hops = 0;
};

class QuiescePlay {
 public:
  struct Options {
    std::vector<std::uint32_t> node_of_rank;
    std::uint32_t episodes = 3;
    std::uint32_t sends = 6;  ///< by a rank, outside of handlers, in an episode
    std::uint64_t steps = 2'000'000;
  };
  /// `choose(n)` returns a number below n.
  QuiescePlay(Options options, std::function<std::uint32_t(std::uint32_t)> choose)
      : options_(std::move(options)),
        choose_(std::move(choose)),
        sent_(options_.episodes),
        handled_(options_.episodes) {
    for (auto& wiring : wire_threads(options_.node_of_rank, {2, 256}))
      actors_.push_back(std::make_unique<Actor>(detail::make_runtime(route::Options{}, std::move(wiring))));
    for (auto& actor : actors_) {
      actor->spark = actor->runtime.on<Spark>([this, a = actor.get()](const Spark& spark) {
        ++handled_[spark.episode];
        if (spark.hops == 0) return;
        const Spark next{spark.episode, spark.hops - 1};
        if (a->runtime.send(choose_(ranks()), a->spark, next) == StatusCode::kOk) ++sent_[next.episode];
      });
    }
  }

  /// Empty: all results were right and all episodes ended. Otherwise describes the error.
  std::string run() {
    for (std::uint64_t step = 0; step < options_.steps && error_.empty(); ++step) {
      bool all_done = true;
      for (const auto& actor : actors_) all_done &= actor->episode == options_.episodes;
      if (all_done) return {};
      act(*actors_[choose_(ranks())]);
    }
    return error_.empty() ? "the ranks did not come to an end" : error_;
  }

 private:
  struct Actor {
    explicit Actor(Runtime r) : runtime(std::move(r)) {}
    Runtime runtime;
    Handler<Spark> spark;
    std::uint32_t episode = 0;
    std::uint32_t sends = 0;
    bool must_be_over = false;  ///< a send was refused because all ranks have completed this episode
  };

  [[nodiscard]] std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(actors_.size()); }

  void act(Actor& actor) {
    if (actor.episode == options_.episodes || choose_(3) == 0) {
      actor.runtime.poll();
      return;
    }
    if (!actor.must_be_over && actor.sends < options_.sends && choose_(4) == 0) return send(actor);
    const StatusCode code = actor.runtime.try_quiesce();
    if (code == StatusCode::kWouldBlock) {
      if (actor.must_be_over)
        error_ = "a send was refused because the quiesce is over, but try_quiesce() says it is not";
      return;
    }
    if (code != StatusCode::kOk) {
      error_ = "try_quiesce: " + actor.runtime.status().to_string();
      return;
    }
    if (sent_[actor.episode] != handled_[actor.episode]) {
      error_ = "try_quiesce() is ok in episode " + std::to_string(actor.episode) + ", of whose " +
               std::to_string(sent_[actor.episode]) + " messages " + std::to_string(handled_[actor.episode]) +
               " have been handled";
    }
    ++actor.episode;
    actor.sends = 0;
    actor.must_be_over = false;
  }

  void send(Actor& actor) {
    const Spark spark{actor.episode, choose_(4)};
    const StatusCode code = actor.runtime.try_send(choose_(ranks()), actor.spark, spark);
    if (code == StatusCode::kOk) {
      ++sent_[spark.episode];
      ++actor.sends;
    } else if (code == StatusCode::kFailedPrecondition) {
      actor.must_be_over = true;
    } else if (code != StatusCode::kWouldBlock) {
      error_ = "try_send: " + actor.runtime.status().to_string();
    }
  }

  const Options options_;
  const std::function<std::uint32_t(std::uint32_t)> choose_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::vector<std::uint64_t> sent_, handled_;  ///< by episode, of all ranks
  std::string error_;
};

}  // namespace wherry::route::testing_support
