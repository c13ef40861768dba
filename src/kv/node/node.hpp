// SPDX-License-Identifier: Apache-2.0
// The software node: docs/design/kv-protocol.md without sockets, threads or clocks. Its owner passes it messages and
// the time, sends its messages, and sets its registers. One thread. receive() and tick() allocate nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kv/message.hpp"
#include "kv/node/configuration.hpp"
#include "kv/node/faults.hpp"
#include "kv/node/fetches.hpp"
#include "kv/node/lanes.hpp"
#include "kv/node/notes.hpp"
#include "kv/node/table.hpp"
#include "kv/node/window.hpp"
#include "kv/node_mask.hpp"
#ifdef WHERRY_KV_FAULTS
#include "kv/node/faults_testing.hpp"
#endif

namespace wherry::kv {

#ifdef WHERRY_KV_FAULTS  // compiled into wherry_kv_faulty alone, for tests: any_node_testing.hpp
inline namespace faulty {
using Faults = NodeFaults;
#else
inline namespace delivered {
using Faults = NoFaults;
#endif

class Node final : public RegisterIo {
 public:
  using Options = NodeOptions;
  using Drop = NodeDrop;

  Node(const Options& options, Output& output, Faults faults = {});

  void receive(const Endpoint& from, const Message& message, Cycles now);
  /// Repeats messages that were not answered. Returns the time of its next call, or kNever. After receive() or write(),
  /// that time may be earlier, so ask again.
  Cycles tick(Cycles now);
  /// Sets the node's time, which `cycles` returns and leases are compared with, when neither of the two functions above
  /// is called.
  void set_now(Cycles now) noexcept { now_ = now; }

  std::uint32_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint32_t value) override;

  /// Counts frames for this node that the parser rejected, and frames that belong to the host.
  void count_dropped(Drop why) noexcept;
  void count_passed_rx(std::uint32_t frames = 1) noexcept { counters_.passed_rx += frames; }
  void count_passed_tx(std::uint32_t frames = 1) noexcept { counters_.passed_tx += frames; }

  /// Prefetches the data that receive() of this request will need. For a caller with several requests ready.
  void prefetch(const Kv& request) const noexcept;

  /// A bit for each member that has not answered this leader for `time` although something waits for it.
  [[nodiscard]] std::uint8_t silent_members(Cycles time) noexcept;

  /// For simulations: each location looks as if a key was written there and deleted with its way's version. 0: no
  /// version. Precondition: the table is empty.
  void preset_versions(const std::array<std::uint32_t, kWays>& versions);

  [[nodiscard]] const NodeCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] const Table& table() const noexcept { return table_; }
  /// True if no write is in flight here and there is no leftover.
  [[nodiscard]] bool at_rest() const noexcept { return window_.in_flight() == 0 && notes_.leftovers() == 0; }

 private:
  static constexpr unsigned kMostDoublings = 16;  ///< as counted

  // node.cpp: incoming messages, reads, replies.
  void from_node(const Endpoint& from, const Message& m);
  [[nodiscard]] bool take_from_node(const Endpoint& from, unsigned sender, const Message& m);
  void on_read(const Endpoint& from, const Kv& h);
  [[gnu::noinline]] void read_elsewhere(const Endpoint& from, const Kv& h, std::uint32_t hash);
  void on_lane(const Endpoint& from, const Message& m);
  void on_ping(const Endpoint& from, const Message& m);
  void tell(const Endpoint& to, const Kv& request, Status status, std::uint32_t version = 0, std::uint64_t key = 0);
  void answer(const Endpoint& to, const Kv& request, unsigned slot, Status status, std::uint32_t version = 0,
              ByteView value = {});
  void reply(const Endpoint& to, const Kv& request, unsigned slot, Status status, std::uint32_t version,
             ByteView value);
  void send(const Endpoint& to, const Kv& header, ByteView value = {});
  void send_node(unsigned node, const Kv& header, ByteView value = {});
  void count_answer(Status status) noexcept;
  void drop_as(std::uint32_t& reason) noexcept;
  void fail() noexcept;

  // leader.cpp: writes.
  void on_request(const Endpoint& from, const Message& m);
  [[nodiscard]] bool is_new(const Endpoint& from, const Kv& h, unsigned slot);
  void refresh(Location at, const Kv& h);
  [[nodiscard]] [[gnu::noinline]] bool find_elsewhere(const Kv& h, std::uint32_t hash, Location& at) const noexcept;
  void decide(const Endpoint& from, const Message& m, std::uint32_t hash, Location at, bool searched);
  void refuse(const Endpoint& from, const Kv& h, unsigned slot, Status status, std::uint32_t version);
  void replicate(unsigned place);
  void commit_if_answered(unsigned place);
  void commit(unsigned place);
  [[nodiscard]] bool on_replicated(const Kv& h);
  void retry_window();

  // follower.cpp
  [[nodiscard]] bool on_replicate(const Message& m);
  [[nodiscard]] bool on_commit(const Kv& h);
  void resolve(Notes::Index index, std::uint32_t version, bool same_write);
  void roll_back(std::uint16_t lane, std::uint32_t request) noexcept;
  void drop_settled(Notes::Index note);
  void ask_for_commit(std::uint32_t bucket);

  // epoch.cpp
  void enter(std::uint32_t epoch);
  void keep_or_drop_window();
  void leave_pending_over();
  void replay_leftovers();
  void fetch_leftovers();
  void repeat_enter();
  void after_leftovers();
  void open_if_ready();
  void on_enter(unsigned sender);
  [[nodiscard]] bool on_fetch(const Endpoint& from, const Kv& h);
  [[nodiscard]] bool on_entry(const Message& m);
  void adopt(Location at, const Message& m, bool present);

  // sync.cpp: a node that returns.
  void start_bucket_sync(std::uint32_t count);
  void start_lane_sync(std::uint32_t count);
  void restart_sync();
  void pump_buckets();
  void pump_lanes();
  [[nodiscard]] bool on_sync_entry(const Message& m, bool present);
  void on_lane_record(unsigned sender, const Kv& h);

  // node_registers.cpp
  [[nodiscard]] std::uint32_t read_counter(std::uint32_t offset) const noexcept;
  [[nodiscard]] std::uint32_t read_staged(std::uint32_t offset) const noexcept;
  [[nodiscard]] std::uint32_t state() const noexcept;
  void write_staged(std::uint32_t offset, std::uint32_t value) noexcept;
  void write_control(std::uint32_t value);
  void clear_table() noexcept;

  [[nodiscard]] bool leased() const noexcept {
    return lease_ == kNever || now_ < lease_ || faults_.has(NodeFault::ignore_lease);
  }
  [[nodiscard]] bool serving() const noexcept {
    return !fault_ && epoch16_ != 0 && has(config_.serving, self()) && leased();
  }
  [[nodiscard]] unsigned self() const noexcept { return config_.node; }
  [[nodiscard]] bool leads(unsigned slot) const noexcept { return config_.leaders[slot] == config_.node; }
  [[nodiscard]] std::uint8_t others() const noexcept {
    return static_cast<std::uint8_t>(config_.members & ~(1U << self()));
  }
  [[nodiscard]] static unsigned slot_at(Location at) noexcept { return bucket_at(at) % kSlots; }
  /// The header of a frame to other nodes.
  [[nodiscard]] Kv header(Kind kind) const noexcept;
  /// The header of a frame about a write in this leader's window.
  [[nodiscard]] Kv header(Kind kind, const Place& write, unsigned place) const noexcept;
  /// When to repeat a message that was sent `tries` times before. The interval doubles each time, by default up to 64
  /// times retry_cycles.
  Cycles retry_at(unsigned tries = 0) noexcept {
    return schedule(now_ + (Cycles{retry_cycles_} << std::min(tries, options_.most_doublings)));
  }
  Cycles schedule(Cycles at) noexcept {
    if (at < next_due_) next_due_ = at;
    return at;
  }

  const Options options_;
  [[no_unique_address]] const Faults faults_;
  Output& output_;
  Cycles now_ = 0;
  Cycles lease_ = 0;
  Cycles next_due_ = kNever;
  std::uint32_t retry_cycles_ = registers::kRetryCyclesReset;
  std::uint32_t epoch_ = 0;
  std::uint16_t epoch16_ = 0;
  bool fault_ = false;
  bool opened_ = false;
  bool leads_any_ = false;
  bool leftovers_changed_ = false;  ///< after_leftovers() has work
  std::uint8_t entered_ = 0;        ///< members that said so, to this leader
  std::uint8_t owed_entered_ = 0;   ///< leaders that asked, of this member
  Cycles enter_due_ = 0;
  Cycles entered_at_ = 0;
  std::uint8_t enter_tries_ = 0;
  std::array<Cycles, kMaxNodes> heard_at_{};  ///< members, in this epoch
  NodeConfiguration config_;
  NodeConfiguration staged_;
  NodeCounters counters_;

  Table table_;
  Lanes lanes_;
  Notes notes_;
  Window window_;
  Tags tags_;
  BucketSync bucket_sync_;
  LaneSync lane_sync_;

  // Registers without a meaning for software. They can be read back.
  std::uint32_t control_ = 0;
  std::uint32_t bucket_bits_ = registers::kBucketBitsReset;
  std::uint32_t lease_low_ = 0;
  std::uint32_t cycles_high_ = 0;
  std::uint32_t sync_from_ = 0;
  std::array<std::uint32_t, 4> bases_{};
};

}  // inline namespace
}  // namespace wherry::kv
