// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace wherry::sim::pcie {
namespace {

struct Recorder final : EventHandler {
  explicit Recorder(EventQueue& q) : queue(q) {}
  void on_event(std::uint64_t argument) override { seen.emplace_back(queue.now(), argument); }
  EventQueue& queue;
  std::vector<std::pair<Time, std::uint64_t>> seen;
};

TEST(EventQueue, RandomTimes_ExpectTheOrderOfAStableSort) {
  EventQueue queue;
  Recorder recorder(queue);
  SplitMix64 random(7);
  std::vector<std::pair<Time, std::uint64_t>> expected;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    expected.emplace_back(random.below(500), i);
    queue.schedule(expected.back().first, recorder, i);
  }
  std::stable_sort(expected.begin(), expected.end(), [](auto& a, auto& b) { return a.first < b.first; });
  EXPECT_EQ(queue.run(), 20'000U);
  EXPECT_EQ(recorder.seen, expected);
  EXPECT_EQ(queue.events(), 20'000U);
}

TEST(EventQueue, ScheduleInThePast_ExpectNow) {
  EventQueue queue;
  Recorder recorder(queue);
  queue.run(100);
  queue.schedule(5, recorder, 1);
  queue.run();
  EXPECT_EQ(recorder.seen, (std::vector<std::pair<Time, std::uint64_t>>{{100, 1}}));
}

TEST(EventQueue, RunUntil_ExpectLaterEventsToWaitAndTheClockAtTheLimit) {
  EventQueue queue;
  Recorder recorder(queue);
  queue.schedule(10, recorder, 1);
  queue.schedule(11, recorder, 2);
  EXPECT_EQ(queue.run(10), 1U);
  EXPECT_EQ(queue.now(), 10);
  EXPECT_EQ(queue.next(), 11);
  EXPECT_EQ(queue.run(50), 1U);
  EXPECT_EQ(queue.now(), 50);
}

TEST(EventQueue, StopFromAnEvent_ExpectTheRestToRemain) {
  EventQueue queue;
  Recorder recorder(queue);
  queue.call(3, [&] { queue.stop(); });
  queue.schedule(4, recorder, 1);
  queue.run();
  EXPECT_EQ(queue.now(), 3);
  EXPECT_EQ(queue.pending(), 1U);
}

TEST(EventQueue, ActionsThatScheduleActions_ExpectEachOnce) {
  EventQueue queue;
  std::vector<int> order;
  queue.call(1, [&] {
    order.push_back(1);
    queue.call(2, [&] { order.push_back(2); });
    queue.call(queue.now(), [&] { order.push_back(3); });
  });
  queue.run();
  EXPECT_EQ(order, (std::vector<int>{1, 3, 2}));
}

TEST(Timer, SetLaterAgainAndAgain_ExpectOneAlarmAtTheLastTime) {
  EventQueue queue;
  Recorder recorder(queue);
  Timer timer(queue, recorder, 9);
  for (Time at = 10; at <= 1000; at += 10) timer.set(at);
  EXPECT_LE(queue.pending(), 1U);
  queue.run();
  EXPECT_EQ(recorder.seen, (std::vector<std::pair<Time, std::uint64_t>>{{1000, 9}}));
  EXPECT_FALSE(timer.armed());
}

TEST(Timer, SetEarlier_ExpectTheEarlierAlarmOnly) {
  EventQueue queue;
  Recorder recorder(queue);
  Timer timer(queue, recorder, 9);
  timer.set(100);
  timer.set(40);
  queue.run();
  EXPECT_EQ(recorder.seen, (std::vector<std::pair<Time, std::uint64_t>>{{40, 9}}));
}

TEST(Timer, CancelAndSetAgain_ExpectTheSecondAlarmOnly) {
  EventQueue queue;
  Recorder recorder(queue);
  Timer timer(queue, recorder, 9);
  timer.set(100);
  timer.cancel();
  queue.run(50);
  timer.set(200);
  queue.run();
  EXPECT_EQ(recorder.seen, (std::vector<std::pair<Time, std::uint64_t>>{{200, 9}}));
}

}  // namespace
}  // namespace wherry::sim::pcie
