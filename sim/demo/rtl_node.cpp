// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/rtl_node.hpp"

#include <Vbypass_kv.h>
#include <fmt/core.h>
#include <verilated.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "sim/axi_lite.hpp"
#include "sim/bypass/layout.hpp"
#include "sim/hbm_pins.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint32_t kChannels = WHERRY_RTL_CHANNELS;
constexpr std::uint64_t kSeed = 1;  ///< of what memory holds at first
constexpr std::uint64_t kResetCycles = 8;
/// Longer than any access: the file of registers is filled after a reset in 515 (bypass_registers.sv).
constexpr std::uint64_t kLongestAccess = 1'000'000;
constexpr std::uint8_t kIncr = 1;
constexpr std::uint8_t kAllStrobes = 0xF;

std::byte* bytes_of(VlWide<16>& wide) { return reinterpret_cast<std::byte*>(wide.m_storage); }

/// The largest aligned power of two that an access may begin with: a beat of its own size.
std::uint32_t beat_bytes(std::uint32_t offset, std::size_t left) {
  const std::uint32_t aligned = offset == 0 ? kLineBytes : 1U << std::countr_zero(offset);
  return std::min({aligned, kLineBytes, static_cast<std::uint32_t>(std::bit_floor(left))});
}

}  // namespace

struct RtlNode::Pins {
  VerilatedContext context;
  std::unique_ptr<Vbypass_kv> core;
  AxiLiteManager<Vbypass_kv> registers;
  bool aw_taken = false, w_taken = false, ar_taken = false;  ///< of the window's access, at the last edge
  bool answered = false;                                     ///< it has ended
  VlWide<16> data{};                                         ///< that it read
};

RtlNode::RtlNode() : content_(kSeed), pins_(std::make_unique<Pins>()) {
  for (std::uint32_t i = 0; i < kChannels; ++i) ports_.emplace_back(content_, kv::rtl::kHbmHardware, kSeed + i);
  Verilated::threadContextp(&pins_->context);
  pins_->core = std::make_unique<Vbypass_kv>(&pins_->context);
  Vbypass_kv& c = *pins_->core;
  c.s_axi_awburst = c.s_axi_arburst = kIncr;
  c.s_axi_wlast = 1;
  c.s_axi_bready = c.s_axi_rready = 1;
  c.m_axil_awready = c.m_axil_wready = 1;
  c.rst_i = 1;
  for (std::uint64_t i = 0; i < kResetCycles; ++i) cycle();
  c.rst_i = 0;
  now_ = moved_ = 0;
}

RtlNode::~RtlNode() {
  // The runtime takes the thread's context for that of any model that is deleted on it.
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
  c.m_axil_bvalid = tails_unanswered_ > 0 ? 1 : 0;
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
  // What was taken at this edge is offered no more.
  if (pins_->aw_taken) c.s_axi_awvalid = 0;
  if (pins_->w_taken) c.s_axi_wvalid = 0;
  if (pins_->ar_taken) c.s_axi_arvalid = 0;
  ++now_;
}

// ---- the window

void RtlNode::sample_window() {
  Pins& pins = *pins_;
  const Vbypass_kv& c = *pins.core;
  pins.aw_taken = c.s_axi_awvalid != 0 && c.s_axi_awready != 0;
  pins.w_taken = c.s_axi_wvalid != 0 && c.s_axi_wready != 0;
  pins.ar_taken = c.s_axi_arvalid != 0 && c.s_axi_arready != 0;
  if (c.s_axi_bvalid != 0 || c.s_axi_rvalid != 0) {
    pins.answered = true;
    if (c.s_axi_rvalid != 0) pins.data = c.s_axi_rdata;
  }
  if (c.s_axi_awvalid != 0 || c.s_axi_wvalid != 0 || c.s_axi_arvalid != 0 || pins.answered) moved_ = now_;
}

void RtlNode::await(const bool& done, const char* what, std::uint32_t offset) {
  for (const std::uint64_t begin = now_; !done; cycle())
    if (now_ - begin > kLongestAccess) fail(fmt::format("{} at {:#x} does not end", what, offset));
}

void RtlNode::write(std::uint32_t offset, std::span<const std::byte> data) {
  Vbypass_kv& c = *pins_->core;
  while (!data.empty()) {
    const std::uint32_t bytes = beat_bytes(offset, data.size());
    const std::uint32_t lane = offset % kLineBytes;
    c.s_axi_awaddr = offset;
    c.s_axi_awsize = static_cast<CData>(std::countr_zero(bytes));
    std::memset(bytes_of(c.s_axi_wdata), static_cast<int>(now_ & 0xFF), kLineBytes);  // what has no strobe
    std::memcpy(bytes_of(c.s_axi_wdata) + lane, data.data(), bytes);
    c.s_axi_wstrb = (bytes == kLineBytes ? ~QData{0} : (QData{1} << bytes) - 1) << lane;
    c.s_axi_awvalid = c.s_axi_wvalid = 1;
    pins_->answered = false;
    await(pins_->answered, "a write", offset);
    offset += bytes;
    data = data.subspan(bytes);
  }
}

void RtlNode::read(std::uint32_t offset, std::span<std::byte> data) {
  Vbypass_kv& c = *pins_->core;
  while (!data.empty()) {
    const std::uint32_t bytes = beat_bytes(offset, data.size());
    c.s_axi_araddr = offset;
    c.s_axi_arsize = static_cast<CData>(std::countr_zero(bytes));
    c.s_axi_arvalid = 1;
    pins_->answered = false;
    await(pins_->answered, "a read", offset);
    std::memcpy(data.data(), bytes_of(pins_->data) + offset % kLineBytes, bytes);
    offset += bytes;
    data = data.subspan(bytes);
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
  const Vbypass_kv& c = *pins_->core;
  if (c.m_axil_bvalid != 0 && c.m_axil_bready != 0) --tails_unanswered_;
  if (c.m_axil_awvalid != 0) tail_addresses_.push_back(c.m_axil_awaddr);
  if (c.m_axil_wvalid != 0) {
    if (c.m_axil_wstrb != kAllStrobes) fail(fmt::format("a tail is written with strobes {:#x}", c.m_axil_wstrb));
    tail_values_.push_back(c.m_axil_wdata);
  }
  if (tail_addresses_.empty() || tail_values_.empty()) return;
  moved_ = now_;
  tails_.push_back({tail_addresses_.front(), tail_values_.front()});
  tail_addresses_.pop_front();
  tail_values_.pop_front();
  ++tails_unanswered_;
}

std::optional<TailWrite> RtlNode::take_tail() {
  if (tails_.empty()) return std::nullopt;
  const TailWrite first = tails_.front();
  tails_.pop_front();
  return first;
}

}  // namespace wherry::sim
