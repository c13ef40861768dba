// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/rtl_core.hpp"

#include <Vbypass_core.h>
#include <fmt/core.h>
#include <verilated.h>
#ifdef WHERRY_RTL_TRACE
#include <verilated_fst_c.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "sim/axi_lite.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint64_t kResetCycles = 8;
/// More cycles than any access takes. After a reset, the register file is filled in 515 (bypass_registers.sv).
constexpr std::uint64_t kLongestAccess = 100'000;

std::byte* bytes_of(VlWide<16>& wide) { return reinterpret_cast<std::byte*>(wide.m_storage); }

// tuser of the streams, as in bypass_core.sv.
constexpr std::uint32_t size_of_user(QData user) { return static_cast<std::uint32_t>(user & 0xFFFF); }
constexpr std::uint16_t queue_of_user(QData user) { return static_cast<std::uint16_t>(user >> 16 & 0xFF); }
constexpr QData kForward = 1, kReplace = 2;

}  // namespace

struct RtlCore::Pins {
  VerilatedContext context;
  std::unique_ptr<Vbypass_core> core;
#ifdef WHERRY_RTL_TRACE
  VerilatedFstC trace;
#endif
  AxiLiteManager<Vbypass_core> registers;
  std::uint64_t time = 0;
};

RtlCore::RtlCore(const RtlOptions& options, InPlaceFunction* function)
    : options_(options), function_(function), pauses_(options.seed, options.pauses), pins_(std::make_unique<Pins>()) {
  Pins& pins = *pins_;
#ifdef WHERRY_RTL_TRACE
  pins.context.traceEverOn(true);
#endif
  Verilated::threadContextp(&pins.context);
  pins.core = std::make_unique<Vbypass_core>(&pins.context);
#ifdef WHERRY_RTL_TRACE
  if (!options_.trace.empty()) {
    pins.core->trace(&pins.trace, 99);
    pins.trace.open(options_.trace.c_str());
  }
#else
  if (!options_.trace.empty()) fail("no traces: configure with -DWHERRY_RTL_TRACE=ON");
#endif
  reset();
}

void RtlCore::reset() {
  Vbypass_core& c = *pins_->core;
  window_.reset();
  pins_->registers = {};
  tails_.reset();
  frame_ = {};
  frames_.clear();
  to_send_.clear();
  sent_ = 0;
  send_offered_ = verdict_offered_ = drain_ = held_up_ = false;
  verdicts_.clear();
  c.s_tx_tvalid = c.s_verdict_tvalid = 0;
  c.rst_i = 1;
  for (std::uint64_t i = 0; i < kResetCycles; ++i) cycle();
  c.rst_i = 0;
  now_ = moved_ = frames_seen_ = forwarded_ = 0;
  moments_ = {};
}

RtlCore::~RtlCore() {
#ifdef WHERRY_RTL_TRACE
  if (!options_.trace.empty()) pins_->trace.close();
#endif
  // To delete a model, the Verilator runtime uses the context of the deleting thread.
  Verilated::threadContextp(&pins_->context);
  pins_->core->final();
  pins_->core.reset();
}

void RtlCore::fail(const std::string& why) const {
  fmt::print(stderr, "the bypass core, cycle {}, seed {}: {}\n", now_, options_.seed, why);
  std::abort();
}

void RtlCore::cycle() {
  Vbypass_core& c = *pins_->core;
  Verilated::threadContextp(&pins_->context);
  pins_->context.time(now_);  // what messages show
  window_.drive(c, pauses_, now_);
  pins_->registers.drive(*pins_->core);
  tails_.drive(c, pauses_);
  drive_function();
  c.clk_i = 0;
  c.eval();  // what depends on inputs without a clock
#ifdef WHERRY_RTL_TRACE
  if (!options_.trace.empty()) pins_->trace.dump(pins_->time++);
#endif
  if (c.rst_i == 0) {
    sample_window();
    pins_->registers.sample(*pins_->core);
    sample_tails();
    sample_function();
  }
  c.clk_i = 1;
  c.eval();
#ifdef WHERRY_RTL_TRACE
  if (!options_.trace.empty()) pins_->trace.dump(pins_->time++);
#endif
  ++now_;
}

// ---- the window

void RtlCore::sample_window() {
  bool moved = false;
  if (const std::string broken = window_.sample(*pins_->core, moved); !broken.empty()) fail(broken);
  if (moved) moved_ = now_;
  if (window_.write_ended() && *window_.write_ended() < kRingsEnd) moments_.written_back = now_;
}

