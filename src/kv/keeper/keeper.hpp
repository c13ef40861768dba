// SPDX-License-Identifier: Apache-2.0
// Decides each epoch's members, and grants leases (docs/design/kv-protocol.md, section 9). No sockets, no clocks.
//
// A configuration is stored (`store`) before any node learns of it. So a restarted or another keeper knows the latest
// one that nodes may have entered. If no configuration is stored, a keeper continues on its own only if it certainly
// knows of every event. Otherwise it waits for an operator (keeper_recover.cpp).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kv/control/control.hpp"
#include "kv/keeper/lane_grants.hpp"

namespace wherry::kv {

/// Rules that a keeper can be made to break, only to check that the tests notice it.
enum class KeeperFault : std::uint8_t {
  none,
  ignore_leases,     ///< rule 1: publishes without waiting
  serve_incomplete,  ///< rule 2: a member serves at once
  leader_is_member,  ///< rule 3: the slots of a node that left go to any member
  overlook_restart,  ///< rule 4: a new boot number goes on as the node it was
  repeat_epoch,      ///< publishes another content under the same number
  forget_leases      ///< one that starts does not wait for the leases of the one before
};

struct KeeperNode {
  bool configured = false;
  std::string name;
  Endpoint endpoint;
};

struct KeeperOptions {
  std::string cluster;
  std::array<KeeperNode, kMaxNodes> nodes;
  std::uint32_t bucket_bits = 21;
  std::uint32_t lanes = 4096;
  AckPolicy policy = AckPolicy::store;
  Cycles ping_interval = 25'000'000;  ///< T
  std::uint32_t misses = 3;           ///< m: after so many intervals without a word a node is silent
  Cycles lease = 75'000'000;          ///< D
  /// How long a node may stay with an earlier keeper. For this time after its start, a keeper does not count a node as
  /// silent that has not yet spoken to it.
  Cycles find_time = 0;
  std::uint32_t static_lanes = 1024;  ///< those below are not granted to clients, but named by them
  Cycles lane_ttl = 750'000'000;      ///< how long lanes stay a client's without a connection
  /// The first epoch of an empty cluster, unless nodes or the stored configuration know a later one. If the stored
  /// configuration may be lost, it must be higher than all former epochs, because clients never return to an older one.
  std::uint64_t first_epoch = 1;
  /// Number of the first grant of lanes, above those of all earlier keepers. KeeperServer uses the calendar time.
  std::uint64_t first_grant = 1;
  KeeperFault fault = KeeperFault::none;
};

/// Calls that the keeper's functions make. They must not call back into the keeper.
class KeeperOutput {
 public:
  /// Sends to the node's present connection; drops the message if there is none.
  virtual void send(std::uint32_t node, const FromKeeper& message) = 0;
  /// Stores a configuration in place of the former one. Afterwards the caller calls Keeper::stored.
  virtual void store(const Configuration& configuration) = 0;

 protected:
  KeeperOutput() = default;
  KeeperOutput(const KeeperOutput&) = default;
  KeeperOutput& operator=(const KeeperOutput&) = default;
  ~KeeperOutput() = default;
};

/// The course of one removal of serving nodes.
struct Failover {
  std::uint64_t epoch = 0;  ///< the one without them
  NodeMask removed = 0;
  Cycles last_sign = 0;  ///< of the one that was heard from last
  Cycles published = 0;
  Cycles confirmed = 0;  ///< by all members; 0: not yet
};

class Keeper {
 public:
  enum class Phase : std::uint8_t {
    asking,  ///< nothing was kept: waits for the nodes' word
    running,
    lost,    ///< no node has the data any more
    halted,  ///< by the operator
    deposed  ///< another keeper is elected
  };

  /// `stored`: the last stored configuration, if any. `now`: time of the caller's clock, in cycles.
  Keeper(KeeperOptions options, KeeperOutput& output, std::optional<Configuration> stored, Cycles now);

  /// A message from the node's present connection. Before a hello of a new one, the caller has closed the old one.
  void on_message(std::uint32_t node, const ToKeeper& message, Cycles now);
  void disconnected(std::uint32_t node, Cycles now);
  /// Whether a node may join with this hello. All settings that must be equal for all members are compared. Returns an
  /// empty text, or a sentence with both values.
  [[nodiscard]] std::string mismatch(const Hello& hello) const;
  /// Notes, for status(), that the node was refused.
  void refused(std::uint32_t node, std::string why) { nodes_[node % kMaxNodes].refusal = std::move(why); }
  void on_time(Cycles now);
  [[nodiscard]] Cycles next_time() const noexcept;
  /// The result of KeeperOutput::store. False: another keeper stored a configuration, so this keeper is deposed.
  void stored(bool kept, Cycles now);
  /// Leases are granted and epochs published only before this time, because no other keeper is elected until then.
  void set_mandate(Cycles until) noexcept { mandate_ = until; }
  void depose() noexcept { phase_ = Phase::deposed; }

