// SPDX-License-Identifier: Apache-2.0
#include "sim/softcore/vex_core.hpp"

#include <fmt/core.h>
#include <verilated.h>

#include <algorithm>
#include <bit>

#include "VVexRiscv.h"

namespace wherry::sim::softcore {
namespace {

constexpr std::uint32_t kCyclesOfMicrosecond = 100;  ///< the core's clock is 100 MHz
constexpr unsigned kResetCycles = 20;
/// Wishbone B4, section 4.1.1, CTI: a burst with rising addresses, and the last cycle of a burst.
constexpr std::uint32_t kCountsUp = 2, kEndOfBurst = 7;
constexpr std::size_t kMostConsole = 1 << 20;

}  // namespace

struct VexCore::Model {
  VerilatedContext context;
  VVexRiscv core{&context};
};

VexCore::VexCore(std::uint64_t card_base, std::uint32_t ratio)
    : model_(std::make_unique<Model>()), card_base_(card_base), ratio_(ratio) {
  out_.r_ready = out_.b_ready = true;
  VVexRiscv& core = model_->core;
  core.externalResetVector = kDramBase;
  core.softwareInterrupt = core.timerInterrupt = 0;
  core.externalInterruptArray = 0;
  core.iBusWishbone_ERR = core.dBusWishbone_ERR = 0;
  core.iBusWishbone_ACK = core.dBusWishbone_ACK = 0;
  core.reset = 1;
  for (unsigned i = 0; i < kResetCycles; ++i) {
    core.clk = 0;
    core.eval();
    core.clk = 1;
    core.eval();
  }
  core.reset = 0;
}

VexCore::~VexCore() = default;

void VexCore::record(BusTrace* into) noexcept {
  record_ = into;
  record_start_ = counts_.cycles;
}

void VexCore::fail(const char* what, std::uint32_t address) {
  if (fault_.empty()) fault_ = fmt::format("cycle {}: {} {:#010x}", counts_.cycles, what, address);
}

/// The core's clock. Both buses see an answer in the cycle in which it arrives.
void VexCore::edge() {
  VVexRiscv& core = model_->core;
  if (++cycle_of_us_ == kCyclesOfMicrosecond) {
    cycle_of_us_ = 0;
    ++time_;
  }
  core.timerInterrupt = time_ >= alarm_ ? 1 : 0;
  core.iBusWishbone_ACK = core.dBusWishbone_ACK = 0;
  core.clk = 0;
  core.eval();
  const Wishbone data{.asks = core.dBusWishbone_CYC != 0 && core.dBusWishbone_STB != 0,
                      .write = core.dBusWishbone_WE != 0,
                      .line = core.dBusWishbone_CTI == kCountsUp || core.dBusWishbone_CTI == kEndOfBurst,
                      .last = core.dBusWishbone_CTI != kCountsUp,
                      .address = core.dBusWishbone_ADR << 2,
                      .data = core.dBusWishbone_DAT_MOSI,
                      .strobes = core.dBusWishbone_SEL};
  const Wishbone fetch{.asks = core.iBusWishbone_CYC != 0 && core.iBusWishbone_STB != 0,
                       .line = true,
                       .last = core.iBusWishbone_CTI != kCountsUp,
                       .address = core.iBusWishbone_ADR << 2};
  bool changed = false;
  if (data.asks && serve(Bus::kData, data, core.dBusWishbone_DAT_MISO)) {
    core.dBusWishbone_ACK = 1;
    changed = true;
  }
  if (fetch.asks && serve(Bus::kFetch, fetch, core.iBusWishbone_DAT_MISO)) {
    core.iBusWishbone_ACK = 1;
    changed = true;
  }
  if (changed) core.eval();
  core.clk = 1;
  core.eval();
  ++counts_.cycles;
}

bool VexCore::serve(Bus bus, const Wishbone& asked, std::uint32_t& data) {
  if (asked.address >= kDevices) {
    data = device(asked);
    return true;
  }
  if (owner_ == Bus::kNone) {
    if (asked.address - kDramBase >= kDramBytes) {
      fail("nothing is at", asked.address);
      data = 0;
      return true;
    }
    ask(bus, asked);
    return false;
  }
  if (owner_ != bus || !answered_) return false;
  data = line_[asked.address / kWordBytes % line_.size()];
  if (asked.last) {
    owner_ = Bus::kNone;
    answered_ = false;
  }
  return true;
}

std::uint32_t VexCore::device(const Wishbone& asked) {
  const std::uint32_t place = asked.address - kDevices;
  if (!asked.write) {
    if (place == kTime || place == kTimer) return static_cast<std::uint32_t>(place == kTime ? time_ : alarm_);
    if (place == kTime + 4 || place == kTimer + 4)
      return static_cast<std::uint32_t>((place == kTime + 4 ? time_ : alarm_) >> 32);
    return 0;
  }
  constexpr std::uint64_t kHalf = 0xffff'ffff;
  if (place == kTimer) alarm_ = (alarm_ & ~kHalf) | asked.data;
  if (place == kTimer + 4) alarm_ = (alarm_ & kHalf) | std::uint64_t{asked.data} << 32;
  if (place == kConsole && console_.size() < kMostConsole) console_.push_back(static_cast<char>(asked.data));
  if (place == kNumber) console_ += fmt::format("[{:08x}]", asked.data);
  if (place == kPower) off_ = asked.data;
  return 0;
}

void VexCore::ask(Bus bus, const Wishbone& asked) {
  const std::uint32_t bytes = asked.line ? kLineBytes : kWordBytes;
  const std::uint32_t inside = (asked.address - kDramBase) & ~(bytes - 1);
  BusKind kind = asked.line ? BusKind::kReadLine : BusKind::kReadWord;
  if (asked.write) {
    kind = BusKind::kWriteWord;
    ++counts_.written_words;
    counts_.written_bytes += static_cast<std::uint64_t>(std::popcount(asked.strobes));
  } else if (bus == Bus::kFetch) {
    kind = BusKind::kFetchLine;
    ++counts_.fetched_lines;
  } else {
    ++(asked.line ? counts_.read_lines : counts_.read_words);
  }
  if (record_ != nullptr) record_->accesses.push_back({counts_.cycles - record_start_, inside, kind});
  owner_ = bus;
  answered_ = false;
  const memory::AxiAddress address{card_base_ + inside, 0, static_cast<std::uint32_t>(std::countr_zero(bytes)), 0};
  const auto lane = static_cast<std::uint32_t>(address.address % memory::kBeatBytes);
  (asked.write ? out_.aw : out_.ar) = address;
  out_.ar_valid = !asked.write;
  out_.aw_valid = out_.w_valid = asked.write;
  out_.w_last = true;
  out_.w_strobes = memory::Strobes{asked.strobes} << lane;
  out_.w_data[lane / kWordBytes] = asked.data;
}

void VexCore::step(const memory::AxiAnswer& in) {
  if (in.ar_ready) out_.ar_valid = false;
  if (in.aw_ready) out_.aw_valid = false;
  if (in.w_ready) out_.w_valid = false;
  if (in.r_valid) {
    if (in.r_error) fail("the memory refused the read of", static_cast<std::uint32_t>(out_.ar.address));
    const auto first = static_cast<std::uint32_t>(out_.ar.address % memory::kBeatBytes / kLineBytes * line_.size());
    std::copy_n(in.r_data.begin() + first, line_.size(), line_.begin());
    answered_ = true;
  }
  if (in.b_valid) {
    if (in.b_error) fail("the memory refused the write to", static_cast<std::uint32_t>(out_.aw.address));
    answered_ = true;
  }
  if (++phase_ < ratio_) return;
  phase_ = 0;
  if (off_ != 0) return;
  if (owner_ != Bus::kNone && !answered_) ++counts_.waited;
  edge();
}

}  // namespace wherry::sim::softcore
