// SPDX-License-Identifier: Apache-2.0
// A ring of the DMA engine: the transfers of one channel in one direction (docs/design/dma.md). An Engine creates it
// and must outlive it.
//
// One thread for each ring. Rings of one engine share no written state except the device. A function blocks only if its
// comment says so. Buffers belong to the caller. A buffer must be memory from Device::allocate(), unchanged from post()
// until poll() has reported the transfer.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "dma/card.hpp"
#include "pci/device.hpp"

namespace wherry::dma {

struct Transfer {
  std::uint64_t host = 0;   ///< bus address, any alignment
  std::uint64_t card = 0;   ///< any alignment; nothing to a packet
  std::uint32_t bytes = 0;  ///< 1 to kMostBytes. Of a buffer for a packet: as much as may come, within one page
  std::uint64_t cookie = 0;
  bool stream = false;        ///< the card's side is a packet stream
  bool end_of_packet = true;  ///< of a packet to the card; if not, a multiple of 64 bytes
  bool interrupt = false;     ///< it counts for the ring's threshold
};

struct Done {
  std::uint64_t cookie = 0;
  Error error = Error::kNone;
  std::uint32_t bytes = 0;  ///< moved; of a transfer that failed: those before the error. With kReset not known: 0
  bool end_of_packet = false;
};

/// How a doorbell is rung.
enum class Bell : std::uint8_t {
  kTail,       ///< the engine reads the descriptors from the ring
  kDescriptor  ///< the last descriptor goes along, in one write of 64 bytes: an idle ring reads nothing
};

class Ring {
 public:
  struct Places {
    pci::DmaMemory descriptors, packets;  ///< packets: none of a ring to the card
    pci::DmaMemory status;                ///< its own status word
    unsigned bits = 8;
    int eventfd = -1;          ///< -1: polled only
    std::uint32_t plenty = 0;  ///< see EngineOptions
  };
  Ring(pci::Device& device, unsigned number, const Places& places);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] unsigned number() const noexcept { return number_; }
  [[nodiscard]] bool to_host() const noexcept { return number_ >= kMostChannels; }

  /// Puts a transfer into the ring; ring_bell() starts it. kWouldBlock: the ring is full; kFailedPrecondition: the ring
  /// has failed; kInvalidArgument.
  Status post(const Transfer& transfer);
  /// Announces all posted transfers to the engine. Does nothing if the engine knows them already.
  void ring_bell(Bell bell = Bell::kTail);
  /// As ring_bell(), but while the engine has plenty of work it may delay the doorbell. Then one doorbell and one read
  /// bring several descriptors, and the link carries fewer other bytes. Only poll() and wait() ring a delayed doorbell:
  /// poll() in time, wait() at once.
  void ring_bell_in_time();
  /// Returns finished transfers, in the order of posting. After a failure it returns the failed transfer, once. The
  /// later transfers follow after recover(), as kReset.
  [[nodiscard]] std::size_t poll(std::span<Done> into);
  /// Waits until poll() has something to report: by the ring's interrupt if `by_interrupt`, else by polling. False:
  /// `most` is over. May block.
  [[nodiscard]] bool wait(std::chrono::nanoseconds most, bool by_interrupt = false);

  [[nodiscard]] std::size_t room() const noexcept { return capacity_ - transfers_.size(); }
  /// Number of transfers posted and not yet returned by poll().
  [[nodiscard]] std::size_t outstanding() const noexcept { return transfers_.size() + void_.size(); }
  /// True if an error has stopped the ring; recover() starts it again.
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// Resets the ring and starts it. Outstanding transfers become void. Blocks until the engine has none of them in
  /// flight. kDeadlineExceeded: the engine does not answer, or has writes to post while bus mastering is off. Then
  /// reset the function.
  Status recover();
  /// Stops new transfers, and blocks until all in flight have ended. start() continues. kDeadlineExceeded.
  Status stop();
  void start();
  /// Sets when the vector is signalled: after `threshold` transfers with `interrupt`, or `timer` cycles of 32 ns after
  /// the first one; 0: never. An error is always signalled at once.
  void moderate(unsigned threshold, unsigned timer);

 private:
  friend class Engine;
  /// Writes all registers of a ring that has been reset.
  void set_up();
  /// Resets the ring, whatever an earlier driver left there. Errors: as recover().
  Status clear();
  /// Call it after a function reset: makes outstanding transfers void and restarts all counts.
  void forget();
  [[nodiscard]] std::uint64_t status_now() const noexcept;
  [[nodiscard]] bool has_news() const noexcept;
  [[nodiscard]] bool bell_is_due() const noexcept;
  [[nodiscard]] StatusWord entry(std::uint32_t count) const noexcept;
  void control(bool run, bool reset);
  /// Measures the time from the doorbell to the status word that refuses a descriptor of no bytes, then resets the
  /// ring. Errors: see Engine::measure_read().
  Result<std::chrono::nanoseconds> time_refusal(Bell bell);
  Status settle(std::uint32_t mask, std::uint32_t wanted, const char* what);

  pci::Device& device_;
  unsigned number_;
  Places places_;
  std::size_t capacity_;
  std::uint32_t posted_ = 0;  ///< since the ring's reset; posted - told = transfers_.size()
  std::uint32_t told_ = 0, rung_ = 0;
  std::uint64_t known_bytes_ = 0, later_bytes_ = 0;  ///< of transfers that are rung and not told; that are not rung
  bool later_ = false;                               ///< ring_bell_in_time() left them
  std::uint32_t moderation_;
  bool failed_ = false;
  struct Kept {
    std::uint64_t cookie;
    std::uint32_t bytes;
    bool stream;
  };
  std::deque<Kept> transfers_;
  std::deque<std::uint64_t> void_;  ///< cookies
};

}  // namespace wherry::dma
