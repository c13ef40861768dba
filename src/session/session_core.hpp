// SPDX-License-Identifier: Apache-2.0
// The state behind a Session: connection, memory that the agent may read, tickets. One thread, except ready().
//
// A service's client half posts in these steps (move/client/post.cpp). begin() gives the next ticket its slot. For each
// buffer, reads() returns the agent's region id of its memory. send() sends the message, which must contain
// announcements() and dropped(). Then call posted(). If a step fails, call undo().
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hot.hpp"
#include "base/hot_memory.hpp"
#include "base/prefetch.hpp"
#include "base/try.hpp"
#include "fabric/fabric.hpp"
#include "session/connection.hpp"
#include "session/control.hpp"
#include "session/new_region.hpp"
#include "wherry/session.hpp"

namespace wherry::detail {

inline constexpr std::uint32_t kNoRegion = ~0U;
inline constexpr std::uint32_t kNoHold = ~0U;
inline constexpr std::size_t kAutomaticRegions = 1024;  ///< remembered, although nobody registered them

using session::FabricLock;

class SessionCore final : public session::Connection, public InHotMemory {
 public:
  static Result<std::unique_ptr<SessionCore>> open(const SessionOptions& options);
  ~SessionCore() override;
  /// Leaves the agent at once: offloads in flight are cancelled, and later calls fail. Allocated memory remains until
  /// it is removed. An embedded agent drains and exits when the returned object is destroyed. Idempotent.
  [[nodiscard]] session::EmbeddedProcess leave();
  [[nodiscard]] bool closed() const noexcept { return worker_ == nullptr; }

  // ---- memory
  struct alignas(64) RegionEntry {  // what post() looks at lies in the first line
    std::uint64_t base = 0, size = 0;
    std::uint32_t id = 0;         ///< on the wire; never reused
    std::uint32_t in_flight = 0;  ///< buffers of tickets that read it
    std::uint32_t held = 0;       ///< buffers of holds that name it
    bool used = false;            ///< this entry of the table is taken
    bool automatic = false;  ///< of memory that nobody registered: valid only while an offload holds a registration
    bool orphaned = false;   ///< its owner gave it up while it was read or held: it goes with the last that does either
    std::uint64_t announced = 0;  ///< the ticket whose message told the agent its key; 0: none
    Bytes key;
    fabric::Region handle;  ///< automatic entries: none, tickets hold theirs
    /// Whether offloads of that memory may use this region.
    [[nodiscard]] bool offers(std::uint64_t address, std::uint64_t bytes) const noexcept {
      return used && !automatic && !orphaned && address >= base && bytes <= size && address - base <= size - bytes;
    }
  };
  /// The default patience of remove_region_waiting().
  static constexpr std::chrono::seconds kRemovePatience{10};
  Result<std::uint32_t> allocate(std::size_t bytes);
  Result<std::uint32_t> register_memory(void* data, std::size_t bytes);
  /// kFailedPrecondition: the agent lives, and tickets that read the region are in flight.
  Status remove_region(std::uint32_t index);
  /// Like remove_region(), but waits until these tickets are done. After `patience`, the session keeps the region until
  /// then, and reports that on standard error. In both cases do not use `index` again.
  void remove_region_waiting(std::uint32_t index, std::chrono::nanoseconds patience = kRemovePatience);
  [[nodiscard]] std::byte* region_data(std::uint32_t index) const noexcept { return regions_[index].handle.data(); }
  /// The second half of allocate() and register_memory(), without their lock. For benchmarks, where sessions have no
  /// progress thread.
  Result<std::uint32_t> add_region(Result<fabric::Region> made);

  struct Slot;

  // ---- memory that is posted again and again
  /// A hold: buffers whose regions stay registered from add_hold() to drop_hold(). Any number of tickets may read them.
  /// A ticket counts a hold once, however many buffers it has.
  struct Hold {
    std::uint32_t id = 0;         ///< of the numbers of regions; for the service's message, never used again
    std::uint32_t in_flight = 0;  ///< tickets
    bool used = false;
    bool orphaned = false;             ///< given up while in flight: it goes with its last ticket
    HotVector<std::uint32_t> regions;  ///< indices, one a buffer that is not empty
    std::vector<std::uint32_t> own;    ///< of these, those that add_hold() registered
  };
  /// Returns the index of the hold. `hints`: one for each buffer; set to the region of each buffer that is not empty.
  /// kUnavailable, or the reason why memory cannot be registered.
  Result<std::uint32_t> add_hold(std::span<const std::pair<std::uint64_t, std::uint64_t>> buffers,
                                 HotVector<std::uint32_t>& hints);
  /// No further ticket may use the hold. Does not wait: operations in flight keep the regions.
  void drop_hold(std::uint32_t index);
  [[nodiscard]] std::uint32_t hold_id(std::uint32_t index) const noexcept { return holds_[index].id; }
  /// Declares that the operation reads the buffers of a hold; at most one hold per ticket.
  void reads_hold(Slot& slot, std::uint32_t index) noexcept;
  [[nodiscard]] std::uint32_t hold_in_flight(std::uint32_t index);

