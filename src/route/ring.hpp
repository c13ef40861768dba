// SPDX-License-Identifier: Apache-2.0
// A ring of buffers in shared memory, which passes messages from one writer to one reader. Neither side waits, locks or
// makes system calls. Besides its bytes, a full buffer costs each side two cache lines.
//
// Layout (little-endian, offsets from the start, which is aligned to 64):
//   0     u64   published (by the writer): sequence << 32 | bytes. Buffers before `sequence` are closed. Of that buffer
//               the first `bytes` may be read: it stays open, and can be filled and flushed further
//   64    u32   consumed (by the reader): buffers that the writer may use again, counted from the start
//   128   u32   length of each closed buffer (by the writer)
//   then  the buffers; sequence s is buffer s % buffers
// Sequences wrap at 2^32, which is harmless since the number of buffers is a power of two.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::route {

struct RingShape {
  std::uint32_t buffers = 4;              ///< a power of two
  std::uint32_t buffer_bytes = 32 << 10;  ///< a multiple of 64

  static constexpr std::uint32_t kMaxBuffers = 1024;
  static constexpr std::uint32_t kMaxBufferBytes = 64 << 20;
  [[nodiscard]] constexpr bool valid() const noexcept {
    return std::has_single_bit(buffers) && buffers >= 2 && buffers <= kMaxBuffers && buffer_bytes >= 256 &&
           buffer_bytes <= kMaxBufferBytes && buffer_bytes % 64 == 0;
  }
  [[nodiscard]] constexpr std::size_t first_buffer() const noexcept {
    return 128 + ((std::size_t{buffers} * 4 + 63) & ~std::size_t{63});
  }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept {
    return first_buffer() + std::size_t{buffers} * buffer_bytes;
  }
  friend constexpr bool operator==(RingShape, RingShape) noexcept = default;
};

class Ring {
 public:
  Ring() noexcept = default;
  /// `memory`: zeroed, shared, shape.bytes() long, aligned to 64. Must outlive the ring.
  Ring(std::byte* memory, RingShape shape) noexcept : memory_(memory), shape_(shape) {}
  explicit operator bool() const noexcept { return memory_ != nullptr; }
  [[nodiscard]] RingShape shape() const noexcept { return shape_; }

 protected:
  [[nodiscard]] std::atomic_ref<std::uint64_t> published() const noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_));
  }
  [[nodiscard]] std::atomic_ref<std::uint32_t> consumed() const noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory_ + 64));
  }
  [[nodiscard]] std::atomic_ref<std::uint32_t> length(std::uint32_t sequence) const noexcept {
    return std::atomic_ref(reinterpret_cast<std::uint32_t*>(memory_ + 128)[sequence & (shape_.buffers - 1)]);
  }
  [[nodiscard]] std::byte* buffer(std::uint32_t sequence) const noexcept {
    return memory_ + shape_.first_buffer() + std::size_t{sequence & (shape_.buffers - 1)} * shape_.buffer_bytes;
  }

  std::byte* memory_ = nullptr;
  RingShape shape_;
};

/// The writing end. One thread at a time.
class RingWriter : public Ring {
 public:
  using Ring::Ring;
  /// Opens the next buffer. Null: the reader has not returned a buffer yet. Precondition: no buffer is open.
  std::byte* try_open() noexcept {
    if (sequence_ - seen_ == shape_.buffers) {
      seen_ = consumed().load(std::memory_order_acquire);
      if (sequence_ - seen_ >= shape_.buffers) return nullptr;
    }
    return buffer(sequence_);
  }
  /// Publishes the first `bytes` bytes of the open buffer to the reader. The buffer stays open.
  void publish(std::uint32_t bytes) noexcept {
    published().store(std::uint64_t{sequence_} << 32 | bytes, std::memory_order_release);
  }
  /// Closes the open buffer, which holds `bytes` bytes.
  void close(std::uint32_t bytes) noexcept {
    length(sequence_).store(bytes, std::memory_order_relaxed);
    ++sequence_;
    published().store(std::uint64_t{sequence_} << 32, std::memory_order_release);
  }
  /// The sequence number of the open buffer, or of the next one.
  [[nodiscard]] std::uint32_t sequence() const noexcept { return sequence_; }

 private:
  std::uint32_t sequence_ = 0;
  std::uint32_t seen_ = 0;  ///< consumed(), as it was last read; at most `buffers` behind sequence_
};

/// The reading end. One thread at a time. It checks all words before use, because the writer owns the memory.
class RingReader : public Ring {
 public:
  using Ring::Ring;
  struct Part {
    const std::byte* from = nullptr;
    const std::byte* to = nullptr;
    bool malformed = false;  ///< the writer broke the rules: nothing more can be read
    [[nodiscard]] bool empty() const noexcept { return from == to; }
  };
  /// The readable part of the current buffer; empty if there is none now. Also gives buffers that were read to their
  /// end back to the writer.
  Part peek() noexcept {
    for (;;) {
      const std::uint64_t word = published().load(std::memory_order_acquire);
      const auto sequence = static_cast<std::uint32_t>(word >> 32);
      const bool closed = sequence != sequence_;
      if (closed && sequence - sequence_ > shape_.buffers) return {.malformed = true};
      const std::uint32_t end =
          closed ? length(sequence_).load(std::memory_order_relaxed) : static_cast<std::uint32_t>(word);
      if (end > shape_.buffer_bytes || end < offset_ || end % 8 != 0) return {.malformed = true};
      const std::byte* const start = buffer(sequence_);
      if (offset_ != end || !closed) return {start + offset_, start + end, false};
      ++sequence_;
      offset_ = 0;
      consumed().store(sequence_, std::memory_order_release);
    }
  }
  /// Marks the first `bytes` bytes of the last peek() as read.
  void advance(std::size_t bytes) noexcept { offset_ += static_cast<std::uint32_t>(bytes); }
  /// The sequence number of the current buffer.
  [[nodiscard]] std::uint32_t sequence() const noexcept { return sequence_; }

 private:
  std::uint32_t sequence_ = 0;
  std::uint32_t offset_ = 0;  ///< bytes of the current buffer that have been read; a multiple of 8
};

/// One bit for each of many rings, in the reader's memory. A writer sets its bit when its ring has new content. The
/// reader reads one word for every 64 rings.
class Doorbells {
 public:
  Doorbells() noexcept = default;
  /// `words`: zeroed, shared, aligned to 64.
  explicit Doorbells(std::uint64_t* words) noexcept : words_(words) {}
  static constexpr std::size_t bytes_for(std::size_t rings) noexcept { return (rings + 511) / 512 * 64; }
  /// Announces that ring `index` has new content.
  void set(std::size_t index) const noexcept {
    const std::uint64_t bit = std::uint64_t{1} << index % 64;
    const std::atomic_ref word(words_[index / 64]);
    // A reader that finds the bit set must see all content that was published before. So a writer must do the fetch_or
    // even if the bit is already set: the reader may be about to clear it.
    word.fetch_or(bit, std::memory_order_acq_rel);
  }
  /// Returns word `index` and clears it.
  [[nodiscard]] std::uint64_t take(std::size_t index) const noexcept {
    const std::atomic_ref word(words_[index]);
    if (word.load(std::memory_order_relaxed) == 0) return 0;
    return word.exchange(0, std::memory_order_acq_rel);
  }

 private:
  std::uint64_t* words_ = nullptr;
};

}  // namespace wherry::route
