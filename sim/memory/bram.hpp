// SPDX-License-Identifier: Apache-2.0
// On-chip memory behind an AXI port: a read and a write in each cycle, data in the next. Paper 000's BRAM design.
#pragma once

#include <vector>

#include "sim/memory/axi_memory.hpp"
#include "sim/memory/backend.hpp"

namespace wherry::sim::memory {

/// The behaviour of AMD's AXI BRAM controller with bursts of 512 bits: reads and writes each have a port of the memory
/// (PG078, "true dual port"); two bursts of each direction wait.
inline constexpr AxiPortSettings kBramPort{
    .addresses = 2, .read_beats = 64, .write_beats = 8, .one_way = false, .answer = 1};

/// One thread. All ports together perform one read and one write per cycle.
class Bram final : public Backend {
 public:
  /// `bytes`: the paper's designs have 1, 2 or 8 MiB. `cycle_ps`: 4,000 is XDMA's AXI clock of 250 MHz.
  explicit Bram(std::uint64_t bytes = 1 << 20, std::uint64_t cycle_ps = 4'000) : bytes_(bytes), cycle_ps_(cycle_ps) {}

  [[nodiscard]] bool offer(const Access& access) override {
    bool& busy = access.write ? write_busy_ : read_busy_;
    if (busy) return false;
    busy = true;
    offered_.push_back({access, now_ + 1});
    return true;
  }
  void cycle() override {
    done_.swap(offered_);
    offered_.clear();
    read_busy_ = write_busy_ = false;
    ++now_;
  }
  [[nodiscard]] std::span<const Done> done() const noexcept override { return done_; }
  [[nodiscard]] Cycle now() const noexcept override { return now_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return bytes_; }
  [[nodiscard]] std::uint64_t cycle_ps() const noexcept override { return cycle_ps_; }

 private:
  std::uint64_t bytes_, cycle_ps_;
  Cycle now_ = 0;
  bool read_busy_ = false, write_busy_ = false;
  std::vector<Done> offered_, done_;
};

}  // namespace wherry::sim::memory
