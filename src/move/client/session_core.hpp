// SPDX-License-Identifier: Apache-2.0
// The client half of move: what Session, Memory, Region, Stream and Ticket share, on top of a session with the agent.
// One thread at a time, but for ready().
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hot_memory.hpp"
#include "base/prefetch.hpp"
#include "fabric/client_session.hpp"
#include "fabric/control.hpp"
#include "fabric/fabric.hpp"
#include "move/message.hpp"
#include "wherry/move.hpp"

namespace wherry::detail {

inline constexpr std::uint32_t kNoRegion = ~0U;
inline constexpr std::size_t kAutomaticRegions = 1024;  ///< remembered, although nobody registered them

using fabric::FabricLock;

class SessionCore final : public fabric::ClientSession, public InHotMemory {
 public:
  static Result<std::unique_ptr<SessionCore>> open(const SessionOptions& options);
  ~SessionCore() override;
  /// Leaves the agent at once: offloads in flight are cancelled, later calls fail. Memory that was allocated stays
  /// until it is removed. An embedded agent drains and exits when what this returns is destroyed. Idempotent.
  [[nodiscard]] fabric::EmbeddedProcess leave();
  [[nodiscard]] bool closed() const noexcept { return worker_ == nullptr; }

  // ---- memory
  struct alignas(64) RegionEntry {  // what post() looks at lies in the first line
    std::uint64_t base = 0, size = 0;
    std::uint32_t id = 0;         ///< on the wire; never reused
    std::uint32_t in_flight = 0;  ///< buffers of tickets that read it
    bool used = false;            ///< this entry of the table is taken
    bool automatic = false;  ///< of memory that nobody registered: valid only while an offload holds a registration
    bool orphaned = false;   ///< its owner gave it up while it was read: it goes with the last ticket that reads it
    std::uint64_t announced = 0;  ///< the ticket whose message told the agent its key; 0: none
    Bytes key;
    fabric::Region handle;  ///< automatic entries: none, tickets hold theirs
    /// Whether offloads of that memory may use it.
    [[nodiscard]] bool offers(std::uint64_t address, std::uint64_t bytes) const noexcept {
      return used && !automatic && !orphaned && address >= base && bytes <= size && address - base <= size - bytes;
    }
  };
  /// Of remove_region_waiting, where the caller has no opinion.
  static constexpr std::chrono::seconds kRemovePatience{10};
  Result<std::uint32_t> allocate(std::size_t bytes);
  Result<std::uint32_t> register_memory(void* data, std::size_t bytes);
  /// kFailedPrecondition while the agent lives and tickets that read it are in flight.
  Status remove_region(std::uint32_t index);
  /// Waits for those tickets. If `patience` runs out, the session keeps the region until they are done, and says so on
  /// standard error; nobody may use `index` again either way.
  void remove_region_waiting(std::uint32_t index, std::chrono::nanoseconds patience = kRemovePatience);
  [[nodiscard]] std::byte* region_data(std::uint32_t index) const noexcept { return regions_[index].handle.data(); }
  /// The second half of allocate() and register_memory(), without their lock: for benchmarks, whose sessions have no
  /// progress thread.
  Result<std::uint32_t> add_region(Result<fabric::Region> handle);

  // ---- offloads
  /// Starts to fetch what post() will need for these columns.
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
  WHERRY_HOT Result<std::uint64_t> post(std::uint32_t stream, std::uint64_t rows, move::FlatOffload& flat,
                                        HotVector<std::uint32_t>& hints, const OffloadOptions& options);
  [[nodiscard]] bool ready(std::uint64_t ticket) noexcept {
    if (std::atomic_ref(record(ticket).word).load(std::memory_order_acquire) >> 8 >= ticket) return true;
    if (unsent_.load(std::memory_order_relaxed) != 0) nudge();
    return inherited_;  // nothing reads this process's memory
  }
  Status wait(std::uint64_t ticket, std::chrono::nanoseconds timeout);
  [[nodiscard]] const fabric::CompletionRecord* outcome(std::uint64_t ticket) const noexcept;
  std::size_t in_flight();
  Status drain(std::chrono::nanoseconds timeout);

