// SPDX-License-Identifier: Apache-2.0
// The window of a Verilated bypass core as the memory of a DMA engine (sim/card), which is the second manager of the
// core's AXI port. A burst is handed over when it is complete. The core and the engine have clocks of 4 ns. One thread.
#pragma once

#include <deque>
#include <vector>

#include "sim/bypass/rtl_function.hpp"
#include "sim/memory/axi.hpp"

namespace wherry::sim {

class WindowBus final : public memory::AxiBus {
 public:
  explicit WindowBus(RtlFunction& function) : function_(function) { drive(); }
  [[nodiscard]] const memory::AxiAnswer& answer(std::uint32_t /*port*/) const override { return out_; }
  void step(std::span<const memory::AxiRequest> in) override;
  /// Bytes transferred in each direction.
  [[nodiscard]] std::uint64_t read_bytes() const noexcept { return read_bytes_; }
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_bytes_; }

 private:
  struct ReadBurst {
    memory::AxiAddress address;
    std::uint32_t beat = 0;
  };
  struct WriteAnswer {
    std::uint32_t id = 0;
    std::uint64_t number = 0;
  };
  void hand_over();
  void drive();

  RtlFunction& function_;
  std::deque<ReadBurst> reads_;
  std::deque<memory::AxiAddress> addresses_;
  std::deque<std::vector<memory::AxiRequest>> data_;  ///< whole bursts; the last one is being filled
  bool filling_ = false;
  std::deque<WriteAnswer> answers_;
  std::uint64_t read_bytes_ = 0, written_bytes_ = 0;
  memory::AxiAnswer out_;
};

}  // namespace wherry::sim
