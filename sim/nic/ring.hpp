// SPDX-License-Identifier: Apache-2.0
// A descriptor ring from the NIC's side: the descriptors on the chip, and when the next fetch begins.
//
// Rules (X550 datasheet 7.2.3.4, I210 7.1.4.3 and 7.2.2.5): an empty chip fetches as soon as the tail moves. It takes
// all available descriptors, up to its buffer. Otherwise a prefetch starts when fewer than PTHRESH descriptors are on
// the chip or on their way, and at least HTHRESH lie in the ring. Nothing beyond the tail is fetched. A fetch does not
// wrap. Several fetches may be in flight, unless RingLimits::fetches forbids it. Descriptors are used in ring order,
// whatever the order of completions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "bypass/descriptor.hpp"
#include "sim/nic/fifo.hpp"
#include "sim/nic/reads.hpp"

namespace wherry::sim::nic {

struct CachedDescriptor {
  std::uint32_t index = 0;
  bypass::Descriptor descriptor;
};

/// Limits of one direction, from the personality.
struct RingLimits {
  std::uint32_t descriptor_bytes;
  std::uint32_t cache;
  std::uint32_t prefetch_below;
  std::uint32_t prefetch_at_least;
  std::uint32_t fetch_max;
  std::uint32_t tail_granule;
  std::uint32_t fetches = 0;  ///< reads of descriptors that may be under way; 0: any number
};

class RingUser {
 public:
  /// Descriptors have arrived on the chip, or the ring has stopped.
  virtual void on_descriptors(std::uint32_t queue) = 0;

 protected:
  ~RingUser() = default;
};

class Ring final : ReadOwner {
 public:
  struct Statistics {
    std::uint64_t& fetches;
    std::uint64_t& fetched;
    std::uint64_t& stopped;
  };
  Ring(Reads& reads, RingUser& user, std::uint32_t queue, const RingLimits& limits, Statistics statistics)
      : reads_(reads), user_(user), queue_(queue), limits_(limits), statistics_(statistics) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void start(std::uint64_t base, std::uint32_t entries);
  /// Forgets the chip's descriptors. The results of fetches in flight are dropped.
  void stop();
  [[nodiscard]] bool running() const noexcept { return running_; }
  /// False: the tail is beyond the ring, and nothing happened.
  [[nodiscard]] bool set_tail(std::uint32_t tail);
  /// Fetches if the rules allow it. `wanting`: the user needs more descriptors than the chip has.
  void fetch(bool wanting = false);

  [[nodiscard]] Fifo<CachedDescriptor>& cached() noexcept { return cached_; }
  /// There are no descriptors on the chip, in flight, or in the ring.
  [[nodiscard]] bool exhausted() const noexcept { return cached_.empty() && coming_ == 0 && available() == 0; }
  [[nodiscard]] std::uint32_t entries() const noexcept { return entries_; }
  [[nodiscard]] std::uint32_t tail() const noexcept { return tail_; }
  [[nodiscard]] std::uint64_t base() const noexcept { return base_; }
  [[nodiscard]] std::uint64_t address(std::uint32_t index) const noexcept {
    return base_ + std::uint64_t{index} * limits_.descriptor_bytes;
  }
  /// The next descriptor that is not done. The user moves it.
  std::uint32_t head = 0;

 private:
  static constexpr std::size_t kFetchBytes = 8192;  ///< 255 descriptors of 32 bytes and more
  struct Fetch {
    std::array<std::byte, kFetchBytes> data;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool done = false;
    bool stale = false;
  };
  void on_read(std::uint64_t argument, pcie::CompletionStatus status) override;
  [[nodiscard]] std::uint32_t available() const noexcept {
    return entries_ == 0 ? 0 : (tail_ + entries_ - next_) % entries_;
  }
  void take();

  Reads& reads_;
  RingUser& user_;
  std::uint32_t queue_;
  RingLimits limits_;
  Statistics statistics_;
  std::uint64_t base_ = 0;
  std::uint32_t entries_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t next_ = 0;    ///< to be fetched
  std::uint32_t coming_ = 0;  ///< descriptors that are under way
  bool running_ = false;
  Fifo<CachedDescriptor> cached_;
  std::deque<Fetch> fetches_;        ///< addresses stay
  std::vector<std::uint32_t> free_;  ///< of fetches_
  Fifo<std::uint32_t> order_;        ///< of fetches_, as issued
};

}  // namespace wherry::sim::nic
