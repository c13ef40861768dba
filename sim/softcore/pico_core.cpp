// SPDX-License-Identifier: Apache-2.0
#include "sim/softcore/pico_core.hpp"

#include <verilated.h>

#include <algorithm>

#include "Vpicorv32.h"

namespace wherry::sim::softcore {

struct PicoCore::Model {
  VerilatedContext context;
  Vpicorv32 core{&context};
};

PicoCore::PicoCore(std::span<const std::uint32_t> firmware, const Settings& settings)
    : model_(std::make_unique<Model>()), settings_(settings), local_(kLocalBytes / 4) {
  Vpicorv32& core = model_->core;
  out_.r_ready = out_.b_ready = true;
  if (settings.code_on_card) {
    // lui x1, address; jalr x0, address(x1): a jump from the core's own memory to the code.
    const std::uint32_t at = kCardBase + settings.code_address;
    local_[0] = (at + 0x800) >> 12 << 12 | 1U << 7 | 0x37;
    local_[1] = (at & 0xfff) << 20 | 1U << 15 | 0x67;
  } else {
    std::copy(firmware.begin(), firmware.end(), local_.begin());
  }
  core.pcpi_wr = core.pcpi_wait = core.pcpi_ready = 0;
  core.pcpi_rd = core.irq = 0;
  core.resetn = 0;
  for (unsigned i = 0; i < 8; ++i) edge();
  core.resetn = 1;
  counts_ = {};
}

PicoCore::~PicoCore() = default;

bool PicoCore::trapped() const noexcept { return model_->core.trap != 0; }

void PicoCore::record(BusTrace* into) noexcept {
  record_ = into;
  record_start_ = counts_.cycles;
}

/// An edge of the core's clock. mem_ready is set one cycle after the access was seen.
void PicoCore::edge() {
  Vpicorv32& core = model_->core;
  core.mem_ready = 0;
  core.clk = 0;
  core.eval();
  if (core.mem_valid != 0) {
    const std::uint32_t address = core.mem_addr;
    if (address < kLocalBytes) {
      std::uint32_t& word = local_[address / 4];
      for (unsigned byte = 0; byte < 4; ++byte)
        if ((core.mem_wstrb >> byte & 1) != 0)
          word = (word & ~(0xffU << 8 * byte)) | (core.mem_wdata & 0xffU << 8 * byte);
      core.mem_rdata = word;
      core.mem_ready = 1;
    } else if (address < kCardBase) {
      core.mem_rdata = 0;  // nothing there
      core.mem_ready = 1;
    } else if (answered_) {
      core.mem_rdata = answer_;
      core.mem_ready = 1;
      asked_ = answered_ = false;
    } else {
      ++counts_.waited;
      if (!asked_) ask();
    }
    core.eval();
  }
  core.clk = 1;
  core.eval();
  ++counts_.cycles;
}

void PicoCore::ask() {
  const Vpicorv32& core = model_->core;
  const std::uint32_t address = core.mem_addr - kCardBase, lane = address % memory::kBeatBytes;
  const bool write = core.mem_wstrb != 0;
  asked_ = true;
  (write ? counts_.card_writes : counts_.card_reads)++;
  if (record_ != nullptr)
    record_->accesses.push_back(
        {counts_.cycles - record_start_, address & ~3U, write ? BusKind::kWriteWord : BusKind::kReadWord});
  (write ? out_.aw : out_.ar) = {address & ~3U, 0, 2, 0};
  out_.ar_valid = !write;
  out_.aw_valid = out_.w_valid = write;
  out_.w_last = true;
  out_.w_strobes = memory::Strobes{core.mem_wstrb} << (lane & ~3U);
  out_.w_data[lane / 4] = core.mem_wdata;
}

void PicoCore::step(const memory::AxiAnswer& in) {
  if (in.ar_ready) out_.ar_valid = false;
  if (in.aw_ready) out_.aw_valid = false;
  if (in.w_ready) out_.w_valid = false;
  if (in.r_valid) {
    answer_ = in.r_data[out_.ar.address % memory::kBeatBytes / 4];
    answered_ = true;
  }
  if (in.b_valid) answered_ = true;
  if (++phase_ < settings_.ratio) return;
  phase_ = 0;
  edge();
}

}  // namespace wherry::sim::softcore
