// SPDX-License-Identifier: Apache-2.0
// The wiring of a rank that is a process, with or without an agent.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/try.hpp"
#include "route/client/bootstrap.hpp"
#include "route/client/hello.hpp"
#include "route/client/wiring.hpp"
#include "route/hop.hpp"

namespace wherry::route {

class ProcessWiring : public Wiring {
 public:
  ProcessWiring(Place place, std::unique_ptr<Bootstrap> bootstrap, std::unique_ptr<Hop> hop)
      : Wiring(std::move(place)), bootstrap_(std::move(bootstrap)), hop_(std::move(hop)) {
    router_ = &hop_->router();
    presence_ = hop_->presence();
    living_.fetch_add(1);
  }
  ~ProcessWiring() override { living_.fetch_sub(1); }
  /// Whether this process is now a rank of a job, or a fork of a rank.
  [[nodiscard]] static bool is_rank() noexcept { return living_.load() != 0; }
  /// Checks from now on whether rank `next`, at the end of lane `lane`, still takes part in the job.
  void watch(Rank next, std::uint32_t lane, pid_t process) {
    if (next == place_.rank) return;
    if (const Presence presence = hop_->presence_of(lane)) {
      mapped_hops_.emplace_back(next, lane, presence, process);
    } else {
      bridged_hops_.push_back(next);
    }
  }
  bool progress() noexcept override { return hop_->progress(); }
  bool has_sent(std::uint32_t lane, std::uint64_t written) noexcept override { return hop_->has_sent(lane, written); }
  bool has_left(std::uint32_t lane) noexcept override { return hop_->has_left(lane); }
  bool settled(std::chrono::nanoseconds patience) noexcept override { return hop_->settled(patience); }
  [[nodiscard]] std::string unsettled() override { return hop_->unsettled(); }
  void leave() noexcept override {
    Wiring::leave();
    hop_->leave();
  }
  void fail(const JobFailure& failure) noexcept override {
    Wiring::fail(failure);
    bootstrap_->report(failure);
  }
  Status health() noexcept override {
    WHERRY_TRY(hop_->health());
    return bootstrap_->health();
  }
  [[nodiscard]] std::string transport() const override { return hop_->transport(); }

 protected:
  std::unique_ptr<Bootstrap> bootstrap_;

 private:
  static inline std::atomic<int> living_{0};
  std::unique_ptr<Hop> hop_;
};

/// Connects this rank to its next hops (wire_inline) or to its agent. Collective.
Result<std::unique_ptr<Wiring>> wire_inline(const Hello& mine, const std::vector<Hello>& all,
                                            std::unique_ptr<Bootstrap> bootstrap, const Deadline& deadline);
Result<std::unique_ptr<Wiring>> wire_agents(const Hello& mine, const std::vector<Hello>& all,
                                            std::unique_ptr<Bootstrap> bootstrap, const Deadline& deadline);

}  // namespace wherry::route
