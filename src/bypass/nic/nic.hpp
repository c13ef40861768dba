// SPDX-License-Identifier: Apache-2.0
// The host's work with a NIC: it takes the NIC, hands its rings over to the card, and takes them back. There is one
// class for each family. Numbers that differ within a family, and values that the card must also know, come from
// spec/nic_personalities.toml.
//
// Order of calls: reset, start, (stop, start)*, stop. One thread. Every call may block for about 100 ms. Errors:
// kUnavailable: the NIC does not answer in time, or at all. kInvalidArgument: the setup does not suit the family.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bypass/generated/personalities.hpp"
#include "bypass/nic/registers.hpp"
#include "wherry/status.hpp"

namespace wherry::bypass {

using MacAddress = std::array<std::uint8_t, 6>;
std::string text_of(const MacAddress& mac);

/// Bus addresses, aligned to Personality::ring_align.
struct Rings {
  std::uint64_t rx = 0, tx = 0;
  std::uint32_t rx_entries = 0, tx_entries = 0;
};

inline constexpr std::uint32_t kMostPairs = 16;

struct NicSetup {
  Rings rings;                       ///< of queue pair 0
  std::uint32_t pairs = 1;           ///< several: frames are spread by a hash of their flow (RSS), others go to pair 0
  std::uint64_t ring_stride = 0;     ///< from a ring of a pair to that of the next; only with several pairs
  std::uint32_t slot_bytes = 2048;   ///< of each receive buffer
  std::uint32_t frame_bytes = 1518;  ///< longest frame, with FCS
  bool promiscuous = false;          ///< else frames to its own address, and broadcasts
  bool loopback = false;             ///< frames come back at the MAC, and none leaves
};

/// The progress of queue pair 0.
struct Progress {
  std::uint32_t rx_head = 0, tx_head = 0;  ///< the descriptor that the NIC takes next
  std::uint32_t received = 0, sent = 0;    ///< good frames since the last call (the counters clear on read)
};

struct Link {
  bool up = false;
  std::uint32_t mbits = 0;  ///< 0: unknown
};

/// Memory that the NIC can reach, for messages.
struct DmaMemory {
  std::span<std::byte> bytes;
  std::uint64_t address = 0;  ///< for the NIC
};
inline constexpr std::size_t kMessageMemory = 64 * 1024;

class Nic {
 public:
  Nic() = default;
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;
  virtual ~Nic() = default;

  /// Stops all DMA and interrupts, from any state. The NIC forgets rings and filters.
  virtual Status reset() = 0;
  /// Starts the queue pairs. Their tails are 0, so the NIC has no descriptor until a tail is written.
  virtual Status start(const NicSetup& setup) = 0;
  /// As reset(). Also withdraws messages to firmware about a driver.
  virtual Status stop() = 0;
  virtual void write_rx_tail(std::uint32_t value) = 0;
  virtual void write_tx_tail(std::uint32_t value) = 0;
  [[nodiscard]] virtual Progress progress() = 0;
  [[nodiscard]] virtual Link link() = 0;
  /// Valid after reset().
  [[nodiscard]] virtual MacAddress mac() const = 0;
  [[nodiscard]] virtual const Personality& personality() const noexcept = 0;
  /// Whether NicSetup::loopback is supported.
  [[nodiscard]] virtual bool has_loopback() const noexcept = 0;
};

/// A name such as "82599 SFP+"; empty if the device is not known.
[[nodiscard]] std::string_view model_name(std::uint16_t vendor, std::uint16_t device) noexcept;
/// Whether make_nic() drives the family. For X710 and E810, the kernel's driver keeps the physical function, and Wherry
/// drives their VFs.
[[nodiscard]] bool can_drive(const Personality& personality) noexcept;
/// `registers` and `memory` must outlive the NIC. kUnsupported: can_drive() is false; the message gives the remedy.
Result<std::unique_ptr<Nic>> make_nic(const Personality& personality, Registers& registers, DmaMemory memory);

}  // namespace wherry::bypass