void RtlCore::write_burst(const AxiBurst& burst, std::span<const std::byte> data) {
  window_.post_write(burst, data);
  for (const std::uint64_t begin = now_; window_.writes_taken() != window_.writes_posted(); cycle())
    if (now_ - begin > kLongestAccess) fail(fmt::format("a write to {:#x} is not taken", burst.offset));
}

void RtlCore::read_burst(const AxiBurst& burst, std::span<std::byte> data) {
  window_.post_read(burst, 0);
  for (const std::uint64_t begin = now_; !window_.answer(); cycle())
    if (now_ - begin > kLongestAccess) fail(fmt::format("a read at {:#x} is not answered", burst.offset));
  const auto answer = window_.answer()->data;
  std::copy(answer.begin(), answer.end(), data.begin());
  window_.pop_answer();
}

void RtlCore::write(std::uint32_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const AxiBurst burst = first_write(offset, data.size());
    write_burst(burst, data.first(burst.bytes));
    offset += burst.bytes;
    data = data.subspan(burst.bytes);
  }
}

void RtlCore::read(std::uint32_t offset, std::span<std::byte> data) {
  while (!data.empty()) {
    const AxiBurst burst = first_read(offset, data.size());
    read_burst(burst, data.first(burst.bytes));
    offset += burst.bytes;
    data = data.subspan(burst.bytes);
  }
}

void RtlCore::run_on() {
  // More cycles than any step between two events at the ports: docs/design/bypass-core.md, The way of a packet.
  constexpr std::uint64_t kStill = 16;
  constexpr std::uint64_t kShortest = 7, kLongest = 63;
  for (std::uint64_t done = 0; done < kShortest || (done < kLongest && still() < kStill); ++done) cycle();
}

// ---- registers

void RtlCore::access(std::uint32_t offset, const char* what) {
  for (const std::uint64_t begin = now_; !pins_->registers.ended(); cycle())
    if (now_ - begin > kLongestAccess) fail(fmt::format("the {} of register {:#x} does not end", what, offset));
  if (pins_->registers.refused()) fail(fmt::format("the {} of register {:#x} ends with an error", what, offset));
}

void RtlCore::begin_register_read(std::uint32_t offset) { pins_->registers.begin_read(*pins_->core, offset); }
void RtlCore::begin_register_write(std::uint32_t offset, std::uint32_t value) {
  pins_->registers.begin_write(*pins_->core, offset, value);
}
bool RtlCore::register_access_ended() const noexcept { return pins_->registers.ended(); }
std::optional<std::uint32_t> RtlCore::register_data() const noexcept {
  if (pins_->registers.refused()) return std::nullopt;
  return pins_->registers.data();
}

std::uint32_t RtlCore::read_register(std::uint32_t offset) {
  begin_register_read(offset);
  access(offset, "read");
  return pins_->registers.data();
}

void RtlCore::write_register(std::uint32_t offset, std::uint32_t value) {
  begin_register_write(offset, value);
  access(offset, "write");
}

// ---- tails

void RtlCore::sample_tails() {
  if (const std::string broken = tails_.sample(*pins_->core); !broken.empty()) fail(broken);
  if (!tails_.came()) return;
  moved_ = moments_.tail = now_;
  moments_.tail_address = tails_.came()->address;
}

// ---- the function's side

void RtlCore::drive_function() {
  Vbypass_core& c = *pins_->core;
  c.m_rx_tready = drain_ || (frames_.size() < kFramesTaken && !pauses_()) ? 1 : 0;
  c.m_head_tready = function_ != nullptr && !pauses_() ? 1 : 0;
  drive_send();
  drive_verdict();
}

void RtlCore::drive_send() {
  Vbypass_core& c = *pins_->core;
  if (send_offered_) return;  // it stays until it is taken
  c.s_tx_tvalid = 0;
  if (to_send_.empty() || pauses_()) return;
  const Frame& frame = to_send_.front();
  const std::size_t bytes = std::min<std::size_t>(frame.bytes.size() - sent_, kLineBytes);
  std::memset(bytes_of(c.s_tx_tdata), static_cast<int>(now_ & 0xFF), kLineBytes);  // what tkeep does not have
  std::memcpy(bytes_of(c.s_tx_tdata), frame.bytes.data() + sent_, bytes);
  c.s_tx_tkeep = low_ones(bytes);
  c.s_tx_tlast = sent_ + bytes == frame.bytes.size() ? 1 : 0;
  c.s_tx_tuser = QData{frame.bytes.size()} | QData{frame.queue} << 16;
  c.s_tx_tvalid = 1;
  send_offered_ = true;
}

