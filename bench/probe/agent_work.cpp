// SPDX-License-Identifier: Apache-2.0
#include "probe/agent_work.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace wherry::bench {
namespace {

constexpr std::uint32_t kRanksOfALane = 2;

/// A linear congruential generator with Knuth's 64-bit constants (MMIX). Callers use the upper bits.
std::uint64_t next(std::uint64_t& state) noexcept {
  return state = state * 6364136223846793005U + 1442695040888963407U;
}

route::InboxShape inbox_of(const AgentShape& shape) { return {shape.inputs, shape.ring}; }
route::InboxShape outbox_of(const AgentShape& shape) { return {shape.lanes, shape.ring}; }

std::byte* allocate(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return static_cast<std::byte*>(memory);
}

}  // namespace

AgentWork::AgentWork(AgentShape shape, std::uint64_t seed)
    : shape_(shape),
      memory_(allocate(inbox_of(shape).bytes() + outbox_of(shape).bytes()), std::free),
      router_(shape.lanes, shape.inputs, shape.ring.buffer_bytes, route::Router::kNobody),
      random_(seed) {
  if (!shape.ring.valid() || shape.payload == 0 || shape.payload % 8 != 0)
    throw std::invalid_argument("AgentWork: not a shape");
  std::byte* const inbox = memory_.get();
  // Both inboxes begin with doorbells. Their size is a multiple of 64 bytes, as is that of each ring.
  std::byte* const outbox = inbox + inbox_of(shape).bytes();
  router_.read_from(inbox_of(shape), inbox);
  doorbells_ = route::Doorbells(reinterpret_cast<std::uint64_t*>(inbox));
  for (std::uint32_t i = 0; i < shape.inputs; ++i)
    previous_.emplace_back(inbox + inbox_of(shape).ring_at(i), shape.ring);
  for (std::uint32_t i = 0; i < shape.lanes; ++i) {
    route::connect(router_.lanes()[i], outbox_of(shape), outbox, i);
    next_.emplace_back(outbox + outbox_of(shape).ring_at(i), shape.ring);
  }
  std::vector<std::uint32_t> lane_of_rank;
  for (std::uint32_t rank = 0; rank < kRanksOfALane * shape.lanes; ++rank) lane_of_rank.push_back(rank % shape.lanes);
  router_.set_table(lane_of_rank);
}

AgentWork::Filled AgentWork::fill_one(std::uint32_t input) {
  route::RingWriter& ring = previous_[input];
  std::byte* const start = ring.try_open();
  if (start == nullptr) throw std::logic_error("AgentWork: an input is full");
  const std::size_t stride = route::Header::stride_of(shape_.payload);
  const auto ranks = static_cast<std::uint64_t>(router_.ranks());
  std::byte* at = start;
  for (; at + stride <= start + shape_.ring.buffer_bytes; at += stride) {
    const std::uint64_t number = next(random_);
    const auto to = static_cast<route::Rank>((number >> 32) * ranks >> 32);
    route::Header::make(shape_.payload, route::kFirstUserHandler, to).store(at);
    for (std::size_t offset = sizeof(route::Header); offset < stride; offset += sizeof number)
      std::memcpy(at + offset, &number, sizeof number);
    ++in_.messages;
    in_.sum += number * (shape_.payload / sizeof number);
  }
  ring.close(static_cast<std::uint32_t>(at - start));
  doorbells_.set(input);
  return {start, static_cast<std::size_t>(at - start)};
}

void AgentWork::drain() {
  for (route::RingReader& ring : next_) {
    for (;;) {
      const route::RingReader::Part part = ring.peek();
      if (part.malformed) throw std::logic_error("AgentWork: the agent wrote something other than messages");
      if (part.empty()) break;
      for (const std::byte* at = part.from; at != part.to;) {
        const route::Header header = route::Header::load(at);
        for (std::size_t offset = sizeof header; offset < header.stride(); offset += sizeof(std::uint64_t)) {
          std::uint64_t number = 0;
          std::memcpy(&number, at + offset, sizeof number);
          out_.sum += number;
        }
        ++out_.messages;
        at += header.stride();
      }
      ring.advance(static_cast<std::size_t>(part.to - part.from));
    }
  }
}

}  // namespace wherry::bench
