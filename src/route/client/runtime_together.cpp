// SPDX-License-Identifier: Apache-2.0
// The collective calls quiesce() and reduce(). agreement.hpp explains why quiesce() is correct.
#include <fmt/core.h>

#include "base/clock.hpp"
#include "route/client/runtime_core.hpp"

namespace wherry::route::detail {

void RuntimeCore::contribute(Agreement::Combine how, Agreement::Words words) noexcept {
  agreement_.contribute(how, words, registered_);
  flush();
  if (agreement_.round() != concluded_) conclude();
}

/// If there is a mismatch, the round can never end. So this rank fails the job and informs the others.
void RuntimeCore::check_mismatch() noexcept {
  const auto& mismatch = agreement_.mismatch();
  if (!mismatch || !failure_) return;
  if (mismatch->what == Agreement::Mismatch::What::kHandlers) {
    fail(Status{
        StatusCode::kFailedPrecondition,
        fmt::format("ranks {} and {} have registered different handlers: register the same ones, of the same functions "
                    "in the same order, on every rank before a collective call, or register them by name. Rank {} "
                    "has {}",
                    mismatch->one, mismatch->other, place().rank, handlers_.describe())});
    return;
  }
  fail(Status{
      StatusCode::kFailedPrecondition,
      fmt::format(
          "ranks {} and {} are in different collective calls: rank {} is in {}, rank {} in {}. All must make the same "
          "ones in the same order",
          mismatch->one, mismatch->other, mismatch->one, Agreement::name(mismatch->how), mismatch->other,
          Agreement::name(mismatch->how_of_other))});
}

Result<std::uint64_t> RuntimeCore::reduce(std::uint64_t bits, Agreement::Combine how) {
  if (in_handler_) return Status(StatusCode::kFailedPrecondition, "reduce() cannot be called in a handler");
  if (!failure_) return failure_;
  if (phase_ != Phase::kNone) {
    return Status(
        StatusCode::kFailedPrecondition,
        "a quiesce of this rank is under way (quiesce() timed out, or try_quiesce() returned would-block): call "
        "quiesce() or try_quiesce() until it returns ok, then reduce()");
  }
  registered_ = handlers_.signature();
  exit_watch_.used_here();
  reducing_ = true;
  contribute(how, {bits, 0});
  check_departed();
  std::optional<Agreement::Words> words;
  for (;;) {
    words = agreement_.take_outcome();
    if (words || !failure_) break;
    router_.flush(Flush::kExplicit);
    poll();
  }
  reducing_ = false;
  if (!words) return failure_;
  pass_outcome_on(Deadline(std::chrono::nanoseconds(-1)));
  return words->a;
}

/// If a child sees this rank leave after such a round, it waits for the outcome as long as needed.
void RuntimeCore::conclude() noexcept {
  if (!notices_.empty()) return;
  router_.flush(Flush::kExplicit);
  concluded_ = agreement_.round();
  wiring_->conclude(concluded_);
}

void RuntimeCore::pass_outcome_on(const Deadline& deadline) noexcept {
  flush();
  while (!notices_.empty() && failure_ && !deadline.passed()) poll();
  if (agreement_.round() != concluded_) conclude();
  for (const std::uint32_t lane : lanes_of_children_) {
    const std::uint64_t written = router_.lanes()[lane].written;
    while (!wiring_->has_sent(lane, written) && failure_ && !deadline.passed()) poll();
  }
}

void RuntimeCore::step_quiesce() noexcept {
  check_mismatch();
  while (phase_ == Phase::kCounting || phase_ == Phase::kConfirming) {
    const auto words = agreement_.take_outcome();
    if (!words) return;
    if (phase_ == Phase::kConfirming) {
      promised_ = false;
      phase_ = words->a == 0 ? Phase::kDone : Phase::kCounting;
    } else if (words->a == words->b) {
      phase_ = Phase::kConfirming;
      promised_ = counted_ == Agreement::Words{sent, handled_};
      contribute(Agreement::Combine::kConfirm, {promised_ ? 0U : 1U, 0});
    }
    flush();  // this rank may not poll again for a while, and its children wait for the outcome
    if (agreement_.round() != concluded_) conclude();
  }
}

StatusCode RuntimeCore::try_quiesce() noexcept {
  if (in_handler_) return StatusCode::kFailedPrecondition;
  if (phase_ == Phase::kNone && failure_) {
    phase_ = Phase::kCounting;
    registered_ = handlers_.signature();
    exit_watch_.used_here();
    check_departed();
  }
  poll();
  if (!failure_) return failure_.code();
  if (phase_ == Phase::kCounting && !agreement_.contributed() && quiet()) {
    counted_ = {sent, handled_};
    contribute(Agreement::Combine::kQuiesce, counted_);
    step_quiesce();  // the only rank concludes at once
    if (promised()) router_.flush(Flush::kExplicit);
  }
  if (phase_ != Phase::kDone) return StatusCode::kWouldBlock;
  phase_ = Phase::kNone;
  note_quiet();
  return StatusCode::kOk;
}

Status RuntimeCore::quiesce(std::chrono::nanoseconds timeout) {
  if (in_handler_) return {StatusCode::kFailedPrecondition, "quiesce() cannot be called in a handler"};
  const Deadline deadline(timeout);
  router_.flush(Flush::kExplicit);
  for (;;) {
    const StatusCode code = try_quiesce();
    if (code == StatusCode::kOk) {
      pass_outcome_on(deadline);
      return {};
    }
    if (code != StatusCode::kWouldBlock) return failure_;
    if (timeout.count() >= 0 && deadline.passed())
      return {StatusCode::kDeadlineExceeded,
              "some message sent by some rank has not been handled yet: call quiesce() again"};
  }
}

}  // namespace wherry::route::detail
