// SPDX-License-Identifier: Apache-2.0
// One life of a node and its driver on the simulated network, with its own clock. Derived classes, such as
// SoftwareMachine, contain the node itself.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include "kv/node/any_node_testing.hpp"
#include "kv/node/driver/driver.hpp"
#include "kv/node/driver/testing.hpp"
#include "kv/sim/alarm.hpp"
#include "kv/sim/preset.hpp"

namespace wherry::kv::sim {

/// What happened to the driver's connection to the keeper.
struct Connected {};
struct Disconnected {};
using FromControl = std::variant<Connected, Disconnected, FromKeeper>;

/// The options of all machines.
struct MachineOptions {
  std::uint32_t lane_bits = 12;
  DriverOptions driver;
  std::uint64_t seed = 1;
  std::int32_t drift = 0;  ///< how much faster its clock goes, in parts per million
  NodeFaults faults{};     ///< as far as the machine can have them
  /// For Node::preset_versions, before the node enters the very first epoch. No value: the table is empty.
  std::optional<Versions> versions;
};

class Machine : public Receiver, protected DriverOutput {
 public:
  using ToKeeperFunction = std::function<void(const ToKeeper&)>;
  /// How the ends of epochs settled writes, if the machine reports it.
  struct Settled {
    std::uint64_t rolled_back = 0;
    std::uint64_t completed = 0;
    std::uint64_t refreshed = 0;
  };

  Machine(const Machine&) = delete;  // the network has its address
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  /// Call it when the machine is attached.
  void begin() { work(); }
  /// Takes effect now, but a paused process sees it later.
  void control(const FromControl& event);
  [[nodiscard]] const Driver& driver() const noexcept { return *driver_; }
  [[nodiscard]] virtual Settled settled() const noexcept { return {}; }
  /// The software node; null for hardware.
  [[nodiscard]] virtual const testing::AnyNode* node() const noexcept { return nullptr; }

  void wake(Cycles, std::uint64_t tag) final;

 protected:
  Machine(Network& network, Port port, const MachineOptions& options, ToKeeperFunction to_keeper);

  /// Call it at the end of the constructor of the class that contains the core. `silent`: returns members that do not
  /// answer, if the core reports them.
  void drive(RegisterIo& core, std::function<NodeMask(Cycles)> silent = nullptr) {
    options_.driver.silent_members = std::move(silent);
    registers_.emplace(core, 1, [this] {
      if (options_.versions) preset(*options_.versions);
    });
    driver_.emplace(options_.driver, static_cast<RegisterIo&>(*registers_), static_cast<DriverOutput&>(*this), local());
  }
  /// Gives the table a state that it may have after many years.
  virtual void preset(const Versions& versions) = 0;
  /// Brings the core to the machine's present time.
  virtual void catch_up() = 0;
  /// Does the work that is due. Returns the time of its next call by its own clock, or never.
  virtual Cycles tick() = 0;

  [[nodiscard]] Cycles local() const noexcept { return clock_.local(network_.now()); }
  void work();

  Network& network_;
  Port port_;
  Random random_;

 private:
  static constexpr std::uint64_t kControl = ~std::uint64_t{0};  ///< no time

  void send(const ToKeeper& message) override { to_keeper_(message); }
  std::uint64_t draw_boot() override { return random_.next() | 1; }

  MachineOptions options_;
  ToKeeperFunction to_keeper_;
  DriftingClock clock_;
  std::optional<PresetRegisters> registers_;
  std::optional<Driver> driver_;
  Alarm alarm_;
  std::deque<FromControl> inbox_;
};

using MachineFactory =
    std::function<std::unique_ptr<Machine>(Network&, Port, const MachineOptions&, Machine::ToKeeperFunction)>;

}  // namespace wherry::kv::sim
