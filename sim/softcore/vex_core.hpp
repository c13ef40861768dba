// SPDX-License-Identifier: Apache-2.0
// VexRiscv with an MMU (C. Papon, MIT licence, from PyPI) Verilated, and the little board that Linux needs around it:
// the soft core of paper 000's fourth design, as a second manager of the card's memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/memory/axi.hpp"
#include "sim/softcore/bus_trace.hpp"

namespace wherry::sim::softcore {

/// The board as the core sees it. Its devices are words from kDevices on: the time (two words, microseconds, read
/// only), the time of the next timer interrupt (two words), the console, the power switch, and one that shows a number
/// in hexadecimal.
inline constexpr std::uint32_t kDramBase = 0x4000'0000, kDramBytes = 32U << 20;
inline constexpr std::uint32_t kDevices = 0xf000'0000;
inline constexpr std::uint32_t kTime = 0x0, kTimer = 0x8, kConsole = 0x10, kPower = 0x14, kNumber = 0x18;

struct VexCounts {
  std::uint64_t cycles = 0;                                                            ///< of the core
  std::uint64_t fetched_lines = 0, read_lines = 0, read_words = 0, written_words = 0;  ///< of the card's memory
  std::uint64_t written_bytes = 0;                                                     ///< of those words
  std::uint64_t waited = 0;  ///< cycles in which an access of the card was under way
};

/// RV32IMA and Sv32, with caches of 4 KiB (instructions) and 4 KiB (data, write-through) and lines of 32 bytes. One
/// access of the card's memory is in flight at a time, and data go before instructions. Its DRAM is a range of the
/// card's memory at kDramBase, into which the caller puts the boot image. One thread.
class VexCore {
 public:
  /// `card_base`: where the DRAM lies in the card's memory, a multiple of 64. `ratio`: cycles of the bus in one of the
  /// core: 3 at 300 MHz is 100 MHz.
  explicit VexCore(std::uint64_t card_base, std::uint32_t ratio = 3);
  VexCore(const VexCore&) = delete;
  VexCore& operator=(const VexCore&) = delete;
  ~VexCore();

  [[nodiscard]] const memory::AxiRequest& request() const noexcept { return out_; }
  /// An edge of the bus' clock, at which the port drove `in`.
  void step(const memory::AxiAnswer& in);

  /// The word that was written to the power switch; 0 while the core runs. Afterwards the core has no clock.
  [[nodiscard]] std::uint32_t off() const noexcept { return off_; }
  [[nodiscard]] const std::string& console() const noexcept { return console_; }
  [[nodiscard]] const VexCounts& counts() const noexcept { return counts_; }
  /// The memory refused an access, or the core used an address without a device. Empty: neither.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  /// From now on, accesses of the card's memory are also appended to `into`, with addresses within the DRAM. Null:
  /// none. Not owned.
  void record(BusTrace* into) noexcept;

 private:
  struct Model;
  /// One of the core's two Wishbone buses: its request in this cycle, and the answer.
  struct Wishbone {
    bool asks = false, write = false, line = false, last = true;
    std::uint32_t address = 0, data = 0, strobes = 0;
  };
  enum class Bus : std::uint8_t { kNone, kData, kFetch };

  void edge();
  /// True: the answer is in `data`.
  bool serve(Bus bus, const Wishbone& asked, std::uint32_t& data);
  std::uint32_t device(const Wishbone& asked);
  void ask(Bus bus, const Wishbone& asked);
  void fail(const char* what, std::uint32_t address);

  std::unique_ptr<Model> model_;
  std::uint64_t card_base_;
  std::uint32_t ratio_, phase_ = 0;
  Bus owner_ = Bus::kNone;  ///< whose access is under way, or being handed over word by word
  bool answered_ = false;
  std::array<std::uint32_t, kLineBytes / kWordBytes> line_{};  ///< what was read, at the words' places in their line
  std::uint64_t time_ = 0, alarm_ = ~std::uint64_t{0};
  std::uint32_t cycle_of_us_ = 0;
  std::uint32_t off_ = 0;
  std::string console_, fault_;
  VexCounts counts_;
  BusTrace* record_ = nullptr;
  std::uint64_t record_start_ = 0;
  memory::AxiRequest out_;
};

}  // namespace wherry::sim::softcore
