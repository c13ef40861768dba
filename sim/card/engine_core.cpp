// SPDX-License-Identifier: Apache-2.0
#include "sim/card/engine_core.hpp"

#include <Vdma_engine.h>
#include <verilated.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace wherry::sim::card {
namespace {

using dma::field;
using dma::kLineBytes;
using dma::set_field;
using dma::Word;

/// After a reset, the requester sweeps its tags for 256 cycles, and registers get their values within 515.
constexpr std::uint64_t kResetCycles = 4;

// Bit positions in the ports, where the last field of a struct is lowest: hdl/dma/dma_pkg.sv,
// hdl/dma/control/dma_control_pkg.sv and hdl/common/axi.svh.
namespace completion_bits {
constexpr unsigned kBytes = 512, kError = 519, kFinal = 522, kLast = 523, kFirst = 524, kTag = 525;
}
namespace read_bits {
constexpr unsigned kAddress = 0, kBytes = 64, kTag = 77;
}
namespace write_bits {
constexpr unsigned kAddress = 512, kBytes = 576, kLast = 589, kFirst = 590;
}
namespace bell_bits {
constexpr unsigned kBytes = 512, kOffset = 519;
}
namespace function_bits {
constexpr unsigned kMaxRead = 0, kMask = 3, kEnable = 4, kMaster = 5;
}
namespace axis_bits {
constexpr unsigned kKeep = 512, kLast = 576, kUser = 577;
}
namespace lite_request {
constexpr unsigned kRReady = 0, kArValid = 1, kArAddress = 2, kBReady = 34, kWValid = 35, kWStrobes = 36, kWData = 40,
                   kAwValid = 72, kAwAddress = 73;
}
namespace lite_response {
constexpr unsigned kRValid = 0, kRResp = 1, kRData = 3, kArReady = 35, kBValid = 36, kBResp = 37, kWReady = 39,
                   kAwReady = 40;
}
namespace axi_request {
constexpr unsigned kRReady = 0, kArValid = 1, kArSize = 11, kArLen = 14, kArAddress = 22, kArId = 86, kBReady = 90,
                   kWValid = 91, kWLast = 92, kWStrobes = 93, kWData = 157, kAwValid = 669, kAwSize = 679, kAwLen = 682,
                   kAwAddress = 690, kAwId = 754;
}
namespace axi_response {
constexpr unsigned kRValid = 0, kRLast = 1, kRResp = 2, kRData = 4, kRId = 516, kArReady = 520, kBValid = 521,
                   kBResp = 522, kBId = 524, kWReady = 528, kAwReady = 529;
}
constexpr unsigned kDecodeError = 3;
constexpr unsigned kChannelBits = 2;  // of tuser; the bit above them: worthless

template <std::size_t N>
std::span<const Word> bits(const VlWide<N>& port) {
  return {port.data(), N};
}
template <std::size_t N>
std::span<Word> bits(VlWide<N>& port) {
  return {port.data(), N};
}

}  // namespace

struct EngineCore::Pins {
  VerilatedContext context;
  std::unique_ptr<Vdma_engine> core;
};

