// SPDX-License-Identifier: Apache-2.0
// The four designs of paper 000 (section 5.1) as simulated cards: a memory, the parts between it and the DMA engine,
// and its other users.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "sim/designs/crossing.hpp"
#include "sim/designs/engine.hpp"
#include "sim/memory/axi_memory.hpp"
#include "sim/memory/axi_mux.hpp"
#include "sim/memory/ddr4.hpp"

namespace wherry::sim::designs {

enum class Design : std::uint8_t { kBram, kDdr4, kSoftcore, kLinux };
inline constexpr Design kDesigns[] = {Design::kBram, Design::kDdr4, Design::kSoftcore, Design::kLinux};
[[nodiscard]] std::string_view name_of(Design design) noexcept;

/// The memory controller: docs/design/card-memory.md.
enum class Controller : std::uint8_t { kLitedram, kCard };

/// The manager that shares the memory with the engine. It runs in the memory's clock.
class Neighbour {
 public:
  Neighbour() = default;
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  virtual ~Neighbour() = default;
  [[nodiscard]] virtual const memory::AxiRequest& request() const = 0;
  virtual void step(const memory::AxiAnswer& in) = 0;
};

/// A function that makes a neighbour, and puts the neighbour's data into the card's memory.
using MakeNeighbour = std::function<std::unique_ptr<Neighbour>(memory::Content&)>;

struct CardOptions {
  Design design = Design::kBram;
  Controller controller = Controller::kCard;
  /// Register slices between engine and memory in the designs with a core: round trip, in cycles of 300 MHz. Fitted: 30
  /// slices give one channel 9.4 to 9.6 GB/s in each direction; the paper has 9.4 to 9.5 (section 6.3).
  std::uint32_t slices = 30;
};

/// A cycle is the engine's, 4 ns. The DDR4 has its own clock of 300 MHz, behind a clock crossing. One thread.
class Card {
 public:
  /// `neighbour`: for the designs with a core. If it is empty, the core is idle.
  Card(const CardOptions& options, const MakeNeighbour& neighbour);

  [[nodiscard]] const memory::AxiAnswer& answer() const;
  /// The engine's edge.
  void step(const memory::AxiRequest& in);

  [[nodiscard]] memory::Content& content() noexcept { return content_; }
  [[nodiscard]] const memory::Content& content() const noexcept { return content_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// The first violated rule of AXI. Empty: none.
  [[nodiscard]] std::string violation() const { return port_->violation(); }

 private:
  void memory_step();

  memory::Content content_;
  std::unique_ptr<memory::Backend> memory_;
  std::unique_ptr<memory::AxiMemory> port_;
  std::unique_ptr<memory::AxiMux> mux_;
  std::unique_ptr<Crossing> crossing_;
  std::unique_ptr<Neighbour> neighbour_;
  std::uint64_t now_ps_ = 0, memory_ps_ = 0;
};

}  // namespace wherry::sim::designs
