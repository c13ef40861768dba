// SPDX-License-Identifier: Apache-2.0
// The Verilated hdl/dma/data/dma_data.sv between a host behind a PCIe link (host_link.hpp) and an AXI memory. Calls
// post turns. The rig checks every byte as it is written, every transaction against the rules of its bus, and every
// answer against the injected faults. error() returns the first error.
//
// One thread. Cycles are of 4 ns.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/dma/bits.hpp"
#include "sim/dma/checked_memory.hpp"
#include "sim/dma/host_link.hpp"

class Vdma_data;

namespace wherry::sim::dma {

inline constexpr std::uint32_t kTurnBytes = 4096;

struct RigOptions {
  std::uint64_t seed = 1;
  LinkOptions link;
  unsigned mrrs = 2, mps = 1;       ///< 128 bytes << x
  unsigned timeout = 0;             ///< ticks
  unsigned reserve = 0;             ///< 1/512 each of the ring for data to the card, that stay free
  std::uint32_t card_latency = 40;  ///< cycles, of B and of R
  std::uint32_t card_pauses = 0;    ///< chance, in a million, of each channel and cycle
  std::uint32_t card_faults = 0;    ///< chance, in a million, that a burst is answered with an error
};

enum class Way : std::uint8_t { kToCard, kToHost };

struct Turn {
  std::uint64_t host = 0, card = 0;
  std::uint32_t bytes = 0;
  unsigned channel = 0;
  bool last = true;
  std::uint64_t tag = 0;  ///< the user's
};

struct Done {
  Turn turn;
  Error error = Error::kNone;
  std::uint32_t bytes = 0;
};

class DataRig {
 public:
  explicit DataRig(const RigOptions& options);
  DataRig(const DataRig&) = delete;
  DataRig& operator=(const DataRig&) = delete;
  ~DataRig();

  /// Queues a turn, which is offered after earlier ones. Its destination lies in host_memory() or card_memory().
  void post(Way way, const Turn& turn);
  /// Answers so far, in order; the caller empties it.
  std::deque<Done>& done(Way way) { return sides_[index(way)].done; }
  /// Posted turns without an answer.
  [[nodiscard]] std::size_t open(Way way) const { return sides_[index(way)].open.size(); }

  void cycle();
  /// While this is on, turns may be answered with ErrorReset.
  void stop(bool on);
  [[nodiscard]] bool idle() const;
  /// While this is on, the card's memory takes nothing and gives nothing.
  void freeze_card(bool on) { frozen_ = on; }

  HostLink& link() { return link_; }
  [[nodiscard]] std::uint64_t now() const { return cycles_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] CheckedMemory& host_memory() { return host_; }
  [[nodiscard]] CheckedMemory& card_memory() { return card_; }
  [[nodiscard]] bool longest_burst_is(std::uint32_t beats) const { return longest_ == beats; }

  std::uint64_t bursts = 0, writes = 0, unexpected = 0, timed_out = 0, faults_injected = 0;

 private:
  using Line = std::array<std::byte, kLineBytes>;
  struct Open {
    Turn turn;
    std::vector<Error> faults;
  };
  struct Side {
    std::deque<Turn> to_offer;
    std::deque<Open> open;
    std::deque<Done> done;
    std::vector<std::uint32_t> answers;  ///< of this cycle, or not yet to be judged
    bool offered = false;
  };
  struct Burst {
    std::uint64_t address = 0, due = 0;
    std::uint32_t beats = 0, sent = 0;
    bool fails = false;
  };
  static std::size_t index(Way way) { return way == Way::kToCard ? 0 : 1; }

  void drive();
  void sample();
  void drive_turns();
  void sample_turns();
  void answer_all();
  void answer(Way way, std::uint32_t payload);
  void sample_reads();
  void drive_completion();
  void sample_writes();
  void drive_card();
  void sample_card();
  void card_write(std::span<const Word> request);
  void fault(Way way, std::uint64_t address, Error error);
  void wrong(const std::string& why);
  bool draw(std::uint32_t per_million) { return per_million != 0 && random_.below(1'000'000) < per_million; }

  RigOptions options_;
  SplitMix64 random_;
  HostLink link_;
  CheckedMemory host_, card_;
  std::array<Side, 2> sides_;
  std::unique_ptr<Vdma_data> core_;
  std::uint64_t cycles_ = 0;
  std::string error_;
  bool frozen_ = false, stopped_ = false, reset_allowed_ = false;
  std::array<bool, 5> ready_{};  // AW, W, AR; B and R are offered
  std::deque<Burst> to_write_, answers_, reads_;
  std::uint32_t longest_ = 0;
  // The posted write in progress.
  std::uint64_t write_at_ = 0;
  std::uint32_t write_left_ = 0;
};

}  // namespace wherry::sim::dma
