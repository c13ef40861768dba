// SPDX-License-Identifier: Apache-2.0
// The host's part for QEMU's two NICs: queue pair 0 of an 82574 (e1000e) or an 82576 (igb) is set up by registers, and
// handed over to the card with heads and tails at 0.
#pragma once

#include <cstdint>

#include "bypass/generated/personalities.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

/// The NIC's BAR 0.
class NicRegisters {
 public:
  virtual ~NicRegisters() = default;
  virtual Result<std::uint32_t> read(std::uint32_t offset) = 0;
  /// Posted.
  virtual Status write(std::uint32_t offset, std::uint32_t value) = 0;
  /// Lets the machine run for about so many milliseconds.
  virtual Status pause(int ms) = 0;
};

struct NicRings {
  std::uint64_t rx = 0;  ///< bus addresses of the rings; multiples of 128
  std::uint64_t tx = 0;
  std::uint32_t rx_entries = 0;
  std::uint32_t tx_entries = 0;
};

class NicDriver {
 public:
  NicDriver(NicRegisters& registers, const bypass::Personality& nic) : registers_(registers), nic_(nic) {}

  /// No more DMA: receiver and transmitter off.
  Status stop();
  /// Software reset; interrupts stay masked. kDeadlineExceeded: it does not come back.
  Status reset();
  /// The reset bit and nothing else, whatever the NIC is doing; reset() or set_up() must follow.
  Status hit_reset();
  /// Sets up rings and buffers of kSlotBytes, and waits for the link. kDeadlineExceeded: no link, or a queue does not
  /// start.
  Status set_up(const NicRings& rings);
  /// Receiver and transmitter on, once the card has offered buffers: some NICs drop what comes before. Everything is
  /// received, frames of up to kMaxFrameBytes included. kDeadlineExceeded: the card writes no tail.
  Status start();
  Result<bool> link_up();

 private:
  Status change(std::uint32_t offset, std::uint32_t clear, std::uint32_t set);
  template <typename Wanted>
  Status wait_until(std::uint32_t offset, const Wanted& wanted, const char* what);
  Status wait_for(std::uint32_t offset, std::uint32_t mask, std::uint32_t value, const char* what);
  Status set_up_ring(std::uint32_t first, std::uint64_t base, std::uint32_t bytes);
  Status start_ring(std::uint32_t first);
  Status negotiate_link();
  [[nodiscard]] bool has_own_queues() const noexcept { return nic_.ring_enable_mask != 0; }

  NicRegisters& registers_;
  const bypass::Personality& nic_;
};

}  // namespace wherry::sim