  // ---- posting
  /// Describes a ticket's failure in terms of the service that posted it. `code` and `detail`: as in its
  /// CompletionRecord.
  using Describe = Status (*)(std::uint64_t ticket, StatusCode code, std::uint64_t detail);
  /// The resources that a ticket holds until its operation is done.
  struct alignas(64) Slot {
    std::uint64_t ticket = 0;  ///< 0: free
    fabric::Completion sent;
    Bytes message;                     ///< only while `sent` is pending: the bytes that UCX still reads
    HotVector<std::uint32_t> regions;  ///< indices, each counted in in_flight
    std::vector<fabric::Region> temporary;
    Describe describe = nullptr;
    std::uint32_t hold = kNoHold;
  };
  /// Prefetches the data that a post needs for these buffers.
  void prefetch_for(std::span<const std::uint32_t> hints, std::size_t message_bytes) noexcept {
    for (const std::uint32_t hint : hints) {
      if (hint < regions_.size()) __builtin_prefetch(&regions_[hint], 1);
    }
    const Slot& slot = slots_[next_ticket_ & mask_];
    prefetch_for_writing(&slot, sizeof slot);
    prefetch_for_writing(slot.regions.data(), hints.size_bytes());
    __builtin_prefetch(&record(next_ticket_));
    if (mailbox_) mailbox_.prefetch(message_bytes);
  }
  /// Returns the slot of the next ticket, Slot::ticket. kWouldBlock: the maximum number of tickets is in flight, and no
  /// slot became free within `patience`.
  WHERRY_HOT Result<Slot*> begin(std::chrono::nanoseconds patience, Describe describe);
  /// Declares that the operation reads [address, address + bytes), which must not be empty. Returns the agent's id of
  /// the memory. Memory outside all regions is registered until the operation is done. `hint`: the region of the last
  /// call (kNoRegion: none); set to the region of this call.
  [[gnu::always_inline]] Result<std::uint32_t> reads(Slot& slot, std::uint64_t address, std::uint64_t bytes,
                                                     std::uint32_t& hint);
  /// Like reads(), for a known region, such as a hint of a hold.
  std::uint32_t reads_region(Slot& slot, std::uint32_t index);
  /// Regions that the message must announce, because the agent does not know them yet.
  [[nodiscard]] std::span<const session::NewRegion> announcements() const noexcept { return announcements_; }
  /// At most `most` ids that the agent may drop. Pass to posted() how many of them the message named.
  [[nodiscard]] std::span<const std::uint32_t> dropped(std::size_t most) const noexcept {
    return std::span(dropped_).first(std::min(dropped_.size(), most));
  }
  /// Sends a message of `bytes` bytes to the service with message id `kind`. `write(std::byte* to)` writes it during
  /// the call. kWouldBlock: there was no room for it within `patience`.
  template <typename Write>
  [[gnu::always_inline]] Status send(Slot& slot, unsigned kind, std::size_t bytes, std::chrono::nanoseconds patience,
                                     const Write& write);
  /// Completes the post: the ticket is in flight.
  void posted(std::size_t told_dropped) noexcept {
    dropped_.erase(dropped_.begin(), dropped_.begin() + static_cast<std::ptrdiff_t>(told_dropped));
    ++next_ticket_;
  }
  /// Undoes a post that was not sent: restores the slot, its regions, and what the agent is known to have.
  void undo(Slot& slot);

  // ---- tickets
  [[nodiscard]] bool ready(std::uint64_t ticket) noexcept {
    if (std::atomic_ref(record(ticket).word).load(std::memory_order_acquire) >> 8 >= ticket) return true;
    if (unsent_.load(std::memory_order_relaxed) != 0) nudge();
    return inherited_;  // nothing reads this process's memory
  }
  Status wait(std::uint64_t ticket, std::chrono::nanoseconds timeout);
  [[nodiscard]] const session::CompletionRecord* outcome(std::uint64_t ticket) const noexcept;
  std::size_t in_flight();
  Status drain(std::chrono::nanoseconds timeout);

