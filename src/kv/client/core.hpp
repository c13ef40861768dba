// SPDX-License-Identifier: Apache-2.0
// The client side of docs/design/kv-protocol.md, without sockets, threads or a clock. Its caller passes it the time and
// received messages. The core returns messages to send and completed operations.
//
// This client's choices where the protocol leaves one:
// - It keeps one epoch for all slots: the newest one in any reply. It keeps a leader for each slot, and learns leaders
//   only from replies of that epoch. A client that heard nothing for 32768 epochs takes the true epoch for an old one;
//   it must be created anew.
// - A lane starts when every node has answered for it (even with `not_serving`), or when one has answered with a record
//   and `lane_grace` is over. A write in the lane goes to a node only after this node has answered for the lane: only
//   leaders record refusals, and a silent leader may know a newer request. If it does, the write takes a newer number,
//   unless a try under the old one may still take effect. It cannot at a node that said that it does not lead in the
//   try's epoch; the client asks the others until they say so. If a new epoch has begun meanwhile, the write ends with
//   Outcome::kUnknown.
// - A lane starts `kLaneGap` plus a random number after the newest record.
//   Otherwise two clients that start on one lane at the same moment
//   could choose the same numbers.
// - If another client uses a lane, the lane's record is newer than this client's latest write. The client asks for the
//   record if a write is not answered and, unless a keeper granted the lane, before the first write after a pause. On a
//   newer record it gives the lane up (Outcome::kLaneTaken) and writes a mark into the lane. The mark has no effect,
//   but is newer than the other client's numbers, so that the other client notices as well. For granted lanes it writes
//   the mark only when protest() is called.
// - A reply that asks for a repetition counts only if it comes from the node that was asked last. Otherwise repeated
//   replies would multiply requests.
// - A reply to a read is accepted if it carries the read's tag: the tag shows that a node with a lease made the reply
//   after the read began.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "kv/client/timers.hpp"
#include "kv/message.hpp"
#include "wherry/kv.hpp"

namespace wherry::kv {

/// Receives completed operations. The core calls it from within its own functions; it must not call back into the core.
/// The value is borrowed for the call.
class Completions {
 public:
  virtual void on_complete(const Completion& completion) = 0;

 protected:
  Completions() = default;
  Completions(const Completions&) = default;
  Completions& operator=(const Completions&) = default;
  ~Completions() = default;
};

class ClientCore {
 public:
  struct Options {
    std::array<Endpoint, kMaxNodes> nodes{};  ///< by number; port 0: no such node
    std::uint16_t first_lane = 0;
    std::uint32_t lanes = 64;
    std::uint32_t operations = 1024;  ///< a power of two, up to 65536
    Cycles deadline = 5000 * kMillisecond;
    Cycles first_timeout = 2 * kMillisecond;
    std::uint32_t timeout_factor = 2;
    Cycles timeout_cap = 100 * kMillisecond;
    Cycles lane_grace = 50 * kMillisecond;
    Cycles first_pause = kMillisecond / 50;
    Cycles pause_cap = 2 * kMillisecond;
    Cycles probe_every = 1000 * kMillisecond;
    /// A lane begins up to this many numbers after the gap. Half of all numbers count as newer. So if about 2^31 /
    /// lane_spread clients started on one lane in one epoch, a frame delayed meanwhile would count as new again.
    std::uint32_t lane_spread = 1U << 22;
    Cycles lane_recheck = 100 * kMillisecond;  ///< idle for so long, a lane's record is asked for before a write
    bool granted = false;                      ///< lanes are a keeper's grant: give_lanes() hands them over
    ReadFrom reads = ReadFrom::kNearest;
    std::uint64_t seed = 1;
    bool trust_lanes = false;  ///< for tests alone: the rule that a lane's record may not be newer is broken
  };

  struct Request {
    Kind kind = Kind::read;  ///< read, write, write_if, remove, remove_if
    std::uint64_t key = 0;
    std::uint32_t version = 0;  ///< expected; 0 with write_if: no such key
    ByteView value;             ///< copied
    std::uint64_t tag = 0;      ///< the user's
    Cycles deadline = 0;        ///< a time, not a duration; 0: as in the options
  };

