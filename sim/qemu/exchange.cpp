// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/exchange.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

constexpr std::chrono::minutes kPatience{2};      ///< for what takes milliseconds
constexpr std::chrono::milliseconds kQuiet{300};  ///< longer than any frame is on its way

std::uint32_t slots_of(std::size_t bytes) { return static_cast<std::uint32_t>((bytes + kSlotBytes - 1) / kSlotBytes); }

}  // namespace

void Exchange::send_what_may() {
  while (next_ < end_ && expected_.size() < limits_.frames) {
    const std::uint32_t slots = slots_of(traffic_.size(next_));
    if (!expected_.empty() && slots_ + slots > limits_.slots) return;
    machine_.wire().send(traffic_.frame(next_));
    expected_.push_back({traffic_.reply(next_), slots});
    slots_ += slots;
    ++next_;
    ++counters_.sent;
  }
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

Status Exchange::receive() {
  for (;;) {
    WHERRY_ASSIGN(const auto frame, machine_.wire().take());
    if (!frame) return {};
    check(*frame);
  }
}

Status Exchange::step() {
  send_what_may();
  WHERRY_TRY(machine_.turn(1));
  return receive();
}

Status Exchange::run_into(std::uint64_t count) {
  end_ = next_ + count;
  std::uint64_t last = counters_.returned + counters_.wrong;
  for (Deadline deadline(kPatience); next_ < end_;) {
    WHERRY_TRY(step());
    const std::uint64_t now = counters_.returned + counters_.wrong;
    if (std::exchange(last, now) != now) deadline = Deadline(kPatience);
    if (deadline.passed())
      return {StatusCode::kDeadlineExceeded, fmt::format("nothing returns: {} frames sent, {} returned, {} wrong",
                                                         counters_.sent, counters_.returned, counters_.wrong)};
  }
  return {};
}

Status Exchange::run(std::uint64_t count) {
  WHERRY_TRY(run_into(count));
  const std::uint64_t returned = counters_.returned;
  for (Deadline deadline(kPatience); !expected_.empty();) {
    WHERRY_TRY(step());
    if (deadline.passed())
      return {StatusCode::kDeadlineExceeded, fmt::format("{} of the last frames do not return ({} did)",
                                                         expected_.size(), counters_.returned - returned)};
  }
  return {};
}

Status Exchange::settle() {
  std::uint64_t last = counters_.returned + counters_.wrong;
  for (Deadline deadline(kQuiet); !deadline.passed();) {
    WHERRY_TRY(step());
    const std::uint64_t now = counters_.returned + counters_.wrong;
    if (std::exchange(last, now) != now) deadline = Deadline(kQuiet);
  }
  counters_.lost += expected_.size();
  while (!expected_.empty()) forget_front();
  return {};
}

}  // namespace wherry::sim
