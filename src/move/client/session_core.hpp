// SPDX-License-Identifier: Apache-2.0
// The client half: what Session, Memory, Region, Stream and Ticket share. One thread at a time, but for ready().
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/prefetch.hpp"
#include "base/socket.hpp"
#include "fabric/control.hpp"
#include "fabric/embedded.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mailbox.hpp"
#include "move/message.hpp"
#include "wherry/move.hpp"

namespace wherry::detail {

inline constexpr std::uint32_t kNoRegion = ~0U;
inline constexpr std::size_t kAutomaticRegions = 1024;  ///< remembered, although nobody registered them

class SessionCore {
 public:
  static Result<std::unique_ptr<SessionCore>> open(const SessionOptions& options);
  ~SessionCore();

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
  /// The two halves of allocate() and register_memory(), without their lock: for benchmarks, whose sessions have no
  /// progress thread.
  [[nodiscard]] fabric::Context& context() noexcept { return *context_; }
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
                                        std::vector<std::uint32_t>& hints, const OffloadOptions& options);
  [[nodiscard]] bool ready(std::uint64_t ticket) noexcept {
    if (std::atomic_ref(record(ticket).word).load(std::memory_order_acquire) >> 8 >= ticket) return true;
    if (unsent_.load(std::memory_order_relaxed) != 0) nudge();
    return false;
  }
  Status wait(std::uint64_t ticket, std::chrono::nanoseconds timeout);
  [[nodiscard]] const fabric::CompletionRecord* outcome(std::uint64_t ticket) const noexcept;
  std::size_t in_flight();
  Status drain(std::chrono::nanoseconds timeout);

  // ---- requests
  Result<Bytes> request(std::string_view method, ByteView payload) { return call(move::kServiceName, method, payload); }
  /// A request to any service of the agent; blocks for the answer, 30 s at most.
  Result<Bytes> call(std::string_view service, std::string_view method, ByteView payload);
  [[nodiscard]] const SessionInfo& info() const noexcept { return info_; }

 private:
  struct alignas(64) Slot {
    std::uint64_t ticket = 0;  ///< 0: free
    fabric::Completion sent;
    Bytes message;                       ///< only while `sent` is pending: the bytes that UCX still reads
    std::vector<std::uint32_t> regions;  ///< indices, each counted in in_flight
    std::vector<fabric::Region> temporary;
  };

  SessionCore() = default;
  Status find_agent(const SessionOptions& options, const Deadline& deadline, HostPort& at, std::string& token);
  Status handshake(const SessionOptions& options, Transport transport, const std::string& token,
                   const Deadline& deadline);
  Status expect(ControlFrame& frame, fabric::ControlType type);
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
  WHERRY_HOT Status send(std::uint64_t ticket, const move::OffloadHeader& header, const move::FlatOffload& flat,
                         Slot& slot, std::chrono::nanoseconds patience);
  Status send_over_fabric(std::uint64_t ticket, Slot& slot);
  void undo(Slot& slot);
  void reap();
  WHERRY_HOT Status free_slot(Slot& slot, std::chrono::nanoseconds patience);
  bool agent_gone();
  Status outcome_status(std::uint64_t ticket, std::uint64_t word, std::uint64_t detail) const;
  [[nodiscard]] bool shared() const noexcept { return threaded_ || unsent_.load(std::memory_order_acquire) != 0; }
  WHERRY_HOT bool message_left(Slot& slot);
  void progress();
  void nudge() noexcept;
  void note_unsent();
  void start_progress_thread();

  // Order matters: what is declared first is destroyed last.
  fabric::EmbeddedProcess embedded_;
  FrameChannel channel_;
  std::shared_ptr<fabric::Context> context_;
  std::unique_ptr<fabric::Worker> worker_;
  fabric::Endpoint endpoint_;
  fabric::Region completions_;
  fabric::Region mailbox_memory_;
  fabric::Completion wired_;       ///< of the handshake's ping
  fabric::MailboxWriter mailbox_;  ///< none: messages go over the fabric
  fabric::CompletionRecord* records_ = nullptr;
  std::uint64_t mask_ = 0;

  SessionInfo info_;
  std::uint64_t session_ = 0;
  Transport chosen_ = Transport::kAuto;  ///< by the agent, in its greeting
  Status broken_;                        ///< why the session is over, once it is
  std::uint64_t next_request_ = 1;

  std::vector<RegionEntry> regions_;
  std::uint32_t next_region_id_ = 1;
  std::vector<std::uint32_t> registered_;                            ///< entries that somebody registered
  std::unordered_multimap<std::uint64_t, std::uint32_t> automatic_;  ///< the others, by address
  std::vector<std::uint32_t> free_entries_;
  std::size_t automatic_limit_ = kAutomaticRegions;  ///< of automatic_, then those not in use go
  std::vector<std::uint32_t> dropped_;               ///< ids that the agent may forget: told with the next offload
  std::vector<move::NewRegion> announcements_;
  Bytes key_;      ///< of memory that nobody registered; reused
  Bytes message_;  ///< of the offload being posted; one buffer for all keeps it in the cache

  std::vector<Slot> slots_;
  std::uint64_t next_ticket_ = 1;
  std::map<std::uint64_t, Status> failures_;  ///< of released tickets, the latest kRememberedFailures
  std::uint64_t forgotten_ = 0;               ///< the latest ticket whose failure fell out of failures_; 0: none
  Status first_unseen_;

  // Who may call into the fabric, registering and unregistering memory included: the session's thread, without a lock,
  // as long as there is no progress thread and every message has left. While some have not (the agent's queue is full),
  // ready() helps them along from any thread, so all take the lock. `unsent_` rises on the session's thread after its
  // last call into the fabric, and falls under the lock.
  std::mutex fabric_mutex_;
  bool threaded_ = false;
  std::vector<std::uint32_t> unsent_slots_;
  std::atomic<std::uint32_t> unsent_{0};
  std::atomic<bool> stop_{false};
  std::thread progress_thread_;
};

/// Takes the fabric lock if a progress thread competes for it.
class FabricLock {
 public:
  FabricLock(std::mutex& mutex, bool needed) : lock_(mutex, std::defer_lock) {
    if (needed) lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

class StreamCore {
 public:
  SessionCore* session = nullptr;
  std::uint32_t id = 0;
  StreamOptions options;
  Schema schema;
  move::Plan plan;
  move::FlatOffload flat;            ///< reused
  std::vector<std::uint32_t> hints;  ///< per buffer: the region that held it last time
  std::uint64_t posted = 0;
  std::size_t last_message_bytes = 0;
  bool open = true;
};

}  // namespace wherry::detail
