// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/ddr4_rules.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>

namespace wherry::sim::memory {
namespace {

enum class Scope : std::uint8_t { kBank, kGroup, kOtherGroup, kAll };
enum class Kind : std::uint8_t { kAct, kPre, kRd, kWr, kRef };

/// The minimum interval between two commands: the larger of `clocks` and `ps`, after `data_end` clocks (of the first
/// command's data burst, if the rule counts from its end).
struct Rule {
  const char* name;
  Kind from, to;
  Scope scope;
  std::uint64_t clocks;
  std::uint64_t ps;
  std::uint64_t data_end = 0;
};

// JESD79-4B: table "Timing Parameters by Speed Bin for DDR4-1600 to DDR4-2400" (tCCD, tRRD, tFAW, tWTR, tRTP, tWR),
// table "DDR4-2400 Speed Bins" (tRCD, tRP, tRAS, tRC) with Micron's -083E, table "Refresh parameters by device density"
// (tRFC1 of 8 Gbit), 4.24 (read), 4.25 (write), and 4.24.3 for read to write.
constexpr std::uint64_t kCl = 16, kCwl = 12, kBurst = 4;
constexpr std::array kRules{
    Rule{"tRCD", Kind::kAct, Kind::kRd, Scope::kBank, 0, 13'320},
    Rule{"tRCD", Kind::kAct, Kind::kWr, Scope::kBank, 0, 13'320},
    Rule{"tRAS", Kind::kAct, Kind::kPre, Scope::kBank, 0, 32'000},
    Rule{"tRC", Kind::kAct, Kind::kAct, Scope::kBank, 0, 45'320},
    Rule{"tRRD_L", Kind::kAct, Kind::kAct, Scope::kGroup, 4, 4'900},
    Rule{"tRRD_S", Kind::kAct, Kind::kAct, Scope::kOtherGroup, 4, 3'300},
    Rule{"tRP", Kind::kPre, Kind::kAct, Scope::kBank, 0, 13'320},
    Rule{"tRP to REF", Kind::kPre, Kind::kRef, Scope::kAll, 0, 13'320},
    Rule{"tRTP", Kind::kRd, Kind::kPre, Scope::kBank, 4, 7'500},
    Rule{"tWR", Kind::kWr, Kind::kPre, Scope::kBank, 0, 15'000, kCwl + kBurst},
    Rule{"tCCD_L", Kind::kRd, Kind::kRd, Scope::kGroup, 5, 5'000},
    Rule{"tCCD_S", Kind::kRd, Kind::kRd, Scope::kOtherGroup, 4, 0},
    Rule{"tCCD_L", Kind::kWr, Kind::kWr, Scope::kGroup, 5, 5'000},
    Rule{"tCCD_S", Kind::kWr, Kind::kWr, Scope::kOtherGroup, 4, 0},
    Rule{"tWTR_L", Kind::kWr, Kind::kRd, Scope::kGroup, 4, 7'500, kCwl + kBurst},
    Rule{"tWTR_S", Kind::kWr, Kind::kRd, Scope::kOtherGroup, 2, 2'500, kCwl + kBurst},
    Rule{"RD to WR", Kind::kRd, Kind::kWr, Scope::kAll, kCl + kBurst + 2 - kCwl, 0},
    Rule{"tRFC1", Kind::kRef, Kind::kAct, Scope::kAll, 0, 350'000},
    Rule{"tRFC1", Kind::kRef, Kind::kRef, Scope::kAll, 0, 350'000},
};
constexpr std::uint64_t kFawPs = 21'000, kFawClocks = 20;
constexpr std::uint64_t kRefiPs = 7'800'000;
constexpr std::uint64_t kPostponed = 8;  // refreshes that may be late (4.26)
constexpr std::uint64_t kLongest = 450;  // clocks: no rule reaches further back

/// 1200 MHz: three clocks are 2,500 ps.
std::uint64_t clocks_of(std::uint64_t ps) { return (3 * ps + 2'499) / 2'500; }

std::uint64_t interval(const Rule& rule) { return rule.data_end + std::max(rule.clocks, clocks_of(rule.ps)); }

Kind kind_of(Ddr4Command command) {
  switch (command) {
    case Ddr4Command::kActivate:
      return Kind::kAct;
    case Ddr4Command::kRead:
      return Kind::kRd;
    case Ddr4Command::kWrite:
      return Kind::kWr;
    case Ddr4Command::kRefresh:
      return Kind::kRef;
    default:
      return Kind::kPre;
  }
}

/// Precharge-all concerns every bank.
bool in_scope(Scope scope, const Ddr4Issued& a, const Ddr4Issued& b) {
  const bool all = a.command == Ddr4Command::kPrechargeAll || b.command == Ddr4Command::kPrechargeAll;
  switch (scope) {
    case Scope::kBank:
      return all || a.bank == b.bank;
    case Scope::kGroup:
      return a.bank / 4 == b.bank / 4;
    case Scope::kOtherGroup:
      return a.bank / 4 != b.bank / 4;
    case Scope::kAll:
      return true;
  }
  return true;
}

class Judge {
 public:
  Ddr4Judgement run(std::vector<Ddr4Issued> trace) {
    std::stable_sort(trace.begin(), trace.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    for (const Ddr4Issued& command : trace) {
      while (!recent_.empty() && recent_.front().at + kLongest < command.at) recent_.pop_front();
      intervals(command);
      window(command);
      buses(command);
      states(command);
      refreshes(command);
      recent_.push_back(command);
    }
    if (!trace.empty() && trace.back().at * 2'500 / 3 > (refreshed_ + kPostponed + 1) * kRefiPs)
      broken("tREFI", trace.back(), "too few refreshes");
    return judgement_;
  }

 private:
  void broken(const std::string& rule, const Ddr4Issued& at, const std::string& why) {
    ++judgement_.broken[rule];
    if (judgement_.first.empty())
      judgement_.first = fmt::format("{}: clock {}, bank {}: {}", rule, at.at, at.bank, why);
  }

  void intervals(const Ddr4Issued& command) {
    const Kind to = kind_of(command.command);
    for (const Ddr4Issued& before : recent_)
      for (const Rule& rule : kRules) {
        if (rule.from != kind_of(before.command) || rule.to != to || !in_scope(rule.scope, before, command)) continue;
        const std::uint64_t passed = command.at - before.at, least = interval(rule);
        if (passed < least) broken(rule.name, command, fmt::format("{} clocks of {}", passed, least));
        if (passed == least) ++judgement_.tight[rule.name];
      }
  }

  void window(const Ddr4Issued& command) {
    if (command.command != Ddr4Command::kActivate) return;
    const std::uint64_t least = std::max(kFawClocks, clocks_of(kFawPs));
    if (activates_.size() == 4) {
      const std::uint64_t passed = command.at - activates_.front();
      if (passed < least) broken("tFAW", command, fmt::format("a fifth ACT in {} clocks of {}", passed, least));
      if (passed == least) ++judgement_.tight["tFAW"];
      activates_.pop_front();
    }
    activates_.push_back(command.at);
  }

  /// Only one command per clock, and data bursts must not overlap.
  void buses(const Ddr4Issued& command) {
    if (command.command != Ddr4Command::kAutoPrecharge) {
      if (some_ && command.at == last_command_) broken("command bus", command, "two commands in a clock");
      some_ = true;
      last_command_ = command.at;
    }
    const Kind kind = kind_of(command.command);
    if (kind != Kind::kRd && kind != Kind::kWr) return;
    const std::uint64_t start = command.at + (kind == Kind::kRd ? kCl : kCwl);
    if (start < data_until_)
      broken("data bus", command, fmt::format("taken until {}, wanted at {}", data_until_, start));
    data_until_ = std::max(data_until_, start + kBurst);
  }

  void states(const Ddr4Issued& command) {
    constexpr std::uint32_t kClosed = ~0U;
    std::uint32_t& row = rows_[command.bank];
    switch (command.command) {
      case Ddr4Command::kActivate:
        if (row != kClosed) broken("state", command, "ACT of an open bank");
        row = command.row;
        return;
      case Ddr4Command::kRead:
      case Ddr4Command::kWrite:
        if (row != command.row) broken("state", command, fmt::format("row {} is open, {} is meant", row, command.row));
        return;
      case Ddr4Command::kPrecharge:
      case Ddr4Command::kAutoPrecharge:
        row = kClosed;
        return;
      case Ddr4Command::kPrechargeAll:
        rows_.fill(kClosed);
        return;
      case Ddr4Command::kRefresh:
        if (std::any_of(rows_.begin(), rows_.end(), [](std::uint32_t open) { return open != kClosed; }))
          broken("state", command, "REF with an open bank");
        return;
    }
  }

  void refreshes(const Ddr4Issued& command) {
    if (command.command != Ddr4Command::kRefresh) return;
    if ((command.at - last_refresh_) * 2'500 / 3 > (kPostponed + 1) * kRefiPs)
      broken("tREFI", command, "more than eight refreshes late");
    last_refresh_ = command.at;
    ++refreshed_;
  }

  Ddr4Judgement judgement_;
  std::deque<Ddr4Issued> recent_;
  std::deque<std::uint64_t> activates_;
  std::array<std::uint32_t, 16> rows_ = [] {
    std::array<std::uint32_t, 16> rows{};
    rows.fill(~0U);
    return rows;
  }();
  bool some_ = false;
  std::uint64_t last_command_ = 0, data_until_ = 0, last_refresh_ = 0, refreshed_ = 0;
};

}  // namespace

Ddr4Judgement judge(std::span<const Ddr4Issued> trace) { return Judge().run({trace.begin(), trace.end()}); }

}  // namespace wherry::sim::memory