  // ---- requests
  using ClientSession::request;
  Result<Bytes> request(std::string_view method, ByteView payload) {
    return request(move::kServiceName, method, payload);
  }
  /// The id that the agent gave the stream. kDeadlineExceeded: the agent may open it yet. Asked again for that name, it
  /// hands out the stream that it opened; a stream that nobody asks for again is closed with a later request.
  Result<std::uint32_t> open_stream(move::OpenRequest request);

 private:
  struct alignas(64) Slot {
    std::uint64_t ticket = 0;  ///< 0: free
    fabric::Completion sent;
    Bytes message;                     ///< only while `sent` is pending: the bytes that UCX still reads
    HotVector<std::uint32_t> regions;  ///< indices, each counted in in_flight
    std::vector<fabric::Region> temporary;
  };

  SessionCore() = default;
  [[nodiscard]] fabric::CompletionRecord& record(std::uint64_t ticket) const noexcept {
    return records_[ticket & mask_];
  }
  WHERRY_HOT Result<std::uint32_t> resolve(std::uint64_t address, std::uint64_t bytes, std::uint32_t& hint, Slot& slot);
  Result<std::uint32_t> register_temporarily(std::uint64_t address, std::uint64_t bytes, Slot& slot);
  void free_region(std::uint32_t index);
  std::uint32_t free_entry();
  WHERRY_HOT void limit_automatic();
  WHERRY_HOT void let_go(Slot& slot);
  WHERRY_HOT Status release(Slot& slot);
  void remember_failure(std::uint64_t ticket, Status why);
  WHERRY_HOT Status send(std::uint64_t ticket, const move::OffloadHeader& header, const move::FlatOffload& flat,
                         Slot& slot, std::chrono::nanoseconds patience);
  Status send_over_fabric(std::uint64_t ticket, Slot& slot);
  void undo(Slot& slot);
  void reap();
  WHERRY_HOT Status free_slot(Slot& slot, std::chrono::nanoseconds patience);
  Status outcome_status(std::uint64_t ticket, std::uint64_t word, std::uint64_t detail) const;
  WHERRY_HOT bool message_left(Slot& slot);
  void progress();
  void nudge() noexcept;
  void note_unsent() override;
  void on_late_answer(const fabric::Response& late) override;

  HotVector<RegionEntry> regions_;
  std::uint32_t next_region_id_ = 1;
  std::vector<std::uint32_t> registered_;                            ///< entries that somebody registered
  std::unordered_multimap<std::uint64_t, std::uint32_t> automatic_;  ///< the others, by address
  std::vector<std::uint32_t> free_entries_;
  std::size_t automatic_limit_ = kAutomaticRegions;  ///< of automatic_, then those not in use go
  std::vector<std::uint32_t> dropped_;               ///< ids that the agent may forget: told with the next offload
  std::vector<move::NewRegion> announcements_;
  Bytes key_;      ///< of memory that nobody registered; reused
  Bytes message_;  ///< of the offload being posted; one buffer for all keeps it in the cache

  HotVector<Slot> slots_;
  std::uint64_t next_ticket_ = 1;
  std::map<std::uint64_t, Status> failures_;  ///< of released tickets, the latest kRememberedFailures
  std::uint64_t forgotten_ = 0;               ///< the latest ticket whose failure fell out of failures_; 0: none
  Status first_unseen_;

  using Opens = std::map<std::string, std::uint64_t>;
  /// By stream: the request that got no answer in time.
  std::unique_ptr<Opens> unanswered_opens_ = std::make_unique<Opens>();

  std::vector<std::uint32_t> unsent_slots_;  ///< unsent_ of the session counts them
};

class StreamCore : public InHotMemory {
 public:
  SessionCore* session = nullptr;
  std::uint32_t id = 0;
  StreamOptions options;
  Schema schema;
  move::Plan plan;
  move::FlatOffload flat;          ///< reused
  HotVector<std::uint32_t> hints;  ///< per buffer: the region that held it last time
  std::uint64_t posted = 0;
  std::size_t last_message_bytes = 0;
  bool open = true;
};

}  // namespace wherry::detail
