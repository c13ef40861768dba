// SPDX-License-Identifier: Apache-2.0
// A hardware node with a commodity NIC: NIC model, PCIe, the Verilated bypass core, and behind that core the Verilated
// kv core. docs/project/kv-testing.md
//
// Time: that of the PCIe model, in picoseconds; both cores have a clock of 4 ns. Frames pass between the two cores as a
// whole, so a frame of n beats is n cycles later than with joined streams (hdl/bypass/bypass_kv.sv). A register access
// takes cycles of the kv core, but no time on PCIe. One thread.
#pragma once

#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/bypass/rig.hpp"
#include "sim/core.hpp"

namespace wherry::kv::rtl {

struct NicNodeOptions {
  std::string_view nic = "ixgbe";  ///< personality of the NIC
  std::uint64_t seed = 1;          ///< of the NIC, PCIe and the bypass core
  std::uint32_t pauses = 0;        ///< at the bypass core's ports: wherry::sim::RtlOptions
  bool reordering = false;         ///< PCIe reorders what it may
  CoreOptions core;
};

class NicNode final : wherry::sim::StreamFunction, wherry::sim::nic::WireEnd {
 public:
  /// A frame that left, and the time of its last bit.
  struct Sent {
    std::vector<std::byte> bytes;
    wherry::sim::pcie::Time at = 0;
  };

  /// Sets up NIC and bypass core, with the kv core out of reset. A NIC that cannot be set up ends the process.
  explicit NicNode(const NicNodeOptions& options);
  NicNode(const NicNode&) = delete;
  NicNode& operator=(const NicNode&) = delete;

  [[nodiscard]] Core& core() noexcept { return core_; }
  /// The last bit of `frame` arrives at the NIC now.
  void put(ByteView frame) { rig_.nic.on_frame(frame, true); }
  std::optional<Sent> take();
  void run(Cycles cycles);
  /// Cycles from the first beat of the last received frame to the last beat of the last frame that the kv core sent.
  [[nodiscard]] Cycles core_cycles() const noexcept { return core_cycles_; }
  /// The number of cycles after which something may happen without new input. None: only a register access, a frame or
  /// the kv core's repetition timer can cause something.
  [[nodiscard]] std::optional<Cycles> next() const;
  [[nodiscard]] wherry::sim::pcie::Time now() const noexcept { return rig_.queue.now(); }
  [[nodiscard]] const wherry::sim::nic::NicCounters& nic() const noexcept { return rig_.nic.counters(); }

 private:
  wherry::sim::pcie::Time turn(wherry::sim::RtlCore& bypass, wherry::sim::pcie::Time now) override;
  void on_frame(std::span<const std::byte> frame, bool fcs_good) override;
  void catch_up(wherry::sim::pcie::Time now);

  Core core_;
  Cycles zero_;  ///< of the kv core's clock, when PCIe's began; accesses let it run ahead
  Cycles core_cycles_ = 0;
  std::deque<wherry::sim::Frame> to_send_;
  std::deque<Sent> sent_;
  wherry::sim::Rig rig_;  // its constructor calls turn(), which uses what stands above
  wherry::sim::pcie::Time target_;
};

}  // namespace wherry::kv::rtl
