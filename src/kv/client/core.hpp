// SPDX-License-Identifier: Apache-2.0
// A client's half of docs/design/kv-protocol.md, without sockets, threads or a clock. Its caller passes it the time and
// received messages. It returns messages to send and completed operations.
//
// Where the protocol leaves a choice:
// - One epoch is kept, not one for each slot: the newest epoch in any reply. The leader is kept for each slot, and
//   learnt only from replies of that epoch. A client that heard nothing for 32768 epochs takes the true epoch for an
//   old one, and must be created anew.
// - A lane starts as soon as every node has answered for it (even with `not_serving`), or one has answered with a
//   record and `lane_grace` has passed. A write of it goes to a node only once that node has answered for the lane,
//   because only leaders record refusals, and a silent leader may know a newer request. If it does, a write that was
//   not sent yet takes a newer number. A write that was sent is given up (Outcome::kUnknown), as the node might take it
//   for another one.
// - A lane starts `kLaneGap` and a random number beyond the newest record, so that two clients that start on one lane
// at
//   the same moment do not choose the same numbers.
// - If another client uses a lane, the lane's record is newer than this client's latest write. The client asks for the
//   record when a write is not answered. If no keeper granted the lane, it also asks before the first write after a
//   pause. It then gives the lane up (Outcome::kLaneTaken). It writes a mark into the lane that has no effect but is
//   newer than the other client's numbers, so that the other client notices as well. For granted lanes it does so only
//   when protest() is called.
// - A reply that says to ask again counts only if it comes from the node that was asked last, so that repeated replies
//   do not multiply requests.
// - A reply to a read is accepted if it carries the read's tag, because a node with a lease made it after the read
//   began.
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

/// Takes what has ended. Called from within the calls to the core; must not call back into it. The value is borrowed
/// for the call.
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
    /// A lane begins up to this many numbers beyond the gap. Half of all numbers are "newer". If about 2^31 /
    /// lane_spread clients began on its lane in one epoch, a frame that the network kept meanwhile would be new again.
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

  /// Both must outlive it. It allocates its memory here, and none later.
  ClientCore(const Options& options, Output& output, Completions& completions);

  /// Asks for the first lanes' records and for the nearest node. Without it the first operations do.
  void start(Cycles now);
  /// False: would block (as many operations as the options allow, or every lane has a write), and nothing happened.
  [[nodiscard]] bool submit(const Request& request, Cycles now);
  void on_message(const Endpoint& from, const Message& message, Cycles now);
  /// For granted lanes: from now on they are options.lanes lanes from `first_lane` on. No write may be in flight.
  void give_lanes(std::uint16_t first_lane, Cycles now);
  /// The grant is over. Writes in flight end (kUnknown, or kNoAnswer if never sent), and others would block.
  void lose_lanes();
  [[nodiscard]] bool has_lanes() const noexcept { return has_lanes_; }
  [[nodiscard]] std::uint16_t first_lane() const noexcept { return options_.first_lane; }
  /// Another client uses granted lanes, and the keeper was not yet asked who owns them.
  [[nodiscard]] bool disputes() const noexcept { return disputed_; }
  /// The lanes belong to this client, so the other client must notice.
  void protest(Cycles now);
  /// Does the work that is due. Returns the latest time of the next call, which is always later than `now`.
  Cycles tick(Cycles now);
  [[nodiscard]] Cycles next_wake() const noexcept { return timers_.next(); }

  /// Whether a serving node has answered and, if there are lanes, one of them is ready.
  [[nodiscard]] bool ready() const noexcept {
    return heard_ && ((has_lanes_ && ready_lanes_ > 0) || options_.lanes == 0);
  }
  /// The cluster keeps no record for any of the lanes: no write can ever be sent.
  [[nodiscard]] bool all_lanes_bad() const noexcept { return options_.lanes > 0 && bad_lanes_ == options_.lanes; }
  /// Lanes that another client uses.
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
    bool sent = false;    ///< at least once, as itself
    bool asking = false;  ///< the node was asked for the lane's record first
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