 private:
  SessionCore() = default;
  [[nodiscard]] session::CompletionRecord& record(std::uint64_t ticket) const noexcept {
    return records_[ticket & mask_];
  }
  WHERRY_HOT Result<std::uint32_t> resolve(std::uint64_t address, std::uint64_t bytes, std::uint32_t& hint, Slot& slot);
  Result<std::uint32_t> register_temporarily(std::uint64_t address, std::uint64_t bytes, Slot& slot);
  void free_region(std::uint32_t index);
  void free_if_done(std::uint32_t index);
  void free_hold(std::uint32_t index);
  std::uint32_t free_entry();
  WHERRY_HOT void limit_automatic();
  WHERRY_HOT void let_go(Slot& slot);
  WHERRY_HOT Status release(Slot& slot);
  void remember_failure(std::uint64_t ticket, Status why);
  /// Waits for space in the mailbox and returns it. Null: no space within `patience`.
  WHERRY_HOT std::byte* reserve(std::size_t bytes, std::chrono::nanoseconds patience);
  Status send_over_fabric(Slot& slot, unsigned kind);
  void reap();
  WHERRY_HOT Status free_slot(Slot& slot, std::chrono::nanoseconds patience);
  WHERRY_HOT bool message_left(Slot& slot);
  enum class Waited : std::uint8_t { kDone, kLate, kOver };
  template <typename Done>
  Waited wait_until(const Deadline& deadline, Done done);
  void progress();
  void nudge() noexcept;
  void note_unsent() override;

  HotVector<RegionEntry> regions_;
  HotVector<Hold> holds_;
  std::uint32_t next_region_id_ = 1;
  std::vector<std::uint32_t> registered_;                            ///< entries that somebody registered
  std::unordered_multimap<std::uint64_t, std::uint32_t> automatic_;  ///< the others, by address
  std::vector<std::uint32_t> free_entries_;
  std::size_t automatic_limit_ = kAutomaticRegions;  ///< of automatic_, then those not in use go
  std::vector<std::uint32_t> dropped_;               ///< ids that the agent may forget: told with the next offload
  std::vector<session::NewRegion> announcements_;
  Bytes key_;      ///< of memory that nobody registered; reused
  Bytes message_;  ///< the one being posted, where there is no mailbox; one buffer for all keeps it in the cache

  HotVector<Slot> slots_;
  std::uint64_t next_ticket_ = 1;
  std::map<std::uint64_t, Status> failures_;  ///< of released tickets, the latest kRememberedFailures
  std::uint64_t forgotten_ = 0;               ///< the latest ticket whose failure fell out of failures_; 0: none
  Status first_unseen_;

  std::vector<std::uint32_t> unsent_slots_;  ///< unsent_ of the session counts them
};

inline Result<std::uint32_t> SessionCore::reads(Slot& slot, std::uint64_t address, std::uint64_t bytes,
                                                std::uint32_t& hint) {
  WHERRY_ASSIGN(const std::uint32_t index, resolve(address, bytes, hint, slot));
  return reads_region(slot, index);
}

inline std::uint32_t SessionCore::reads_region(Slot& slot, std::uint32_t index) {
  RegionEntry& region = regions_[index];
  ++region.in_flight;
  slot.regions.push_back(index);
  if (region.announced == 0) {
    region.announced = slot.ticket;
    announcements_.push_back({region.id, region.base, region.size, region.key});
  }
  return region.id;
}

inline void SessionCore::reads_hold(Slot& slot, std::uint32_t index) noexcept {
  slot.hold = index;
  ++holds_[index].in_flight;
}

/// Writes into the mailbox if there is one. A message that is too large for it goes over the fabric; an empty record in
/// the mailbox then keeps the order of messages.
template <typename Write>
inline Status SessionCore::send(Slot& slot, unsigned kind, std::size_t bytes, std::chrono::nanoseconds patience,
                                const Write& write) {
  const bool fits = mailbox_ && bytes <= mailbox_.largest();
  std::byte* const to = mailbox_ ? reserve(fits ? bytes : 0, patience) : nullptr;
  if (mailbox_ && to == nullptr) return Status::would_block();
  if (fits) {
    write(to);
  } else {
    message_.resize(bytes);
    write(message_.data());
    WHERRY_TRY(send_over_fabric(slot, kind));
  }
  if (mailbox_) mailbox_.publish(static_cast<std::uint8_t>(kind));
  return ok_status();
}

}  // namespace wherry::detail
