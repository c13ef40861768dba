// SPDX-License-Identifier: Apache-2.0
// Managers that load a memory, and the table of loads for comparing memories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "sim/memory/axi.hpp"
#include "sim/memory/ring.hpp"

namespace wherry::sim::memory {

/// The load that one manager makes.
struct Load {
  bool reads = false, writes = false;
  std::uint32_t beats = 16;  ///< of a burst; 1 to 64
  bool random = false;       ///< bursts anywhere in the region, aligned to their size; otherwise one after another
  std::uint32_t outstanding = 16;  ///< bursts of each direction
  std::uint64_t base = 0, region = 4 << 20;
  /// Streams that take turns, burst by burst. Each advances by `stride` bytes, and their starts are `stride` bytes
  /// apart.
  std::uint32_t streams = 1;
  std::uint64_t stride = 1 << 20;
  std::uint64_t seed = 1;
};

/// The content of a word of the memory after a TrafficManager wrote it.
[[nodiscard]] std::uint32_t pattern_word(std::uint64_t address) noexcept;

/// The manager of one port: it makes as many bursts as Load allows, and writes a pattern, data after the address.
class TrafficManager {
 public:
  explicit TrafficManager(const Load& load);

  [[nodiscard]] const AxiRequest& request() const noexcept { return out_; }
  /// The clock edge at which the port drove `in`.
  void step(const AxiAnswer& in);
  /// No new bursts.
  void stop() noexcept { stopped_ = true; }
  [[nodiscard]] bool quiet() const noexcept {
    return reads_.empty() && writes_ == 0 && !out_.ar_valid && !out_.aw_valid;
  }
  /// Checks that every beat read has the pattern.
  void verify() noexcept { verify_ = true; }

  /// Since the last forget().
  [[nodiscard]] std::uint64_t read_bytes() const noexcept { return read_bytes_; }
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_bytes_; }
  /// The median of the cycles from when a read's address is taken to its last beat; 0 without reads.
  [[nodiscard]] std::uint64_t median_latency() const;
  [[nodiscard]] std::uint64_t wrong_beats() const noexcept { return wrong_; }
  void forget();

 private:
  struct Read {
    std::uint64_t address = 0;
    std::uint64_t asked = 0;
    std::uint32_t done = 0;
  };
  std::uint64_t next(std::uint64_t& sequential);
  void present();

  Load load_;
  SplitMix64 random_;
  bool stopped_ = false, verify_ = false;
  std::uint64_t now_ = 0;
  std::uint64_t next_read_ = 0, next_write_ = 0;
  std::uint32_t turn_ = 0;
  std::vector<std::uint64_t> offsets_;
  Ring<Read> reads_;
  std::uint32_t writes_ = 0;       ///< whose answer is to come
  Ring<std::uint64_t> addresses_;  ///< of write bursts whose data are to be sent
  std::uint32_t sent_ = 0;         ///< beats of the first of them
  bool filled_ = false;            ///< the next one stands in out_
  std::uint64_t read_bytes_ = 0, written_bytes_ = 0, wrong_ = 0;
  std::vector<std::uint64_t> latencies_;
  AxiRequest out_;
};

/// A row of the table: the loads of one manager, or of two.
struct Cell {
  std::string name;
  Load first;
  std::optional<Load> second;
};
/// The table of docs/design/card-memory.md: sequential and random streams, streams that take turns in one bank and in
/// several, both directions at once, and a stream beside a soft core's reads.
[[nodiscard]] std::vector<Cell> comparison_table();

struct Rates {
  double read_gbs = 0, write_gbs = 0;                ///< the first manager's, GB/s
  double second_read_gbs = 0, second_write_gbs = 0;  ///< the second's
  std::uint64_t latency = 0, second_latency = 0;     ///< cycles, median
};
/// Runs a cell on two ports: 4,000 cycles of warm-up, 24,000 measured cycles, and then until all is answered.
/// `cycle_ps`: length of a cycle, ps.
[[nodiscard]] Rates measure(AxiBus& bus, const Cell& cell, std::uint64_t cycle_ps);

}  // namespace wherry::sim::memory
