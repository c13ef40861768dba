// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/ddr4.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace wherry::sim::memory {
namespace {

constexpr std::uint32_t kClocks = 4;  ///< of the memory in a cycle of the controller

template <typename Function>
void for_each_bit(std::uint32_t bits, Function&& function) {
  for (; bits != 0; bits &= bits - 1) function(static_cast<std::uint32_t>(std::countr_zero(bits)));
}

std::uint32_t field(std::uint64_t address, unsigned lowest, unsigned bits) {
  return static_cast<std::uint32_t>(address >> lowest & ((std::uint64_t{1} << bits) - 1));
}

}  // namespace

Place place_of(AddressMap map, std::uint64_t address) noexcept {
  const std::uint32_t row = field(address, 17, 16);
  switch (map) {
    case AddressMap::kRowBankColumn:
      return {field(address, 13, 4), row, field(address, 6, 7)};
    case AddressMap::kRowColumnBank:
      return {field(address, 6, 2) * kBanksOfAGroup + field(address, 8, 2), row, field(address, 10, 7)};
    case AddressMap::kBankGroupInterleaved:
      break;
  }
  const std::uint32_t group = field(address, 14, 1) << 1 | field(address, 6, 1);
  return {group * kBanksOfAGroup + field(address, 15, 2), row, field(address, 7, 7)};
}

Ddr4::Ddr4(const Ddr4Controller& controller, const Ddr4Timing& timing)
    : settings_(controller), device_(timing), next_refresh_(timing.refi / kClocks) {
  settings_.bank_window = std::min(settings_.bank_window, kMaxWindow);
}

/// As in litedram's crossbar, a bank belongs to one port until its queue is empty, and changes owner a cycle later.
bool Ddr4::take_turn(const Access& access, std::uint32_t bank) {
  if (port_waits_[access.port] != 0 && port_bank_[access.port] != bank) return false;
  if (owner_[bank] != access.port) {
    if (banks_[bank].count == 0 && owner_asked_[bank] + 1 < now_) owner_[bank] = access.port;
    return false;
  }
  owner_asked_[bank] = now_;
  return true;
}

bool Ddr4::offer(const Access& access) {
  const Place place = place_of(settings_.map, access.address);
  Bank& bank = banks_[place.bank];
  if (settings_.one_bank_a_port && !take_turn(access, place.bank)) return false;
  if (waiting_ >= settings_.window || bank.count >= settings_.bank_window || bank.last_entry == now_) return false;
  bank.waiting[bank.count++] = {access, place.row, now_ + settings_.enter, order_++, 0};
  bank.last_entry = now_;
  const std::uint32_t bit = 1U << place.bank;
  if ((stale_ & bit) == 0 && (settings_.overtakes != 0 || bank.count == 1)) {
    stale_ |= bit;
    bank.again = now_ + settings_.enter;
  }
  ++waiting_;
  ++port_waits_[access.port];
  port_bank_[access.port] = place.bank;
  return true;
}

void Ddr4::cycle() {
  done_.clear();
  if (settings_.refresh && now_ >= next_refresh_ && (mode_ == Mode::kRead || mode_ == Mode::kWrite)) {
    next_refresh_ += device_.timing().refi / kClocks;
    mode_ = Mode::kRefresh;
    refresh_at_ = now_ + settings_.refresh_enter;
    refresh_step_ = 0;
  }
  if (mode_ == Mode::kRefresh) {
    refresh();
    ++now_;
    return;
  }
  if (mode_ == Mode::kToWrite && now_ >= mode_since_) {
    mode_ = Mode::kWrite;
    mode_since_ = now_;
  }
  for_each_bit(stale_, [this](std::uint32_t index) { look(index); });
  const bool turning = mode_ == Mode::kToWrite || mode_ == Mode::kToRead;
  const bool reads = hits_[0] != 0, writes = hits_[1] != 0;
  const std::uint32_t rows = rows_;  // decided beside the column command, not after it
  if (!turning) issue_column();
  if (rows != 0 && (!turning || settings_.rows_while_turning)) issue_row();
  turn(reads, writes);
  ++now_;
}

void Ddr4::forget_wishes(std::uint32_t index) noexcept {
  const std::uint32_t bit = 1U << index;
  hits_[0] &= ~bit;
  hits_[1] &= ~bit;
  rows_ &= ~bit;
  stale_ |= bit;
  banks_[index].again = 0;
}

