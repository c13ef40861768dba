// SPDX-License-Identifier: Apache-2.0
// A node returns while leaders die. When the node becomes a member again, only one follower, the holder, has a certain
// write of the leader, as a leftover. The leader writes it again before the holder learns that it is not committed. The
// holder reports its lane to the returning node, sometimes late. Then the leader dies and, if enough nodes remain, also
// the next one, before the node serves. The write is lost, and its client repeats it when the returning node leads.
// Sometimes one of these steps is left to chance.
#pragma once

#include "kv/sim/cluster.hpp"

namespace wherry::kv::sim {

class BrokenReturn final {
 public:
  /// All choices come from `random`. `removal`: time without a message after which a node is removed.
  BrokenReturn(Cluster& cluster, Random& random, Cycles removal)
      : cluster_(cluster), random_(random), removal_(removal) {}
  BrokenReturn(const BrokenReturn&) = delete;  // the network has its address
  BrokenReturn& operator=(const BrokenReturn&) = delete;
  ~BrokenReturn() = default;

  /// With this many nodes, at least one serving node remains, whatever is chosen.
  static constexpr std::uint32_t kFewestNodes = 3;

  /// Precondition: all nodes serve, and no BrokenReturn is active.
  void begin(std::uint64_t key, Cycles now);
  [[nodiscard]] bool active() const noexcept { return phase_ != Phase::kOver; }
  void see(Fate fate, const Packet& packet);

  /// How often a leader died while a node returned, and how often the next leader died too.
  [[nodiscard]] std::uint64_t leaders_died() const noexcept { return died_[0]; }
  [[nodiscard]] std::uint64_t second_leaders_died() const noexcept { return died_[1]; }

 private:
  enum class Phase : std::uint8_t {
    kOver,
    kArmed,      ///< the node is away, and no follower has heard of a write
    kAway,       ///< one has
    kReturning,  ///< the node is a member that does not serve
    kLed,        ///< the leader died, and another leads
    kServing,    ///< nobody else dies; until the node serves
    kEnding      ///< clients go on, and dead nodes start
  };

  void look(Cycles now);
  void step(Cycles now);
  void end(Cycles now);
  void die(std::uint32_t node);
  /// The first call chooses a time. Later calls return true when that time has come.
  [[nodiscard]] bool due(Cycles now, Cycles most);
  [[nodiscard]] Cycles delay_of(Port from, Port to, const Packet& packet) const;
  [[nodiscard]] bool goes_on() const noexcept { return active() && phase_ != Phase::kEnding; }
  [[nodiscard]] std::uint32_t alive_and_serving() const;
  [[nodiscard]] std::uint32_t next_leader() const;
  [[nodiscard]] bool tells(const Packet& packet) const;
  [[nodiscard]] Cycles up_to(Cycles most) { return random_.below(static_cast<std::uint32_t>(most)); }
  [[nodiscard]] bool toss() { return random_.below(2) == 0; }
  [[nodiscard]] bool likely() { return random_.below(4) != 0; }
  [[nodiscard]] bool mostly() { return likely() || arranged_; }

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
  bool arranged_ = false;    ///< each part, as far as this can
  bool unheard_ = false;     ///< the leader does not hear the holder's questions
  bool told_first_ = false;  ///< the leader dies after the returning node was told of the write's lane
  bool told_ = false;
  bool still_ = false;  ///< all clients stand still from the leader's death on
  bool second_ = false;
  bool paused_ = false;  ///< the write's client does, from the write on
  std::uint16_t lane_ = 0;
  Port client_ = 0;
  std::array<std::uint64_t, 2> died_{};
};

}  // namespace wherry::kv::sim
