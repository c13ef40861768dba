// SPDX-License-Identifier: Apache-2.0
// Tests ranks as threads of one process. How ranks find each other is tested elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>

#include "base/clock.hpp"
#include "base/testing.hpp"
#include "route/client/testing.hpp"

namespace wherry::route {
namespace {

using namespace std::chrono_literals;
using testing_support::run_ranks;
using wherry::testing_support::kPatience;

struct Update {
  std::uint32_t index;
  std::uint32_t by;
};

TEST(Runtime, HistogramOverRanks_ExpectEveryUpdateOnce) {
  constexpr std::uint32_t kEach = 20'000;
  run_ranks({0, 0, 1, 1, 2}, {}, {}, [&](Runtime& runtime) {
    std::vector<std::uint64_t> table(100);
    const auto add = runtime.on<Update>([&](const Update& u) { table[u.index] += u.by; });
    for (std::uint32_t i = 0; i < kEach; ++i)
      ASSERT_EQ(runtime.send((i + runtime.rank()) % runtime.ranks(), add, Update{i % 100, 1}), StatusCode::kOk);
    ASSERT_TRUE(runtime.quiesce(kPatience));
    std::uint64_t mine = 0;
    for (const std::uint64_t count : table) mine += count;
    EXPECT_EQ(mine, kEach);
    const auto all = runtime.reduce(mine);
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, std::uint64_t{kEach} * runtime.ranks());
    EXPECT_EQ(runtime.statistics().sent, kEach);
    EXPECT_EQ(runtime.statistics().handled, kEach);
  });
}

TEST(Runtime, RankThatWaitsForAnother_ExpectTheTimeInItsStatistics) {
  run_ranks({0, 0}, {}, {}, [&](Runtime& runtime) {
    ASSERT_TRUE(runtime.reduce(std::uint64_t{0}));
    const std::uint64_t before = runtime.statistics().blocked_ns;
    if (runtime.rank() == 1) {
      std::this_thread::sleep_for(100ms);
      EXPECT_EQ(runtime.statistics().blocked_ns, before) << "whoever does not call is not blocked";
    }
    const std::uint64_t start = now_ns();
    ASSERT_TRUE(runtime.reduce(std::uint64_t{0}));
    const std::uint64_t blocked = runtime.statistics().blocked_ns - before;
    EXPECT_LE(blocked, now_ns() - start);
    if (runtime.rank() == 0) {
      EXPECT_GE(blocked, 20'000'000U);
    }
  });
}

/// The content of a message of `size` bytes from `rank`: byte i is 7 i + rank + size.
Bytes period_of(Rank rank, std::size_t size) {
  Bytes period(256);
  for (std::size_t i = 0; i < period.size(); ++i) period[i] = static_cast<std::byte>(i * 7 + rank + size);
  return period;
}

/// The index of the first wrong byte after the rank. Compares by period, because without optimisation a loop over 64
/// MiB takes seconds.
std::size_t first_wrong(ByteView bytes, Rank from) {
  const Bytes period = period_of(from, bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += period.size()) {
    const std::size_t begin = at == 0 ? 4 : 0, end = std::min(period.size(), bytes.size() - at);
    if (std::memcmp(bytes.data() + at + begin, period.data() + begin, end - begin) == 0) continue;
    for (std::size_t i = begin; i < end; ++i)
      if (bytes[at + i] != period[i]) return at + i;
  }
  return bytes.size();
}

TEST(Runtime, MessagesOfAnySize_ExpectTheirBytes) {
  run_ranks({0, 1, 1}, {}, {2, 4096}, [&](Runtime& runtime) {
    std::map<std::pair<Rank, std::size_t>, int> got;
    const auto take = runtime.on<ByteView>([&](ByteView bytes) {
      // The message: rank, size, then a pattern.
      Rank from = 0;
      ASSERT_GE(bytes.size(), 4u);
      std::memcpy(&from, bytes.data(), 4);
      ASSERT_EQ(first_wrong(bytes, from), bytes.size());
      ++got[{from, bytes.size()}];
    });
    const std::vector<std::size_t> sizes{
        4, 5, 8, 100, 1000, 1024, 4096, 5000, 100'000, std::size_t{1} << 20, kMaxMessageBytes};
    for (const std::size_t size : sizes) {
      Bytes message(size);
      const Rank me = runtime.rank();
      const Bytes period = period_of(me, size);
      for (std::size_t i = 0; i < size; i += period.size())
        std::memcpy(message.data() + i, period.data(), std::min(period.size(), size - i));
      std::memcpy(message.data(), &me, 4);
      for (Rank to = 0; to < runtime.ranks(); ++to) {
        ASSERT_EQ(runtime.send(to, take, message), StatusCode::kOk);
      }
    }
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(got.size(), sizes.size() * runtime.ranks());
    for (const auto& [what, count] : got) EXPECT_EQ(count, 1) << what.second;
  });
}

TEST(Runtime, EmptyMessages_ExpectThemCounted) {
  struct Nothing {};
  run_ranks({0, 0}, {}, {}, [&](Runtime& runtime) {
    int got = 0;
    const auto tick = runtime.on<Nothing>([&](const Nothing&) { ++got; });
    for (int i = 0; i < 1000; ++i) (void)runtime.send(1 - runtime.rank(), tick, Nothing{});
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(got, 1000);
  });
}

TEST(Runtime, HandlersThatSend_ExpectTheWholeTreeBeforeQuiesceReturns) {
  // Each message sends two more until its depth is 0, which are far more than the buffers can hold.
  run_ranks({0, 0, 1, 1}, {}, {2, 256}, [&](Runtime& runtime) {
    std::uint64_t handled = 0;
    Handler<std::uint64_t> spawn;
    spawn = runtime.on<std::uint64_t>([&](const std::uint64_t& depth) {
      ++handled;
      if (depth == 0) return;
      for (std::uint64_t i = 0; i < 2; ++i)
        EXPECT_EQ(runtime.send((runtime.rank() + static_cast<Rank>(depth + i)) % runtime.ranks(), spawn, depth - 1),
                  StatusCode::kOk);
    });
    if (runtime.rank() == 0) (void)runtime.send(1, spawn, std::uint64_t{15});
    ASSERT_TRUE(runtime.quiesce(kPatience));
    const auto all = runtime.reduce(handled);
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, (std::uint64_t{1} << 16) - 1);
  });
}

TEST(Runtime, RequestsBothWays_ExpectRepliesAndNoDeadlock) {
  run_ranks({0, 1}, {}, {2, 256}, [&](Runtime& runtime) {
    const auto square =
        runtime.serve<std::uint32_t, std::uint64_t>([](const std::uint32_t& x) { return std::uint64_t{x} * x; });
    std::uint64_t sum = 0, wanted = 0;
    for (std::uint32_t i = 0; i < 5000; ++i) {
      wanted += std::uint64_t{i} * i;
      ASSERT_EQ((runtime.request<std::uint32_t, std::uint64_t>(1 - runtime.rank(), square, i,
                                                               [&](const std::uint64_t& y) { sum += y; })),
                StatusCode::kOk);
    }
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(sum, wanted);
  });
}

TEST(Runtime, FullPipe_ExpectWouldBlockAndNothingLost) {
  std::atomic<bool> filled{false};
  run_ranks({0, 0}, {}, {2, 256}, [&](Runtime& runtime) {
    std::uint64_t got = 0;
    const auto take = runtime.on<std::uint64_t>([&](const std::uint64_t& v) { got += v; });
    std::uint64_t sent = 0;
    if (runtime.rank() == 0) {
      while (runtime.try_send(1, take, std::uint64_t{1}) == StatusCode::kOk) ++sent;  // rank 1 does not poll yet
      EXPECT_EQ(sent, 2 * (256 - 16) / 8);
      EXPECT_GT(runtime.statistics().would_block, 0u);
      filled = true;
    }
    while (!filled) std::this_thread::yield();
    ASSERT_TRUE(runtime.quiesce(kPatience));
    const auto all = runtime.reduce(got);
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, 2 * (256 - 16) / 8);
  });
}

