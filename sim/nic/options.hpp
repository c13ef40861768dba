// SPDX-License-Identifier: Apache-2.0
// The options of a NIC model, and its counters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "bypass/generated/personalities.hpp"
#include "sim/pcie/parameters.hpp"

namespace wherry::sim::nic {

using pcie::Time;

/// Faulty behaviour: the chance of each kind, in thousandths. For tests of the NIC's users.
struct Hostile {
  std::uint32_t ghost_writebacks = 0;  ///< after a receive write-back: another one, to any descriptor of the ring
  std::uint32_t long_lengths = 0;      ///< a receive write-back tells more bytes than its buffer has
  std::uint32_t outside_reads = 0;     ///< after a transmit descriptor: a read of up to 512 bytes near the ring
};

struct NicOptions {
  /// A copy, because a test may change its values. doc: docs/design/nic-model.md.
  bypass::Personality nic = *bypass::find_personality("ixgbe");
  std::uint32_t mbits = 10'000;
  std::uint32_t queues = 1;  ///< receive-side scaling spreads over so many
  std::uint64_t seed = 1;    ///< of Hostile
  Hostile hostile{};
  /// The most reads of transmit descriptors that a queue may have in flight; 0: any number. No datasheet states it.
  /// With 1, the model matches paper 002's latencies better, but its overload worse (docs/reference/bench-bypass.md).
  std::uint32_t tx_fetches = 0;
  /// Reads that time out are issued again (PCIe 5.0, 6.2.3.2.4.4: permitted), as 82576 and 82599 do after a reset
  /// (GCR.Completion_Timeout_Resend). Drivers switch this off; then such a read has failed.
  bool repeats_reads = true;
};

/// Why a received frame is dropped. Each frame is counted at one place.
enum class RxDrop : std::uint8_t {
  kLinkDown,
  kBadFcs,
  kTooShort,      ///< less than 60 bytes
  kTooLong,       ///< more than Personality::frame_max
  kBufferFull,    ///< the packet buffer has no room
  kQueueOff,      ///< the queue that RSS chose does not run
  kNoDescriptor,  ///< the ring is empty and the personality drops then
  kReset,         ///< it waited, or was being written, when the function was reset
  kCount,
};
/// Why a frame that was handed over for transmission is not sent.
enum class TxDrop : std::uint8_t {
  kTooShort,    ///< less than Personality::tx_min_bytes
  kTooLong,     ///< more than Personality::frame_max
  kBadChain,    ///< more than Personality::tx_frame_descriptors, or other descriptors among them
  kReadFailed,  ///< its data could not be read: error completions, or time-outs again and again
  kPoisoned,    ///< its data came marked as wrong
  kLinkDown,    ///< the link went down while it was on the wire
  kReset,
  kCount,
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(RxDrop::kCount)> kRxDropNames{
    "link down", "bad FCS", "too short", "too long", "buffer full", "queue off", "no descriptor", "reset"};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(TxDrop::kCount)> kTxDropNames{
    "too short", "too long", "bad descriptor chain", "read failed", "poisoned", "link down", "reset"};

/// received = delivered + all of rx_dropped + Nic::rx_waiting(); accepted = sent + all of tx_dropped + tx_waiting().
struct NicCounters {
  std::uint64_t received = 0;        ///< frames whose last bit came
  std::uint64_t received_bytes = 0;  ///< without FCS
  std::uint64_t delivered = 0;       ///< frames whose last descriptor was written back
  std::uint64_t delivered_bytes = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(RxDrop::kCount)> rx_dropped{};
  std::uint64_t accepted = 0;  ///< frames whose descriptors were taken up
  std::uint64_t sent = 0;      ///< frames whose last bit was sent
  std::uint64_t sent_bytes = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(TxDrop::kCount)> tx_dropped{};

  std::uint64_t rx_tails = 0, tx_tails = 0;  ///< tail writes
  std::uint64_t bad_tails = 0;               ///< beyond the ring: ignored
  std::uint64_t rx_fetches = 0, rx_fetched = 0;
  std::uint64_t tx_fetches = 0, tx_fetched = 0;
  std::uint64_t rx_writebacks = 0, tx_writebacks = 0;  ///< write requests
  std::uint64_t head_writebacks = 0;
  std::uint64_t contexts = 0;         ///< context descriptors, consumed without effect
  std::uint64_t bad_descriptors = 0;  ///< transmit descriptors of no known kind, passed over
  std::uint64_t retries = 0;          ///< reads that timed out and were issued again
  std::uint64_t rings_stopped = 0;    ///< a descriptor read failed for good: the ring rests until it is started again
  std::uint64_t hostile_acts = 0;
  std::uint64_t rx_buffer_peak = 0, tx_buffer_peak = 0;  ///< bytes

  [[nodiscard]] std::uint64_t dropped(RxDrop why) const noexcept { return rx_dropped[static_cast<std::size_t>(why)]; }
  [[nodiscard]] std::uint64_t dropped(TxDrop why) const noexcept { return tx_dropped[static_cast<std::size_t>(why)]; }
  [[nodiscard]] std::uint64_t rx_dropped_all() const noexcept {
    return std::accumulate(rx_dropped.begin(), rx_dropped.end(), std::uint64_t{0});
  }
  [[nodiscard]] std::uint64_t tx_dropped_all() const noexcept {
    return std::accumulate(tx_dropped.begin(), tx_dropped.end(), std::uint64_t{0});
  }
};

/// How often a read that timed out is issued again before it has failed. 82599 GCR.Completion_Timeout_Resend repeats
/// without end; this limit is chosen, so that simulations end.
inline constexpr std::uint32_t kReadRetries = 8;

}  // namespace wherry::sim::nic
