// SPDX-License-Identifier: Apache-2.0
// The chips of a DDR4 memory with one rank: which rows are open, and the earliest clock of each command.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/memory/ddr4_timing.hpp"

namespace wherry::sim::memory {

/// Clocks of the memory since the start.
using Clock = std::uint64_t;

enum class Ddr4Command : std::uint8_t { kActivate, kPrecharge, kAutoPrecharge, kPrechargeAll, kRead, kWrite, kRefresh };

/// A command on the bus, for the checker.
struct Ddr4Issued {
  Clock at = 0;
  Ddr4Command command{};
  std::uint32_t bank = 0;  ///< group * 4 + bank of the group
  std::uint32_t row = 0;   ///< of kActivate, and of kRead and kWrite the one that is meant
};

/// One thread. It trusts its user: the earliest_ functions say when a command is allowed, and the others execute it
/// unchecked. A refresh requires that all banks are closed.
class Ddr4Device {
 public:
  explicit Ddr4Device(const Ddr4Timing& timing) : timing_(timing) {}

  [[nodiscard]] const Ddr4Timing& timing() const noexcept { return timing_; }
  [[nodiscard]] bool is_open(std::uint32_t bank) const noexcept { return banks_[bank].open; }
  /// The open row of a bank.
  [[nodiscard]] std::uint32_t row(std::uint32_t bank) const noexcept { return banks_[bank].row; }
  [[nodiscard]] bool any_open() const noexcept { return open_ != 0; }

  [[nodiscard]] Clock earliest_activate(std::uint32_t bank) const noexcept;
  [[nodiscard]] Clock earliest_precharge(std::uint32_t bank) const noexcept { return banks_[bank].precharge; }
  /// Of all open banks.
  [[nodiscard]] Clock earliest_precharge_all() const noexcept;
  [[nodiscard]] Clock earliest_read(std::uint32_t bank) const noexcept;
  [[nodiscard]] Clock earliest_write(std::uint32_t bank) const noexcept;
  [[nodiscard]] Clock earliest_refresh() const noexcept { return refresh_; }

  void activate(std::uint32_t bank, std::uint32_t row, Clock at);
  void precharge(std::uint32_t bank, Clock at);
  /// The later precharge of a column command with auto-precharge; no command of its own. Allowed as a precharge is.
  void auto_precharge(std::uint32_t bank, Clock at);
  void precharge_all(Clock at);
  /// `row` must be the open row.
  void read(std::uint32_t bank, std::uint32_t row, Clock at);
  void write(std::uint32_t bank, std::uint32_t row, Clock at);
  void refresh(Clock at);

  /// From now on, all commands are also appended to `into`. Null: none. Not owned.
  void record(std::vector<Ddr4Issued>* into) noexcept { record_ = into; }

 private:
  struct Bank {
    bool open = false;
    std::uint32_t row = 0;
    Clock activate = 0, precharge = 0, column = 0;  ///< earliest
  };
  struct Group {
    Clock activate = 0, read = 0, write = 0;
  };
  void close(std::uint32_t bank, Clock at);
  void issued(Ddr4Command command, std::uint32_t bank, std::uint32_t row, Clock at) {
    if (record_ != nullptr) record_->push_back({at, command, bank, row});
  }

  Ddr4Timing timing_;
  std::array<Bank, kBanks> banks_;
  std::array<Group, kBankGroups> groups_;
  Clock activate_ = 0, read_ = 0, write_ = 0, refresh_ = 0;  ///< earliest, all groups
  std::array<Clock, 4> last_activates_{};                    ///< plus tFAW: earliest of the fourth after each
  std::uint32_t oldest_activate_ = 0;
  std::uint32_t open_ = 0;  ///< bit i: bank i is open
  std::vector<Ddr4Issued>* record_ = nullptr;
};

}  // namespace wherry::sim::memory
