// SPDX-License-Identifier: Apache-2.0
// The manager at s_axi of the Verilated bypass core: bursts that wait, of which a beat goes each way in a cycle.
//
// Writes and reads do not wait for each other. Addresses, data of writes, answers and data of reads each go in the
// order of the calls, as the core answers (axi_port.sv); any number may wait. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "sim/nic/fifo.hpp"

class Vbypass_core;

namespace wherry::sim {

/// An INCR burst: the bytes from `offset` on, in beats of 2^size. Precondition: it crosses no 4 KiB (AXI4, A3.4.1).
struct AxiBurst {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  unsigned size = 0;
  [[nodiscard]] std::uint32_t beats() const noexcept { return ((offset + bytes - 1) >> size) - (offset >> size) + 1; }
  /// What beat `number` has of the bytes: from, and to before.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> beat(std::uint32_t number) const noexcept;
};

/// The lowest `count` of 64 bits; from 0 to 64.
[[nodiscard]] constexpr std::uint64_t low_ones(std::size_t count) noexcept {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

inline constexpr unsigned kLineSize = 6;  ///< AxSIZE of 64 bytes

/// Whether something comes a cycle later: a chance in a million, by a seed.
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
  /// The oldest read that has ended.
  [[nodiscard]] std::optional<Answer> answer() const;
  void pop_answer();

  /// Bursts, since the core's reset: that were posted, whose beats were all taken, that were answered.
  [[nodiscard]] std::uint64_t writes_posted() const noexcept { return posted_; }
  [[nodiscard]] std::uint64_t writes_taken() const noexcept { return posted_ - writes_.size(); }
  [[nodiscard]] std::uint64_t writes_answered() const noexcept { return answered_; }
  [[nodiscard]] std::uint64_t writes_failed() const noexcept { return failed_; }
  /// Reads that have not ended, or whose answer was not popped.
  [[nodiscard]] std::size_t reads_waiting() const noexcept { return reads_.size(); }
  [[nodiscard]] bool idle() const noexcept { return reads_.empty() && answered_ == posted_; }
  /// Of the last cycle: where a beat was taken that ends a write burst.
  [[nodiscard]] const std::optional<std::uint32_t>& write_ended() const noexcept { return write_ended_; }

  /// A cycle: drive() before the clock's edge, sample() after the evaluation. `now`: the cycle, for what has no strobe.
  void drive(Vbypass_core& core, Pauses& pauses, std::uint64_t now);
  /// A sentence on the rule of AXI that the core broke; empty: none. `moved`: something passed.
  [[nodiscard]] std::string sample(const Vbypass_core& core, bool& moved);
  /// The core was reset: forgets everything.
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
  [[nodiscard]] std::string sample_read(const Vbypass_core& core);

  nic::Fifo<Write> writes_;
  std::size_t aw_taken_ = 0, w_taken_ = 0;  ///< of writes_: address, or all data, gone
  std::uint64_t posted_ = 0, answered_ = 0, failed_ = 0, addresses_ = 0;
  nic::Fifo<Read> reads_;
  std::size_t ar_taken_ = 0, ended_ = 0;  ///< of reads_
  std::uint64_t read_number_ = 0;         ///< of the first of reads_
  bool aw_offered_ = false, w_offered_ = false, ar_offered_ = false;
  std::optional<std::uint32_t> write_ended_;
};

}  // namespace wherry::sim
