// SPDX-License-Identifier: Apache-2.0
// A DDR4 memory with its controller, cycle by cycle. It behaves like a card's single channel of 64 bits at 2400 MT/s,
// with reads and writes of 64 bytes. docs/design/card-memory.md has its errors against litedram's controller.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/memory/backend.hpp"
#include "sim/memory/ddr4_device.hpp"

namespace wherry::sim::memory {

/// Which address bits are row, bank and column, highest first: R row, B bank, G bank group, C column of 8 bytes.
enum class AddressMap : std::uint8_t {
  kRowBankColumn,         ///< 16R 2G 2B 10C: litedram's ROW_BANK_COL. 8 KiB after another lie in one bank.
  kRowColumnBank,         ///< 16R 7C 2B 2G 3C: AMD's ROW_COLUMN_BANK (PG150, PG353). 64 B after another go round all.
  kBankGroupInterleaved,  ///< 16R 2B 1G 7C 1G 3C: AMD PG313, "row-bank-column with bank group optimization"
};

struct Place {
  std::uint32_t bank = 0, row = 0, column = 0;
};
[[nodiscard]] Place place_of(AddressMap map, std::uint64_t address) noexcept;

/// The kind of controller. Cycles are the controller's: 300 MHz, four clocks of the memory each.
struct Ddr4Controller {
  AddressMap map = AddressMap::kRowColumnBank;
  /// The most accesses that wait, in total and at one bank.
  std::uint32_t window = 32, bank_window = 32;
  /// Within a bank, an access to the open row overtakes others (FR-FCFS, Rixner et al., ISCA 2000). No access is
  /// overtaken more often than this; 0: never. The value 4 is that of Mutlu and Moscibroda, MICRO 2007 (FR-FCFS+Cap).
  std::uint32_t overtakes = 4;
  /// true: the oldest access of all banks goes first. false: banks take turns, which are decided a cycle before.
  bool oldest_first = true;
  /// A port's accesses enter a bank only when its accesses at another bank are done.
  bool one_bank_a_port = false;
  /// Cycles from an access' offer until its bank considers it.
  std::uint32_t enter = 2;
  /// Cycles that a bank takes from considering an access to requesting another row.
  std::uint32_t decide = 0;
  /// The most cycles for which reads, or writes, continue while the other kind waits.
  std::uint32_t read_time = 32, write_time = 16;
  /// Minimum cycles between the last read and the first write, beyond what the memory requires.
  std::uint32_t read_to_write = 0;
  bool rows_while_turning = true;  ///< rows are opened and closed while the bus turns round
  /// Minimum cycles from PRE to ACT, and from ACT to a column command.
  std::uint32_t precharge = 0, activate = 0;
  /// The clock within a cycle in which a row command goes; column commands go in clock 0.
  std::uint32_t row_slot = 2;
  /// A bank's last access before one to another row closes the row by itself (auto-precharge).
  bool auto_precharge = false;
  /// Cycles from a column command until read data are at the port, or write data are taken from it.
  std::uint32_t read_path = 12, write_path = 3;
  bool refresh = true;
  /// Cycles from the start of a refresh to its first command, and after it.
  std::uint32_t refresh_enter = 1, refresh_leave = 1;
};

/// A card's controller: FR-FCFS with interleaved bank groups. Times are JEDEC's.
inline constexpr Ddr4Controller kCardController{};

/// litedram 2024.12 with the options of tools/litedram.py, according to its sources: port locks, banks in order,
/// registered arbiters, margins of a cycle (core/bankmachine.py, multiplexer.py, refresher.py, crossbar.py, modules.py;
/// phy/model.py: latencies of usddrphy). No value was fitted to its measured rates.
inline constexpr Ddr4Controller kLitedramController{
    .map = AddressMap::kRowBankColumn,
    .window = 16 * 9,
    .bank_window = 9,  // cmd_buffer_depth 8, and the buffer before it
    .overtakes = 0,
    .oldest_first = false,
    .one_bank_a_port = true,
    .enter = 2,
    .decide = 1,
    .read_time = 32,
    .write_time = 16,
    .read_to_write = 9,  // state RTW, read_latency - 1 = 8 cycles
    .rows_while_turning = false,
    .precharge = 5,  // tRP and tRCD with ns_to_cycles' margin
    .activate = 5,
    .row_slot = 3,  // (rdphase - 1) mod 4
    .auto_precharge = true,
    .read_path = 12,  // read_latency + 1 = 10, buffered FIFO 2
    .write_path = 3,  // write_latency + 1
    .refresh_enter = 3,
    .refresh_leave = 3,
};
/// The times of litedram's table for MT40A1G8 that differ from JEDEC's. The table has no bank groups (tCCD, tWTR, tRRD
/// are one number each) and no tRTP. It takes tRRD and tFAW of pages of 2 KiB, and counts in its own cycles with a
/// margin of one: tRAS 11, tRC 15, tWR 6, tWTR 3, tRRD 3, tFAW 9.
inline constexpr Ddr4Timing kLitedramTiming{
    .ras = 44, .rc = 60, .wr = 24, .rtp = 0, .ccd_l = 4, .rrd_s = 12, .rrd_l = 12, .faw = 36, .wtr_s = 12, .wtr_l = 12};

struct Ddr4Counts {
  std::uint64_t reads = 0, writes = 0, activates = 0, precharges = 0, refreshes = 0, turns = 0;
};

/// One thread. At most 8 ports.
class Ddr4 final : public Backend {
 public:
  explicit Ddr4(const Ddr4Controller& controller = kCardController, const Ddr4Timing& timing = kDdr4_2400);

