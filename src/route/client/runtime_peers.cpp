// SPDX-License-Identifier: Apache-2.0
// How a rank learns that others have left the job or found it broken, and how it tells them.
#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "route/client/runtime_core.hpp"

namespace wherry::route::detail {
/// Ranks of this process. One that exit() ends in the middle takes no part any more, though its Runtime is never
/// destroyed, and the process may live on for long (in MPI_Finalize).
struct Living {
  pid_t process = getpid();  // a child of fork() has no part in the job: its end says nothing
  std::mutex mutex;
  std::vector<Alive*> ranks;

  static Living& get() {
    static Living* const one = [] {
      (void)spdlog::default_logger_raw();  // what logs at the end must have been made before, to go later
      on_exit([](int status, void*) { get().at_exit(status); }, nullptr);
      return new Living;  // for threads that still run while the process ends
    }();
    return *one;
  }

 private:
  void at_exit(int status) {
    if (process != getpid()) return;
    const std::lock_guard lock(mutex);
    for (Alive* rank : ranks) rank->at_exit(status);
  }
};

Alive::Alive(Presence presence, RuntimeCore& core) : presence_(presence), core_(core) {
  const std::lock_guard lock(Living::get().mutex);
  Living::get().ranks.push_back(this);
}

Alive::~Alive() {
  const std::lock_guard lock(Living::get().mutex);
  std::erase(Living::get().ranks, this);
}

/// A runtime that another thread uses, perhaps at this moment, is not touched: its presence is one word.
void Alive::at_exit(int status) noexcept {
  if (status == 0 && pthread_equal(user_.load(std::memory_order_relaxed), pthread_self()) != 0) core_.leave_job();
  presence_.leave();
}

void RuntimeCore::fail(Breakdown breakdown) noexcept {
  if (!failure_ || breakdown.ok()) return;
  failure_ = breakdown.why;
  news_.clear();
  wiring_->fail(breakdown);
  try {
    tell(kAbortHandler, encode(breakdown, router_.largest() - sizeof(Header)));
  } catch (const std::bad_alloc&) {  // the others notice the end of this process
  }
}

void RuntimeCore::tell(std::uint32_t handler, ByteView message) {
  for (const Rank to : wiring_->distant()) news_.push_back({to, handler, Bytes(message.begin(), message.end())});
  push_news();
}

/// What one lane has no room for keeps nothing from the others; in a lane, nothing overtakes what came before.
void RuntimeCore::push_news() noexcept {
  auto kept = news_.begin();
  for (auto one = news_.begin(); one != news_.end(); ++one) {
    const Lane* const lane = &router_.lane_of(one->to);
    const bool behind =
        std::any_of(news_.begin(), kept, [&](const News& other) { return &router_.lane_of(other.to) == lane; });
    if (!behind && try_put(one->to, one->handler, one->message)) continue;
    if (kept != one) *kept = std::move(*one);
    ++kept;
  }
  news_.erase(kept, news_.end());
  send_out();
}

void RuntimeCore::note_first_message() noexcept {
  communicating_ = true;
  file_->communicate(statistics());
}

void RuntimeCore::note_quiet() noexcept {
  if (file_ != nullptr && communicating_) file_->quiet(statistics());
}

/// A child that sees this rank leave after such a round waits for its outcome for as long as it takes.
void RuntimeCore::conclude() noexcept {
  if (!news_.empty()) return;
  flush(Flush::kExplicit);
  concluded_ = agreement_.round();
  wiring_->conclude(concluded_);
}

void RuntimeCore::look_around() noexcept {
  constexpr std::uint64_t kKernelEvery = 8;
  constexpr std::uint64_t kArrivalNs = 1'000'000'000;  // for what has come already, and waits to be handled
  if (!failure_) return;
  alive_.used_here();
  const bool ask_kernel = ++looks_ % kKernelEvery == 0;
  for (Neighbour& neighbour : wiring_->neighbours()) {
    Presence::Seen seen = neighbour.look(ask_kernel);
    if (seen.state == Presence::State::kBroken) return fail(std::move(seen.breakdown));
    if (seen.state == Presence::State::kLeft) on_left({neighbour.rank(), seen.rounds});
  }
  for (const Rank rank : wiring_->distant()) {
    // Whoever leaves says so in a message, for which there may have been no room: then no outcome has left, either.
    if (!wiring_->has_left(router_.index_of(router_.lane_of(rank)))) continue;
    const std::uint64_t since = silent_since_.try_emplace(rank, now_ns()).first->second;
    if (now_ns() - since > kArrivalNs) on_left({rank, agreement_.round()});
  }
  fail(Breakdown{wiring_->health()});
}

void RuntimeCore::on_left(Departure who) noexcept {
  if (std::ranges::find(departed_, who.rank, &Departure::rank) != departed_.end()) return;
  departed_.push_back(who);
  for (const Neighbour& neighbour : wiring_->neighbours()) {
    if (neighbour.rank() == who.rank) router_.close(router_.lanes()[neighbour.lane()]);
  }
  if (std::ranges::find(wiring_->distant(), who.rank) != wiring_->distant().end())
    router_.close(router_.lane_of(who.rank));
}

/// A rank that has concluded as many rounds as this one, or fewer, will not contribute to the round at hand. One that
/// has concluded more was in this round: its outcome is on the way.
void RuntimeCore::check_departed() noexcept {
  const bool waiting = reducing_ || phase_ == Phase::kCounting || phase_ == Phase::kConfirming;
  if (!waiting || leaving_ || agreement_.concluded()) return;
  for (const Departure& who : departed_) {
    if (static_cast<std::int32_t>(agreement_.round() - who.rounds) < 0) continue;
    fail({{StatusCode::kUnavailable,
           fmt::format("rank {} has left the job, or its process has ended, while rank {} waits for it in a collective "
                       "call: all ranks must make the same calls before they end",
                       who.rank, place().rank)},
          who.rank});
    return;
  }
}

void RuntimeCore::check_undeliverable() noexcept {
  if (leaving_ || !failure_) return;
  const Rank to = router_.undeliverable_to();
  // The rank itself, or the next hop on the way to it.
  const Lane* const lane = to < ranks && router_.lane_of(to).closed ? &router_.lane_of(to) : nullptr;
  const auto ends_lane = [&](const Departure& one) {
    const bool near = std::ranges::any_of(wiring_->neighbours(), [&](const Neighbour& neighbour) {
      return neighbour.rank() == one.rank && &router_.lanes()[neighbour.lane()] == lane;
    });
    return near || (&router_.lane_of(one.rank) == lane &&
                    std::ranges::find(wiring_->distant(), one.rank) != wiring_->distant().end());
  };
  auto who = std::ranges::find(departed_, to, &Departure::rank);
  if (who == departed_.end() && lane != nullptr) who = std::ranges::find_if(departed_, ends_lane);
  const bool known = who != departed_.end();
  std::string why = "a rank or an agent on the way to it";
  if (known) why = fmt::format("rank {}{}", who->rank, who->rank == to ? "" : ", through which it goes,");
  fail({{StatusCode::kUnavailable,
         fmt::format("rank {} has a message for rank {}, and {} has left the job: call quiesce() on all ranks before "
                     "they end",
                     place().rank, to, why)},
        known ? who->rank : Breakdown::kNobody});
}

}  // namespace wherry::route::detail
