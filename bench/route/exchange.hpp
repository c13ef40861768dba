// SPDX-License-Identifier: Apache-2.0
// The hand-written exchange to which route's histogram is compared: optimised code for exactly two ranks and messages
// of 16 bytes. It fills and drains shared rings of 32 KiB buffers in alternation, with prefetches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/cpu.hpp"

namespace wherry::bench {

struct Message16 {
  std::uint64_t tag;  ///< in place of a header
  std::uint64_t index;
};

/// One direction: a ring of `kBuffers` buffers.
struct ExchangeChannel {
  static constexpr std::size_t kBuffers = 4;
  static constexpr std::size_t kMessages = (32 << 10) / sizeof(Message16);
  struct alignas(64) Flag {
    std::atomic<std::uint32_t> messages;  ///< 0: the buffer is empty and the writer's; else full and the reader's
  };
  Flag full[kBuffers];
  alignas(4096) Message16 buffer[kBuffers][kMessages];
};

struct Exchange {
  ExchangeChannel to[2][2];  ///< [from][to], oneself included
  alignas(64) std::atomic<std::uint32_t> finished;
};

/// One rank's work: sends each of `targets` to rank (target & 1), which increments counter target >> 1 of its table.
/// Returns when both ranks are done. `round`: counts the calls for this exchange, from 1.
inline void exchange_histogram(Exchange& exchange, std::uint32_t me, std::span<const std::uint64_t> targets,
                               std::size_t updates, std::uint64_t* table, std::uint32_t round) noexcept {
  constexpr std::size_t kLast = ExchangeChannel::kBuffers;
  std::uint32_t write_at[2] = {}, read_at[2] = {};
  std::size_t filled[2] = {};
  Message16* open[2] = {};
  const std::size_t mask = targets.size() - 1;
  std::size_t next = 0;
  const auto drain = [&]() noexcept {
    bool worked = false;
    for (std::uint32_t from = 0; from < 2; ++from) {
      ExchangeChannel& channel = exchange.to[from][me];
      for (;;) {
        auto& flag = channel.full[read_at[from] % kLast];
        const std::uint32_t messages = flag.messages.load(std::memory_order_acquire);
        if (messages == 0) break;
        const Message16* const buffer = channel.buffer[read_at[from] % kLast];
        for (std::uint32_t i = 0; i < messages; ++i) {
          if (i + 16 < messages) __builtin_prefetch(&table[buffer[i + 16].index], 1);
          ++table[buffer[i].index];
        }
        flag.messages.store(0, std::memory_order_release);
        ++read_at[from];
        worked = true;
      }
    }
    return worked;
  };
  const auto hand_on = [&](std::uint32_t to) noexcept {
    exchange.to[me][to].full[write_at[to] % kLast].messages.store(static_cast<std::uint32_t>(filled[to]),
                                                                  std::memory_order_release);
    ++write_at[to];
    open[to] = nullptr;
    filled[to] = 0;
  };
  const auto take_buffer = [&](std::uint32_t to) noexcept {
    ExchangeChannel& channel = exchange.to[me][to];
    if (channel.full[write_at[to] % kLast].messages.load(std::memory_order_acquire) != 0) return false;
    open[to] = channel.buffer[write_at[to] % kLast];
    return true;
  };
  while (next < updates) {
    for (; next < updates; ++next) {
      const std::uint64_t target = targets[next & mask];
      const auto to = static_cast<std::uint32_t>(target & 1);
      if (open[to] == nullptr && !take_buffer(to)) break;
      open[to][filled[to]++] = {to, target >> 1};
      if (filled[to] == ExchangeChannel::kMessages) hand_on(to);
    }
    drain();
  }
  for (std::uint32_t to = 0; to < 2; ++to) {
    if (filled[to] != 0) hand_on(to);
  }
  exchange.finished.fetch_add(1, std::memory_order_acq_rel);
  while (exchange.finished.load(std::memory_order_acquire) < 2 * round) {
    if (!drain()) cpu_relax();
  }
  while (drain()) {
  }
}

}  // namespace wherry::bench
