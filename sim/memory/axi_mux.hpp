// SPDX-License-Identifier: Apache-2.0
// Several AXI4 managers before one port, with register slices: a model of hdl/common/axi_mux and axi_cut.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/memory/axi.hpp"
#include "sim/memory/ring.hpp"

namespace wherry::sim::memory {

/// AR and AW addresses take turns separately, burst by burst. Write data follow in the order of their addresses, each
/// burst whole. Below, an identifier has the manager's number in front, which directs the answers back. Every channel
/// of every manager has 1 + `slices` registers that pass a beat a cycle: so many cycles in each direction. One
/// thread.
class AxiMux final : public AxiBus {
 public:
  /// `below` has one port and no other user, and must outlive the mux. `slices`: one number per manager.
  AxiMux(AxiBus& below, const std::vector<std::uint32_t>& slices);

  [[nodiscard]] const AxiAnswer& answer(std::uint32_t port) const override { return managers_[port].out; }
  void step(std::span<const AxiRequest> in) override;

 private:
  static constexpr std::uint32_t kIdBits = 8;  ///< of a manager's identifiers
  static constexpr std::uint32_t kNobody = ~0U;

  struct Data {
    Beat beat{};
    Strobes strobes = 0;
    bool last = false;
  };
  struct Read {
    Beat data{};
    bool last = false, error = false;
    std::uint32_t id = 0;
  };
  struct Written {
    std::uint32_t id = 0;
    bool error = false;
  };
  /// A row of registers: an element comes out `latency` cycles after it went in.
  template <typename T>
  class Pipe {
   public:
    explicit Pipe(std::uint32_t latency) : latency_(latency) {}
    [[nodiscard]] bool has_room() const noexcept { return elements_.size() < 2 * latency_; }
    void push(const T& element, std::uint64_t now) { elements_.push_back({element, now + latency_}); }
    [[nodiscard]] bool is_ready(std::uint64_t now) const noexcept {
      return !elements_.empty() && elements_.front().ready <= now;
    }
    [[nodiscard]] const T& front() const noexcept { return elements_.front().element; }
    void pop() { elements_.pop_front(); }

   private:
    struct Element {
      T element{};
      std::uint64_t ready = 0;
    };
    std::uint32_t latency_;
    Ring<Element> elements_;
  };
  struct Manager {
    explicit Manager(std::uint32_t latency) : ar(latency), aw(latency), w(latency), r(latency), b(latency) {}
    Pipe<AxiAddress> ar, aw;
    Pipe<Data> w;
    Pipe<Read> r;
    Pipe<Written> b;
    AxiAnswer out;
  };

  void take(Manager& manager, const AxiRequest& in);
  void present(Manager& manager);
  void drive();
  [[nodiscard]] std::uint32_t next(std::uint32_t after, Pipe<AxiAddress> Manager::* channel) const;

  AxiBus& below_;
  std::deque<Manager> managers_;
  std::uint64_t now_ = 0;
  std::uint32_t ar_turn_ = 0, aw_turn_ = 0;                  ///< who had it last
  std::uint32_t ar_holder_ = kNobody, aw_holder_ = kNobody;  ///< whose address is offered below
  Ring<std::uint32_t> data_order_;
  AxiRequest down_;
};

}  // namespace wherry::sim::memory
