// SPDX-License-Identifier: Apache-2.0
// One thread's share of an agent's routing for a job: a hop, and its turns.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "route/hop.hpp"

namespace wherry::route {

class RoutingThread {
 public:
  explicit RoutingThread(std::unique_ptr<Hop> hop) : hop_(std::move(hop)) {}
  ~RoutingThread() { stop(); }
  RoutingThread(const RoutingThread&) = delete;
  RoutingThread& operator=(const RoutingThread&) = delete;

  [[nodiscard]] Hop& hop() noexcept { return *hop_; }
  /// Runs one turn: forwards the messages that have arrived. True: there were some. Only for the owning thread, and not
  /// after start().
  bool turn() noexcept;
  /// Runs turns in a separate thread until stop(). `core` -1: not pinned.
  void start(int core);
  void stop() noexcept;
  /// Ok, or the reason of the job's failure, as far as this hop has detected it. For the owning thread, also after
  /// start().
  [[nodiscard]] JobFailure failure();
  /// For the owning thread. After start(), returns the counts of the last snapshot.
  [[nodiscard]] RouterCounts counts() noexcept;
  /// Puts one message into the lane to its rank. False: there is no room. Drops a message for a lane that is closed or
  /// not connected. Threads: as for turn().
  [[nodiscard]] bool try_put(Rank to, std::uint32_t handler, ByteView message) noexcept;
  [[nodiscard]] bool running() const noexcept { return thread_.joinable(); }

 private:
  bool drain(Input& input) noexcept;
  void take_snapshot();

  std::unique_ptr<Hop> hop_;
  bool malformed_ = false;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  ///< of the snapshot, which other threads read
  RouterCounts counts_;
  JobFailure failure_;  ///< the first one
};

}  // namespace wherry::route
