// SPDX-License-Identifier: Apache-2.0
// A node returns while leaders die. One follower alone has a leader's write when the epoch begins that has the
// returning node as a member, so that the write is a leftover there and is written again; the returning node's
// questions for lanes arrive late; then the leader dies, and if enough nodes are left the next one, too, before the
// node serves.
#pragma once

#include "kv/sim/cluster.hpp"

namespace wherry::kv::sim {

class BrokenReturn final {
 public:
  /// All that is chosen comes from `random`. `removal`: after so long without a word a node is removed.
  BrokenReturn(Cluster& cluster, Random& random, Cycles removal)
      : cluster_(cluster), random_(random), removal_(removal) {}
  BrokenReturn(const BrokenReturn&) = delete;  // the network has its address
  BrokenReturn& operator=(const BrokenReturn&) = delete;
  ~BrokenReturn() = default;

  /// For so many nodes one that serves is left, whatever is chosen.
  static constexpr std::uint32_t kFewestNodes = 3;

  /// Precondition: all nodes serve, and none is active.
  void begin(std::uint64_t key, Cycles now);
  [[nodiscard]] bool active() const noexcept { return phase_ != Phase::kOver; }
  void see(Fate fate, const Packet& packet);

  /// A leader died while a node returned; so did the next.
  [[nodiscard]] std::uint64_t leaders_died() const noexcept { return died_[0]; }
  [[nodiscard]] std::uint64_t second_leaders_died() const noexcept { return died_[1]; }

 private:
  enum class Phase : std::uint8_t {
    kOver,
    kArmed,      ///< the node is away, and no follower has heard of a write
    kAway,       ///< one has
    kReturning,  ///< the node is a member that does not serve
    kLed,        ///< the leader died, and another leads
    kServing     ///< nobody else dies; until the node serves
  };

  void look(Cycles now);
  void step(Cycles now);
  void end(Cycles now);
  void die(std::uint32_t node);
  /// The first call chooses a time, a later one is true when it has come.
  [[nodiscard]] bool due(Cycles now, Cycles most);
  [[nodiscard]] Cycles delay_of(Port from, Port to, const Packet& packet) const;
  [[nodiscard]] std::uint32_t alive_and_serving() const;
  [[nodiscard]] Cycles up_to(Cycles most) { return random_.below(static_cast<std::uint32_t>(most)); }
  [[nodiscard]] bool toss() { return random_.below(2) == 0; }
  [[nodiscard]] bool likely() { return random_.below(4) != 0; }

  Cluster& cluster_;
  Random& random_;
  Cycles removal_;
  Phase phase_ = Phase::kOver;
  std::uint64_t key_ = 0;
  std::uint32_t returning_ = 0;
  std::uint32_t leader_ = 0;
  std::uint32_t holder_ = 0;
  NodeMask deaf_ = 0;  ///< do not hear the leader's writes
  NodeMask slow_ = 0;  ///< hear the returning node's questions late
  NodeMask dead_ = 0;  ///< and are to be started again
  Cycles late_ = 0;
  Cycles due_ = 0;
  Cycles limit_ = 0;
  bool second_ = false;
  bool paused_ = false;
  Port client_ = 0;
  std::array<std::uint64_t, 2> died_{};
};

}  // namespace wherry::kv::sim