/// Finds what the bank needs next: a column command for a hit, or a row command.
void Ddr4::look(std::uint32_t index) {
  Bank& bank = banks_[index];
  const std::uint32_t bit = 1U << index;
  if (now_ < bank.again) return;  // nothing new until then
  forget_wishes(index);
  if (now_ < bank.wake) return;
  if (bank.closing) {
    const Clock at = device_.earliest_precharge(index);
    if (at > slot(settings_.row_slot)) return;
    device_.auto_precharge(index, at);
    ++counts_.precharges;
    bank.closing = false;
    bank.row_wish = bank.count != 0 ? Wish::kActivate : Wish::kNothing;
    bank.wake = now_ + settings_.precharge;
    return;
  }
  if (bank.row_wish != Wish::kNothing && settings_.decide != 0) {  // it has decided
    wish_row(bit);
    stale_ &= ~bit;
    return;
  }
  bank.row_wish = Wish::kNothing;
  if (bank.count == 0) stale_ &= ~bit;
  if (bank.count == 0 || bank.waiting[0].visible > now_) return;
  const bool open = device_.is_open(index);
  const auto settle = [&] {
    std::uint32_t unseen = bank.count;
    if (settings_.overtakes != 0)
      while (bank.waiting[unseen - 1].visible > now_) --unseen;  // the first is seen
    if (unseen == bank.count)
      stale_ &= ~bit;
    else
      bank.again = bank.waiting[unseen].visible;
  };
  bank.hit[0] = bank.hit[1] = kNone;
  if (open && find_hits(bank, device_.row(index))) {
    if (bank.hit[0] != kNone) hits_[0] |= bit;
    if (bank.hit[1] != kNone) hits_[1] |= bit;
    settle();
    return;
  }
  bank.row_wish = open ? Wish::kPrecharge : Wish::kActivate;
  bank.wake = now_ + settings_.decide;
  if (settings_.decide != 0) return;
  wish_row(bit);
  settle();
}

/// True: there is one.
bool Ddr4::find_hits(Bank& bank, std::uint32_t open_row) const {
  const bool in_order = settings_.overtakes == 0 || bank.waiting[0].overtaken >= settings_.overtakes;
  const std::uint32_t end = in_order ? 1 : bank.count;
  for (std::uint32_t i = 0; i < end && bank.waiting[i].visible <= now_; ++i) {
    std::uint32_t& hit = bank.hit[bank.waiting[i].access.write ? 1 : 0];
    if (hit == kNone && bank.waiting[i].row == open_row) hit = i;
  }
  return bank.hit[0] != kNone || bank.hit[1] != kNone;
}

/// Whose turn it is among `candidates`; kNone if it is nobody's. A turn is granted in the cycle before it takes effect.
std::uint32_t Ddr4::granted(std::uint32_t& grant, std::uint32_t candidates) const noexcept {
  const std::uint32_t now = (candidates >> grant & 1) != 0 ? grant : kNone;
  const std::uint32_t others = candidates & ~(1U << grant);
  if (others != 0) {
    const std::uint32_t behind = others & ~((2U << grant) - 1);
    grant = static_cast<std::uint32_t>(std::countr_zero(behind != 0 ? behind : others));
  }
  return now;
}

void Ddr4::issue_column() {
  const bool write = mode_ == Mode::kWrite;
  const Clock at = slot(0);
  std::uint32_t candidates = 0, oldest = kNone;
  std::uint64_t oldest_order = ~std::uint64_t{0};
  for_each_bit(hits_[write ? 1 : 0], [&](std::uint32_t index) {
    const Bank& bank = banks_[index];
    const std::uint32_t hit = bank.hit[write ? 1 : 0];
    if ((write ? device_.earliest_write(index) : device_.earliest_read(index)) > at) return;
    candidates |= 1U << index;
    if (bank.waiting[hit].order < oldest_order) {
      oldest_order = bank.waiting[hit].order;
      oldest = index;
    }
  });
  const std::uint32_t index = settings_.oldest_first ? oldest : granted(column_grant_, candidates);
  if (index != kNone) perform(index, write);
}

