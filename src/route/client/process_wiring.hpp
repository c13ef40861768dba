// SPDX-License-Identifier: Apache-2.0
// The wiring of a rank that is a process of its own, with or without an agent.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "route/client/bootstrap.hpp"
#include "route/client/wiring.hpp"
#include "route/post.hpp"

namespace wherry::route {

class ProcessWiring : public Wiring {
 public:
  ProcessWiring(Place place, std::unique_ptr<Bootstrap> bootstrap, std::unique_ptr<Post> post)
      : Wiring(std::move(place)), bootstrap_(std::move(bootstrap)), post_(std::move(post)) {
    router_ = &post_->router();
    presence_ = post_->presence();
    living_.fetch_add(1);
  }
  ~ProcessWiring() override { living_.fetch_sub(1); }
  /// Whether this process, or the one that it is a fork of, is a rank of a job now.
  [[nodiscard]] static bool is_rank() noexcept { return living_.load() != 0; }
  /// `next`: the rank at the end of lane `lane`.
  void watch(Rank next, std::uint32_t lane, pid_t process) {
    if (next == place_.rank) return;
    if (const Presence presence = post_->presence_of(lane)) {
      neighbours_.emplace_back(next, lane, presence, process);
    } else {
      distant_.push_back(next);
    }
  }
  bool progress() noexcept override { return post_->progress(); }
  bool has_sent(std::uint32_t lane, std::uint64_t written) noexcept override { return post_->has_sent(lane, written); }
  bool has_left(std::uint32_t lane) noexcept override { return post_->has_left(lane); }
  bool depart(std::chrono::nanoseconds patience) noexcept override { return post_->settled(patience); }
  [[nodiscard]] std::string untaken() override { return post_->unsettled(); }
  void leave() noexcept override {
    Wiring::leave();
    post_->say_goodbye();
  }
  void fail(const Breakdown& breakdown) noexcept override {
    Wiring::fail(breakdown);
    bootstrap_->report(breakdown);
  }
  Status health() noexcept override {
    const Status post = post_->health();
    return post ? bootstrap_->health() : post;
  }
  [[nodiscard]] std::string transport() const override { return post_->transport(); }

 protected:
  std::unique_ptr<Bootstrap> bootstrap_;

 private:
  static inline std::atomic<int> living_{0};
  std::unique_ptr<Post> post_;
};

}  // namespace wherry::route
