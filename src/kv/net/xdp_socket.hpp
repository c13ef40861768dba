// SPDX-License-Identifier: Apache-2.0
// An AF_XDP socket: memory shared with the kernel, divided into frames, and four rings that say who owns each frame.
#pragma once

#include <linux/if_xdp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// Memory from mmap(2).
class Mapping {
 public:
  Mapping() noexcept = default;
  Mapping(void* at, std::size_t bytes) noexcept : at_(at), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(at_); }

 private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A ring with one producer and one consumer: one of them is the kernel, the other is this process. Each side publishes
/// its own counter and reads the other's. Both counters run freely modulo 2^32.
template <typename Entry>
class XdpRing {
 public:
  XdpRing() noexcept = default;
  XdpRing(Mapping memory, const xdp_ring_offset& at, std::uint32_t size) noexcept
      : memory_(std::move(memory)),
        producer_(reinterpret_cast<std::uint32_t*>(memory_.data() + at.producer)),
        consumer_(reinterpret_cast<std::uint32_t*>(memory_.data() + at.consumer)),
        flags_(reinterpret_cast<std::uint32_t*>(memory_.data() + at.flags)),
        entries_(reinterpret_cast<Entry*>(memory_.data() + at.desc)),
        mask_(size - 1) {}

  [[nodiscard]] std::uint32_t produced() const noexcept { return load(producer_); }
  [[nodiscard]] std::uint32_t consumed() const noexcept { return load(consumer_); }
  [[nodiscard]] Entry& operator[](std::uint32_t index) const noexcept { return entries_[index & mask_]; }
  void produce_until(std::uint32_t index) const noexcept { store(producer_, index); }
  void consume_until(std::uint32_t index) const noexcept { store(consumer_, index); }
  [[nodiscard]] bool needs_wakeup() const noexcept {
    return (std::atomic_ref(*flags_).load(std::memory_order_relaxed) & XDP_RING_NEED_WAKEUP) != 0;
  }

 private:
  static std::uint32_t load(std::uint32_t* at) noexcept { return std::atomic_ref(*at).load(std::memory_order_acquire); }
  static void store(std::uint32_t* at, std::uint32_t value) noexcept {
    std::atomic_ref(*at).store(value, std::memory_order_release);
  }

  Mapping memory_;
  std::uint32_t *producer_ = nullptr, *consumer_ = nullptr, *flags_ = nullptr;
  Entry* entries_ = nullptr;
  std::uint32_t mask_ = 0;
};

/// Half of the frames receive, and half send. One thread at a time.
class XdpSocket {
 public:
  static constexpr std::size_t kFrameBytes = 2048;  ///< the kernel keeps 256 of them on reception

  /// `frames`: the number in each direction, a power of two.
  static Result<XdpSocket> open(std::uint32_t frames);
  /// Binds to a queue of an interface. kUnsupported: not with `zero_copy`. kAlreadyExists: another socket has the
  /// queue, or a closed one still has it for some milliseconds. May be called again after an error.
  wherry::Status bind(int interface, std::uint32_t queue, bool zero_copy);

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

  /// The number of frames that have arrived, at most `most`. If there are none, wakes a driver that needs it.
  std::uint32_t arrived(std::uint32_t most) noexcept;
  /// The i-th of the frames that arrived().
  [[nodiscard]] ByteView frame(std::uint32_t i) const noexcept;
  /// Returns the first `count` frames to the kernel.
  void recycle(std::uint32_t count) noexcept;

  /// Memory for building a frame; empty if all frames are in flight.
  [[nodiscard]] std::span<std::byte> sending() noexcept;
  /// Takes the built frame. It is sent at the next flush().
  void send(std::size_t bytes) noexcept;
  /// Returns the number of frames that were newly given to the kernel.
  std::uint32_t flush() noexcept;

  /// Number of our frames that the kernel lost because all buffers were full. Zero-copy drivers count some elsewhere.
  [[nodiscard]] std::uint64_t dropped() const noexcept;

 private:
  explicit XdpSocket(Fd socket) noexcept : socket_(std::move(socket)) {}
  wherry::Status map_rings(std::uint32_t frames);
  void wake_sender() noexcept;
  void reclaim() noexcept;

  Mapping frames_;
  Fd socket_;
  XdpRing<xdp_desc> receive_, send_;
  XdpRing<std::uint64_t> fill_, complete_;
  std::vector<std::uint64_t> free_;  ///< frames to send with
  std::uint32_t built_ = 0;          ///< the producer's counter of send_ after the next flush()
};

}  // namespace wherry::kv
