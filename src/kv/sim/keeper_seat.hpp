// SPDX-License-Identifier: Apache-2.0
// The environment of the keeper: the state that survives its restarts, and its connections to the nodes' drivers. The
// connections keep order and lose nothing, but may stall and break.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kv/keeper/keeper.hpp"
#include "kv/sim/machine.hpp"

namespace wherry::kv::sim {

class KeeperSeat final : KeeperOutput {
 public:
  /// Returns the present machine of a node; null while it is dead.
  using FindMachine = std::function<Machine*(std::uint32_t node)>;
  struct Counts {
    std::uint64_t epochs = 0;
    std::uint64_t failovers = 0;  ///< epochs that a node serves no more in
    std::uint64_t returns = 0;    ///< nodes that began to serve, after the first epoch
    std::uint64_t starts = 0;     ///< of the keeper
  };

  KeeperSeat(Network& network, KeeperOptions options, Cycles latency, FindMachine machine);
  KeeperSeat(const KeeperSeat&) = delete;  // the network has its address
  KeeperSeat& operator=(const KeeperSeat&) = delete;
  ~KeeperSeat() = default;

  void start();
  void kill();
  /// Loses the stored state, which the rules forbid. The next keeper asks the nodes.
  void forget() { kept_.reset(); }

  /// Connects a node's driver, perhaps again. The old connection breaks, and the keeper may not notice.
  void connect(std::uint32_t node);
  void disconnect(std::uint32_t node, bool keeper_notices);
  /// Until that time no message arrives in either direction. No message is lost.
  void stall(std::uint32_t node, Cycles until) { lines_[node].stalled = until; }
  /// A message from a driver over its present connection.
  void to_keeper(std::uint32_t node, const ToKeeper& message);

  [[nodiscard]] bool alive() const noexcept { return keeper_.has_value(); }
  /// Precondition: the keeper is alive.
  [[nodiscard]] const Keeper& keeper() const { return *keeper_; }
  kv::Answer command(const Command& command);
  /// The number of the keeper's present life.
  [[nodiscard]] std::uint64_t life() const noexcept { return counts_.starts; }
  /// Preconditions: the keeper is alive, and `holder` is a client's connection from new_holder().
  FromKeeper open_lanes(std::uint64_t holder, const OpenLanes& open) {
    return keeper_->open_lanes(holder, open, network_.now());
  }
  void close_lanes(std::uint64_t holder, bool over) { keeper_->close_lanes(holder, over, network_.now()); }
  [[nodiscard]] std::uint64_t new_holder() noexcept { return ++holders_; }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct Line {
    std::uint64_t id = 0;  ///< of the present connection; 0: none
    bool open = false;     ///< as far as the keeper knows
    Cycles stalled = 0;
  };

  void send(std::uint32_t node, const FromKeeper& message) override;
  void store(const Configuration& configuration) override;
  void tell(std::uint32_t node, const FromControl& event);
  void give_time(Cycles now);
  [[nodiscard]] Cycles arrival(std::uint32_t node) const;

  Network& network_;
  KeeperOptions options_;
  Cycles latency_;
  FindMachine machine_;
  std::vector<Line> lines_;
  std::uint64_t ids_ = 0;
  std::uint64_t holders_ = 0;
  std::optional<Keeper> keeper_;
  std::optional<Configuration> kept_;
  Cycles next_ = 0;
  Counts counts_;
};

}  // namespace wherry::kv::sim
