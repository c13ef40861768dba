// SPDX-License-Identifier: Apache-2.0
// Messages that wait for room, by lane, in the order of sending. Large messages are sent in fragments.
#pragma once

#include <deque>
#include <vector>

#include "base/bytes.hpp"
#include "route/client/spare.hpp"
#include "route/router.hpp"

namespace wherry::route::detail {

/// The head of a fragment, which identifies its message.
struct FragmentHead {
  Rank source = 0;
  std::uint32_t number = 0;  ///< of the message among the large ones of that rank
  std::uint32_t total = 0;   ///< bytes of the whole message
  std::uint32_t handler = 0;
  std::uint32_t offset = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(FragmentHead) == 24);

class Backlog {
 public:
  /// `budget`: in bytes, at least kMaxMessageBytes.
  Backlog(Router& router, Rank source, std::size_t budget, std::uint32_t fragment_handler);
  /// Messages with a longer stride are sent in fragments.
  [[nodiscard]] std::size_t max_whole() const noexcept { return max_whole_; }
  /// Keeps a copy of the message. For a large message, first sends as much as fits and keeps the rest. False: the copy
  /// would exceed the budget, and `must` is false.
  [[nodiscard]] bool add(Rank to, std::uint32_t handler, ByteView message, bool must);
  /// Sends as much as fits. True: something was sent.
  bool push() noexcept;
  [[nodiscard]] bool empty() const noexcept { return bytes_ == 0; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t budget() const noexcept { return budget_; }
  [[nodiscard]] std::size_t high_water() const noexcept { return high_; }

 private:
  struct Large {
    Header header;
    std::uint32_t number = 0;
    std::uint32_t sent = 0;  ///< bytes of the message that have left
  };
  struct Block {
    Bytes data;          ///< whole messages with their headers, or the rest of a large one's payload
    std::size_t at = 0;  ///< the bytes before it have left
    Large large;         ///< of the one large message; none: its header is 0
  };
  struct Queue {
    std::deque<Block> blocks;
    bool listed = false;  ///< in listed_
  };
  static constexpr std::size_t kBlockBytes = 64 << 10;
  bool push(Lane& lane, Block& block) noexcept;
  /// Sends as much as fits of `rest`, which is the end of the message. True: all of it was sent.
  bool push_fragments(Lane& lane, Large& message, ByteView rest) noexcept;

  Router& router_;
  Spare spare_;
  std::vector<Queue> queues_;          ///< by lane
  std::vector<std::uint32_t> listed_;  ///< lanes whose queue is not empty
  std::size_t budget_;
  std::size_t bytes_ = 0, high_ = 0;  ///< of all queues: now, and at most. Beyond budget_ only by messages that `must`
  std::size_t max_whole_;
  Rank source_;
  std::uint32_t fragment_handler_;
  std::uint32_t next_number_ = 0;
};

}  // namespace wherry::route::detail
