// SPDX-License-Identifier: Apache-2.0
// The troubles of a cluster, chosen by a seed. Each trouble begins only when all nodes serve again, so that a replica
// always remains. The first is the death and return of a node.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "kv/sim/broken_return.hpp"

namespace wherry::kv::sim {

class Trouble final : public Tap {
 public:
  enum class Kind : std::uint8_t {
    kDeath,         ///< a node is killed, and started again, empty: at once, or when it was missed
    kDeaths,        ///< two, one while the other is away or returns
    kAmbush,        ///< a leader dies, or is cut off, when exactly some followers have its write
    kBrokenReturn,  ///< broken_return.hpp
    kMoves,         ///< the same, but leadership moves: to a node without the write, then to one that had it
    kIsolation,     ///< a node is cut off from all; it can send again before it hears that it was removed
    kSilence,       ///< a node's connection to the keeper stalls; it goes on
    kBrokenLine,    ///< that connection breaks, and is made anew
    kLateNode,      ///< the keeper starts again, and a node's connection stalls before that
    kKeeperDeath,   ///< the keeper dies and starts again with what it kept
    kKeeperLoss,    ///< or without
    kStandStill,    ///< a node's process gets no time
    kPartition,     ///< a node and some clients are cut off from the others, but not from the keeper
    kClientDeath,   ///< a client is killed and started again, with the same lanes
    kClientStill    ///< a client gets no time
  };
  static constexpr std::size_t kKinds = 15;

  Trouble(Cluster& cluster, std::uint64_t seed);
  Trouble(const Trouble&) = delete;  // the network has its address
  Trouble& operator=(const Trouble&) = delete;
  ~Trouble() = default;

  void start();
  /// Allows only this kind of trouble.
  void set_only(Kind kind) noexcept { only_ = kind; }
  /// Passes every frame on to this tap.
  void set_next(Tap* next) noexcept { next_ = next; }
  /// True if some nodes did not serve again long after a trouble was over. No further trouble follows.
  [[nodiscard]] bool stuck() const noexcept { return stuck_; }
  [[nodiscard]] std::uint64_t count(Kind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const BrokenReturn& broken_return() const noexcept { return broken_return_; }

  void see(Cycles now, Fate fate, const Packet& packet) override;

 private:
  /// Waits until a leader's write arrives at a follower that is not deaf.
  struct Trap {
    bool armed = false;
    bool moves = false;
    std::uint32_t leader = 0;
    NodeMask deaf = 0;
  };

  void begin(Cycles now);
  void make(Kind kind, Cycles now);
  void stall(std::uint32_t node, Cycles until);
  void die(std::uint32_t node, Cycles now);
  void isolate(std::uint32_t node, Cycles now);
  void set_trap(bool moves, Cycles now);
  void spring(std::uint32_t holder, std::uint16_t lane, Cycles now);
  void kill_or_cut(Cycles now);
  void move_twice(std::uint32_t holder, std::uint16_t lane, Cycles now);
  void move(std::uint32_t to);
  void restart_keeper(bool keeps, Cycles now);
  void set_deaf(bool deaf);

  template <typename F>
  void at(Cycles when, F&& what) {
    busy_until_ = std::max(busy_until_, when);
    cluster_.network().call_at(when, std::forward<F>(what));
  }
  [[nodiscard]] std::uint32_t some_node();
  [[nodiscard]] std::vector<Port> side_of(std::uint32_t node);
  [[nodiscard]] Cycles up_to(Cycles most) { return random_.below(static_cast<std::uint32_t>(most)); }
  [[nodiscard]] std::uint64_t key() { return cluster_.workload().keys().front(); }

  Cluster& cluster_;
  Random random_;
  Cycles interval_;  ///< of pings
  Cycles lease_;
  Cycles removal_;  ///< after so long without a word, a lease included, a node is removed
  Tap* next_ = nullptr;
  std::optional<Kind> only_;
  BrokenReturn broken_return_;
  Trap trap_;
  bool stuck_ = false;
  Cycles busy_until_ = 0;
  Cycles waits_since_ = 0;
  std::array<std::uint64_t, kKinds> counts_{};
};

[[nodiscard]] std::string_view name_of(Trouble::Kind kind) noexcept;
[[nodiscard]] std::optional<Trouble::Kind> trouble_named(std::string_view name) noexcept;

}  // namespace wherry::kv::sim