EngineCore::EngineCore(std::uint64_t seed) : pins_(std::make_unique<Pins>()) {
  pins_->context.randReset(2);  // what no reset sets begins with anything
  pins_->context.randSeed(static_cast<int>(seed % 0x7FFF'FFFF) + 1);
  pins_->core = std::make_unique<Vdma_engine>(&pins_->context);
}

EngineCore::~EngineCore() {
  // To delete a model, the Verilator runtime uses the context of the deleting thread.
  Verilated::threadContextp(&pins_->context);
  pins_->core->final();
  pins_->core.reset();
}

void EngineCore::reset(memory::AxiBus& memory) {
  memory_ = &memory;
  completions.clear();
  bells.clear();
  packets.reset();
  access_ = {};
  settings.reset_function = false;
  pins_->core->rst_i = 1;
  for (std::uint64_t i = 0; i < kResetCycles; ++i) cycle();
  pins_->core->rst_i = 0;
  now_ = moved_ = 0;
}

const EngineOutput& EngineCore::cycle() {
  Vdma_engine& c = *pins_->core;
  Verilated::threadContextp(&pins_->context);
  pins_->context.time(now_);  // what messages show
  out_ = {};
  drive();
  c.clk_i = 0;
  c.eval();  // what depends on inputs without a clock
  if (c.rst_i == 0) {
    sample();
    const memory::AxiRequest request = sample_memory();
    const memory::AxiAnswer& answer = memory_->answer(0);
    // Memory traffic counts, because a slow memory may be the only active part for long.
    if (request.ar_valid || request.aw_valid || request.w_valid || answer.r_valid || answer.b_valid) moved_ = now_;
    memory_->step({&request, 1});
  }
  c.clk_i = 1;
  c.eval();
  ++now_;
  return out_;
}

void EngineCore::drive() {
  Vdma_engine& c = *pins_->core;
  const bool live = c.rst_i == 0;
  c.function_i = static_cast<CData>(settings.mrrs << function_bits::kMaxRead |
                                    unsigned{settings.msix_mask} << function_bits::kMask |
                                    unsigned{settings.msix_enable} << function_bits::kEnable |
                                    unsigned{settings.bus_master} << function_bits::kMaster);
  c.mps_i = static_cast<CData>(settings.mps);
  c.timeout_i = static_cast<CData>(settings.timeout);
  c.flr_i = settings.reset_function ? 1 : 0;
  c.m_read_ready = live && take_reads ? 1 : 0;
  c.m_write_ready = live && take_writes ? 1 : 0;
  c.s_completion_valid = live && !completions.empty() ? 1 : 0;
  if (c.s_completion_valid != 0) {
    const CompletionBeat& beat = completions.front();
    const std::span<Word> port = bits(c.s_completion_payload);
    std::memcpy(port.data(), beat.data.data(), kLineBytes);
    set_field(port, completion_bits::kBytes, 7, beat.bytes);
    set_field(port, completion_bits::kError, 3, static_cast<unsigned>(beat.error));
    set_field(port, completion_bits::kFinal, 1, beat.final_ ? 1 : 0);
    set_field(port, completion_bits::kLast, 1, beat.last ? 1 : 0);
    set_field(port, completion_bits::kFirst, 1, beat.first ? 1 : 0);
    set_field(port, completion_bits::kTag, 8, beat.tag);
  }
  c.s_bell_valid = live && !bells.empty() ? 1 : 0;
  if (c.s_bell_valid != 0) {
    const BellWrite& bell = bells.front();
    const std::span<Word> port = bits(c.s_bell_payload);
    std::memcpy(port.data(), bell.data.data(), kLineBytes);
    set_field(port, bell_bits::kBytes, 7, bell.bytes);
    set_field(port, bell_bits::kOffset, 9, bell.offset);
  }
  drive_registers();
  drive_memory();
  drive_packets();
}

void EngineCore::sample() {
  Vdma_engine& c = *pins_->core;
  if (c.m_read_valid != 0 && c.m_read_ready != 0) {
    const std::span<const Word> port = bits(std::as_const(c.m_read_payload));
    out_.read = ReadRequest{.tag = static_cast<std::uint8_t>(field(port, read_bits::kTag, 8)),
                            .bytes = static_cast<std::uint32_t>(field(port, read_bits::kBytes, 13)),
                            .address = field(port, read_bits::kAddress, 64)};
    moved_ = now_;
  }
  if (c.m_write_valid != 0 && c.m_write_ready != 0) {
    const std::span<const Word> port = bits(std::as_const(c.m_write_payload));
    WriteBeat& beat = out_.write.emplace();
    beat.first = field(port, write_bits::kFirst, 1) != 0;
    beat.last = field(port, write_bits::kLast, 1) != 0;
    beat.bytes = static_cast<std::uint32_t>(field(port, write_bits::kBytes, 13));
    beat.address = field(port, write_bits::kAddress, 64);
    std::memcpy(beat.data.data(), port.data(), kLineBytes);
    moved_ = now_;
  }
  if (c.s_completion_valid != 0 && c.s_completion_ready != 0) {
    completions.pop_front();
    moved_ = now_;
  }
  if (c.s_bell_valid != 0 && c.s_bell_ready != 0) {
    bells.pop_front();
    moved_ = now_;
  }
  sample_registers();
  sample_packets();
  out_.unexpected = c.unexpected_o != 0;
  out_.timed_out = c.timed_out_o != 0;
  out_.reset_done = c.flr_done_o != 0;
}

// ---- registers

void EngineCore::begin_register_read(std::uint32_t offset) {
  access_ = {.write = false, .address_offered = true, .ended = false, .offset = offset};
}

void EngineCore::begin_register_write(std::uint32_t offset, std::uint32_t value) {
  access_ = {
      .write = true, .address_offered = true, .data_offered = true, .ended = false, .offset = offset, .data = value};
}

void EngineCore::drive_registers() {
  const std::span<Word> port = bits(pins_->core->s_axil_req);
  std::ranges::fill(port, 0);
  set_field(port, lite_request::kRReady, 1, 1);
  set_field(port, lite_request::kBReady, 1, 1);
  if (access_.ended) return;
  if (access_.address_offered) {
    set_field(port, access_.write ? lite_request::kAwAddress : lite_request::kArAddress, 32, access_.offset);
    set_field(port, access_.write ? lite_request::kAwValid : lite_request::kArValid, 1, 1);
  }
  if (access_.data_offered) {
    set_field(port, lite_request::kWData, 32, access_.data);
    set_field(port, lite_request::kWStrobes, 4, 0xF);
    set_field(port, lite_request::kWValid, 1, 1);
  }
}

void EngineCore::sample_registers() {
  if (access_.ended) return;
  const QData answer = pins_->core->s_axil_resp;
  const auto bit = [&](unsigned at) { return (answer >> at & 1) != 0; };
  moved_ = now_;
  if (bit(access_.write ? lite_response::kAwReady : lite_response::kArReady)) access_.address_offered = false;
  if (bit(lite_response::kWReady)) access_.data_offered = false;
  if (!bit(access_.write ? lite_response::kBValid : lite_response::kRValid)) return;
  access_.ended = true;
  access_.refused = (answer >> (access_.write ? lite_response::kBResp : lite_response::kRResp) & 3) != 0;
  if (!access_.write) access_.data = static_cast<std::uint32_t>(answer >> lite_response::kRData);
}

// ---- the card's memory

void EngineCore::drive_memory() {
  const std::span<Word> port = bits(pins_->core->m_axi_resp);
  const memory::AxiAnswer& answer = memory_->answer(0);
  set_field(port, axi_response::kArReady, 1, answer.ar_ready ? 1 : 0);
  set_field(port, axi_response::kAwReady, 1, answer.aw_ready ? 1 : 0);
  set_field(port, axi_response::kWReady, 1, answer.w_ready ? 1 : 0);
  set_field(port, axi_response::kBValid, 1, answer.b_valid ? 1 : 0);
  set_field(port, axi_response::kBResp, 2, answer.b_error ? kDecodeError : 0);
  set_field(port, axi_response::kBId, 4, answer.b_id);
  set_field(port, axi_response::kRValid, 1, answer.r_valid ? 1 : 0);
  if (!answer.r_valid) return;
  set_field(port, axi_response::kRLast, 1, answer.r_last ? 1 : 0);
  set_field(port, axi_response::kRResp, 2, answer.r_error ? kDecodeError : 0);
  set_field(port, axi_response::kRId, 4, answer.r_id);
  dma::set_line(port, axi_response::kRData, reinterpret_cast<const std::byte*>(answer.r_data.data()));
}

memory::AxiRequest EngineCore::sample_memory() const {
  const std::span<const Word> port = bits(std::as_const(pins_->core->m_axi_req));
  const auto address = [&](unsigned at, unsigned length, unsigned size, unsigned id) {
    return memory::AxiAddress{.address = field(port, at, 64),
                              .length = static_cast<std::uint32_t>(field(port, length, 8)),
                              .size = static_cast<std::uint32_t>(field(port, size, 3)),
                              .id = static_cast<std::uint32_t>(field(port, id, 4))};
  };
  memory::AxiRequest in;
  in.r_ready = field(port, axi_request::kRReady, 1) != 0;
  in.b_ready = field(port, axi_request::kBReady, 1) != 0;
  in.ar_valid = field(port, axi_request::kArValid, 1) != 0;
  if (in.ar_valid)
    in.ar = address(axi_request::kArAddress, axi_request::kArLen, axi_request::kArSize, axi_request::kArId);
  in.aw_valid = field(port, axi_request::kAwValid, 1) != 0;
  if (in.aw_valid)
    in.aw = address(axi_request::kAwAddress, axi_request::kAwLen, axi_request::kAwSize, axi_request::kAwId);
  in.w_valid = field(port, axi_request::kWValid, 1) != 0;
  if (!in.w_valid) return in;
  in.w_last = field(port, axi_request::kWLast, 1) != 0;
  in.w_strobes = field(port, axi_request::kWStrobes, 64);
  dma::line(port, axi_request::kWData, reinterpret_cast<std::byte*>(in.w_data.data()));
  return in;
}

// ---- packets

void EngineCore::drive_packets() {
  Vdma_engine& c = *pins_->core;
  const bool live = c.rst_i == 0;
  c.m_axis_ready = live ? 1 : 0;
  c.s_axis_valid = live && !packets.back.empty() ? 1 : 0;
  if (c.s_axis_valid == 0) return;
  const Packet& packet = packets.back.front();
  const std::size_t bytes = std::min(packet.bytes.size() - packets.sent, kLineBytes);
  const std::span<Word> port = bits(c.s_axis_payload);
  std::memset(port.data(), 0, kLineBytes);
  std::memcpy(port.data(), packet.bytes.data() + packets.sent, bytes);
  set_field(port, axis_bits::kKeep, 64, bytes == kLineBytes ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1);
  set_field(port, axis_bits::kLast, 1, packets.sent + bytes == packet.bytes.size() ? 1 : 0);
  set_field(port, axis_bits::kUser, 3, packet.channel);
}

void EngineCore::sample_packets() {
  Vdma_engine& c = *pins_->core;
  if (c.s_axis_valid != 0 && c.s_axis_ready != 0) {
    moved_ = now_;
    packets.sent += kLineBytes;
    if (packets.sent >= packets.back.front().bytes.size()) {
      packets.back.pop_front();
      packets.sent = 0;
    }
  }
  if (c.m_axis_valid == 0 || c.m_axis_ready == 0) return;
  moved_ = now_;
  const std::span<const Word> port = bits(std::as_const(c.m_axis_payload));
  const std::uint64_t keep = field(port, axis_bits::kKeep, 64);
  const auto user = static_cast<unsigned>(field(port, axis_bits::kUser, 3));
  packets.take(user & ((1U << kChannelBits) - 1), (user >> kChannelBits) != 0, field(port, axis_bits::kLast, 1) != 0,
               reinterpret_cast<const std::byte*>(port.data()), static_cast<std::size_t>(__builtin_popcountll(keep)));
}

}  // namespace wherry::sim::card
