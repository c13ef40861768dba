// SPDX-License-Identifier: Apache-2.0
// PicoRV32 (C. Wolf, ISC licence, from PyPI) Verilated: the soft core of paper 000's third design, as a second manager
// of the card's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/memory/axi.hpp"
#include "sim/softcore/bus_trace.hpp"
#include "sim/softcore/firmware.hpp"

namespace wherry::sim::softcore {

struct PicoCounts {
  std::uint64_t cycles = 0;                       ///< of the core
  std::uint64_t card_reads = 0, card_writes = 0;  ///< words of the card's memory
  std::uint64_t waited = 0;                       ///< cycles of the core in which it waited for the card
};

/// RV32I without caches: each load or store of the card's memory is one access of 4 bytes, and only one is in flight.
/// It runs from its own memory, as a MicroBlaze with a local memory does, or, with `code_on_card`, from the card's
/// memory. One thread.
class PicoCore {
 public:
  struct Settings {
    std::uint32_t ratio = 3;  ///< cycles of the bus in one of the core: 3 at 300 MHz is 100 MHz
    /// Fetches every instruction through the bus: the caller puts the firmware into the card's memory at code_address.
    bool code_on_card = false;
    std::uint32_t code_address = 0;
  };
  /// `firmware`: at most kLocalBytes - 64 bytes; unused with code_on_card.
  PicoCore(std::span<const std::uint32_t> firmware, const Settings& settings);
  PicoCore(const PicoCore&) = delete;
  PicoCore& operator=(const PicoCore&) = delete;
  ~PicoCore();

  [[nodiscard]] const memory::AxiRequest& request() const noexcept { return out_; }
  /// An edge of the bus' clock, at which the port drove `in`.
  void step(const memory::AxiAnswer& in);

  /// A word of the core's own memory.
  [[nodiscard]] std::uint32_t local(std::uint32_t address) const { return local_[address / 4]; }
  [[nodiscard]] const PicoCounts& counts() const noexcept { return counts_; }
  /// The core met an instruction, or an address, that it cannot handle.
  [[nodiscard]] bool trapped() const noexcept;
  /// From now on, accesses of the card's memory are also appended to `into`. Null: none. Not owned.
  void record(BusTrace* into) noexcept;

 private:
  struct Model;
  void edge();
  void ask();

  std::unique_ptr<Model> model_;
  Settings settings_;
  std::vector<std::uint32_t> local_;
  std::uint32_t phase_ = 0;
  bool asked_ = false;     ///< an access of the card is under way
  bool answered_ = false;  ///< and its answer is there
  std::uint32_t answer_ = 0;
  PicoCounts counts_;
  BusTrace* record_ = nullptr;
  std::uint64_t record_start_ = 0;
  memory::AxiRequest out_;
};

}  // namespace wherry::sim::softcore
