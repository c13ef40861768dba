// SPDX-License-Identifier: Apache-2.0
// Messages through memory that both sides map: one writer, one reader, a ring, for the posts of a client on the agent's
// machine. Unlike a UCX active message, it avoids most cold cache lines of the sender (measured: 1 us instead of 5 us
// for a call between two time steps). A full ring causes back-pressure; no message waits inside a library.
//
// Layout (all little-endian, offsets from the start of the memory):
//   0     u64   bytes that the reader has consumed, ever (written by the reader)
//   64    the ring, a power of two of bytes: records, each at a multiple of 8
//   record: u64 word = kind << 32 | payload bytes; 0: nothing here yet. Then the payload, padded to 8. A record never
// wraps. A record of kind kSkip fills the rest of the ring. The writer clears the word behind a record before it
// publishes the record's own word. So the reader stops at the right place, whatever an earlier lap left in the ring.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/hot.hpp"
#include "base/prefetch.hpp"

namespace wherry::fabric {

struct MailboxRecord {
  std::uint8_t kind = 0;
  ByteView payload;
};

class Mailbox {
 public:
  static constexpr std::uint8_t kSkip = 0xff;
  /// The largest ring. The reader copies records of up to a quarter of the ring, so this limits its memory.
  static constexpr std::size_t kMostRingBytes = std::size_t{1} << 20;
  /// Bytes of memory for a ring of `ring_bytes`, which is a power of two from 4096 to kMostRingBytes.
  static constexpr std::size_t bytes_for(std::size_t ring_bytes) noexcept { return kHead + ring_bytes; }
  /// Whether `bytes` is the result of bytes_for() for an allowed ring.
  static constexpr bool valid_size(std::uint64_t bytes) noexcept {
    return bytes >= bytes_for(4096) && bytes <= bytes_for(kMostRingBytes) &&
           ((bytes - kHead) & (bytes - kHead - 1)) == 0;
  }

 protected:
  static constexpr std::size_t kHead = 64;
  static constexpr std::size_t kWord = 8;
  static constexpr std::uint64_t padded(std::uint64_t bytes) noexcept { return (bytes + 7) & ~std::uint64_t{7}; }
  Mailbox() = default;
  explicit Mailbox(std::span<std::byte> memory) noexcept
      : consumed_(reinterpret_cast<std::uint64_t*>(memory.data())),
        ring_(memory.data() + kHead),
        mask_(memory.size() - kHead - 1) {}
  [[nodiscard]] std::uint64_t* word_at(std::uint64_t position) const noexcept {
    return reinterpret_cast<std::uint64_t*>(ring_ + (position & mask_));
  }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return mask_ + 1; }

  std::uint64_t* consumed_ = nullptr;
  std::byte* ring_ = nullptr;
  std::uint64_t mask_ = 0;
};

/// The writing end. One thread at a time.
class MailboxWriter : public Mailbox {
 public:
  MailboxWriter() = default;
  /// `memory`: zeroed, shared, of bytes_for() bytes, aligned to 64. It must outlive the writer.
  explicit MailboxWriter(std::span<std::byte> memory) noexcept : Mailbox(memory) {}
  explicit operator bool() const noexcept { return ring_ != nullptr; }

  /// The largest payload that a ring takes: a quarter of it.
  [[nodiscard]] std::size_t largest() const noexcept { return static_cast<std::size_t>(capacity() / 4); }
  /// Reserves space for a payload of `bytes` (aligned to 8). Null: the reader is behind, so there is no space now. Then
  /// publish it; another reserve discards it. Precondition: bytes <= largest().
  WHERRY_HOT std::byte* try_reserve(std::size_t bytes) noexcept;
  /// Prefetches the memory for the next payload of `bytes`.
  void prefetch(std::size_t bytes) const noexcept {
    const std::uint64_t room = capacity() - (written_ & mask_);
    prefetch_for_writing(word_at(written_), static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes + 2 * kWord)));
  }
  /// Publishes the payload that was reserved last. `kind`: 1 to 254.
  WHERRY_HOT void publish(std::uint8_t kind) noexcept;

 private:
  std::uint64_t written_ = 0;  ///< bytes, ever
  std::uint64_t seen_ = 0;     ///< what *consumed_ said last
  std::uint64_t at_ = 0;       ///< of the reserved record
  std::uint64_t bytes_ = 0;
};

/// The reading end. One thread at a time. It trusts no content, because the memory belongs to the writer.
class MailboxReader : public Mailbox {
 public:
  MailboxReader() = default;
  explicit MailboxReader(std::span<std::byte> memory) noexcept : Mailbox(memory) {}
  explicit operator bool() const noexcept { return ring_ != nullptr; }

  enum class Outcome : std::uint8_t { kEmpty, kRecord, kMalformed };
  /// Reads the next record. Its payload is a copy, because the writer could change the original during parsing. The
  /// copy is aligned to 8 and valid until the next call. kMalformed: the ring is unusable, because the writer broke the
  /// rules or another process wrote into its memory.
  Outcome try_read(MailboxRecord& record);

 private:
  std::uint64_t read_ = 0;  ///< bytes, ever
  std::vector<std::uint64_t> copy_;
};

}  // namespace wherry::fabric
