// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/rtl_node.hpp"

#include <Vbypass_kv.h>
#include <fmt/core.h>
#include <verilated.h>

#include <algorithm>
#include <cstdlib>

#include "sim/axi_lite.hpp"
#include "sim/hbm_pins.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint32_t kChannels = WHERRY_RTL_CHANNELS;
constexpr std::uint64_t kSeed = 1;  ///< of what memory holds at first
constexpr std::uint64_t kResetCycles = 8;
/// More cycles than any access takes. After a reset, the register file is filled in 515 (bypass_registers.sv).
constexpr std::uint64_t kLongestAccess = 1'000'000;

}  // namespace

struct RtlNode::Pins {
  VerilatedContext context;
  std::unique_ptr<Vbypass_kv> core;
  AxiLiteManager<Vbypass_kv> registers;
};

RtlNode::RtlNode() : content_(kSeed), pins_(std::make_unique<Pins>()) {
  for (std::uint32_t i = 0; i < kChannels; ++i) ports_.emplace_back(content_, kv::rtl::kHbmHardware, kSeed + i);
  Verilated::threadContextp(&pins_->context);
  pins_->core = std::make_unique<Vbypass_kv>(&pins_->context);
  Vbypass_kv& c = *pins_->core;
  c.rst_i = 1;
  for (std::uint64_t i = 0; i < kResetCycles; ++i) cycle();
  c.rst_i = 0;
  now_ = moved_ = 0;
}

RtlNode::~RtlNode() {
  // To delete a model, the Verilator runtime uses the context of the deleting thread.
  Verilated::threadContextp(&pins_->context);
  pins_->core->final();
  pins_->core.reset();
}

void RtlNode::fail(const std::string& why) const {
  fmt::print(stderr, "bypass_kv, cycle {}: {}\n", now_, why);
  std::abort();
}

void RtlNode::cycle() {
  Vbypass_kv& c = *pins_->core;
  Verilated::threadContextp(&pins_->context);
  pins_->context.time(now_);  // what messages show
  pins_->registers.drive(c);
  window_.drive(c, pauses_, now_);
  tails_.drive(c, pauses_);
  drive_hbm(c, ports_);
  c.clk_i = 0;
  c.eval();  // what depends on inputs without a clock
  if (sample_hbm(c, ports_)) moved_ = now_;
  for (std::uint32_t i = 0; i < kChannels; ++i)
    if (!ports_[i].violation().empty()) fail(fmt::format("channel {}: {}", i, ports_[i].violation()));
  if (c.rst_i == 0) {
    pins_->registers.sample(c);
    sample_tails();
    sample_window();
  }
  c.clk_i = 1;
  c.eval();
  ++now_;
}

// ---- the window

void RtlNode::sample_window() {
  bool moved = false;
  if (const std::string broken = window_.sample(*pins_->core, moved); !broken.empty()) fail(broken);
  if (moved || !window_.idle()) moved_ = now_;
}

void RtlNode::write(std::uint32_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const AxiBurst burst = first_write(offset, data.size());
    window_.post_write(burst, data.first(burst.bytes));
    for (const std::uint64_t begin = now_; !window_.idle(); cycle())
      if (now_ - begin > kLongestAccess) fail(fmt::format("a write at {:#x} does not end", burst.offset));
    offset += burst.bytes;
    data = data.subspan(burst.bytes);
  }
}

void RtlNode::read(std::uint32_t offset, std::span<std::byte> data) {
  while (!data.empty()) {
    const AxiBurst burst = first_read(offset, data.size());
    window_.post_read(burst, 0);
    for (const std::uint64_t begin = now_; !window_.answer(); cycle())
      if (now_ - begin > kLongestAccess) fail(fmt::format("a read at {:#x} does not end", burst.offset));
    std::ranges::copy(window_.answer()->data, data.begin());
    window_.pop_answer();
    offset += burst.bytes;
    data = data.subspan(burst.bytes);
  }
}

// ---- registers and tails

std::uint32_t RtlNode::read_register(std::uint32_t offset) {
  AxiLiteManager<Vbypass_kv>& port = pins_->registers;
  port.begin_read(*pins_->core, offset);
  for (const std::uint64_t begin = now_; !port.ended(); cycle())
    if (now_ - begin > kLongestAccess) fail(fmt::format("a read of register {:#x} does not end", offset));
  moved_ = now_;
  return port.data();
}

void RtlNode::write_register(std::uint32_t offset, std::uint32_t value) {
  AxiLiteManager<Vbypass_kv>& port = pins_->registers;
  port.begin_write(*pins_->core, offset, value);
  for (const std::uint64_t begin = now_; !port.ended(); cycle())
    if (now_ - begin > kLongestAccess) fail(fmt::format("a write of register {:#x} does not end", offset));
  moved_ = now_;
}

void RtlNode::sample_tails() {
  if (const std::string broken = tails_.sample(*pins_->core); !broken.empty()) fail(broken);
  if (tails_.came()) moved_ = now_;
}

}  // namespace wherry::sim
