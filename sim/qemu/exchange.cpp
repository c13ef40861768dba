// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/exchange.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "sim/bypass/echo.hpp"

namespace wherry::sim {
namespace {

constexpr std::chrono::minutes kReturnPatience{2};  ///< for what takes milliseconds
constexpr std::chrono::milliseconds kQuiet{300};    ///< longer than any frame is on its way

std::uint32_t slots_of(std::size_t bytes) { return static_cast<std::uint32_t>((bytes + kSlotBytes - 1) / kSlotBytes); }

/// Builds a piece as echo.hpp describes it.
std::vector<std::byte> piece_of(const std::vector<std::byte>& reply, std::size_t number, std::uint32_t longest) {
  const std::size_t most = longest - kPieceHeader, from = number * most;
  const std::size_t count = std::min(most, reply.size() - from);
  std::vector<std::byte> piece(std::max(kShortestFrame, kPieceHeader + count));
  std::copy_n(reply.begin(), 12, piece.begin());
  const std::array<std::size_t, 3> words{kPieceType, number, count};
  for (std::size_t i = 0; i < words.size(); ++i) {
    piece[12 + 2 * i] = static_cast<std::byte>(words[i] / 256);
    piece[13 + 2 * i] = static_cast<std::byte>(words[i] % 256);
  }
  std::copy_n(reply.begin() + static_cast<std::ptrdiff_t>(from), count, piece.begin() + kPieceHeader);
  return piece;
}

}  // namespace

void Exchange::send_what_may() {
  while (next_ < end_ && expected_.size() < limits_.frames) {
    const std::uint32_t slots = slots_of(traffic_.size(next_));
    if (!expected_.empty() && slots_ + slots > limits_.slots) return;
    machine_.wire().send(traffic_.frame(next_));
    expect(next_++);
    ++counters_.sent;
  }
}

void Exchange::expect(std::uint64_t number) {
  std::vector<std::byte> reply = traffic_.reply(number);
  const std::uint32_t slots = slots_of(reply.size());
  const std::size_t before = expected_.size();
  if (reply.size() <= replies_.longest) {
    expected_.push_back({std::move(reply), slots});
  } else if (replies_.longer == LongFrames::kCut) {
    for (std::size_t piece = 0; piece * (replies_.longest - kPieceHeader) < reply.size(); ++piece)
      expected_.push_back({piece_of(reply, piece, replies_.longest), 0});
    expected_.back().slots = slots;
  } else {
    ++counters_.unanswered;
    return;
  }
  slots_ += slots;
  counters_.replies += expected_.size() - before;
}

void Exchange::forget_front() {
  slots_ -= expected_.front().slots;
  expected_.pop_front();
}

void Exchange::check(const std::vector<std::byte>& frame) {
  const auto found =
      std::find_if(expected_.begin(), expected_.end(), [&frame](const Expected& one) { return one.reply == frame; });
  if (found == expected_.end()) {
    ++counters_.wrong;
    return;
  }
  const auto before = static_cast<std::uint64_t>(found - expected_.begin());
  counters_.lost += before;
  ++counters_.returned;
  for (std::uint64_t i = 0; i <= before; ++i) forget_front();
}

Status Exchange::pump() {
  send_what_may();
  for (;;) {
    WHERRY_ASSIGN(const auto frame, machine_.wire().take());
    if (!frame) return {};
    check(*frame);
  }
}

Status Exchange::step() {
  WHERRY_TRY(machine_.turn(1));
  return pump();
}

/// Runs until `done`, or until nothing has returned for a long time.
template <typename Done>
Status Exchange::step_until(const Done& done) {
  std::uint64_t last = returned();
  for (Deadline deadline(kReturnPatience); !done();) {
    WHERRY_TRY(step());
    if (std::exchange(last, returned()) != returned()) deadline = Deadline(kReturnPatience);
    if (deadline.passed())
      return {StatusCode::kDeadlineExceeded,
              fmt::format("nothing returns any more: {} frames sent, {} replies returned, {} wrong, {} on their way",
                          counters_.sent, counters_.returned, counters_.wrong, expected_.size())};
  }
  return {};
}

Status Exchange::run_into(std::uint64_t count, std::uint64_t replies) {
  const std::uint64_t enough = returned() + replies;
  end_ = next_ + count;
  return step_until([&] { return returned() >= enough || (next_ == end_ && expected_.empty()); });
}

Status Exchange::run(std::uint64_t count) {
  end_ = next_ + count;
  return step_until([this] { return next_ == end_ && expected_.empty(); });
}

Status Exchange::settle() {
  end_ = next_;
  std::uint64_t last = returned();
  for (Deadline deadline(kQuiet); !deadline.passed();) {
    WHERRY_TRY(step());
    if (std::exchange(last, returned()) != returned()) deadline = Deadline(kQuiet);
  }
  counters_.lost += expected_.size();
  while (!expected_.empty()) forget_front();
  return {};
}

}  // namespace wherry::sim