void Ddr4::perform(std::uint32_t index, bool write) {
  Bank& bank = banks_[index];
  const std::uint32_t chosen = bank.hit[write ? 1 : 0];
  const Waiting& waiting = bank.waiting[chosen];
  if (write) {
    device_.write(index, waiting.row, slot(0));
    last_write_ = slot(0);
    ++counts_.writes;
  } else {
    device_.read(index, waiting.row, slot(0));
    ++counts_.reads;
  }
  done_.push_back({waiting.access, now_ + (write ? settings_.write_path : settings_.read_path)});
  --port_waits_[waiting.access.port];
  --waiting_;
  for (std::uint32_t i = 0; i < chosen; ++i) ++bank.waiting[i].overtaken;
  std::move(bank.waiting.begin() + chosen + 1, bank.waiting.begin() + bank.count, bank.waiting.begin() + chosen);
  --bank.count;
  bank.wake = now_ + 1;
  if (settings_.auto_precharge && bank.count != 0 && bank.waiting[0].visible <= now_ + 1 &&
      bank.waiting[0].row != device_.row(index))
    bank.closing = true;
  forget_wishes(index);
}

void Ddr4::issue_row() {
  const Clock at = slot(settings_.row_slot);
  if (at < rows_from_) return;
  std::uint32_t candidates = 0, oldest = kNone;
  std::uint64_t oldest_order = ~std::uint64_t{0};
  Clock first = ~Clock{0};
  for_each_bit(rows_, [&](std::uint32_t index) {
    const Bank& bank = banks_[index];
    const Clock earliest =
        bank.row_wish == Wish::kActivate ? device_.earliest_activate(index) : device_.earliest_precharge(index);
    first = std::min(first, earliest);
    if (earliest > at) return;
    candidates |= 1U << index;
    if (bank.waiting[0].order < oldest_order) {
      oldest_order = bank.waiting[0].order;
      oldest = index;
    }
  });
  if (candidates == 0) {  // what is earliest can only become later
    rows_from_ = first;
    return;
  }
  const std::uint32_t index = settings_.oldest_first ? oldest : granted(row_grant_, candidates);
  if (index == kNone) return;
  Bank& bank = banks_[index];
  if (bank.row_wish == Wish::kActivate) {
    device_.activate(index, bank.waiting[0].row, at);
    ++counts_.activates;
    bank.row_wish = Wish::kNothing;
    bank.wake = now_ + settings_.activate;
  } else {
    device_.precharge(index, at);
    ++counts_.precharges;
    bank.row_wish = Wish::kActivate;
    bank.wake = now_ + settings_.precharge;
  }
  forget_wishes(index);
}

/// Decides whether the bus continues with reads or with writes.
void Ddr4::turn(bool reads, bool writes) {
  const Cycle spent = now_ + 1 - mode_since_;
  const Ddr4Timing& timing = device_.timing();
  switch (mode_) {
    case Mode::kRead:
      if (!writes || (reads && spent < settings_.read_time)) return;
      mode_ = settings_.read_to_write != 0 ? Mode::kToWrite : Mode::kWrite;
      mode_since_ = now_ + std::max(settings_.read_to_write, 1U);
      ++counts_.turns;
      return;
    case Mode::kWrite:
      if (!reads || (writes && spent < settings_.write_time)) return;
      mode_ = settings_.rows_while_turning ? Mode::kRead : Mode::kToRead;
      mode_since_ = now_ + 1;
      ++counts_.turns;
      return;
    case Mode::kToRead:
      if (slot(0) < last_write_ + timing.cwl + timing.burst + timing.wtr_l) return;
      mode_ = Mode::kRead;
      mode_since_ = now_ + 1;
      return;
    case Mode::kToWrite:
    case Mode::kRefresh:
      return;
  }
}

/// Closes all rows, refreshes, and waits.
void Ddr4::refresh() {
  if (now_ < refresh_at_) return;
  switch (refresh_step_) {
    case 0:
      if (device_.earliest_precharge_all() > slot(0)) return;
      device_.precharge_all(slot(0));
      for (std::uint32_t index = 0; index < kBanks; ++index) {
        banks_[index].closing = false;
        banks_[index].row_wish = Wish::kNothing;
        forget_wishes(index);
      }
      refresh_at_ = now_ + std::max(settings_.precharge, 1U);
      break;
    case 1:
      if (device_.earliest_refresh() > slot(0)) return;
      device_.refresh(slot(0));
      ++counts_.refreshes;
      refresh_at_ = now_ + (device_.timing().rfc + kClocks - 1) / kClocks + settings_.refresh_leave;
      break;
    default:
      mode_ = Mode::kRead;
      mode_since_ = now_ + 1;
      return;
  }
  ++refresh_step_;
}

}  // namespace wherry::sim::memory
