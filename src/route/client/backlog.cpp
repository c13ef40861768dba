// SPDX-License-Identifier: Apache-2.0
#include "route/client/backlog.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::route::detail {

Backlog::Backlog(Router& router, Rank source, std::size_t budget, std::uint32_t fragment_handler)
    : router_(router),
      queues_(router.lanes().size()),
      budget_(std::max(budget, kMaxMessageBytes)),
      whole_(router.largest() / 4),
      source_(source),
      fragment_handler_(fragment_handler) {}

bool Backlog::add(Rank to, std::uint32_t handler, ByteView message, bool must) {
  const Header header = Header::make(message.size(), handler, to);
  if (!must && bytes_ + header.stride() > budget_) return false;
  const auto lane = static_cast<std::uint32_t>(&router_.lane_of(to) - router_.lanes().data());
  Queue& queue = queues_[lane];
  if (!queue.listed) {
    queue.listed = true;
    listed_.push_back(lane);
  }
  const bool large = header.stride() > whole_;
  if (large) {
    queue.blocks.push_back({.data = Bytes(message.begin(), message.end()), .large = header, .number = next_number_++});
  } else {
    if (queue.blocks.empty() || queue.blocks.back().large.word != 0 ||
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
      const bool done = block.large.word != 0 ? push_fragments(lane, block) : push(lane, block);
      bytes_ -= block.at - before;
      worked |= done || block.at != before;
      if (!done) return false;
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
    const std::size_t stride = Header::load(from).stride();
    std::byte* const to = router_.room(lane, stride);
    if (to == nullptr) return false;
    std::memcpy(to, from, stride);
    lane.at += stride;
    block.at += stride;
  }
  return true;
}

bool Backlog::push_fragments(Lane& lane, Block& block) noexcept {
  const std::size_t most = whole_ - 8 - sizeof(FragmentHead);
  while (block.at != block.data.size()) {
    const std::size_t bytes = std::min(most, block.data.size() - block.at);
    const Header header = Header::make(sizeof(FragmentHead) + bytes, fragment_handler_, block.large.to());
    std::byte* const to = router_.room(lane, header.stride());
    if (to == nullptr) return false;
    const FragmentHead head{source_,
                            block.number,
                            static_cast<std::uint32_t>(block.data.size()),
                            block.large.handler(),
                            static_cast<std::uint32_t>(block.at),
                            0};
    header.store(to);
    std::memcpy(to + 8, &head, sizeof head);
    std::memcpy(to + 8 + sizeof head, block.data.data() + block.at, bytes);
    lane.at += header.stride();
    block.at += bytes;
  }
  return true;
}

}  // namespace wherry::route::detail
