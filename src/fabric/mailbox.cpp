// SPDX-License-Identifier: Apache-2.0
#include "fabric/mailbox.hpp"

#include <cstring>

namespace wherry::fabric {

std::byte* MailboxWriter::try_reserve(std::size_t bytes) noexcept {
  const std::uint64_t record = kWord + padded(bytes);
  const std::uint64_t to_end = capacity() - (written_ & mask_);
  const std::uint64_t skip = record + kWord > to_end ? to_end : 0;  // the cleared word behind it must lie in the ring
  const std::uint64_t needed = skip + record + kWord;
  if (written_ + needed - seen_ > capacity()) {
    seen_ = std::atomic_ref(*consumed_).load(std::memory_order_acquire);
    if (written_ + needed - seen_ > capacity()) return nullptr;
  }
  if (skip != 0) {
    *word_at(written_ + skip) = 0;
    std::atomic_ref(*word_at(written_)).store(std::uint64_t{kSkip} << 32 | (skip - kWord), std::memory_order_release);
    written_ += skip;
  }
  at_ = written_;
  bytes_ = bytes;
  return reinterpret_cast<std::byte*>(word_at(at_)) + kWord;
}

void MailboxWriter::publish(std::uint8_t kind) noexcept {
  written_ = at_ + kWord + padded(bytes_);
  *word_at(written_) = 0;
  std::atomic_ref(*word_at(at_)).store(std::uint64_t{kind} << 32 | bytes_, std::memory_order_release);
}

MailboxReader::Outcome MailboxReader::try_read(MailboxRecord& record) {
  for (;;) {
    const std::uint64_t word = std::atomic_ref(*word_at(read_)).load(std::memory_order_acquire);
    if (word == 0) return Outcome::kEmpty;
    const std::uint64_t bytes = word & 0xffffffff;
    const auto kind = static_cast<std::uint8_t>(word >> 32);
    const std::uint64_t to_end = capacity() - (read_ & mask_);
    if (kind != kSkip && bytes > capacity() / 4) return Outcome::kMalformed;
    if (word >> 40 != 0 || kind == 0 || kWord + padded(bytes) > to_end) return Outcome::kMalformed;
    // A skip always ends at the end of the ring and never starts at its start, so one call reads at most one skip.
    if (kind == kSkip && (kWord + bytes != to_end || to_end == capacity())) return Outcome::kMalformed;
    const std::uint64_t at = read_;
    if (kind != kSkip) {
      copy_.resize(padded(bytes) / sizeof(std::uint64_t));
      if (bytes != 0) std::memcpy(copy_.data(), reinterpret_cast<const std::byte*>(word_at(at)) + kWord, bytes);
      record = {kind, std::as_bytes(std::span(copy_)).first(bytes)};
    }
    read_ = at + kWord + padded(bytes);
    std::atomic_ref(*consumed_).store(read_, std::memory_order_release);
    if (kind != kSkip) return Outcome::kRecord;
  }
}

}  // namespace wherry::fabric