  [[nodiscard]] bool offer(const Access& access) override;
  void cycle() override;
  [[nodiscard]] std::span<const Done> done() const noexcept override { return done_; }
  [[nodiscard]] Cycle now() const noexcept override { return now_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return kDdr4Bytes; }
  [[nodiscard]] std::uint64_t cycle_ps() const noexcept override { return 3'333; }

  [[nodiscard]] const Ddr4Counts& counts() const noexcept { return counts_; }
  /// From now on, all commands are also appended to `into`.
  void record(std::vector<Ddr4Issued>* into) noexcept { device_.record(into); }

 private:
  static constexpr std::uint32_t kMaxWindow = 32;
  static constexpr std::uint32_t kNone = ~0U;

  struct Waiting {
    Access access;
    std::uint32_t row = 0;
    Cycle visible = 0;  ///< its bank looks at it
    std::uint64_t order = 0;
    std::uint32_t overtaken = 0;
  };
  enum class Wish : std::uint8_t { kNothing, kPrecharge, kActivate };
  struct Bank {
    std::array<Waiting, kMaxWindow> waiting;  ///< oldest first
    std::uint32_t count = 0;
    Wish row_wish = Wish::kNothing;
    std::uint32_t hit[2] = {kNone, kNone};  ///< the read, and the write, that the open row can serve
    Cycle wake = 0;                         ///< it looks at nothing before
    Cycle again = 0;                        ///< it has nothing new before, while it is stale
    Cycle last_entry = ~Cycle{0};
    bool closing = false;  ///< by auto-precharge, as soon as it is allowed
  };
  enum class Mode : std::uint8_t { kRead, kWrite, kToWrite, kToRead, kRefresh };

  [[nodiscard]] bool take_turn(const Access& access, std::uint32_t bank);
  void look(std::uint32_t index);
  [[nodiscard]] bool find_hits(Bank& bank, std::uint32_t open_row) const;
  void forget_wishes(std::uint32_t index) noexcept;
  void wish_row(std::uint32_t bit) noexcept {
    rows_ |= bit;
    rows_from_ = 0;
  }
  void issue_column();
  void perform(std::uint32_t index, bool write);
  void issue_row();
  void turn(bool reads, bool writes);
  void refresh();
  [[nodiscard]] std::uint32_t granted(std::uint32_t& grant, std::uint32_t candidates) const noexcept;
  [[nodiscard]] Clock slot(std::uint32_t clock) const noexcept { return now_ * 4 + clock; }

  Ddr4Controller settings_;
  Ddr4Device device_;
  std::array<Bank, kBanks> banks_;
  // In each of these, bit i is bank i.
  std::uint32_t stale_ = 0;              ///< its wishes must be found again
  std::array<std::uint32_t, 2> hits_{};  ///< it has a read, or a write, that its open row can serve
  std::uint32_t rows_ = 0;               ///< it wishes a row command
  Clock rows_from_ = 0;                  ///< none of these is allowed before
  std::uint32_t waiting_ = 0;
  std::array<std::uint32_t, 8> port_waits_{};  ///< accesses of each port that wait
  std::array<std::uint32_t, 8> port_bank_{};   ///< where, with one_bank_a_port
  std::array<std::uint32_t, kBanks> owner_{};  ///< whose turn a bank is, with one_bank_a_port
  std::array<Cycle, kBanks> owner_asked_{};    ///< when its owner last offered
  std::uint64_t order_ = 0;
  Mode mode_ = Mode::kRead;
  Cycle mode_since_ = 0;  ///< or, of kToWrite, until when
  Clock last_write_ = 0;
  std::uint32_t column_grant_ = 0, row_grant_ = 0;
  Cycle next_refresh_;
  Cycle refresh_at_ = 0;
  std::uint32_t refresh_step_ = 0;
  Cycle now_ = 0;
  std::vector<Done> done_;
  Ddr4Counts counts_;
};

}  // namespace wherry::sim::memory
