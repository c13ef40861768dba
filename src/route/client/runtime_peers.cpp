// SPDX-License-Identifier: Apache-2.0
// How a rank detects that others have left or that the job has failed, and how it reports the same about itself.
#include <fmt/core.h>

#include <algorithm>

#include "route/client/runtime_core.hpp"

namespace wherry::route::detail {

void RuntimeCore::fail(JobFailure failure) noexcept {
  if (!failure_ || failure.ok()) return;
  failure_ = failure.why;
  notices_.clear();
  wiring_->fail(failure);
  try {
    tell(kAbortHandler, encode(failure, router_.buffer_bytes() - sizeof(Header)));
  } catch (const std::bad_alloc&) {  // the other ranks will notice the end of this process
  }
}

bool RuntimeCore::bridged(Rank rank) const noexcept {
  return std::ranges::find(wiring_->bridged_hops(), rank) != wiring_->bridged_hops().end();
}

void RuntimeCore::tell(std::uint32_t handler, ByteView message) {
  for (const Rank to : wiring_->bridged_hops())
    notices_.push_back({to, handler, Bytes(message.begin(), message.end())});
  push_notices();
}

/// Sends notices in order within each lane. A full lane does not delay notices for other lanes.
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
  constexpr std::uint64_t kLooksBetweenSystemCalls = 8;
  constexpr std::uint64_t kArrivalNs = 1'000'000'000;  // for messages that have arrived and wait to be handled
  if (!failure_) return;
  exit_watch_.used_here();
  const bool ask_kernel = ++looks_ % kLooksBetweenSystemCalls == 0;
  for (MappedHop& hop : wiring_->mapped_hops()) {
    Presence::Seen seen = hop.look(ask_kernel);
    if (seen.state == Presence::State::kFailed) return fail(std::move(seen.failure));
    if (seen.state == Presence::State::kLeft) on_left({hop.rank(), seen.rounds});
  }
  for (const Rank rank : wiring_->bridged_hops()) {
    // A leaving rank sends a departure. If it had no room for that, it also sent no later outcome of a round.
    if (!wiring_->has_left(router_.index_of(router_.lane_of(rank)))) continue;
    const std::uint64_t since = closed_since_.try_emplace(rank, now_ns()).first->second;
    if (now_ns() - since > kArrivalNs) on_left({rank, agreement_.round()});
  }
  fail(JobFailure{wiring_->health()});
}

void RuntimeCore::on_left(Departure who) noexcept {
  if (std::ranges::find(departed_, who.rank, &Departure::rank) != departed_.end()) return;
  departed_.push_back(who);
  for (const MappedHop& hop : wiring_->mapped_hops()) {
    if (hop.rank() == who.rank) router_.close(router_.lanes()[hop.lane()]);
  }
  if (bridged(who.rank)) router_.close(router_.lane_of(who.rank));
}

/// If a departed rank had concluded no more rounds than this rank has, it will not contribute to the current round, so
/// the job fails. If it had concluded more, it took part in the current round, and that outcome will arrive.
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
  // The lane to that rank, if the lane's reader (the destination or the next hop to it) has left.
  const Lane* const lane = to < ranks && router_.lane_of(to).closed ? &router_.lane_of(to) : nullptr;
  const auto ends_lane = [&](const Departure& one) {
    const bool mapped = std::ranges::any_of(wiring_->mapped_hops(), [&](const MappedHop& hop) {
      return hop.rank() == one.rank && &router_.lanes()[hop.lane()] == lane;
    });
    return mapped || (&router_.lane_of(one.rank) == lane && bridged(one.rank));
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
        known ? who->rank : JobFailure::kNobody});
}

}  // namespace wherry::route::detail
