// SPDX-License-Identifier: Apache-2.0
// One life of a node and its driver on the simulated network, with a clock of its own.
#pragma once

#include <deque>
#include <functional>
#include <variant>

#include "kv/keeper/driver.hpp"
#include "kv/keeper/testing.hpp"
#include "kv/node/node.hpp"
#include "kv/sim/alarm.hpp"

namespace wherry::kv::sim {

/// What the driver's connection to the keeper does.
struct Connected {};
struct Disconnected {};
using FromControl = std::variant<Connected, Disconnected, FromKeeper>;

class Machine final : public Receiver, Output, DriverOutput {
 public:
  using ToKeeperFunction = std::function<void(const ToKeeper&)>;

  /// `drift`: how much faster its clock goes, in parts per million.
  Machine(Network& network, Port port, const NodeOptions& node, const DriverOptions& driver, std::uint64_t seed,
          std::int32_t drift, ToKeeperFunction to_keeper);
  Machine(const Machine&) = delete;  // the network has its address
  Machine& operator=(const Machine&) = delete;
  ~Machine() = default;

  /// Once it is attached.
  void begin() { work(); }
  /// Now; but a process that stands still sees it later.
  void control(const FromControl& event);
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }

  void receive(Cycles, const Packet& packet) override;
  void wake(Cycles, std::uint64_t tag) override;

 private:
  static constexpr std::uint64_t kControl = ~std::uint64_t{0};  ///< no time

  [[nodiscard]] Cycles local() const noexcept { return clock_.local(network_.now()); }
  void work();
  void send(const Endpoint& to, const Message& message) override;
  void send(const ToKeeper& message) override { to_keeper_(message); }
  std::uint64_t draw_boot() override { return random_.next() | 1; }

  Network& network_;
  Port port_;
  Random random_;
  ToKeeperFunction to_keeper_;
  DriftingClock clock_;
  Node node_;
  Driver driver_;
  Alarm alarm_;
  std::deque<FromControl> inbox_;
};

}  // namespace wherry::kv::sim