void RtlCore::drive_verdict() {
  Vbypass_core& c = *pins_->core;
  if (verdict_offered_) return;
  c.s_verdict_tvalid = 0;
  if (verdicts_.empty() || pauses_()) return;
  const Verdict& verdict = verdicts_.front();
  std::memcpy(bytes_of(c.s_verdict_tdata), verdict.line.data(), kLineBytes);
  c.s_verdict_tkeep = low_ones(kLineBytes);
  c.s_verdict_tlast = 1;
  c.s_verdict_tuser = (verdict.forward ? kForward : 0) | (verdict.replace ? kReplace : 0);
  c.s_verdict_tvalid = 1;
  verdict_offered_ = true;
}

void RtlCore::sample_function() {
  const Vbypass_core& c = *pins_->core;
  if (send_offered_ && c.s_tx_tready != 0) {
    send_offered_ = false;
    moved_ = now_;
    sent_ += kLineBytes;
    if (c.s_tx_tlast != 0) {
      moments_.sent = now_;
      to_send_.pop_front();
      sent_ = 0;
    }
  }
  if (verdict_offered_ && c.s_verdict_tready != 0) {
    verdict_offered_ = false;
    moved_ = moments_.verdict = now_;
    if (verdicts_.front().forward) ++forwarded_;
    verdicts_.pop_front();
  }
  held_up_ = c.m_rx_tvalid != 0 && c.m_rx_tready == 0 && frames_.size() >= kFramesTaken;
  if (c.m_rx_tvalid != 0 && c.m_rx_tready != 0) sample_frame();
  if (c.m_head_tvalid != 0 && c.m_head_tready != 0) sample_head();
}

void RtlCore::sample_frame() {
  const Vbypass_core& c = *pins_->core;
  moved_ = now_;
  const auto bytes = static_cast<std::size_t>(std::popcount(c.m_rx_tkeep));
  if (bytes == 0 || c.m_rx_tkeep != low_ones(bytes) || (c.m_rx_tlast == 0 && bytes != kLineBytes))
    fail(fmt::format("a beat of m_rx has tkeep {:#x}, tlast {}", c.m_rx_tkeep, c.m_rx_tlast));
  if (!frame_.bytes.empty() && frame_.queue != queue_of_user(c.m_rx_tuser))
    fail("m_rx changes the queue within a frame");
  if (frame_.bytes.empty()) moments_.received = now_;
  frame_.queue = queue_of_user(c.m_rx_tuser);
  const std::byte* data = bytes_of(c.m_rx_tdata);
  frame_.bytes.insert(frame_.bytes.end(), data, data + bytes);
  if (c.m_rx_tlast == 0) return;
  if (frame_.bytes.size() != size_of_user(c.m_rx_tuser))
    fail(fmt::format("a frame of {} bytes at m_rx says that it has {}", frame_.bytes.size(),
                     size_of_user(c.m_rx_tuser)));
  frames_.push_back(std::move(frame_));
  frame_ = {};
  ++frames_seen_;
}

void RtlCore::sample_head() {
  const Vbypass_core& c = *pins_->core;
  moved_ = moments_.head = now_;
  ++frames_seen_;
  const std::uint32_t size = size_of_user(c.m_head_tuser);
  const std::uint32_t head = std::min(size, kLineBytes);
  if (c.m_head_tlast == 0 || size == 0 || c.m_head_tkeep != low_ones(head))
    fail(fmt::format("a head of a frame of {} bytes has tkeep {:#x}, tlast {}", size, c.m_head_tkeep, c.m_head_tlast));
  Verdict verdict;
  std::memcpy(verdict.line.data(), bytes_of(c.m_head_tdata), kLineBytes);
  const Line before = verdict.line;
  verdict.forward = function_->forward(std::span(verdict.line).first(head), size);
  verdict.replace = verdict.line != before;
  verdicts_.push_back(verdict);
}

std::optional<Frame> RtlCore::take_frame() {
  if (frames_.empty()) return std::nullopt;
  std::optional<Frame> first = std::move(frames_.front());
  frames_.pop_front();
  return first;
}

std::size_t RtlCore::forget_frames_to_send() {
  const std::size_t kept = sent_ > 0 || send_offered_ ? 1 : 0;  // of which a part has gone in
  const std::size_t forgotten = to_send_.size() - kept;
  to_send_.resize(kept);
  return forgotten;
}

std::size_t RtlCore::forwards_waiting() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(verdicts_.begin(), verdicts_.end(), [](const Verdict& one) { return one.forward; }));
}

}  // namespace wherry::sim
