// SPDX-License-Identifier: Apache-2.0
// Conveyors of ranks that are threads of one process, so ThreadSanitizer sees both ends. histogram_test.c and the other
// programs in C use conveyors as processes.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "base/clock.hpp"
#include "base/testing.hpp"
#include "route/client/runtime_access.hpp"
#include "route/convey/context.hpp"

namespace wherry::route::convey {
namespace {

using wherry::testing_support::kPatience;
using namespace std::chrono_literals;

void run_ranks(const std::vector<std::uint32_t>& node_of_rank, RingShape shape,
               const std::function<void(Context&, std::int64_t me)>& body) {
  auto wirings = wire_threads(node_of_rank, shape);
  std::vector<std::thread> threads;
  for (auto& wiring : wirings) {
    threads.emplace_back([&body, w = std::move(wiring)]() mutable {
      Context context(detail::make_runtime(Options{}, std::move(w)));
      body(context, context.runtime().rank());
      EXPECT_TRUE(context.runtime().quiesce(kPatience));  // acknowledgements travel through any rank
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Conveyor& create(Context& context, Traits traits) {
  auto made = context.create(traits);
  EXPECT_TRUE(made) << made.status().message();
  return (*made)->conveyor;
}

/// Calls `advance` and then `body` until the session is over.
void until_done(Conveyor& c, const bool& pushed_all, const std::function<void()>& body) {
  const Deadline deadline(kPatience);
  for (int more = 0; (more = c.advance(pushed_all)) != convey_DONE;) {
    ASSERT_GT(more, 0);
    ASSERT_FALSE(deadline.passed());
    body();
  }
}

struct Item {
  std::uint32_t from, number;
};

TEST(Conveyors, TwoSessionsOfOne_ExpectEveryItemInOrderFromEachRank) {
  constexpr std::uint32_t kItems = 20'000;
  run_ranks({0, 0, 1, 1}, {2, 1024}, [&](Context& context, std::int64_t me) {
    const auto ranks = static_cast<std::int64_t>(context.runtime().ranks());
    Conveyor& c = create(context, {.largest = 64});
    for (int session = 0; session < 2; ++session) {
      ASSERT_EQ(c.begin(sizeof(Item), 0), convey_OK);
      std::vector<std::uint32_t> next(static_cast<std::size_t>(ranks));
      std::uint32_t pushed = 0;
      bool all = false;
      until_done(c, all, [&] {
        for (; pushed < kItems; ++pushed) {
          const Item item{static_cast<std::uint32_t>(me), pushed / static_cast<std::uint32_t>(ranks)};
          if (c.push(&item, (me + pushed) % ranks) != convey_OK) break;
        }
        all = pushed == kItems;
        Item item{};
        std::int64_t from = -1;
        while (c.pull(&item, &from) == convey_OK) {
          ASSERT_EQ(item.from, from);
          ASSERT_EQ(item.number, next[item.from]++);
        }
      });
      for (const std::uint32_t count : next) EXPECT_EQ(count, kItems / ranks);
      ASSERT_EQ(c.reset(), convey_OK);
    }
  });
}

TEST(Conveyors, RequestsAndAnswersInTwo_ExpectEachAnswered) {
  constexpr std::uint64_t kRequests = 5'000;
  run_ranks({0, 1, 1}, {2, 512}, [&](Context& context, std::int64_t me) {
    const auto ranks = static_cast<std::int64_t>(context.runtime().ranks());
    Conveyor& requests = create(context, {.largest = 64});
    Conveyor& replies = create(context, {.largest = 64});
    ASSERT_EQ(requests.begin(8, 8), convey_OK);
    ASSERT_EQ(replies.begin(8, 8), convey_OK);
    std::uint64_t asked = 0, answered = 0, sum = 0;
    const Deadline deadline(kPatience);
    for (bool more = true, answering = true; more || answering;) {
      more = requests.advance(asked == kRequests) != convey_DONE;
      answering = replies.advance(!more) != convey_DONE;
      ASSERT_FALSE(deadline.passed());
      for (; asked < kRequests; ++asked) {
        if (requests.push(&asked, (me + static_cast<std::int64_t>(asked)) % ranks) != convey_OK) break;
      }
      std::uint64_t value = 0;
      std::int64_t from = -1;
      while (requests.pull(&value, &from) == convey_OK) {
        value *= 3;
        if (replies.push(&value, from) == convey_OK) continue;
        ASSERT_EQ(requests.unpull(), convey_OK);
        break;
      }
      int error = 0;
      while (const void* reply = replies.apull(&from, error)) {
        std::memcpy(&value, reply, sizeof value);
        sum += value;
        ++answered;
      }
    }
    EXPECT_EQ(answered, kRequests);
    EXPECT_EQ(sum, 3 * kRequests * (kRequests - 1) / 2);
  });
}

TEST(Conveyors, ElasticItemsOfAnySize_ExpectTheirBytes) {
  constexpr std::size_t kItems = 300, kLargest = 100'000;
  const auto size_of = [](std::int64_t from, std::size_t i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(from) << 32 | i);
    const auto n = random();
    return i == 0 ? 0 : n % 40 == 0 ? n % kLargest : n % 7 == 0 ? 0 : n % 200;
  };
  run_ranks({0, 1}, {2, 2048}, [&](Context& context, std::int64_t me) {
    Conveyor& c = create(context, {.largest = kLargest, .elastic = true});
    ASSERT_EQ(c.begin(64, 64), convey_OK);
    std::size_t pushed = 0, pulled = 0;
    bool all = false;
    std::vector<std::uint8_t> item(kLargest);
    until_done(c, all, [&] {
      for (; pushed < kItems; ++pushed) {
        const std::size_t bytes = size_of(me, pushed);
        std::fill_n(item.begin(), bytes, static_cast<std::uint8_t>(pushed));
        if (c.epush(bytes, item.data(), 1 - me) != convey_OK) break;
      }
      all = pushed == kItems;
      convey_item_t got{};
      while (c.epull(got) == convey_OK) {
        ASSERT_EQ(got.from, 1 - me);
        ASSERT_EQ(got.bytes, size_of(got.from, pulled));
        const auto* at = static_cast<const std::uint8_t*>(got.data);
        ASSERT_NE(at, nullptr);  // of no bytes, too
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0u);
        for (std::size_t k = 0; k < got.bytes; ++k) ASSERT_EQ(at[k], static_cast<std::uint8_t>(pulled));
        ++pulled;
      }
    });
    EXPECT_EQ(pulled, kItems);
  });
}

TEST(Conveyors, ReceiverThatDoesNotPull_ExpectPushesRefusedAndNothingLost) {
  constexpr std::size_t kItemBytes = 1024;
  std::atomic<bool> full{false};
  run_ranks({0, 0}, {4, 32768}, [&](Context& context, std::int64_t me) {
    Conveyor& c = create(context, {.largest = kItemBytes});
    ASSERT_EQ(c.begin(kItemBytes, 0), convey_OK);
    std::uint64_t pushed = 0, pulled = 0;
    int refused = 0;
    bool all = false;
    const auto began = std::chrono::steady_clock::now();
    std::array<std::byte, kItemBytes> item{};
    until_done(c, all, [&] {
      if (me == 1) {
        all = true;
        while (full && c.pull(item.data(), nullptr) == convey_OK) ++pulled;
      } else if (!all) {
        for (; c.push(item.data(), 1) == convey_OK; ++pushed) refused = 0;
        // A receiver that the kernel does not run also takes no items for a while.
        const bool enough = pushed * kItemBytes >= 240U << 10 || std::chrono::steady_clock::now() - began > 10s;
        all = ++refused >= 1000 && enough;
        if (all) full = true;
      }
    });
    // The limit is the window plus the packet that exceeded it.
    EXPECT_LE(pushed * kItemBytes, (256U + 8U) << 10);
    const auto sent = context.runtime().reduce(pushed), got = context.runtime().reduce(pulled);
    ASSERT_TRUE(sent && got);
    EXPECT_GE(*sent * kItemBytes, 240U << 10);
    EXPECT_EQ(*sent, *got);
  });
}

}  // namespace
}  // namespace wherry::route::convey
