// SPDX-License-Identifier: Apache-2.0
// Posting offloads, waiting for them, and what they hold meanwhile.
#include "move/client/session_core.hpp"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/cpu.hpp"

namespace wherry::detail {

namespace {

constexpr std::size_t kRememberedFailures = 1024;
constexpr std::uint64_t kLookAfterAgentNs = 1'000'000;
constexpr std::uint64_t kSendPatienceNs = 20'000;  // of post() for a message that does not leave at once

/// Waiting in three steps: spin while an answer may come any moment, then let others run, then sleep (a wake-up costs
/// some 60 us).
class Patience {
 public:
  void pause() noexcept {
    const std::uint64_t waited = now_ns() - since_;
    if (waited < 50'000) {
      cpu_relax();
    } else if (waited < 2'000'000) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

 private:
  std::uint64_t since_ = now_ns();
};

}  // namespace

// ---------------------------------------------------------------- posting

Result<std::uint64_t> SessionCore::post(std::uint32_t stream, std::uint64_t rows, move::FlatOffload& flat,
                                        std::vector<std::uint32_t>& hints, const OffloadOptions& options) {
  const std::uint64_t ticket = next_ticket_;
  Slot& slot = slots_[ticket & mask_];
  if (slot.ticket != 0) {
    if (Status s = free_slot(slot, options.wait_for_ticket); !s) return s;
  }
  if (!broken_.is_ok()) return broken_;
  if (slot.sent.pending() != 0) {  // the last offload from here is done, and UCX has not told us that its message left
    progress();
    if (slot.sent.pending() != 0) return Status::would_block();
  }

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
    if (!region.announced) {
      region.announced = true;
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
  const std::size_t drops = std::min<std::size_t>(dropped_.size(), 0xffff);
  header.dropped_count = static_cast<std::uint32_t>(drops);
  header.region_count = static_cast<std::uint32_t>(announcements_.size());
  if (Status s = send(ticket, header, flat, slot, options.wait_for_ticket); !s) {
    for (const auto& announced : announcements_) {
      for (RegionEntry& region : regions_) {
        if (region.used && region.id == announced.id) region.announced = false;
      }
    }
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
  return Status::ok();
}

Status SessionCore::send_over_fabric(std::uint64_t ticket, Slot& slot) {
  const FabricLock lock(fabric_mutex_, shared());
  slot.sent.reset();
  if (Status s = endpoint_.send(move::kOffloadMessage, message_, slot.sent); !s) return s;
  // In the usual case the message has left. One that waits for the agent to take others needs its bytes, and progress.
  if (slot.sent.pending() == 0) return Status::ok();
  std::swap(slot.message, message_);
  const std::uint64_t start = now_ns();
  while (slot.sent.pending() != 0 && now_ns() - start < kSendPatienceNs) worker_->progress();
  if (slot.sent.pending() != 0) {
    unsent_slots_.push_back(static_cast<std::uint32_t>(ticket & mask_));
    note_unsent();
  }
  return Status::ok();
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
  release(slot);
  return Status::ok();
}

/// Nothing was sent: the slot and its regions are as before.
void SessionCore::undo(Slot& slot) {
  for (const std::uint32_t index : slot.regions) --regions_[index].in_flight;
  slot.regions.clear();
  slot.temporary.clear();
  slot.ticket = 0;
}

/// The ticket is complete: what it held is free.
void SessionCore::release(Slot& slot) {
  const fabric::CompletionRecord& r = record(slot.ticket);
  const std::uint64_t word = std::atomic_ref(record(slot.ticket).word).load(std::memory_order_acquire);
  if (static_cast<StatusCode>(word & 0xff) != StatusCode::kOk) {
    Status why = outcome_status(slot.ticket, word, r.detail);
    if (first_unseen_.is_ok()) first_unseen_ = why;
    failures_.emplace(slot.ticket, std::move(why));
    if (failures_.size() > kRememberedFailures) failures_.erase(failures_.begin());
  }
  for (const std::uint32_t index : slot.regions) --regions_[index].in_flight;
  slot.regions.clear();
  slot.temporary.clear();
  slot.ticket = 0;
}

void SessionCore::reap() {
  for (Slot& slot : slots_) {
    if (slot.ticket != 0 && ready(slot.ticket)) release(slot);
  }
}

// ---------------------------------------------------------------- regions

std::uint32_t SessionCore::free_entry() {
  if (!free_entries_.empty()) {
    const std::uint32_t index = free_entries_.back();
    free_entries_.pop_back();
    return index;
  }
  regions_.emplace_back();
  return static_cast<std::uint32_t>(regions_.size() - 1);
}

Result<std::uint32_t> SessionCore::add_region(fabric::Region handle) {
  Bytes key;
  if (Status s = handle.pack_key(key); !s) return s;
  const std::uint32_t index = free_entry();
  RegionEntry& region = regions_[index];
  region = {};
  region.base = reinterpret_cast<std::uint64_t>(handle.data());
  region.size = handle.size();
  region.id = next_region_id_++;
  region.used = true;
  region.key = std::move(key);
  region.handle = std::move(handle);
  registered_.push_back(index);
  return index;
}

Status SessionCore::remove_region(std::uint32_t index) {
  RegionEntry& region = regions_[index];
  if (region.in_flight != 0) reap();
  if (region.in_flight != 0 && !agent_gone()) {
    return {
        StatusCode::kFailedPrecondition,
        fmt::format("{} offloads that read this memory are in flight: wait for their tickets first", region.in_flight)};
  }
  if (region.announced) dropped_.push_back(region.id);
  region = {};
  std::erase(registered_, index);
  free_entries_.push_back(index);
  return Status::ok();
}

void SessionCore::remove_region_waiting(std::uint32_t index) {
  Patience pause;
  for (;;) {
    if (remove_region(index)) return;
    progress();
    pause.pause();
  }
}

Result<std::uint32_t> SessionCore::resolve(std::uint64_t address, std::uint64_t bytes, std::uint32_t& hint,
                                           Slot& slot) {
  if (hint < regions_.size() && !regions_[hint].automatic && regions_[hint].contains(address, bytes)) return hint;
  for (const std::uint32_t i : registered_) {
    if (regions_[i].contains(address, bytes)) return hint = i;
  }
  return register_temporarily(address, bytes, slot);
}

/// Memory that nobody registered: registered until the ticket completes. UCX's own cache makes that cheap for memory
/// seen before, and notices memory that was released and mapped again; the agent is told only when the key differs from
/// the last one.
Result<std::uint32_t> SessionCore::register_temporarily(std::uint64_t address, std::uint64_t bytes, Slot& slot) {
  Result<fabric::Region> handle = Status(StatusCode::kInternal, "");
  {
    const FabricLock lock(fabric_mutex_, shared());
    handle = context_->register_memory(reinterpret_cast<void*>(address), bytes);
  }
  if (!handle) return handle.status();
  Bytes key;
  if (Status s = handle->pack_key(key); !s) return s;
  for (auto [it, end] = automatic_.equal_range(address); it != end; ++it) {
    RegionEntry& region = regions_[it->second];
    if (region.size == bytes && region.key == key) {
      region.last_use = next_ticket_;
      slot.temporary.push_back(*std::move(handle));
      return it->second;
    }
  }
  if (automatic_.size() >= automatic_limit_) drop_automatic();
  const std::uint32_t index = free_entry();
  RegionEntry& region = regions_[index];
  region = {};
  region.base = address;
  region.size = bytes;
  region.id = next_region_id_++;
  region.used = true;
  region.automatic = true;
  region.last_use = next_ticket_;
  region.key = std::move(key);
  automatic_.emplace(address, index);
  slot.temporary.push_back(*std::move(handle));
  return index;
}

/// Forgets the automatic entries that are not in use. Looks at all of them: not again before there are twice as many.
void SessionCore::drop_automatic() {
  reap();
  std::erase_if(automatic_, [this](const auto& entry) {
    RegionEntry& region = regions_[entry.second];
    if (region.in_flight != 0) return false;
    if (region.announced) dropped_.push_back(region.id);
    region = {};
    free_entries_.push_back(entry.second);
    return true;
  });
  automatic_limit_ = std::max(kAutomaticRegions, 2 * automatic_.size());
}

// ---------------------------------------------------------------- waiting

void SessionCore::progress() {
  const FabricLock lock(fabric_mutex_, shared());
  worker_->progress();
  if (unsent_.load(std::memory_order_relaxed) != 0) note_unsent();
}

/// From any thread: progress for messages that have not left yet, unless somebody else makes it already.
void SessionCore::nudge() noexcept {
  const std::unique_lock lock(fabric_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || unsent_.load(std::memory_order_relaxed) == 0) return;
  worker_->progress();
  note_unsent();
}

/// Under the lock, after progress.
void SessionCore::note_unsent() {
  std::erase_if(unsent_slots_, [this](std::uint32_t slot) { return slots_[slot].sent.pending() == 0; });
  unsent_.store(static_cast<std::uint32_t>(unsent_slots_.size()), std::memory_order_release);
}

bool SessionCore::agent_gone() {
  if (!broken_.is_ok()) return true;
  if (!channel_.peer_gone()) return false;
  broken_ = Status(StatusCode::kUnavailable, fmt::format("the agent (pid {}) is gone", info_.agent_pid));
  // It may have said why before it left.
  for (;;) {
    auto frame = channel_.try_receive();
    if (!frame || !frame->has_value()) break;
    if ((*frame)->type == static_cast<std::uint16_t>(fabric::ControlType::kFailure)) {
      if (auto failure = fabric::decode_failure((*frame)->payload)) broken_ = Status(failure->code, failure->message);
    }
  }
  return true;
}

const fabric::CompletionRecord* SessionCore::outcome(std::uint64_t ticket) const noexcept {
  if (ticket == 0 || record(ticket).word >> 8 != ticket) return nullptr;
  return &record(ticket);
}

Status SessionCore::outcome_status(std::uint64_t ticket, std::uint64_t word, std::uint64_t detail) const {
  const auto code = static_cast<StatusCode>(word & 0xff);
  switch (code) {
    case StatusCode::kOk:
      return Status::ok();
    case StatusCode::kSourceFault:
      return {code, fmt::format("offload {}: the agent could not read buffer {} of the request: was its memory "
                                "released or changed before the ticket was ready?",
                                ticket, detail)};
    case StatusCode::kResourceExhausted:
      return {code, fmt::format("offload {}: it does not fit into the agent's budget of {} bytes, or too many are "
                                "queued: raise the agent's budget or send fewer rows at a time",
                                ticket, detail)};
    case StatusCode::kDeadlineExceeded:
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
    const bool had = !first_unseen_.is_ok();
    release(slot);
    if (!had) first_unseen_ = Status();  // seen: it is returned below
  }
  const auto failure = failures_.find(ticket);
  return failure == failures_.end() ? Status::ok() : failure->second;
}

std::size_t SessionCore::in_flight() {
  reap();
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.ticket != 0; }));
}

Status SessionCore::drain(std::chrono::nanoseconds timeout) {
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

// ---------------------------------------------------------------- requests

Result<Bytes> SessionCore::call(std::string_view service, std::string_view method, ByteView payload) {
  if (!broken_.is_ok()) return broken_;
  const Deadline deadline(std::chrono::seconds(30));
  fabric::Request request;
  request.id = next_request_++;
  request.service = service;
  request.method = method;
  request.payload.assign(payload.begin(), payload.end());
  Status s = channel_.send(static_cast<std::uint16_t>(fabric::ControlType::kRequest), encode(request), deadline);
  if (s) {
    auto frame = channel_.receive(deadline);
    if (!frame) {
      s = frame.status();
    } else if (s = expect(*frame, fabric::ControlType::kResponse); s) {
      auto response = fabric::decode_response(frame->payload);
      if (!response) return response.status();
      if (response->id != request.id) return Status(StatusCode::kProtocol, "the agent answered another request");
      if (response->code != StatusCode::kOk) return Status(response->code, response->message);
      return std::move(response->payload);
    }
  }
  if (s.code() == StatusCode::kUnavailable) (void)agent_gone();
  return s;
}

}  // namespace wherry::detail
