// SPDX-License-Identifier: Apache-2.0
// Keeps messages until the engine's next turn. UCX delivers them inside calls of the engine, which is not re-entrant.
//
// It has two buffers: one is filled while the other is read, so a new message never moves messages that are being read.
// Both keep their memory, so the engine need not allocate again. Memory beyond kKept, for large messages, is freed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"

namespace wherry::move {

/// `From`: the sender of a message. One thread; only push() may be called inside read().
template <typename From>
class Inbox {
 public:
  static constexpr std::size_t kKept = std::size_t{256} << 10;  ///< some hundred messages of ordinary size

  Inbox() {
    filling_.reserve(kKept);
    reading_.reserve(kKept);
  }
  [[nodiscard]] bool empty() const noexcept { return filling_.empty(); }

  /// Copies the message.
  void push(From& from, ByteView message) {
    const Head head{&from, message.size()};
    const auto* bytes = reinterpret_cast<const std::byte*>(&head);
    const std::size_t whole = filling_.size() + sizeof head + padded(message.size());
    // Reserve before any change, because this may throw.
    if (whole > filling_.capacity()) filling_.reserve(std::max(kKept, 2 * whole));
    filling_.insert(filling_.end(), bytes, bytes + sizeof head);
    filling_.insert(filling_.end(), message.begin(), message.end());
    filling_.resize(whole);
  }
  /// Passes all messages so far to `take(From&, ByteView)`, in the order of their arrival. Messages are aligned to 16
  /// bytes and remain valid during the call. `take` must not throw.
  template <typename Take>
  void read(Take take) {
    std::swap(filling_, reading_);
    for (std::size_t at = 0; at < reading_.size();) {
      Head head;
      std::memcpy(&head, reading_.data() + at, sizeof head);
      const ByteView message(reading_.data() + at + sizeof head, head.bytes);
      at += sizeof head + padded(head.bytes);
      if (head.from != nullptr) take(*head.from, message);
    }
    reading_.clear();
    if (reading_.capacity() > kKept) Bytes().swap(reading_);
  }
  /// Drops the messages of this sender. Do not call it inside read().
  void forget(const From& from) noexcept {
    for (std::size_t at = 0; at < filling_.size();) {
      Head head;
      std::memcpy(&head, filling_.data() + at, sizeof head);
      if (head.from == &from) {
        head.from = nullptr;
        std::memcpy(filling_.data() + at, &head, sizeof head);
      }
      at += sizeof head + padded(head.bytes);
    }
  }

 private:
  struct Head {
    From* from;
    std::uint64_t bytes;
  };
  static_assert(sizeof(Head) == 16);
  static constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 15) & ~std::size_t{15}; }

  Bytes filling_, reading_;
};

}  // namespace wherry::move