TEST(Runtime, SendToARankThatComputes_ExpectItToWaitAndNothingLost) {
  Options options;
  options.backlog_bytes = kMaxMessageBytes;
  constexpr std::uint64_t kMessages = 1'000'000;  // four times what the backlog takes
  struct Message {
    std::uint64_t words[7];
  };
  std::atomic<bool> full{false};
  run_ranks({0, 0}, options, {2, 256}, [&](Runtime& runtime) {
    std::uint64_t got = 0;
    const auto take = runtime.on<Message>([&](const Message&) { ++got; });
    if (runtime.rank() == 0) {
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        ASSERT_EQ(runtime.send(1, take, Message{{i}}), StatusCode::kOk);
        if (runtime.statistics().backlog_bytes > kMaxMessageBytes - 1024) full = true;
      }
      EXPECT_TRUE(full) << "the backlog was never full: this shows nothing";
      EXPECT_LE(runtime.statistics().backlog_high, kMaxMessageBytes);
    }
    while (!full) std::this_thread::yield();
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(got, runtime.rank() == 1 ? kMessages : 0);
  });
}

TEST(Runtime, LargeMessagesBeyondTheBacklog_ExpectTheirSenderToWaitAndTrySendToSayWouldBlock) {
  Options options;
  options.backlog_bytes = kMaxMessageBytes;
  std::atomic<bool> full{false};
  run_ranks({0, 0}, options, {2, 256}, [&](Runtime& runtime) {
    std::uint64_t got = 0;
    const auto take = runtime.on<ByteView>([&](ByteView bytes) { got += bytes.size(); });
    const Bytes message(1 << 20);
    if (runtime.rank() == 0) {
      for (int i = 0; i < 40; ++i) {
        if (i == 4) {
          EXPECT_EQ(runtime.try_send(1, take, message), StatusCode::kWouldBlock) << "it absorbs next to nothing";
        }
        if (i == 16) full = true;
        ASSERT_EQ(runtime.send(1, take, message), StatusCode::kOk);
      }
    }
    while (!full) std::this_thread::yield();
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(got, runtime.rank() == 1 ? 40 * message.size() : 0);
  });
}

