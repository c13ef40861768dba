// SPDX-License-Identifier: Apache-2.0
// How a rank learns that others have left the job or found it broken, and how it tells them.
#include <fmt/core.h>

#include <algorithm>

#include "route/client/runtime_core.hpp"

namespace wherry::route::detail {

void RuntimeCore::fail(Breakdown breakdown) noexcept {
  if (!failure_ || breakdown.ok()) return;
  failure_ = breakdown.why;
  notices_.clear();
  wiring_->fail(breakdown);
  try {
    tell(kAbortHandler, encode(breakdown, router_.largest() - sizeof(Header)));
  } catch (const std::bad_alloc&) {  // the others notice the end of this process
  }
}

void RuntimeCore::tell(std::uint32_t handler, ByteView message) {
  for (const Rank to : wiring_->distant()) notices_.push_back({to, handler, Bytes(message.begin(), message.end())});
  push_notices();
}

/// What one lane has no room for keeps nothing from the others; in a lane, nothing overtakes what came before.
void RuntimeCore::push_notices() noexcept {
  auto kept = notices_.begin();
  for (auto one = notices_.begin(); one != notices_.end(); ++one) {
    const Lane* const lane = &router_.lane_of(one->to);
    const bool behind =
        std::any_of(notices_.begin(), kept, [&](const Notice& other) { return &router_.lane_of(other.to) == lane; });
    if (!behind && try_put(one->to, one->handler, one->message)) continue;
    if (kept != one) *kept = std::move(*one);
    ++kept;
  }
  notices_.erase(kept, notices_.end());
  flush();
}

void RuntimeCore::look_around() noexcept {
  constexpr std::uint64_t kKernelEvery = 8;
  constexpr std::uint64_t kArrivalNs = 1'000'000'000;  // for what has come already, and waits to be handled
  if (!failure_) return;
  exit_watch_.used_here();
  const bool ask_kernel = ++looks_ % kKernelEvery == 0;
  for (Neighbour& neighbour : wiring_->neighbours()) {
    Presence::Seen seen = neighbour.look(ask_kernel);
    if (seen.state == Presence::State::kBroken) return fail(std::move(seen.breakdown));
    if (seen.state == Presence::State::kLeft) on_left({neighbour.rank(), seen.rounds});
  }
  for (const Rank rank : wiring_->distant()) {
    // Whoever leaves says so in a message, for which there may have been no room: then no outcome has left, either.
    if (!wiring_->has_left(router_.index_of(router_.lane_of(rank)))) continue;
    const std::uint64_t since = closed_since_.try_emplace(rank, now_ns()).first->second;
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
