// SPDX-License-Identifier: Apache-2.0
#include "route/service/routing_thread.hpp"

#include "base/cpu.hpp"
#include "base/guarded.hpp"
#include "route/idle.hpp"

namespace wherry::route {
namespace {

constexpr std::uint64_t kFlushAfterNs = 50'000;  // what arrives steadily for one hop must not keep others' messages
constexpr unsigned kNoteEvery = 4096;            // rounds

}  // namespace

bool RoutingThread::drain(Input& input) noexcept {
  const auto none_are_mine = [](const std::byte* at, const std::byte*) { return at; };
  const bool worked = post_->router().drain(input, none_are_mine);
  malformed_ |= input.broken;
  return worked;
}

bool RoutingThread::turn() noexcept {
  Router& router = post_->router();
  const bool progressed = post_->progress();
  const auto drain_all = [&] {
    bool worked = false;
    router.each_input([&](Input& input) { worked |= drain(input); });
    return worked;
  };
  bool worked = drain_all();
  if (!router.armed()) return progressed || worked;
  // A second look: who finds nothing more now has no reason to keep what it has until the next turn.
  if (!worked || !drain_all()) {
    worked |= router.flush(Flush::kIdle);
    return post_->progress() || progressed || worked;
  }
  router.flush_late(kFlushAfterNs);
  return true;
}

bool RoutingThread::try_put(Rank to, std::uint32_t handler, ByteView message) noexcept {
  Router& router = post_->router();
  Lane& lane = router.lane_of(to);
  if (!lane.ring || lane.closed) return true;
  return router.try_put(lane, Header::make(message.size(), handler, to), message);
}

void RoutingThread::note() {
  const std::lock_guard lock(mutex_);
  noted_ = post_->router().counts;
  Status health = post_->health();  // before close_left(), which tells once: this may throw
  // A rank or an agent that has left closes its lanes; what ranks say that have failed counts as the job's failure.
  Breakdown told = post_->close_left();
  if (failure_.ok()) failure_ = {std::move(health)};
  if (failure_.ok()) failure_ = std::move(told);
  if (failure_.ok() && post_->router().undeliverable()) {
    const Rank to = post_->router().undeliverable_to();
    failure_ = {{StatusCode::kUnavailable, "a message has come for rank " + std::to_string(to) +
                                               ", which has left the job: call quiesce() on all ranks before they end"},
                to};
  }
  if (failure_.ok() && malformed_)
    failure_ = {{StatusCode::kProtocol, "a rank or an agent of the job sent bytes that are not a message"}};
}

Breakdown RoutingThread::failure() {
  if (!running()) note();
  const std::lock_guard lock(mutex_);
  return failure_;
}

RouterCounts RoutingThread::counts() {
  if (!running()) note();
  const std::lock_guard lock(mutex_);
  return noted_;
}

void RoutingThread::start(int core) {
  thread_ = std::thread([this, core] {
    name_thread("wherry-route");
    if (core >= 0) (void)pin_thread({core});
    IdleRounds idle;
    unsigned rounds = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
      if (turn()) {
        idle.reset();
      } else {
        idle.wait();
      }
      if (++rounds % kNoteEvery == 0) attempt([this] { note(); });  // the next one has it all
    }
  });
}

void RoutingThread::stop() noexcept {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

}  // namespace wherry::route
