// SPDX-License-Identifier: Apache-2.0
// The Verilated hdl/bypass/bypass_kv.sv with the card's memory: calls for its window, registers and tails, and a clock
// that runs on request. A violation (of an assertion of the RTL, or of AXI) ends the process with a message.
//
// One access to the window at a time. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "sim/bypass/card.hpp"
#include "sim/bypass/rtl_window.hpp"
#include "sim/bypass/tail_port.hpp"
#include "sim/hbm.hpp"

namespace wherry::sim {

class RtlNode {
 public:
  /// Out of reset.
  RtlNode();
  RtlNode(const RtlNode&) = delete;
  RtlNode& operator=(const RtlNode&) = delete;
  ~RtlNode();

  void cycle();
  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  /// Cycles since the last transfer at a port, or activity in memory.
  [[nodiscard]] std::uint64_t still() const noexcept { return now_ - moved_; }

  /// At s_axi. Ends with the answer.
  void write(std::uint32_t offset, std::span<const std::byte> data);
  void read(std::uint32_t offset, std::span<std::byte> data);
  /// At s_axil.
  std::uint32_t read_register(std::uint32_t offset);
  void write_register(std::uint32_t offset, std::uint32_t value);
  /// At m_axil, in order.
  std::optional<TailWrite> take_tail() { return tails_.take(); }

  [[noreturn]] void fail(const std::string& why) const;

 private:
  struct Pins;

  void sample_window();
  void sample_tails();

  std::uint64_t now_ = 0, moved_ = 0;
  Pauses pauses_{0, 0};  ///< none
  RtlWindow window_;
  TailPort tails_;
  kv::rtl::HbmContent content_;
  std::deque<kv::rtl::HbmPort> ports_;
  std::unique_ptr<Pins> pins_;
};

}  // namespace wherry::sim
