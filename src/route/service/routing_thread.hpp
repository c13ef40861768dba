// SPDX-License-Identifier: Apache-2.0
// One thread's share of a job's routing: what it receives, where it sends, and the rounds that it makes.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "route/post.hpp"

namespace wherry::route {

class RoutingThread {
 public:
  explicit RoutingThread(std::unique_ptr<Post> post) : post_(std::move(post)) {}
  ~RoutingThread() { stop(); }
  RoutingThread(const RoutingThread&) = delete;
  RoutingThread& operator=(const RoutingThread&) = delete;

  [[nodiscard]] Post& post() noexcept { return *post_; }
  /// One round: what has arrived goes on. True if there was something. For the thread that owns this, and nobody once
  /// start() was called.
  bool turn() noexcept;
  /// Makes rounds in a thread of its own until stop().
  void start(int core);
  void stop() noexcept;
  /// Why messages cannot go on, if so.
  [[nodiscard]] Breakdown failure();
  [[nodiscard]] RouterCounts counts();
  /// Puts one message into the lane of its rank; false: there is no room. What can never go, because the lane is closed
  /// or not connected, is dropped. Owner only.
  [[nodiscard]] bool try_put(Rank to, std::uint32_t handler, ByteView message) noexcept;
  [[nodiscard]] bool running() const noexcept { return thread_.joinable(); }

 private:
  bool drain(Input& input) noexcept;
  void note();

  std::unique_ptr<Post> post_;
  bool malformed_ = false;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  ///< of what other threads ask for: a copy, made now and then
  RouterCounts noted_;
  Breakdown failure_;
};

}  // namespace wherry::route
