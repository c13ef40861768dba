// SPDX-License-Identifier: Apache-2.0
// The manager at s_axi of a Verilated core with bypass's window. Bursts are queued; one beat a cycle each way.
//
// Writes and reads do not wait for each other. Each channel keeps the order of the calls, as the core answers in order
// (axi_port.sv). Any number of bursts may wait. One thread.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "sim/bypass/layout.hpp"
#include "sim/nic/fifo.hpp"

namespace wherry::sim {

/// An INCR burst: the bytes from `offset` on, in beats of 2^size. It must not cross 4 KiB (AXI4, A3.4.1).
struct AxiBurst {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  unsigned size = 0;
  [[nodiscard]] std::uint32_t beats() const noexcept { return ((offset + bytes - 1) >> size) - (offset >> size) + 1; }
  /// The offsets of the bytes in beat `number`: the first, and one past the last.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> beat(std::uint32_t number) const noexcept;
};

/// A mask of the lowest `count` of 64 bits; `count` is 0 to 64.
[[nodiscard]] constexpr std::uint64_t low_ones(std::size_t count) noexcept {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

inline constexpr unsigned kLineSize = 6;  ///< AxSIZE of 64 bytes

/// The first burst of an access to exactly these bytes. The remaining bytes follow it.
[[nodiscard]] AxiBurst first_write(std::uint32_t offset, std::size_t bytes) noexcept;
/// The same for a read. The core assumes that the NIC receives all bytes of a read beat. So no beat may have more bytes
/// than requested. A part that ends within a line is read in words.
[[nodiscard]] AxiBurst first_read(std::uint32_t offset, std::size_t bytes) noexcept;

/// Decides from a seed whether an event comes a cycle later; the chance is in parts per million.
class Pauses {
 public:
  Pauses(std::uint64_t seed, std::uint32_t per_million) : random_(seed), per_million_(per_million) {}
  [[nodiscard]] bool operator()() { return per_million_ != 0 && random_.below(1'000'000) < per_million_; }

 private:
  SplitMix64 random_;
  std::uint32_t per_million_;
};

class RtlWindow {
 public:
  struct Answer {
    std::uint64_t token = 0;
    bool failed = false;              ///< SLVERR for some beat
    std::span<const std::byte> data;  ///< valid until pop_answer()
  };

  /// `data` is copied.
  void post_write(const AxiBurst& burst, std::span<const std::byte> data);
  void post_read(const AxiBurst& burst, std::uint64_t token);
  /// The oldest finished read.
  [[nodiscard]] std::optional<Answer> answer() const;
  void pop_answer();

  /// Write bursts since the core's reset: posted; with all beats taken; answered.
  [[nodiscard]] std::uint64_t writes_posted() const noexcept { return posted_; }
  [[nodiscard]] std::uint64_t writes_taken() const noexcept { return posted_ - writes_.size(); }
  [[nodiscard]] std::uint64_t writes_answered() const noexcept { return answered_; }
  [[nodiscard]] std::uint64_t writes_failed() const noexcept { return failed_; }
  /// Reads that have not ended, or whose answer was not popped.
  [[nodiscard]] std::size_t reads_waiting() const noexcept { return reads_.size(); }
  [[nodiscard]] bool idle() const noexcept { return reads_.empty() && answered_ == posted_; }
  /// The offset of the write burst whose last beat was taken in the last cycle.
  [[nodiscard]] const std::optional<std::uint32_t>& write_ended() const noexcept { return write_ended_; }

  /// A cycle: drive() before the clock edge, sample() after the evaluation. `now`: the cycle, for bytes without strobe.
  template <class Core>
  void drive(Core& core, Pauses& pauses, std::uint64_t now);
  /// Describes the violated AXI rule. Empty: none. `moved`: set by a transfer.
  template <class Core>
  [[nodiscard]] std::string sample(const Core& core, bool& moved);
  /// Forgets everything, after a reset of the core.
  void reset();

 private:
  struct Write {
    AxiBurst burst;
    std::vector<std::byte> data;
    std::uint32_t beat = 0;  ///< the next
  };
  struct Read {
    AxiBurst burst;
    std::vector<std::byte> data;
    std::uint64_t token = 0;
    std::uint32_t beat = 0;
    bool failed = false;
  };
  /// Bursts use the identifiers in turn: those of 4 bits, which a PCIe bridge's port has.
  static constexpr std::uint8_t id_of(std::uint64_t number) { return static_cast<std::uint8_t>(number % 16); }
  template <class Core>
  [[nodiscard]] std::string sample_read(const Core& core);

  nic::Fifo<Write> writes_;
  std::size_t aw_taken_ = 0, w_taken_ = 0;  ///< of writes_: address, or all data, gone
  std::uint64_t posted_ = 0, answered_ = 0, failed_ = 0, addresses_ = 0;
  nic::Fifo<Read> reads_;
  std::size_t ar_taken_ = 0, ended_ = 0;  ///< of reads_
  std::uint64_t read_number_ = 0;         ///< of the first of reads_
  bool aw_offered_ = false, w_offered_ = false, ar_offered_ = false;
  std::optional<std::uint32_t> write_ended_;
};

/// `Core` is Verilator's class.
template <class Core>
void RtlWindow::drive(Core& c, Pauses& pauses, std::uint64_t now) {
  constexpr std::uint8_t kIncr = 1;
  c.s_axi_awvalid = c.s_axi_wvalid = c.s_axi_arvalid = 0;
  c.s_axi_bready = pauses() ? 0 : 1;
  c.s_axi_rready = pauses() ? 0 : 1;
  if (aw_taken_ < writes_.size() && (aw_offered_ = aw_offered_ || !pauses())) {
    const AxiBurst& burst = writes_[aw_taken_].burst;
    c.s_axi_awvalid = 1;
    c.s_axi_awid = id_of(addresses_);
    c.s_axi_awaddr = burst.offset;
    c.s_axi_awlen = static_cast<std::uint8_t>(burst.beats() - 1);
    c.s_axi_awsize = static_cast<std::uint8_t>(burst.size);
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
    c.s_axi_arlen = static_cast<std::uint8_t>(burst.beats() - 1);
    c.s_axi_arsize = static_cast<std::uint8_t>(burst.size);
    c.s_axi_arburst = kIncr;
  }
}

template <class Core>
std::string RtlWindow::sample(const Core& c, bool& moved) {
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

template <class Core>
std::string RtlWindow::sample_read(const Core& c) {
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

}  // namespace wherry::sim
