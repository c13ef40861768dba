// SPDX-License-Identifier: Apache-2.0
// A soft core's accesses to the card's memory, with their times; and a manager that replays them.
// docs/design/card-memory.md has the format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/memory/axi.hpp"
#include "wherry/status.hpp"

namespace wherry::sim::softcore {

/// What one access of the core's bus moves. A word has 4 bytes, and a cache line 32.
enum class BusKind : std::uint8_t { kReadWord, kWriteWord, kReadLine, kFetchLine };
inline constexpr std::uint32_t kWordBytes = 4, kLineBytes = 32;

/// One access of the core's bus.
struct BusAccess {
  std::uint64_t cycle = 0;    ///< of the core's clock, since the trace's start; does not go back
  std::uint64_t address = 0;  ///< in the card's memory; its lowest two bits are 0, of a line its lowest five
  BusKind kind = BusKind::kReadWord;
  [[nodiscard]] bool writes() const noexcept { return kind == BusKind::kWriteWord; }
  [[nodiscard]] std::uint32_t bytes() const noexcept {
    return kind == BusKind::kReadLine || kind == BusKind::kFetchLine ? kLineBytes : kWordBytes;
  }
  friend bool operator==(const BusAccess&, const BusAccess&) = default;
};

struct BusTrace {
  std::uint32_t clock_hz = 100'000'000;  ///< the core's
  std::vector<BusAccess> accesses;

  [[nodiscard]] std::vector<std::uint8_t> encode() const;
  /// Refuses everything that encode() does not write, and says at which byte, and why.
  [[nodiscard]] static Result<BusTrace> decode(std::span<const std::uint8_t> bytes);
};

/// Plays a trace as a manager: each access is a burst of one beat, only one is in flight, and none begins before its
/// time. A slower memory only delays the accesses (open loop), because the core's reaction to other waits is not known.
/// At its end, the trace begins again.
class TracePlayer {
 public:
  /// `bus_hz`: the clock that steps the player. `base`: where the trace's address 0 lies; `bytes`: addresses wrap
  /// there, a power of two. `first`: the access with which it begins, as if it had played the earlier ones. A trace
  /// without accesses does nothing. The trace must outlive the player.
  TracePlayer(const BusTrace& trace, std::uint64_t bus_hz, std::uint64_t base, std::uint64_t bytes,
              std::size_t first = 0);

  [[nodiscard]] const memory::AxiRequest& request() const noexcept { return out_; }
  void step(const memory::AxiAnswer& in);

  [[nodiscard]] std::uint64_t reads() const noexcept { return reads_; }
  [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }
  /// Cycles of the bus with an access in progress.
  [[nodiscard]] std::uint64_t waited() const noexcept { return waited_; }
  /// How often the whole trace was played.
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_; }

 private:
  void begin();

  const BusTrace& trace_;
  std::uint64_t bus_hz_, base_, bytes_;
  std::uint64_t now_ = 0;
  std::uint64_t start_ = 0;  ///< `now_` of the cycle `start_cycle_` of the trace
  std::uint64_t start_cycle_ = 0;
  std::size_t next_ = 0;
  bool busy_ = false;
  std::uint64_t reads_ = 0, writes_ = 0, waited_ = 0, rounds_ = 0;
  memory::AxiRequest out_;
};

}  // namespace wherry::sim::softcore
