// SPDX-License-Identifier: Apache-2.0
// The card: its registers (spec/bypass_registers.toml) and its window, the memory in which the NIC finds its rings. One
// thread. No call waits for the NIC; stop() waits for the core.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bypass/generated/personalities.hpp"
#include "wherry/status.hpp"

namespace wherry::bypass {

/// BAR 0 holds the registers, BAR 2 the window.
inline constexpr unsigned kRegisterBar = 0, kWindowBar = 2;
inline constexpr std::uint64_t kWindowBytes = 8ULL << 20;
// Offsets in the window (docs/design/bypass-core.md).
inline constexpr std::uint32_t kRxRings = 0, kTxRings = 0x1'0000, kRingStride = 0x2'0000, kHeads = 0x20'0000,
                               kSlots = 0x40'0000;  ///< memory for anybody while their queue pair is stopped
inline constexpr std::uint32_t kSlotBytes = 2048;
// Offsets of the tails of a pair in its kMailboxBytes of CardSetup::mailbox; each has its own cache line.
inline constexpr std::uint32_t kRxMail = 0, kTxMail = 64, kMailboxBytes = 128;

/// Access to the card: through VFIO, in a simulation, or in a test model.
class CardAccess {
 public:
  CardAccess() = default;
  CardAccess(const CardAccess&) = delete;
  CardAccess& operator=(const CardAccess&) = delete;
  virtual ~CardAccess() = default;
  /// Reads a register. All ones if the card does not answer.
  [[nodiscard]] virtual std::uint32_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint32_t value) = 0;
  /// Reads bytes of the window, in units of 4. kUnavailable: the card does not answer.
  virtual Status read_window(std::uint32_t offset, std::span<std::byte> into) = 0;
  virtual Status write_window(std::uint32_t offset, std::span<const std::byte> from) = 0;
  virtual void pause(std::chrono::microseconds time) = 0;
};

/// The parameters that the core was built with.
struct CardShape {
  std::uint32_t queue_pairs = 0, rx_entries = 0, tx_entries = 0;
  std::uint16_t version_major = 0, version_minor = 0;
};

struct CardSetup {
  std::uint64_t window = 0;          ///< its bus address
  std::uint64_t nic = 0;             ///< bus address of the NIC's BAR 0
  bool in_place = false;             ///< frames stay in their slots (docs/design/bypass-core.md)
  std::uint32_t frame_bytes = 1518;  ///< longest frame, with FCS
  std::uint32_t pairs = 1;           ///< queue pairs of card and NIC
  /// The path leads through a root complex, which may forward few requests at a time. So the NIC gets only as many
  /// receive slots as it can cache descriptors (Personality::rx_cache; 16 more in place). The NIC then fetches all
  /// descriptors up to a tail together, not one for each packet.
  bool through_root = false;
  /// The NIC may repeat a read whose completion is late (PCIe 5.0, 6.2.3.2.4.4, allows it). The core would take it for
  /// a read of the next frame in the same lines. So a frame counts as done only when it is written back.
  bool repeats_reads = false;
  /// If not 0: rings in the host's memory (host_rings.hpp). For each pair, the core writes the tails to two words here
  /// and not to the NIC, and `window` is the mirror's address. The core does not see reads of the mirror, so a frame
  /// is done at its write-back.
  std::uint64_t mailbox = 0;
};

struct Counter {
  std::string_view name;
  std::uint32_t value = 0;  ///< wraps
};

class Card {
 public:
  /// kNotFound: no bypass core answers at this place. kVersionMismatch: the core has another version.
  static Result<Card> open(CardAccess& access);
  [[nodiscard]] const CardShape& shape() const noexcept { return shape_; }
  /// Stops all queue pairs, and writes the personality and all addresses. kInvalidArgument: the window's address is not
  /// a multiple of 8 MiB, the core's rings are too large for the NIC, or the core has fewer pairs.
  Status configure(const Personality& nic, const CardSetup& setup);
  /// Starts the configured pairs: from now on, the card writes the NIC's tails.
  Status start();
  /// Stops the card from writing tails. Frames in flight are dropped and counted. kDeadlineExceeded: the core does not
  /// become idle.
  Status stop();
  /// True if any pair runs.
  [[nodiscard]] bool running() const;
  /// Returns all counters, in the order of the register map. kUnavailable: the card does not answer.
  Result<std::vector<Counter>> counters() const;
  [[nodiscard]] CardAccess& access() const noexcept { return *access_; }

 private:
  explicit Card(CardAccess& access) : access_(&access) {}
  [[nodiscard]] bool running(std::uint32_t pair) const;

  CardAccess* access_;
  CardShape shape_{};
  std::uint32_t pairs_ = 1;
  bool in_place_ = false;
};

/// Returns the value of the core's register `descriptors` for a NIC. kUnsupported: the core cannot decode the NIC's
/// format.
Result<std::uint32_t> descriptor_word(const Personality& nic);

}  // namespace wherry::bypass
