// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process and reach each other over TCP on the loopback interface.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu.hpp"
#include "base/testing.hpp"
#include "route/client/process_wiring.hpp"
#include "route/client/runtime_access.hpp"

namespace wherry::route::testing_support {

/// An exchange among the ranks of one process.
class Meeting {
 public:
  explicit Meeting(Rank ranks) : brought_(ranks) {}
  std::vector<Bytes> exchange(Rank rank, ByteView mine) {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    brought_[rank].assign(mine.begin(), mine.end());
    if (++arrived_ == brought_.size()) {
      taken_ = std::exchange(brought_, std::vector<Bytes>(brought_.size()));
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
    }
    all_here_.wait(lock, [&] { return round_ != round; });
    return taken_;  // the next round's is only made when all ranks have come to it
  }
  [[nodiscard]] Rank ranks() const noexcept { return static_cast<Rank>(brought_.size()); }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<Bytes> brought_, taken_;
  std::size_t arrived_ = 0;
  std::uint64_t round_ = 0;
};

class ThreadBootstrap final : public Bootstrap {
 public:
  ThreadBootstrap(std::shared_ptr<Meeting> meeting, Rank rank) : meeting_(std::move(meeting)), rank_(rank) {}
  [[nodiscard]] Rank rank() const noexcept override { return rank_; }
  [[nodiscard]] Rank ranks() const noexcept override { return meeting_->ranks(); }
  [[nodiscard]] std::uint32_t node() const noexcept override { return rank_; }
  [[nodiscard]] std::uint64_t job() const noexcept override { return 1; }
  Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& /*deadline*/) override {
    return meeting_->exchange(rank_, mine);
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  Rank rank_;
};

/// Runs `body` as each rank, on a separate node, with the wiring that `wrap(rank, wiring)` returns.
inline void run_over_network(Rank ranks, RingShape shape,
                             const std::function<std::unique_ptr<Wiring>(Rank, std::unique_ptr<Wiring>)>& wrap,
                             const std::function<void(std::unique_ptr<Runtime>)>& body) {
  ::setenv("WHERRY_ROUTE_LISTEN", "lo", 1);
  std::vector<Hello> all;
  for (Rank rank = 0; rank < ranks; ++rank) {
    all.push_back({.node = rank,
                   .placement = Placement::kInline,
                   .shape = shape,
                   .host = host_identity(),
                   .memory_between_nodes = false,
                   .network = Transport::kTcp});
  }
  const auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto wiring = wire_inline(all[rank], all, std::make_unique<ThreadBootstrap>(meeting, rank),
                                Deadline(wherry::testing_support::kPatience));
      ASSERT_TRUE(wiring) << wiring.status().message();
      body(std::make_unique<Runtime>(detail::make_runtime(Options{}, wrap(rank, *std::move(wiring)))));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Runs `body(runtime)` as each rank, on a separate node. Returns each rank's status() at the end.
inline std::vector<Status> run_over_network(Rank ranks, RingShape shape, const std::function<void(Runtime&)>& body) {
  std::vector<Status> statuses(ranks);
  run_over_network(
      ranks, shape, [](Rank, std::unique_ptr<Wiring> wiring) { return wiring; },
      [&](std::unique_ptr<Runtime> runtime) {
        body(*runtime);
        statuses[runtime->rank()] = runtime->status();
      });
  return statuses;
}

}  // namespace wherry::route::testing_support
