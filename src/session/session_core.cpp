// SPDX-License-Identifier: Apache-2.0
// Opening a session; posting, waiting for tickets, and the holds of tickets in flight.
#include "session/session_core.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/patience.hpp"
#include "base/try.hpp"

namespace wherry::detail {

namespace {

constexpr std::size_t kBuffersAtHand = 32;
constexpr std::size_t kRememberedFailures = 1024;
constexpr std::uint64_t kLookAfterAgentNs = 1'000'000;
constexpr std::uint64_t kSendPatienceNs = 20'000;  // of post() for a message that does not leave at once

}  // namespace

Result<std::unique_ptr<SessionCore>> SessionCore::open(const SessionOptions& options) {
  WHERRY_ASSIGN(auto opened, Connection::open(options, [] { return std::unique_ptr<Connection>(new SessionCore); }));
  auto core = std::unique_ptr<SessionCore>(static_cast<SessionCore*>(opened.release()));
  core->slots_.resize(options.max_tickets);
  for (Slot& slot : core->slots_)
    slot.regions.reserve(kBuffersAtHand);  // so that no offload of ordinary size allocates
  return core;
}

SessionCore::~SessionCore() {
  if (worker_ && !inherited()) (void)drain(std::chrono::seconds(2));
  close();  // sends that never left report then: before the slots go that they refer to
}

session::EmbeddedProcess SessionCore::leave() {
  if (inherited()) return {};  // the parent's
  auto agent = Connection::leave({StatusCode::kFailedPrecondition, "the session was closed"});
  unsent_slots_.clear();
  reap();
  for (Slot& slot : slots_) {
    if (slot.ticket == 0) continue;
    const std::uint64_t ticket = std::exchange(slot.ticket, 0);
    let_go(slot);
    remember_failure(
        ticket, {StatusCode::kCancelled, fmt::format("offload {}: the session was closed before it was done", ticket)});
    const std::uint64_t word = ticket << 8 | static_cast<std::uint64_t>(StatusCode::kCancelled);
    std::atomic_ref(record(ticket).word).store(word, std::memory_order_release);
  }
  return agent;
}

/// Calls `done` until it returns true. If it returns kOver, broken_ has the reason.
template <typename Done>
SessionCore::Waited SessionCore::wait_until(const Deadline& deadline, Done done) {
  Patience pause;
  std::uint64_t looked = now_ns();
  while (!done()) {
    if (now_ns() - looked > kLookAfterAgentNs) {
      looked = now_ns();
      if (agent_gone() && !done()) return Waited::kOver;
    }
    if (deadline.passed()) return Waited::kLate;
    pause.pause();
  }
  return Waited::kDone;
}

// ---------------------------------------------------------------- posting

Result<SessionCore::Slot*> SessionCore::begin(std::chrono::nanoseconds patience, Describe describe) {
  Slot& slot = slots_[next_ticket_ & mask_];
  if (slot.ticket != 0) {
    if (inherited()) return broken_;
    WHERRY_TRY(free_slot(slot, patience));
  }
  if (!broken_.ok()) return broken_;
  if (!message_left(slot)) return Status::would_block();
  limit_automatic();
  slot.ticket = next_ticket_;
  slot.describe = describe;
  announcements_.clear();
  return &slot;
}

std::byte* SessionCore::reserve(std::size_t bytes, std::chrono::nanoseconds patience) {
  std::byte* to = mailbox_.try_reserve(bytes);
  if (to != nullptr || patience.count() <= 0) return to;
  const Deadline deadline(patience);
  Patience pause;
  while (to == nullptr && !deadline.passed() && !agent_gone()) {
    pause.pause();
    to = mailbox_.try_reserve(bytes);
  }
  return to;
}

Status SessionCore::send_over_fabric(Slot& slot, unsigned kind) {
  const FabricLock lock(fabric_mutex_, shared());
  slot.sent.reset();
  WHERRY_TRY(endpoint_.send(kind, message_, slot.sent));
  // Usually the message has left. If it waits behind others, it needs its bytes and progress calls.
  if (slot.sent.pending() == 0) return ok_status();
  std::swap(slot.message, message_);
  const std::uint64_t start = now_ns();
  while (slot.sent.pending() != 0 && now_ns() - start < kSendPatienceNs) worker_->progress();
  if (slot.sent.pending() != 0) {
    unsent_slots_.push_back(static_cast<std::uint32_t>(slot.ticket & mask_));
    note_unsent();
  }
  return ok_status();
}

Status SessionCore::free_slot(Slot& slot, std::chrono::nanoseconds patience) {
  if (!ready(slot.ticket)) {
    progress();
    if (patience.count() <= 0) return agent_gone() ? broken_ : Status::would_block();
    // The next ticket needs this slot, so wait for the ticket that holds it.
    const Waited waited = wait_until(Deadline(patience), [&] {
      if (ready(slot.ticket)) return true;
      progress();
      return false;
    });
    if (waited == Waited::kLate) return Status::would_block();
    if (waited == Waited::kOver) return broken_;
  }
  (void)release(slot);
  return ok_status();
}

void SessionCore::undo(Slot& slot) {
  for (const std::uint32_t index : slot.regions) {
    if (regions_[index].announced == slot.ticket) regions_[index].announced = 0;
  }
  let_go(slot);
  slot.ticket = 0;
}

/// The ticket is complete: releases its resources and returns its outcome.
Status SessionCore::release(Slot& slot) {
  const std::uint64_t ticket = std::exchange(slot.ticket, 0);
  let_go(slot);  // with the fabric lock, so what a progress thread wrote into the record before its word is seen, too
  const session::CompletionRecord& r = record(ticket);
  const std::uint64_t word = std::atomic_ref(record(ticket).word).load(std::memory_order_acquire);
  if (static_cast<StatusCode>(word & 0xff) == StatusCode::kOk) return ok_status();
  Status why = slot.describe(ticket, static_cast<StatusCode>(word & 0xff), r.detail);
  if (first_unseen_.ok()) first_unseen_ = why;
  remember_failure(ticket, why);
  return why;
}

void SessionCore::remember_failure(std::uint64_t ticket, Status why) {
  failures_.emplace(ticket, std::move(why));
  if (failures_.size() > kRememberedFailures) {
    forgotten_ = std::max(forgotten_, failures_.begin()->first);
    failures_.erase(failures_.begin());
  }
}

void SessionCore::reap() {
  for (Slot& slot : slots_) {
    if (slot.ticket != 0 && ready(slot.ticket)) (void)release(slot);
  }
}

// ---------------------------------------------------------------- waiting

/// Whether UCX has read the slot's last message. The offload may be done before UCX reports that.
bool SessionCore::message_left(Slot& slot) {
  const FabricLock lock(fabric_mutex_, shared());
  if (slot.sent.pending() == 0) return true;
  worker_->progress();
  note_unsent();
  return slot.sent.pending() == 0;
}

void SessionCore::progress() {
  if (!worker_) return;  // the session was closed
  const FabricLock lock(fabric_mutex_, shared());
  worker_->progress();
  if (unsent_.load(std::memory_order_relaxed) != 0) note_unsent();
}

/// Makes progress for unsent messages, if no other thread is doing so. May be called from any thread.
void SessionCore::nudge() noexcept {
  const std::unique_lock lock(fabric_mutex_, std::try_to_lock);
  // Acquire: the session's thread worked without the lock before it increased unsent_.
  if (!lock.owns_lock() || unsent_.load(std::memory_order_acquire) == 0) return;
  worker_->progress();
  note_unsent();
}

/// Called under the lock, after progress.
void SessionCore::note_unsent() {
  std::erase_if(unsent_slots_, [this](std::uint32_t slot) { return slots_[slot].sent.pending() == 0; });
  unsent_.store(static_cast<std::uint32_t>(unsent_slots_.size()), std::memory_order_release);
}

const session::CompletionRecord* SessionCore::outcome(std::uint64_t ticket) const noexcept {
  if (ticket == 0 || std::atomic_ref(record(ticket).word).load(std::memory_order_acquire) >> 8 != ticket)
    return nullptr;
  return &record(ticket);
}

Status SessionCore::wait(std::uint64_t ticket, std::chrono::nanoseconds timeout) {
  if (ticket == 0) return {StatusCode::kInvalidArgument, "an empty ticket: it was not made by post()"};
  if (inherited()) return broken_;
  const Waited waited = wait_until(Deadline(timeout), [&] {
    if (ready(ticket)) return true;
    if (threaded_) progress();
    return false;
  });
  if (waited == Waited::kLate)
    return {StatusCode::kDeadlineExceeded, fmt::format("offload {} is still in flight", ticket)};
  if (waited == Waited::kOver) return broken_;
  Slot& slot = slots_[ticket & mask_];
  if (slot.ticket == ticket) {
    const bool had = !first_unseen_.ok();
    Status outcome = release(slot);
    if (!had) first_unseen_ = Status();  // seen: it is returned here
    return outcome;
  }
  if (const auto failure = failures_.find(ticket); failure != failures_.end()) return failure->second;
  if (ticket <= forgotten_) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("the outcome of offload {} is no longer known: only the latest {} failures are kept, and there "
                        "were more since; wait for tickets sooner",
                        ticket, kRememberedFailures)};
  }
  return ok_status();
}

std::size_t SessionCore::in_flight() {
  if (inherited()) return 0;
  reap();
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.ticket != 0; }));
}

Status SessionCore::drain(std::chrono::nanoseconds timeout) {
  if (inherited()) return broken_;
  const Waited waited = wait_until(Deadline(timeout), [&] {
    if (in_flight() == 0) return true;
    progress();
    return false;
  });
  if (waited == Waited::kLate)
    return {StatusCode::kDeadlineExceeded, fmt::format("{} offloads are still in flight", in_flight())};
  if (waited == Waited::kOver) return broken_;
  return std::exchange(first_unseen_, Status());
}

}  // namespace wherry::detail
