// SPDX-License-Identifier: Apache-2.0
// A memory with its own clock, behind a port with the engine's clock. In each port cycle of `cycle_ps`, the memory runs
// as many of its own cycles as fit. A clock crossing costs `crossing` port cycles, on the way back. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/memory/backend.hpp"

namespace wherry::sim::card {

class PacedBackend final : public memory::Backend {
 public:
  /// `inner` must outlive this. Its cycle is at most `cycle_ps`, so each cycle of the port contains at least one.
  PacedBackend(memory::Backend& inner, std::uint64_t cycle_ps, memory::Cycle crossing = 3)
      : inner_(inner), cycle_ps_(cycle_ps), crossing_(crossing) {}

  [[nodiscard]] bool offer(const memory::Access& access) override { return inner_.offer(access); }
  void cycle() override {
    done_.clear();
    for (budget_ps_ += cycle_ps_; budget_ps_ >= inner_.cycle_ps(); budget_ps_ -= inner_.cycle_ps()) {
      inner_.cycle();
      for (const memory::Done& done : inner_.done()) {
        const std::uint64_t later = done.ready > inner_.now() ? done.ready - inner_.now() : 0;
        done_.push_back({done.access, now_ + 1 + (later * inner_.cycle_ps() + cycle_ps_ - 1) / cycle_ps_ + crossing_});
      }
    }
    ++now_;
  }
  [[nodiscard]] std::span<const memory::Done> done() const noexcept override { return done_; }
  [[nodiscard]] memory::Cycle now() const noexcept override { return now_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return inner_.bytes(); }
  [[nodiscard]] std::uint64_t cycle_ps() const noexcept override { return cycle_ps_; }

 private:
  memory::Backend& inner_;
  const std::uint64_t cycle_ps_;
  const memory::Cycle crossing_;
  std::uint64_t budget_ps_ = 0;
  memory::Cycle now_ = 0;
  std::vector<memory::Done> done_;
};

}  // namespace wherry::sim::card