TEST(Runtime, HandlerThatSendsBeyondTheBacklog_ExpectTheJobToFailWithResourceExhausted) {
  Options options;
  options.backlog_bytes = kMaxMessageBytes;
  auto wirings = wire_threads({0, 0}, {2, 256});
  Runtime sender = detail::make_runtime(options, std::move(wirings[0]));
  Runtime receiver = detail::make_runtime(options, std::move(wirings[1]));  // never polls
  const Bytes message(1 << 20);
  Handler<ByteView> take;
  std::vector<StatusCode> codes;
  take = sender.on<ByteView>([&](ByteView) {
    for (int i = 0; i < 20; ++i) codes.push_back(sender.send(1, take, message));
    EXPECT_EQ(sender.try_send(1, take, message), StatusCode::kResourceExhausted) << "the job has failed";
  });
  ASSERT_EQ(sender.send(0, take, ByteView()), StatusCode::kOk);
  for (int i = 0; i < 1000 && codes.empty(); ++i) sender.poll();
  ASSERT_EQ(codes.size(), 20u);
  EXPECT_EQ(codes.front(), StatusCode::kOk);
  EXPECT_EQ(codes.back(), StatusCode::kResourceExhausted);
  EXPECT_EQ(sender.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(sender.status().message().find("backlog_bytes"), std::string::npos) << sender.status().message();
  EXPECT_EQ(sender.quiesce(kPatience).code(), StatusCode::kResourceExhausted);
}

TEST(Runtime, WrongCalls_ExpectInvalidArgument) {
  run_ranks({0}, {}, {}, [&](Runtime& runtime) {
    const auto take = runtime.on<std::uint64_t>([](const std::uint64_t&) {});
    const auto bytes = runtime.on<ByteView>([](ByteView) {});
    EXPECT_EQ(runtime.try_send(1, take, std::uint64_t{0}), StatusCode::kInvalidArgument);
    EXPECT_EQ(runtime.try_send(0, bytes, Bytes(kMaxMessageBytes + 1)), StatusCode::kInvalidArgument);
    EXPECT_TRUE(runtime.quiesce(kPatience));
  });
}

TEST(Runtime, Reductions_ExpectSumMinMax) {
  run_ranks(std::vector<std::uint32_t>(20, 0), {}, {2, 256}, [&](Runtime& runtime) {
    using Combine = Runtime::Combine;
    const double mine = runtime.rank() + 0.5;
    EXPECT_EQ(*runtime.reduce(std::uint64_t{runtime.rank()}), 190u);
    EXPECT_EQ(*runtime.reduce(mine, Combine::kMin), 0.5);
    EXPECT_EQ(*runtime.reduce(mine, Combine::kMax), 19.5);
    EXPECT_DOUBLE_EQ(*runtime.reduce(mine), 200.0);
  });
}

TEST(Runtime, LowLevelBuffers_ExpectTheSameBytes) {
  run_ranks({0, 0}, {}, {}, [&](Runtime& runtime) {
    const auto take = runtime.on<std::uint64_t>([](const std::uint64_t&) { FAIL() << "poll_buffers() takes them"; });
    const Rank other = 1 - runtime.rank();
    constexpr std::size_t kMessages = 100;
    auto space = runtime.try_buffer(other, kMessages * 16);
    ASSERT_EQ(space.size(), kMessages * 16);
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      Header::make(8, take.id(), other).store(space.data() + i * 16);
      std::memcpy(space.data() + i * 16 + 8, &i, 8);
    }
    runtime.post_buffer(other, space.size(), kMessages);
    runtime.flush();
    std::uint64_t sum = 0, count = 0;
    while (count < kMessages) {
      runtime.poll_buffers([&](ByteView bytes) {
        for (std::size_t at = 0; at < bytes.size(); at += Header::load(bytes.data() + at).stride()) {
          std::uint64_t value = 0;
          std::memcpy(&value, bytes.data() + at + 8, 8);
          sum += value, ++count;
        }
      });
    }
    EXPECT_EQ(sum, kMessages * (kMessages - 1) / 2);
    ASSERT_TRUE(runtime.quiesce(kPatience));
  });
}

}  // namespace
}  // namespace wherry::route