  /// The client with the connection `holder` (not 0) asks for lanes, or has ended. Returns GrantedLanes, or the reason
  /// for a refusal.
  FromKeeper open_lanes(std::uint64_t holder, const OpenLanes& open, Cycles now);
  void close_lanes(std::uint64_t holder, bool over, Cycles now) { lanes_.release(holder, over, now); }
  /// Clients whose lanes went to another client with a later grant. The caller must close their connections.
  [[nodiscard]] std::vector<std::uint64_t> take_ousted() noexcept { return lanes_.take_ousted(); }
  /// Whether clients may rely on this keeper's grants, because no other keeper can be elected yet.
  [[nodiscard]] bool mandated(Cycles now) const noexcept { return now < mandate_; }

  Answer command(const Command& command, Cycles now);
  [[nodiscard]] std::string status(Cycles now) const;  ///< JSON
  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] const Configuration& configuration() const noexcept { return current_; }
  /// The end, on the keeper's clock, of the last lease that the node may have.
  [[nodiscard]] Cycles lease_end(std::uint32_t node) const noexcept { return nodes_[node].lease_end; }
  [[nodiscard]] const std::vector<Failover>& failovers() const noexcept { return failovers_; }

 private:
  struct Node {
    bool admitted = true;  ///< not removed by the operator
    bool connected = false;
    bool heard = false;  ///< since the last ping
    std::uint32_t misses = 0;
    std::uint64_t boot = 0;   ///< of its last hello
    std::uint64_t ended = 0;  ///< a boot that it saw end
    std::uint64_t entered = 0;
    std::optional<Configuration> claim;  ///< of its last hello
    std::string refusal;                 ///< why it was turned away last; empty: it was not
    std::uint32_t silences = 0;          ///< reports in a row that name a silent member
    Cycles barred_until = 0;             ///< it was removed as others could not reach it, and is not admitted before
    Cycles barred_for = 0;               ///< the last time
    Report report;
    Cycles last_heard = 0;
    Cycles lease_end = 0;
    std::uint64_t stop = 0;  ///< number of the stop that it was sent; 0: none
    bool stopped = false;    ///< confirmed
  };

  void on(std::uint32_t number, const Hello& hello, Cycles now);
  void on(std::uint32_t number, const Report& report, Cycles now);
  void on(std::uint32_t number, const AskLease& ask, Cycles now);
  void on(std::uint32_t number, const Entered& entered, Cycles now);
  void on(std::uint32_t number, const Stopped& stopped, Cycles now);
  void on(std::uint32_t number, const Command& command, Cycles now);

  [[nodiscard]] bool same_boot(std::uint32_t node) const noexcept;
  [[nodiscard]] NodeMask failed() const noexcept;  ///< members that cannot come back as what they were
  [[nodiscard]] NodeMask silent() const noexcept;
  [[nodiscard]] NodeMask cut_off() const noexcept;  ///< one whose data do not reach others, as leaders say
  void bar(Cycles now);
  [[nodiscard]] NodeMask unwanted() const noexcept;  ///< silent, or removed by the operator
  [[nodiscard]] NodeMask candidates(Cycles now) const noexcept;
  [[nodiscard]] bool may_serve(std::uint32_t node) const noexcept;
  [[nodiscard]] Configuration wanted(Cycles now);
  [[nodiscard]] bool over(std::uint32_t node, Cycles now) const noexcept;
  void decide(Cycles now);
  void publish(Cycles now);
  void confirm(Cycles now);
  void stop(std::uint32_t node);
  void resume(std::uint32_t node);

  void recover(Cycles now);
  [[nodiscard]] std::string missing(Cycles now) const;  ///< what recover() waits for
  void adopt(const Configuration& configuration, Cycles now);
  Answer start_over(Cycles now);
  Answer move(const Command& command);
  void propose(const Configuration& next);

  // These do not come over a node's connection; see Keeper::open_lanes.
  void on(std::uint32_t, const OpenLanes&, Cycles) {}
  void on(std::uint32_t, const CloseLanes&, Cycles) {}

  KeeperOptions options_;
  KeeperOutput& output_;
  LaneGrants lanes_;
  Phase phase_ = Phase::asking;
  NodeMask configured_ = 0;
  Configuration current_;                  ///< published; epoch 0: none
  std::optional<Configuration> proposed_;  ///< being stored
  std::optional<Leaders> leaders_;         ///< asked for by the operator
  std::uint64_t highest_ = 0;              ///< epoch that any node, or what was kept, told of
  Cycles first_ = 0;
  Cycles next_ping_ = 0;
  Cycles mandate_ = ~Cycles{0};
  Cycles wake_ = ~Cycles{0};  ///< when the lease that is waited for ends
  Cycles asked_at_ = 0;       ///< when recover() looked last
  std::uint64_t pings_ = 0;
  std::uint64_t stops_ = 0;
  bool renew_ = false;    ///< a new epoch is due even with the same content
  bool settled_ = false;  ///< all members confirmed current_
  std::array<Node, kMaxNodes> nodes_;
  std::vector<Failover> failovers_;  ///< the last 64
};

[[nodiscard]] std::string_view name_of(Keeper::Phase phase) noexcept;

}  // namespace wherry::kv
