// SPDX-License-Identifier: Apache-2.0
// An AXI4 clock crossing: a model of five asynchronous FIFOs, as in hdl/common/axi_cdc.
#pragma once

#include <cstdint>

#include "sim/memory/axi.hpp"
#include "sim/memory/ring.hpp"

namespace wherry::sim::designs {

/// An input can come out three cycles of the other clock later: two synchroniser registers, and the output register
/// (Cummings, SNUG 2002, "Simulation and Synthesis Techniques for Asynchronous FIFO Design"). One thread.
class Crossing {
 public:
  /// Cycle lengths in ps, on the manager's side and on the memory's.
  Crossing(std::uint64_t manager_ps, std::uint64_t memory_ps);

  /// The manager's side: like AxiBus, with one port.
  [[nodiscard]] const memory::AxiAnswer& answer() const noexcept { return out_; }
  void step(const memory::AxiRequest& in, std::uint64_t now_ps);

  /// The memory's side: its request in the cycle that begins, and the clock edge at which the port drove `in`.
  [[nodiscard]] const memory::AxiRequest& request() const noexcept { return down_; }
  void memory_step(const memory::AxiAnswer& in, std::uint64_t now_ps);

  [[nodiscard]] bool quiet() const noexcept {
    return ar_.empty() && aw_.empty() && w_.empty() && r_.empty() && b_.empty();
  }

 private:
  static constexpr std::size_t kDepth = 32;
  static constexpr std::uint64_t kSynchroniser = 3;

  template <typename T>
  struct Timed {
    T element{};
    std::uint64_t ready = 0;
  };
  struct Data {
    memory::Beat beat{};
    memory::Strobes strobes = 0;
    bool last = false;
  };
  struct Read {
    memory::Beat data{};
    bool last = false, error = false;
    std::uint32_t id = 0;
  };
  struct Written {
    std::uint32_t id = 0;
    bool error = false;
  };
  void present(std::uint64_t now_ps);
  void memory_present(std::uint64_t now_ps);

  std::uint64_t up_delay_, down_delay_;  ///< ps
  memory::Ring<Timed<memory::AxiAddress>> ar_, aw_;
  memory::Ring<Timed<Data>> w_;
  memory::Ring<Timed<Read>> r_;
  memory::Ring<Timed<Written>> b_;
  memory::AxiAnswer out_;
  memory::AxiRequest down_;
};

}  // namespace wherry::sim::designs
