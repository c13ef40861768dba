// SPDX-License-Identifier: Apache-2.0
#include "sim/softcore/vex_core.hpp"

#include <verilated.h>

#include <cstring>

#include "VVexRiscv.h"

namespace wherry::sim::softcore {
namespace {

constexpr std::uint32_t kDevices = 0x8000'0000;  ///< from here on
constexpr std::uint32_t kTime = 0xf000'0000, kCompare = 0xf000'0008, kConsole = 0xf000'0010, kStop = 0xf000'0014,
                        kFault = 0xf000'0018;
constexpr std::uint64_t kCyclesOfATick = 100;  ///< the timer's 1 MHz of 100 MHz
constexpr unsigned kIncrementing = 2;          ///< Wishbone B4, CTI: the burst goes on

}  // namespace

struct VexBoard::Model {
  VerilatedContext context;
  VVexRiscv core{&context};
};

VexBoard::VexBoard(std::uint32_t read_latency)
    : model_(std::make_unique<Model>()), read_latency_(read_latency), memory_(kBoardBytes / 4) {
  VVexRiscv& core = model_->core;
  core.externalResetVector = kBoardMemory;
  core.softwareInterrupt = 0;
  core.externalInterruptArray = 0;
  core.iBusWishbone_ERR = core.dBusWishbone_ERR = 0;
  core.reset = 1;
  for (unsigned i = 0; i < 20; ++i) step();
  core.reset = 0;
  cycle_ = 0;
}

VexBoard::~VexBoard() = default;

void VexBoard::load(std::uint32_t address, std::span<const std::uint8_t> bytes) {
  std::memcpy(reinterpret_cast<std::uint8_t*>(memory_.data()) + (address - kBoardMemory), bytes.data(), bytes.size());
}

std::uint32_t VexBoard::read(std::uint32_t address) const {
  if (address - kBoardMemory < kBoardBytes) return memory_[(address - kBoardMemory) / 4];
  const std::uint64_t tick = cycle_ / kCyclesOfATick;
  switch (address) {
    case kTime:
      return static_cast<std::uint32_t>(tick);
    case kTime + 4:
      return static_cast<std::uint32_t>(tick >> 32);
    case kCompare:
      return static_cast<std::uint32_t>(compare_);
    case kCompare + 4:
      return static_cast<std::uint32_t>(compare_ >> 32);
    default:
      return 0;
  }
}

void VexBoard::write(std::uint32_t address, std::uint32_t value, std::uint32_t lanes) {
  if (address - kBoardMemory < kBoardBytes) {
    std::uint32_t mask = 0;
    for (unsigned i = 0; i < 4; ++i)
      if ((lanes >> i & 1) != 0) mask |= 0xffU << 8 * i;
    std::uint32_t& word = memory_[(address - kBoardMemory) / 4];
    word = (word & ~mask) | (value & mask);
    return;
  }
  switch (address) {
    case kCompare:
      compare_ = (compare_ >> 32 << 32) | value;
      return;
    case kCompare + 4:
      compare_ = (compare_ & 0xffff'ffff) | std::uint64_t{value} << 32;
      return;
    case kConsole:
      on_console(static_cast<char>(value));
      return;
    case kStop:
      stopped_ = value;
      return;
    case kFault:
      on_fault(value);
      return;
    default:
      return;
  }
}

/// Whether the word that is asked for goes in this cycle. The first word of a burst waits, the others follow at once.
bool VexBoard::acknowledges(Bus& bus, std::uint32_t address, bool write, bool more) {
  const bool device = address >= kDevices;
  const std::uint32_t latency = device ? 0 : write ? read_latency_ / 4 : read_latency_;
  if (!bus.in_burst && bus.waited < latency) {
    if (bus.waited++ == 0 && record_ != nullptr) record_->accesses.push_back({cycle_, address - kBoardMemory, write});
    return false;
  }
  bus.in_burst = more;
  bus.waited = 0;
  return true;
}

void VexBoard::step() {
  VVexRiscv& core = model_->core;
  core.timerInterrupt = cycle_ / kCyclesOfATick >= compare_;
  core.clk = 0;
  core.eval();
  core.iBusWishbone_ACK = 0;
  if (core.iBusWishbone_CYC != 0 && core.iBusWishbone_STB != 0) {
    const std::uint32_t address = core.iBusWishbone_ADR << 2;
    if (acknowledges(instructions_, address, false, core.iBusWishbone_CTI == kIncrementing)) {
      core.iBusWishbone_ACK = 1;
      core.iBusWishbone_DAT_MISO = read(address);
    }
  } else {
    instructions_ = {};
  }
  core.dBusWishbone_ACK = 0;
  if (core.dBusWishbone_CYC != 0 && core.dBusWishbone_STB != 0) {
    const std::uint32_t address = core.dBusWishbone_ADR << 2;
    if (acknowledges(data_, address, core.dBusWishbone_WE != 0, core.dBusWishbone_CTI == kIncrementing)) {
      core.dBusWishbone_ACK = 1;
      if (core.dBusWishbone_WE != 0)
        write(address, core.dBusWishbone_DAT_MOSI, core.dBusWishbone_SEL);
      else
        core.dBusWishbone_DAT_MISO = read(address);
    }
  } else {
    data_ = {};
  }
  core.eval();
  core.clk = 1;
  core.eval();
  ++cycle_;
}

std::uint32_t VexBoard::run(std::uint64_t cycles) {
  for (const std::uint64_t end = cycle_ + cycles; stopped_ == 0 && cycle_ < end;) step();
  return stopped_;
}

}  // namespace wherry::sim::softcore
