// SPDX-License-Identifier: Apache-2.0
#include "route/client/backlog.hpp"

#include <algorithm>
#include <cstring>

#include "base/copy.hpp"

namespace wherry::route::detail {

Backlog::Backlog(Router& router, Rank source, std::size_t budget, std::uint32_t fragment_handler)
    : router_(router),
      queues_(router.lanes().size()),
      budget_(budget),
      max_whole_(router.buffer_bytes() / 4),
      source_(source),
      fragment_handler_(fragment_handler) {}

bool Backlog::add(Rank to, std::uint32_t handler, ByteView message, bool must) {
  const Header header = Header::make(message.size(), handler, to);
  // Keep only the payload of a large message, so that the largest message fits into the smallest budget.
  const bool large = header.stride() > max_whole_;
  if (!must && bytes_ + (large ? message.size() : header.stride()) > budget_) return false;
  Lane& lane = router_.lane_of(to);
  const auto index = static_cast<std::uint32_t>(&lane - router_.lanes().data());
  Queue& queue = queues_[index];
  if (large) {
    Large whole{.header = header, .number = next_number_++};
    // Send the part that fits at once, without a copy in the backlog.
    if (queue.blocks.empty() && push_fragments(lane, whole, message)) return true;
    message = message.subspan(whole.sent);
    Bytes rest = spare_.take(message.size());
    std::memcpy(rest.data(), message.data(), message.size());
    queue.blocks.push_back({.data = std::move(rest), .large = whole});
  } else {
    if (queue.blocks.empty() || queue.blocks.back().large.header.word != 0 ||
        queue.blocks.back().data.size() + header.stride() > queue.blocks.back().data.capacity()) {
      queue.blocks.emplace_back();
      queue.blocks.back().data.reserve(std::max(kBlockBytes, header.stride()));
    }
    Bytes& data = queue.blocks.back().data;
    const std::size_t at = data.size();
    data.resize(at + header.stride());
    header.store(data.data() + at);
    if (!message.empty()) std::memcpy(data.data() + at + 8, message.data(), message.size());
  }
  if (!queue.listed) {
    queue.listed = true;
    listed_.push_back(index);
  }
  bytes_ += large ? message.size() : header.stride();
  high_ = std::max(high_, bytes_);
  return true;
}

bool Backlog::push() noexcept {
  bool worked = false;
  std::erase_if(listed_, [&](std::uint32_t index) {
    Queue& queue = queues_[index];
    Lane& lane = router_.lanes()[index];
    while (!queue.blocks.empty()) {
      Block& block = queue.blocks.front();
      const std::size_t before = block.at;
      bool done = false;
      if (block.large.header.word != 0) {
        const std::uint32_t sent = block.large.sent;
        done = push_fragments(lane, block.large, ByteView(block.data).subspan(block.at));
        block.at += block.large.sent - sent;
      } else {
        done = push(lane, block);
      }
      bytes_ -= block.at - before;
      worked |= done || block.at != before;
      if (!done) return false;
      if (block.large.header.word != 0) spare_.give(std::move(block.data));
      queue.blocks.pop_front();
    }
    queue.listed = false;
    return true;
  });
  return worked;
}

bool Backlog::push(Lane& lane, Block& block) noexcept {
  while (block.at != block.data.size()) {
    const std::byte* const from = block.data.data() + block.at;
    const Header header = Header::load(from);
    const std::size_t bytes = header.stride() - sizeof header;
    if (!router_.try_append(lane, header, [=](std::byte* to) { std::memcpy(to, from + sizeof header, bytes); }))
      return false;
    block.at += header.stride();
  }
  return true;
}

bool Backlog::push_fragments(Lane& lane, Large& message, ByteView rest) noexcept {
  const std::size_t most = max_whole_ - 8 - sizeof(FragmentHead);
  while (!rest.empty()) {
    const ByteView piece = rest.first(std::min(most, rest.size()));
    const Header header = Header::make(sizeof(FragmentHead) + piece.size(), fragment_handler_, message.header.to());
    const FragmentHead head{source_,
                            message.number,
                            static_cast<std::uint32_t>(message.header.size()),
                            message.header.handler(),
                            message.sent,
                            0};
    const auto copy = [&](std::byte* to) {
      std::memcpy(to, &head, sizeof head);
      copy_to_other_core(to + sizeof head, piece.data(), piece.size());
    };
    if (!router_.try_append(lane, header, copy)) return false;
    message.sent += static_cast<std::uint32_t>(piece.size());
    rest = rest.subspan(piece.size());
  }
  return true;
}

}  // namespace wherry::route::detail
