// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/ddr4_device.hpp"

#include <algorithm>
#include <bit>

namespace wherry::sim::memory {
namespace {

void at_least(Clock& earliest, Clock value) { earliest = std::max(earliest, value); }

std::uint32_t group_of(std::uint32_t bank) { return bank / kBanksOfAGroup; }

}  // namespace

Clock Ddr4Device::earliest_activate(std::uint32_t bank) const noexcept {
  return std::max(
      {banks_[bank].activate, groups_[group_of(bank)].activate, activate_, last_activates_[oldest_activate_]});
}

Clock Ddr4Device::earliest_precharge_all() const noexcept {
  Clock earliest = 0;
  for (std::uint32_t open = open_; open != 0; open &= open - 1)
    at_least(earliest, banks_[static_cast<std::uint32_t>(std::countr_zero(open))].precharge);
  return earliest;
}

Clock Ddr4Device::earliest_read(std::uint32_t bank) const noexcept {
  return std::max({banks_[bank].column, groups_[group_of(bank)].read, read_});
}

Clock Ddr4Device::earliest_write(std::uint32_t bank) const noexcept {
  return std::max({banks_[bank].column, groups_[group_of(bank)].write, write_});
}

void Ddr4Device::activate(std::uint32_t bank, std::uint32_t row, Clock at) {
  Bank& b = banks_[bank];
  b.open = true;
  b.row = row;
  open_ |= 1U << bank;
  b.column = at + timing_.rcd;
  b.precharge = at + timing_.ras;
  b.activate = at + timing_.rc;
  groups_[group_of(bank)].activate = at + timing_.rrd_l;
  activate_ = at + timing_.rrd_s;
  last_activates_[oldest_activate_] = at + timing_.faw;
  oldest_activate_ = (oldest_activate_ + 1) % 4;
  issued(Ddr4Command::kActivate, bank, row, at);
}

void Ddr4Device::precharge(std::uint32_t bank, Clock at) {
  close(bank, at);
  issued(Ddr4Command::kPrecharge, bank, 0, at);
}

void Ddr4Device::auto_precharge(std::uint32_t bank, Clock at) {
  close(bank, at);
  issued(Ddr4Command::kAutoPrecharge, bank, 0, at);
}

void Ddr4Device::close(std::uint32_t bank, Clock at) {
  Bank& b = banks_[bank];
  b.open = false;
  open_ &= ~(1U << bank);
  at_least(b.activate, at + timing_.rp);
  at_least(refresh_, at + timing_.rp);
}

void Ddr4Device::precharge_all(Clock at) {
  for (Bank& b : banks_) {
    b.open = false;
    at_least(b.activate, at + timing_.rp);
  }
  open_ = 0;
  at_least(refresh_, at + timing_.rp);
  issued(Ddr4Command::kPrechargeAll, 0, 0, at);
}

void Ddr4Device::read(std::uint32_t bank, std::uint32_t row, Clock at) {
  Group& group = groups_[group_of(bank)];
  at_least(group.read, at + timing_.ccd_l);
  at_least(read_, at + timing_.ccd_s);
  at_least(write_, at + timing_.rtw);
  at_least(banks_[bank].precharge, at + timing_.rtp);
  issued(Ddr4Command::kRead, bank, row, at);
}

void Ddr4Device::write(std::uint32_t bank, std::uint32_t row, Clock at) {
  const Clock data_end = at + timing_.cwl + timing_.burst;
  Group& group = groups_[group_of(bank)];
  at_least(group.write, at + timing_.ccd_l);
  at_least(write_, at + timing_.ccd_s);
  at_least(group.read, data_end + timing_.wtr_l);
  at_least(read_, data_end + timing_.wtr_s);
  at_least(banks_[bank].precharge, data_end + timing_.wr);
  issued(Ddr4Command::kWrite, bank, row, at);
}

void Ddr4Device::refresh(Clock at) {
  for (Bank& b : banks_) at_least(b.activate, at + timing_.rfc);
  at_least(refresh_, at + timing_.rfc);
  issued(Ddr4Command::kRefresh, 0, 0, at);
}

}  // namespace wherry::sim::memory