  /// `output` and `completions` must outlive the core. All memory is allocated here.
  ClientCore(const Options& options, Output& output, Completions& completions);

  /// Asks for the first lanes' records and for the nearest node. If not called, the first operations do so.
  void start(Cycles now);
  /// False: would block (all operations of the options are in use, or every lane has a write); nothing happened.
  [[nodiscard]] bool submit(const Request& request, Cycles now);
  void on_message(const Endpoint& from, const Message& message, Cycles now);
  /// For granted lanes: the client now owns options.lanes lanes from `first_lane` on. No write may be in flight.
  void give_lanes(std::uint16_t first_lane, Cycles now);
  /// The grant has ended. Writes in flight end (kUnknown, or kNoAnswer if no try can take effect), and new ones would
  /// block.
  void lose_lanes();
  [[nodiscard]] bool has_lanes() const noexcept { return has_lanes_; }
  [[nodiscard]] std::uint16_t first_lane() const noexcept { return options_.first_lane; }
  /// True if another client uses granted lanes and the keeper was not yet asked who owns them.
  [[nodiscard]] bool disputes() const noexcept { return disputed_; }
  /// Makes the other client notice. Call it when the keeper confirms that this client owns the lanes.
  void protest(Cycles now);
  /// Does the work that is due. Returns the latest time of the next call, which is always later than `now`.
  Cycles tick(Cycles now);
  [[nodiscard]] Cycles next_wake() const noexcept { return timers_.next(); }

  /// True if a serving node has answered and, if there are lanes, at least one is ready.
  [[nodiscard]] bool ready() const noexcept {
    return heard_ && ((has_lanes_ && ready_lanes_ > 0) || options_.lanes == 0);
  }
  /// True if the cluster has no record for any lane of this client, so that no write can ever be sent.
  [[nodiscard]] bool all_lanes_bad() const noexcept { return options_.lanes > 0 && bad_lanes_ == options_.lanes; }
  /// Number of lanes that another client uses.
  [[nodiscard]] std::uint32_t taken_lanes() const noexcept { return taken_lanes_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return options_.operations - free_count_; }
  [[nodiscard]] std::uint16_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] const ClientStatistics& statistics() const noexcept { return statistics_; }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  static constexpr std::uint8_t kNobody = kMaxNodes;
  enum class State : std::uint8_t { idle, waiting, pausing, lane_wanted };
  enum class LaneState : std::uint8_t { cold, starting, ready, bad, taken };

  struct Op {
    std::uint64_t key = 0, tag = 0;
    Cycles deadline = 0, timeout = 0, pause = 0;
    std::uint32_t request = 0;     ///< read: tag; else: the lane's number, once the lane is ready
    std::uint32_t generation = 0;  ///< of tags
    std::uint32_t version = 0, length = 0;
    Index lane = kNone;
    std::uint16_t epoch = 0;  ///< of the latest try
    Kind kind = Kind::read;
    State state = State::idle;
    std::uint8_t node = kNobody;  ///< asked last
    std::uint8_t hops = 0;        ///< sent again at once since the last pause
    std::uint8_t timeouts = 0;
    std::uint8_t perhaps = 0;  ///< nodes that may carry out a try of `epoch`
    bool sent = false;         ///< at least once, as itself, under this number
    bool earlier = false;      ///< a try of an earlier epoch may take effect
    bool outdated = false;     ///< a node knows a newer number, so that only answers to earlier tries can help
    bool asking = false;       ///< the node was asked for the lane's record first
    [[nodiscard]] bool may_take_effect() const noexcept { return perhaps != 0 || earlier; }
  };
  struct Lane {
    std::uint32_t next = 0;  ///< number of the next write; while it starts: the newest record
    std::uint32_t tag = 0;   ///< of the question for its record
    Cycles timeout = 0, grace_end = 0;
    Index op = kNone;
    Cycles used = 0;  ///< when a write of it ended last
    LaneState state = LaneState::cold;
    std::uint8_t known = 0, refused = 0;  ///< nodes that answered with a record; that said they do not serve
    std::uint8_t fresh = 0;               ///< nodes whose record was seen since the lane was idle
    std::uint8_t protests = 0;            ///< marks that are still to be sent
    bool written = false;                 ///< while it starts: some node has a record
  };
  struct Node {
    std::uint8_t silent = 0;  ///< timeouts since it was last heard
    bool serving = true;      ///< as far as is known
  };

