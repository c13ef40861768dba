// SPDX-License-Identifier: Apache-2.0
// The session of a conveyor: from begin to reset.
#include "route/convey/conveyor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace wherry::route::convey {

Conveyor::Conveyor(detail::RuntimeCore& core, detail::Agreement& agreement, std::uint32_t data, std::uint32_t credit,
                   Traits traits, std::uint32_t& epoch)
    : core_(core),
      agreement_(agreement),
      data_(data),
      credit_(credit),
      traits_(traits),
      epoch_(epoch),
      packet_bytes_(core.max_buffer() / 4 & ~std::size_t{7}),
      ranks_(core.ranks),
      outs_(ranks_),
      spent_(ranks_) {
  start_watching();
}

int Conveyor::begin(std::size_t item_bytes, std::size_t align) {
  if (state_ != State::kDormant) return refusal();
  if (item_bytes == 0) return kZero;
  if (item_bytes > traits_.largest) return kOverflow;
  item_bytes_ = item_bytes;
  const bool good = std::has_single_bit(align) && align <= CONVEY_MAX_ALIGN && item_bytes % align == 0;
  align_ = good ? align : std::min<std::size_t>(item_bytes & -item_bytes, CONVEY_MAX_ALIGN);
  state_ = State::kWorking;
  ++counts_[convey_BEGINS];
  return convey_OK;
}

int Conveyor::advance(bool done) {
  if (state_ == State::kDormant || state_ == State::kInherited) return refusal();
  ++counts_[convey_ADVANCES];
  if (state_ == State::kComplete) return convey_DONE;
  if (done && state_ == State::kWorking) state_ = State::kEndgame;
  core_.poll();
  if (failure_ != 0) return failure_;
  if (!core_.departed().empty()) {
    const Rank who = core_.departed().front().rank;
    core_.fail(JobFailure{
        {StatusCode::kUnavailable, fmt::format("rank {} has left the job in the middle of a conveyor's session", who)},
        who});
  }
  if (!core_.status()) return kComms;
  const bool all_left = pending_.item.empty() || push_pending();
  if (state_ == State::kWorking) return convey_OK;
  if (state_ == State::kEndgame) {
    // A rank contributes after its last push. If the sums of pushed and arrived items are equal, all have arrived.
    const auto words = agreement_.take_outcome();
    if (words && words->a == words->b) {
      state_ = State::kCleanup;
    } else if (all_left && !agreement_.contributed()) {
      agreement_.contribute(detail::Agreement::Combine::kSum,
                            {static_cast<std::uint64_t>(counts_[convey_PUSHES]), arrived_});
      ++counts_[convey_SYNCS];
    }
    core_.flush();
  }
  if (state_ == State::kEndgame) return convey_OK;
  if (ready()) return convey_NEAR;
  state_ = State::kComplete;
  return convey_DONE;
}

bool Conveyor::barrier() { return core_.reduce(0, detail::Agreement::Combine::kSum).ok(); }

int Conveyor::reset() {
  if (state_ == State::kDormant) return convey_OK;
  if (state_ != State::kComplete) return refusal();
  for (Out& out : outs_) close_packet(out);
  for (std::size_t i = 0; i < counts_.size(); ++i) before_[i] += std::exchange(counts_[i], 0);
  std::ranges::fill(outs_, Out{});
  std::ranges::fill(spent_, 0);
  arrivals_.clear();
  arrived_ = 0;
  ++epoch_;
  state_ = State::kDormant;
  // Packets of the next session must not reach a rank that is still in this session.
  return barrier() ? static_cast<int>(convey_OK) : static_cast<int>(kComms);
}

int Conveyor::set_codec(const convey_codec_t* codec) const noexcept {
  if (state_ != State::kDormant) return refusal();
  return codec == nullptr ? static_cast<int>(convey_OK) : static_cast<int>(convey_FAIL);
}

std::int64_t Conveyor::statistic(int which) const noexcept {
  const bool cumulative = which >= convey_CUMULATIVE;
  const int index = cumulative ? which - convey_CUMULATIVE : which;
  if (index < 0 || index >= convey_CUMULATIVE) return -1;
  const auto at = static_cast<std::size_t>(index);
  return counts_[at] + (cumulative ? before_[at] : 0);
}

bool Conveyor::first_time(int error) noexcept {
  const std::uint32_t bit = 1U << (-error & 31);
  if (traits_.quiet || (told_ & bit) != 0) return false;
  told_ |= bit;
  return true;
}

}  // namespace wherry::route::convey
