// SPDX-License-Identifier: Apache-2.0
// For tests: the Verilated hdl/bypass/bypass_functions.sv. It is the bypass core with echo, filter, generator and
// checker behind it, as one BAR of registers and a window. A violation (of an RTL assertion, or of AXI) ends the
// process with a message. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "sim/bypass/card.hpp"
#include "sim/bypass/rtl_window.hpp"
#include "sim/bypass/tail_port.hpp"

namespace wherry::sim {

class FunctionsCard final : public DmaTarget {
 public:
  /// Out of reset.
  FunctionsCard();
  FunctionsCard(const FunctionsCard&) = delete;
  FunctionsCard& operator=(const FunctionsCard&) = delete;
  ~FunctionsCard() override;

  /// At s_axil: BAR 0. The clock runs until the access is done.
  std::uint32_t read_register(std::uint32_t offset);
  void write_register(std::uint32_t offset, std::uint32_t value);

  // DmaTarget: s_axi is BAR 2, for any number of bytes; tails come from m_axil.
  void write(std::uint32_t offset, std::span<const std::byte> data) override;
  void read(std::uint32_t offset, std::span<std::byte> data) override;
  std::optional<TailWrite> next_tail() override { return tails_.take(); }
  void tick() override;

 private:
  struct Pins;
  template <typename Condition>
  void run_until(const char* what, const Condition& condition);
  [[noreturn]] void fail(const std::string& why) const;

  std::uint64_t now_ = 0;
  Pauses pauses_{0, 0};  ///< none
  RtlWindow window_;
  TailPort tails_;
  std::unique_ptr<Pins> pins_;
};

}  // namespace wherry::sim
