// SPDX-License-Identifier: Apache-2.0
// High-bandwidth memory, cycle by cycle: several AXI3 ports of 256 bits share one content. It checks the master against
// the rules of AXI3 and HBM's additional ones. Its timing is that of the card that paper 003 measured:
// docs/design/kv-hbm.md.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kv/message.hpp"
#include "kv/sim/random.hpp"

namespace wherry::kv::rtl {

inline constexpr std::size_t kHbmBeatBytes = 32;
inline constexpr std::uint32_t kHbmBurst = 16;   ///< beats at most
inline constexpr std::uint64_t kHbmPage = 4096;  ///< that no burst leaves
inline constexpr std::uint64_t kHbmBytes = std::uint64_t{1} << 34;

/// The lowest bytes come first, as in Verilator.
using HbmBeat = std::array<std::uint32_t, kHbmBeatBytes / 4>;

struct HbmTiming {
  std::uint32_t read;                ///< cycles from an accepted address to the first beat, if nothing is in the way
  std::uint32_t write;               ///< from the last accepted beat to the answer
  std::uint32_t bus = 1797;          ///< beats in 1000 cycles, both directions together: 460 GB/s by 32 ports
  std::uint32_t jitter = 0;          ///< so many cycles more, at most, by chance
  std::uint32_t refresh_every = 0;   ///< cycles; 0: never
  std::uint32_t refresh_cycles = 0;  ///< in which no beat passes
  std::uint32_t reads = 64;          ///< bursts that may be on their way
  std::uint32_t writes = 32;
};
/// With these values, the thesis's own pipeline has its reported memory latencies: on the card (Table 5.8), and in its
/// simulation (Table 5.4).
inline constexpr HbmTiming kHbmHardware{.read = 52, .write = 60};
inline constexpr HbmTiming kHbmSimulated{.read = 128, .write = 39};

/// A memory of 16 GiB, of which only the written pages are allocated. Other words read as zeros, or as random values,
/// like a card's memory before any write.
class HbmContent {
 public:
  explicit HbmContent(std::uint64_t rubbish = 0) : rubbish_(rubbish) {}
  /// Addresses are multiples of 32.
  [[nodiscard]] HbmBeat read(std::uint64_t address) const;
  /// Bit i of `strobes`: byte i is written.
  void write(std::uint64_t address, const HbmBeat& beat, std::uint32_t strobes = ~0U);
  [[nodiscard]] std::size_t pages() const noexcept { return pages_.size(); }

 private:
  using Page = std::array<HbmBeat, kHbmPage / kHbmBeatBytes>;
  [[nodiscard]] HbmBeat untouched(std::uint64_t address) const;

  std::uint64_t rubbish_;  ///< 0: zeros
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
};

/// The master's outputs in one cycle. All transactions are INCR, with one identifier and 32 bytes a beat.
struct AxiRequest {
  bool ar_valid = false;
  std::uint64_t ar_address = 0;
  std::uint32_t ar_length = 0;  ///< beats less 1
  bool r_ready = false;
  bool aw_valid = false;
  std::uint64_t aw_address = 0;
  std::uint32_t aw_length = 0;
  bool w_valid = false;
  bool w_last = false;
  HbmBeat w_data{};
  std::uint32_t w_strobes = ~0U;
  bool b_ready = false;
};

/// The memory's outputs.
struct AxiAnswer {
  bool ar_ready = false;
  bool r_valid = false;
  bool r_last = false;
  HbmBeat r_data{};
  bool aw_ready = false;
  bool w_ready = false;
  bool b_valid = false;
};

/// Cycles of the first and last events, from which a memory's share of a latency follows.
struct HbmTimes {
  Cycles first_address = ~Cycles{0};  ///< of a read
  Cycles last_data = 0;               ///< of a read
  Cycles first_write = ~Cycles{0};    ///< its address or data, whichever comes first
  Cycles last_write = 0;              ///< data
  Cycles last_answer = 0;             ///< of a write
};

struct HbmCounts {
  std::uint64_t read_bursts = 0, read_beats = 0, write_bursts = 0, write_beats = 0;
};

/// One port. In each direction, answers come in order. If AXI leaves a choice, chance decides: a read shows the content
/// at its request or at its answer, and a write takes effect with its last beat or with its answer.
class HbmPort {
 public:
  HbmPort(HbmContent& content, const HbmTiming& timing, std::uint64_t seed);

  /// Its outputs in the current cycle.
  [[nodiscard]] const AxiAnswer& answer() const noexcept { return out_; }
  /// The clock edge at the end of the cycle in which the master drove `in`.
  void step(const AxiRequest& in);

  /// The first rule that the master broke, and where; empty if it broke none.
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }
  /// Nothing is under way.
  [[nodiscard]] bool quiet() const noexcept {
    return reads_.empty() && addresses_.empty() && beats_.empty() && answers_.empty();
  }
  [[nodiscard]] Cycles now() const noexcept { return now_; }
  /// Skips cycles in which nothing happens. Precondition: quiet().
  void skip(Cycles cycles) noexcept { now_ += cycles; }

  [[nodiscard]] const HbmTimes& times() const noexcept { return times_; }
  void forget_times() noexcept { times_ = {}; }
  [[nodiscard]] const HbmCounts& counts() const noexcept { return counts_; }

 private:
  struct Burst {
    std::uint64_t address;
    std::uint32_t beats;
    std::uint32_t done;         ///< beats given, or taken
    Cycles due;                 ///< of the first beat, or of the answer
    bool early;                 ///< takes effect at once
    std::vector<HbmBeat> data;  ///< of an early read or a late write
    std::vector<std::uint32_t> strobes;
  };
  struct Data {
    HbmBeat beat;
    std::uint32_t strobes;
    bool last;
  };

  void check_held(const AxiRequest& in);
  void check_burst(std::string_view channel, std::uint64_t address, std::uint32_t length);
  void violate(std::string text);
  void take_read(const AxiRequest& in);
  void take_write(const AxiRequest& in);
  void write_beat(const Data& data);
  void present();
  void put(const Burst& burst);
  [[nodiscard]] Cycles later(std::uint32_t latency);
  [[nodiscard]] bool refreshing() const noexcept {
    return timing_.refresh_every != 0 && now_ % timing_.refresh_every < timing_.refresh_cycles;
  }

  HbmContent& content_;
  HbmTiming timing_;
  sim::Random random_;
  Cycles now_ = 0;
  std::uint32_t bus_ = 4000;  ///< thousandths of beats that may pass
  std::deque<Burst> reads_;
  std::deque<Burst> addresses_;  ///< of writes whose data are not all there
  std::deque<Data> beats_;       ///< that came before their address
  std::deque<Burst> answers_;    ///< writes to be confirmed
  AxiAnswer out_;
  AxiRequest before_;  ///< what was offered and not taken in the cycle before
  std::string violation_;
  HbmTimes times_;
  HbmCounts counts_;
};

}  // namespace wherry::kv::rtl
