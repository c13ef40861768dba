// SPDX-License-Identifier: Apache-2.0
// Opening; posting offloads, waiting for them, and what they hold meanwhile.
#include "move/client/session_core.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/patience.hpp"

namespace wherry::detail {

namespace {

constexpr std::size_t kBuffersAtHand = 32;
constexpr std::size_t kRememberedFailures = 1024;
constexpr std::uint64_t kLookAfterAgentNs = 1'000'000;
constexpr std::uint64_t kSendPatienceNs = 20'000;  // of post() for a message that does not leave at once

}  // namespace

Result<std::unique_ptr<SessionCore>> SessionCore::open(const SessionOptions& options) {
  auto opened = ClientSession::open(options, [] { return std::unique_ptr<ClientSession>(new SessionCore); });
  if (!opened) return opened.status();
  auto core = std::unique_ptr<SessionCore>(static_cast<SessionCore*>(opened->release()));
  core->slots_.resize(options.max_tickets);
  for (Slot& slot : core->slots_)
    slot.regions.reserve(kBuffersAtHand);  // so that no offload of ordinary size allocates
  return core;
}

SessionCore::~SessionCore() {
  if (worker_ && !inherited()) (void)drain(std::chrono::seconds(2));
  close();  // sends that never left report then: before the slots go that they refer to
}

// ---------------------------------------------------------------- requests

Result<std::uint32_t> SessionCore::open_stream(move::OpenRequest request) {
  const std::string name = request.options.name;
  request.again = unanswered_opens_->erase(name) != 0;
  // Late answers that come meanwhile make requests of their own.
  const std::uint64_t id = last_request() + 1;
  const auto answer = ask(move::kServiceName, "open", encode(request));
  if (!answer) {
    if (answer.status().code() == StatusCode::kDeadlineExceeded) (*unanswered_opens_)[name] = id;
    return answer.status();
  }
  if (answer->code != StatusCode::kOk) return Status(answer->code, answer->message);
  Reader in(answer->payload);
  const auto stream = in.get<std::uint32_t>();
  if (!in.at_end()) return Status(StatusCode::kProtocol, "the agent's answer to open is malformed");
  return stream;
}

void SessionCore::on_late_answer(const fabric::Response& late) {
  const auto open = std::ranges::find(*unanswered_opens_, late.id, [](const auto& entry) { return entry.second; });
  if (open == unanswered_opens_->end()) return;
  unanswered_opens_->erase(open);
  if (late.code != StatusCode::kOk) return;
  Writer out;
  out.put(Reader(late.payload).get<std::uint32_t>());
  out.put(std::uint64_t{0});
  (void)tell(move::kServiceName, "close", out.bytes());  // fails only with the session, whose end closes it, too
}

fabric::EmbeddedProcess SessionCore::leave() {
  if (inherited()) return {};  // the parent's
  auto agent = ClientSession::leave({StatusCode::kFailedPrecondition, "the session was closed"});
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

// ---------------------------------------------------------------- posting

Result<std::uint64_t> SessionCore::post(std::uint32_t stream, std::uint64_t rows, move::FlatOffload& flat,
                                        HotVector<std::uint32_t>& hints, const OffloadOptions& options) {
  const std::uint64_t ticket = next_ticket_;
  Slot& slot = slots_[ticket & mask_];
  if (slot.ticket != 0) {
    if (inherited()) return broken_;
    if (Status s = free_slot(slot, options.wait_for_ticket); !s) return s;
  }
  if (!broken_.ok()) return broken_;
  if (!message_left(slot)) return Status::would_block();
  limit_automatic();

  slot.ticket = ticket;
  hints.resize(flat.buffers.size(), kNoRegion);
  announcements_.clear();
  for (std::size_t i = 0; i < flat.buffers.size(); ++i) {
    move::BufferRef& buffer = flat.buffers[i];
    if (buffer.bytes == 0) continue;
    auto index = resolve(buffer.address, buffer.bytes, hints[i], slot);
    if (!index) {
      undo(slot);
      return index.status();
    }
    RegionEntry& region = regions_[*index];
    buffer.region = region.id;
    ++region.in_flight;
    slot.regions.push_back(*index);
    if (region.announced == 0) {
      region.announced = ticket;
      announcements_.push_back({region.id, region.base, region.size, region.key});
    }
  }
  move::OffloadHeader header;
  header.session = session_;
  header.ticket = ticket;
  header.tag = options.tag;
  header.rows = rows;
  header.deadline_ns = options.deadline.count() > 0 ? static_cast<std::uint64_t>(options.deadline.count()) : 0;
  header.stream = stream;
  header.node_count = static_cast<std::uint32_t>(flat.nodes.size());
  header.buffer_count = static_cast<std::uint32_t>(flat.buffers.size());
  const std::size_t drops = std::min<std::size_t>(dropped_.size(), move::kMaxOffloadBuffers);
  header.dropped_count = static_cast<std::uint32_t>(drops);
  header.region_count = static_cast<std::uint32_t>(announcements_.size());
  if (Status s = send(ticket, header, flat, slot, options.wait_for_ticket); !s) {
    undo(slot);
    return agent_gone() ? broken_ : s;
  }
  dropped_.erase(dropped_.begin(), dropped_.begin() + static_cast<std::ptrdiff_t>(drops));
  ++next_ticket_;
  return ticket;
}

/// Into the mailbox where there is one. What is too large for it goes over the fabric; an empty record in the mailbox
/// then keeps its place among the others.
Status SessionCore::send(std::uint64_t ticket, const move::OffloadHeader& header, const move::FlatOffload& flat,
                         Slot& slot, std::chrono::nanoseconds patience) {
  const auto dropped = std::span(dropped_).first(header.dropped_count);
  if (!mailbox_) {
    move::build_offload(header, flat, dropped, announcements_, message_);
    return send_over_fabric(ticket, slot);
  }
  const std::size_t bytes = move::offload_bytes(flat, dropped, announcements_);
  const bool fits = bytes <= mailbox_.largest();
  std::byte* to = mailbox_.try_reserve(fits ? bytes : 0);
  if (to == nullptr && patience.count() > 0) {
    const Deadline deadline(patience);
    Patience pause;
    while (to == nullptr && !deadline.passed() && !agent_gone()) {
      pause.pause();
      to = mailbox_.try_reserve(fits ? bytes : 0);
    }
  }
  if (to == nullptr) return Status::would_block();
  if (fits) {
    move::write_offload(header, flat, dropped, announcements_, to);
  } else {
    move::build_offload(header, flat, dropped, announcements_, message_);
    if (Status s = send_over_fabric(ticket, slot); !s) return s;
  }
  mailbox_.publish(move::kOffloadMessage);
  return ok_status();
}

Status SessionCore::send_over_fabric(std::uint64_t ticket, Slot& slot) {
  const FabricLock lock(fabric_mutex_, shared());
  slot.sent.reset();
  if (Status s = endpoint_.send(move::kOffloadMessage, message_, slot.sent); !s) return s;
  // In the usual case the message has left. One that waits for the agent to take others needs its bytes, and progress.
  if (slot.sent.pending() == 0) return ok_status();
  std::swap(slot.message, message_);
  const std::uint64_t start = now_ns();
  while (slot.sent.pending() != 0 && now_ns() - start < kSendPatienceNs) worker_->progress();
  if (slot.sent.pending() != 0) {
    unsent_slots_.push_back(static_cast<std::uint32_t>(ticket & mask_));
    note_unsent();
  }
  return ok_status();
}

Status SessionCore::free_slot(Slot& slot, std::chrono::nanoseconds patience) {
  if (!ready(slot.ticket)) {
    progress();
    if (patience.count() <= 0) return agent_gone() ? broken_ : Status::would_block();
    // Waiting for a ticket is waiting for that ticket, whatever becomes of it.
    const Deadline deadline(patience);
    Patience pause;
    std::uint64_t looked = now_ns();
    while (!ready(slot.ticket)) {
      progress();
      if (now_ns() - looked > kLookAfterAgentNs) {
        looked = now_ns();
        if (agent_gone()) return broken_;
      }
      if (deadline.passed()) return Status::would_block();
      pause.pause();
    }
  }
  (void)release(slot);
  return ok_status();
}

/// Nothing was sent: the slot, its regions and what the agent knows of them are as before.
void SessionCore::undo(Slot& slot) {
  for (const std::uint32_t index : slot.regions) {
    if (regions_[index].announced == slot.ticket) regions_[index].announced = 0;
  }
  let_go(slot);
  slot.ticket = 0;
}

/// The ticket is complete: what it held is free. Its outcome.
Status SessionCore::release(Slot& slot) {
  const std::uint64_t ticket = std::exchange(slot.ticket, 0);
  let_go(slot);  // with the fabric lock, so what a progress thread wrote into the record before its word is seen, too
  const fabric::CompletionRecord& r = record(ticket);
  const std::uint64_t word = std::atomic_ref(record(ticket).word).load(std::memory_order_acquire);
  if (static_cast<StatusCode>(word & 0xff) == StatusCode::kOk) return ok_status();
  Status why = outcome_status(ticket, word, r.detail);
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

/// Whether UCX has read the message that was last sent from the slot. Its offload can be done before UCX says so.
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

/// From any thread: progress for messages that have not left yet, unless somebody else makes it already.
void SessionCore::nudge() noexcept {
  const std::unique_lock lock(fabric_mutex_, std::try_to_lock);
  // Acquire: what the session's thread did before unsent_ rose was not under the lock.
  if (!lock.owns_lock() || unsent_.load(std::memory_order_acquire) == 0) return;
  worker_->progress();
  note_unsent();
}

/// Under the lock, after progress.
void SessionCore::note_unsent() {
  std::erase_if(unsent_slots_, [this](std::uint32_t slot) { return slots_[slot].sent.pending() == 0; });
  unsent_.store(static_cast<std::uint32_t>(unsent_slots_.size()), std::memory_order_release);
}

const fabric::CompletionRecord* SessionCore::outcome(std::uint64_t ticket) const noexcept {
  if (ticket == 0 || std::atomic_ref(record(ticket).word).load(std::memory_order_acquire) >> 8 != ticket)
    return nullptr;
  return &record(ticket);
}

Status SessionCore::outcome_status(std::uint64_t ticket, std::uint64_t word, std::uint64_t detail) const {
  const auto code = static_cast<StatusCode>(word & 0xff);
  switch (code) {
    case StatusCode::kOk:
      return ok_status();
    case StatusCode::kSourceFault:
      return {code, fmt::format("offload {}: the agent could not read buffer {} of the request: was its memory "
                                "released or changed before the ticket was ready?",
                                ticket, detail)};
    case StatusCode::kResourceExhausted:
      return {code, fmt::format("offload {}: {}", ticket, move::limit_text(detail))};
    case StatusCode::kCancelled:
      return {code,
              fmt::format("offload {}: the agent could not place the data before the deadline that was given", ticket)};
    case StatusCode::kInvalidArgument:
      return {code,
              fmt::format("offload {}: the agent refused the request at buffer {}; its log says why", ticket, detail)};
    case StatusCode::kNotFound:
      return {code, fmt::format("offload {}: the stream was closed", ticket)};
    default:
      return {code, fmt::format("offload {} failed: {}", ticket, wherry::to_string(code))};
  }
}

Status SessionCore::wait(std::uint64_t ticket, std::chrono::nanoseconds timeout) {
  if (ticket == 0) return {StatusCode::kInvalidArgument, "an empty ticket: it was not made by post()"};
  if (inherited()) return broken_;
  const Deadline deadline(timeout);
  Patience pause;
  std::uint64_t looked = now_ns();
  while (!ready(ticket)) {
    if (threaded_) progress();
    if (now_ns() - looked > kLookAfterAgentNs) {
      looked = now_ns();
      if (agent_gone() && !ready(ticket)) return broken_;
    }
    if (deadline.passed()) return {StatusCode::kDeadlineExceeded, fmt::format("offload {} is still in flight", ticket)};
    pause.pause();
  }
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
  const Deadline deadline(timeout);
  Patience pause;
  std::uint64_t looked = now_ns();
  while (in_flight() != 0) {
    progress();
    if (now_ns() - looked > kLookAfterAgentNs) {
      looked = now_ns();
      if (agent_gone()) return broken_;
    }
    if (deadline.passed())
      return {StatusCode::kDeadlineExceeded, fmt::format("{} offloads are still in flight", in_flight())};
    pause.pause();
  }
  return std::exchange(first_unseen_, Status());
}

}  // namespace wherry::detail
