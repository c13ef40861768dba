// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/rtl_window.hpp"

#include <Vbypass_core.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "sim/bypass/layout.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint8_t kIncr = 1;
constexpr std::uint8_t kIdentifiers = 64;

/// Bursts take identifiers in turn.
constexpr CData id_of(std::uint64_t number) { return static_cast<CData>(number % kIdentifiers); }

}  // namespace

std::pair<std::uint32_t, std::uint32_t> AxiBurst::beat(std::uint32_t number) const noexcept {
  const std::uint32_t from = ((offset >> size) + number) << size;
  return {std::max(from, offset), std::min(from + (1U << size), offset + bytes)};
}

void RtlWindow::post_write(const AxiBurst& burst, std::span<const std::byte> data) {
  Write& write = writes_.push_back();
  write.burst = burst;
  write.data.assign(data.begin(), data.end());
  write.beat = 0;
  ++posted_;
}

void RtlWindow::post_read(const AxiBurst& burst, std::uint64_t token) {
  Read& read = reads_.push_back();
  read.burst = burst;
  read.data.resize(burst.bytes);
  read.token = token;
  read.beat = 0;
  read.failed = false;
}

std::optional<RtlWindow::Answer> RtlWindow::answer() const {
  if (ended_ == 0) return std::nullopt;
  const Read& read = reads_.front();
  return Answer{.token = read.token, .failed = read.failed, .data = read.data};
}

void RtlWindow::pop_answer() {
  reads_.pop_front();
  --ended_;
  --ar_taken_;
  ++read_number_;
}

void RtlWindow::drive(Vbypass_core& c, Pauses& pauses, std::uint64_t now) {
  c.s_axi_awvalid = c.s_axi_wvalid = c.s_axi_arvalid = 0;
  c.s_axi_bready = pauses() ? 0 : 1;
  c.s_axi_rready = pauses() ? 0 : 1;
  if (aw_taken_ < writes_.size() && (aw_offered_ = aw_offered_ || !pauses())) {
    const AxiBurst& burst = writes_[aw_taken_].burst;
    c.s_axi_awvalid = 1;
    c.s_axi_awid = id_of(addresses_);
    c.s_axi_awaddr = burst.offset;
    c.s_axi_awlen = static_cast<CData>(burst.beats() - 1);
    c.s_axi_awsize = static_cast<CData>(burst.size);
    c.s_axi_awburst = kIncr;
  }
  if (w_taken_ < writes_.size() && (w_offered_ = w_offered_ || !pauses())) {
    const Write& w = writes_[w_taken_];
    const auto [from, to] = w.burst.beat(w.beat);
    auto* const data = reinterpret_cast<std::byte*>(c.s_axi_wdata.m_storage);
    std::memset(data, static_cast<int>(now & 0xFF), kLineBytes);  // what has no strobe
    std::memcpy(data + from % kLineBytes, w.data.data() + (from - w.burst.offset), to - from);
    c.s_axi_wstrb = low_ones(to - from) << from % kLineBytes;
    c.s_axi_wlast = w.beat + 1 == w.burst.beats() ? 1 : 0;
    c.s_axi_wvalid = 1;
  }
  if (ar_taken_ < reads_.size() && (ar_offered_ = ar_offered_ || !pauses())) {
    const AxiBurst& burst = reads_[ar_taken_].burst;
    c.s_axi_arvalid = 1;
    c.s_axi_arid = id_of(read_number_ + ar_taken_);
    c.s_axi_araddr = burst.offset;
    c.s_axi_arlen = static_cast<CData>(burst.beats() - 1);
    c.s_axi_arsize = static_cast<CData>(burst.size);
    c.s_axi_arburst = kIncr;
  }
}

std::string RtlWindow::sample(const Vbypass_core& c, bool& moved) {
  write_ended_.reset();
  if (c.s_axi_awvalid != 0 && c.s_axi_awready != 0) {
    ++aw_taken_;
    ++addresses_;
    aw_offered_ = false;
    moved = true;
  }
  if (c.s_axi_wvalid != 0 && c.s_axi_wready != 0) {
    Write& w = writes_[w_taken_];
    w_offered_ = false;
    moved = true;
    if (++w.beat == w.burst.beats()) {
      write_ended_ = w.burst.offset;
      ++w_taken_;
    }
  }
  for (; aw_taken_ > 0 && w_taken_ > 0; --aw_taken_, --w_taken_) writes_.pop_front();
  if (c.s_axi_bvalid != 0 && c.s_axi_bready != 0) {
    if (answered_ == addresses_ || c.s_axi_bid != id_of(answered_))
      return fmt::format("B has identifier {}, which no write waits for", c.s_axi_bid);
    ++answered_;
    if (c.s_axi_bresp != 0) ++failed_;
    moved = true;
  }
  if (c.s_axi_arvalid != 0 && c.s_axi_arready != 0) {
    ++ar_taken_;
    ar_offered_ = false;
    moved = true;
  }
  if (c.s_axi_rvalid == 0 || c.s_axi_rready == 0) return {};
  moved = true;
  return sample_read(c);
}

std::string RtlWindow::sample_read(const Vbypass_core& c) {
  if (ended_ == ar_taken_ || c.s_axi_rid != id_of(read_number_ + ended_))
    return fmt::format("R has identifier {}, which no read waits for", c.s_axi_rid);
  Read& r = reads_[ended_];
  const auto [from, to] = r.burst.beat(r.beat);
  const auto* const data = reinterpret_cast<const std::byte*>(c.s_axi_rdata.m_storage);
  std::memcpy(r.data.data() + (from - r.burst.offset), data + from % kLineBytes, to - from);
  r.failed = r.failed || c.s_axi_rresp != 0;
  ++r.beat;
  if ((c.s_axi_rlast != 0) != (r.beat == r.burst.beats()))
    return fmt::format("RLAST is {} with beat {} of {}", c.s_axi_rlast, r.beat, r.burst.beats());
  if (c.s_axi_rlast != 0) ++ended_;
  return {};
}

void RtlWindow::reset() { *this = {}; }

}  // namespace wherry::sim
