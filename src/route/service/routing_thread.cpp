// SPDX-License-Identifier: Apache-2.0
#include "route/service/routing_thread.hpp"

#include "base/cpu.hpp"
#include "base/guarded.hpp"
#include "route/idle.hpp"

namespace wherry::route {
namespace {

constexpr std::uint64_t kFlushAfterNs = 50'000;  // a steady stream to one hop must not hold up messages to others
constexpr unsigned kTurnsBetweenSnapshots = 4096;

}  // namespace

bool RoutingThread::drain(Input& input) noexcept {
  const auto none_are_mine = [](const std::byte* at, const std::byte*) { return at; };
  const bool worked = hop_->router().drain(input, none_are_mine);
  malformed_ |= input.malformed;
  return worked;
}

bool RoutingThread::turn() noexcept {
  Router& router = hop_->router();
  const bool progressed = hop_->progress();
  const auto drain_all = [&] {
    bool worked = false;
    router.each_input([&](Input& input) { worked |= drain(input); });
    return worked;
  };
  bool worked = drain_all();
  if (!router.armed()) return progressed || worked;
  // Check a second time. If there is still no message, flush now: waiting for the next turn would not help.
  if (!worked || !drain_all()) {
    worked |= router.flush(Flush::kIdle);
    return hop_->progress() || progressed || worked;
  }
  router.flush_late(kFlushAfterNs);
  return true;
}

bool RoutingThread::try_put(Rank to, std::uint32_t handler, ByteView message) noexcept {
  Router& router = hop_->router();
  Lane& lane = router.lane_of(to);
  if (!lane.ring || lane.closed) return true;
  return router.try_put(lane, Header::make(message.size(), handler, to), message);
}

void RoutingThread::take_snapshot() {
  const std::lock_guard lock(mutex_);
  counts_ = hop_->router().counts;
  Status health = hop_->health();  // may throw: before close_left(), which returns a failure only once
  JobFailure told = hop_->close_left();
  if (failure_.ok()) failure_ = {std::move(health)};
  if (failure_.ok()) failure_ = std::move(told);
  if (failure_.ok() && hop_->router().undeliverable()) {
    const Rank to = hop_->router().undeliverable_to();
    failure_ = {{StatusCode::kUnavailable, "a message has come for rank " + std::to_string(to) +
                                               ", which has left the job: call quiesce() on all ranks before they end"},
                to};
  }
  if (failure_.ok() && malformed_)
    failure_ = {{StatusCode::kProtocol, "a rank or an agent of the job sent bytes that are not a message"}};
}

JobFailure RoutingThread::failure() {
  if (!running()) take_snapshot();
  const std::lock_guard lock(mutex_);
  return failure_;
}

RouterCounts RoutingThread::counts() noexcept {
  if (!running()) return hop_->router().counts;
  const std::lock_guard lock(mutex_);
  return counts_;
}

void RoutingThread::start(int core) {
  thread_ = std::thread([this, core] {
    name_thread("wherry-route");
    if (core >= 0) (void)pin_thread({core});
    IdleTurns idle;
    unsigned turns = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
      if (turn()) {
        idle.reset();
      } else {
        idle.wait();
      }
      if (++turns % kTurnsBetweenSnapshots == 0) attempt([this] { take_snapshot(); });  // or else the next one
    }
  });
}

void RoutingThread::stop() noexcept {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

}  // namespace wherry::route