  // core.cpp: operations
  void finish(Index i, Outcome outcome, std::uint32_t version, ByteView value);
  void expire(Index i);
  void send_try(Index i, std::uint8_t node, Cycles now);
  [[nodiscard]] std::uint8_t that_may_settle(const Op& op, std::uint8_t wanted) const noexcept;
  void renumber(Op& op) noexcept;
  void send_soon(Index i, std::uint8_t node, Cycles now);
  void send_later(Index i, Cycles now);
  void arm(Index i, Cycles at) noexcept;
  void on_timer(Index i, Cycles now);
  void send(std::uint8_t node, const Kv& header, ByteView value = {});
  [[nodiscard]] std::span<std::byte, kMaxValueBytes> value_of(Index lane) noexcept;

  // core_replies.cpp
  void on_read_done(std::uint8_t from, const Message& message, Cycles now);
  void on_write_done(std::uint8_t from, const Message& message, Cycles now);
  void on_pong(std::uint8_t from, const Kv& header);
  void learn_epoch(std::uint16_t epoch) noexcept;
  void learn(const Kv& header) noexcept;
  void ignore() noexcept { ++statistics_.ignored; }

  // core_lanes.cpp
  [[nodiscard]] Index take_lane() noexcept;
  void start_lane(Index lane, Cycles now);
  void ask_lane(Index lane, std::uint8_t node);
  void ask_all(Index lane, Cycles now);
  void on_lane_record(std::uint8_t from, const Kv& header, Cycles now);
  void on_late_record(Index lane, std::uint8_t from, std::optional<std::uint32_t> record, Cycles now);
  void on_record_again(Index lane, std::uint8_t from, std::optional<std::uint32_t> record, Cycles now);
  void take_from_us(Index lane, std::uint32_t record, Cycles now);
  void send_protest(Index lane, Cycles now);
  [[nodiscard]] std::uint32_t beyond(std::uint32_t record) noexcept;
  void reset_lanes();
  void on_lane_timer(Index lane, Cycles now);
  bool try_ready(Index lane, Cycles now);

  // core_nodes.cpp
  [[nodiscard]] bool present(std::uint8_t node) const noexcept {
    return node < kMaxNodes && options_.nodes[node].port != 0;
  }
  [[nodiscard]] bool usable(std::uint8_t node) const noexcept;
  [[nodiscard]] std::uint8_t node_of(const Endpoint& from) const noexcept;
  [[nodiscard]] std::uint8_t after(std::uint8_t node) const noexcept;
  [[nodiscard]] std::uint8_t leader_of(std::uint64_t key) const noexcept;
  [[nodiscard]] std::uint8_t reader_for(std::uint64_t key) noexcept;
  void probe(Cycles now);

  Options options_;
  Output& output_;
  Completions& completions_;
  unsigned index_bits_ = 0;
  std::uint8_t present_ = 0;  ///< bit by node
  std::vector<Op> ops_;
  std::vector<Index> free_ops_;  ///< a ring, so that an index, and with it a tag, comes again as late as possible
  std::size_t free_head_ = 0, free_count_ = 0;
  std::vector<Lane> lanes_;
  std::vector<Index> free_lanes_;  ///< a stack, so that lanes that have started are used first
  std::uint32_t ready_lanes_ = 0, bad_lanes_ = 0, taken_lanes_ = 0;
  bool has_lanes_ = true, disputed_ = false;
  std::unique_ptr<std::byte[]> values_;  ///< by lane
  TimerHeap timers_;                     ///< operations, then lanes, then the probe
  std::array<Node, kMaxNodes> nodes_{};
  std::array<std::uint8_t, kSlots> leaders_{};
  std::uint16_t epoch_ = 0;  ///< the newest; 0: none known
  std::uint8_t nearest_ = kNobody, turn_ = 0;
  bool heard_ = false, probe_open_ = false, active_ = false, probing_ = false;
  Cycles probe_wait_ = 0;  ///< until the next probe, while nobody was heard
  std::uint32_t probe_tag_ = 0, lane_tag_ = 0;
  SplitMix64 random_;
  ClientStatistics statistics_;
};

}  // namespace wherry::kv
