// SPDX-License-Identifier: Apache-2.0
// VexRiscv with an MMU (SpinalHDL, MIT, from PyPI: VexRiscv_Linux), Verilated, on a board that boots Linux: memory, a
// timer, a console. Its bus is recorded. A slow target only: `make linux-trace`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sim/softcore/bus_trace.hpp"

namespace wherry::sim::softcore {

inline constexpr std::uint32_t kBoardMemory = 0x4000'0000, kBoardBytes = 32U << 20;

/// One thread.
class VexBoard {
 public:
  /// `read_latency`: cycles of the core from a read's request to its first word, then a word a cycle; a write takes a
  /// quarter of it. The core begins at kBoardMemory.
  explicit VexBoard(std::uint32_t read_latency = 20);
  VexBoard(const VexBoard&) = delete;
  VexBoard& operator=(const VexBoard&) = delete;
  ~VexBoard();

  /// `address`: as the core sees it.
  void load(std::uint32_t address, std::span<const std::uint8_t> bytes);
  /// Until the software stops the board, or so many cycles have passed. 0: it goes on; 1: it was switched off; 2: its
  /// machine mode gave up.
  [[nodiscard]] std::uint32_t run(std::uint64_t cycles);

  [[nodiscard]] std::uint64_t cycles() const noexcept { return cycle_; }
  /// Accesses of the memory from now on go there, too: one a cache line, or a word. Null: none. Not owned.
  void record(BusTrace* into) noexcept { record_ = into; }
  /// What the software prints, and the faults that it reports.
  std::function<void(char)> on_console = [](char) {};
  std::function<void(std::uint32_t)> on_fault = [](std::uint32_t) {};

 private:
  struct Model;
  struct Bus {
    std::uint32_t waited = 0;
    bool in_burst = false;
  };
  [[nodiscard]] std::uint32_t read(std::uint32_t address) const;
  void write(std::uint32_t address, std::uint32_t value, std::uint32_t lanes);
  [[nodiscard]] bool acknowledges(Bus& bus, std::uint32_t address, bool write, bool more);
  void step();

  std::unique_ptr<Model> model_;
  std::uint32_t read_latency_;
  std::vector<std::uint32_t> memory_;
  std::uint64_t cycle_ = 0, compare_ = ~std::uint64_t{0};
  std::uint32_t stopped_ = 0;
  Bus instructions_, data_;
  BusTrace* record_ = nullptr;
};

}  // namespace wherry::sim::softcore
