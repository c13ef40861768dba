// SPDX-License-Identifier: Apache-2.0
#include "base/event_counter.hpp"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace wherry {
namespace {

constexpr std::size_t kPage = 4096, kLine = 64;

/// Touches `pages` new pages; each causes a page fault.
void fault(std::size_t pages) {
  const std::size_t bytes = pages * kPage;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(memory)[at] = 1;
  munmap(memory, bytes);
}

/// Walks `steps` steps through `lines` cache lines in random order. Each step depends on the step before.
std::uint64_t walk(std::size_t lines, std::size_t steps, EventCounter* counter) {
  struct alignas(kLine) Line {
    std::uint64_t next;
  };
  std::vector<Line> table(lines);
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(1);
  std::shuffle(order.begin(), order.end(), random);
  for (std::size_t i = 0; i < lines; ++i) table[order[i]].next = order[(i + 1) % lines];
  const std::uint64_t before = counter->read().value_or(0);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < steps; ++i) at = table[at].next;
  EXPECT_LT(at, lines);
  return counter->read().value_or(0) - before;
}

TEST(EventCounter, SoftwareEvent_ExpectWhatThisThreadAndLaterOnesDid) {
  EventCounter faults(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
  if (!faults.missing().empty()) GTEST_SKIP() << faults.missing();
  const auto before = faults.read();
  ASSERT_TRUE(before);
  fault(1000);
  const auto here = faults.read();
  std::thread([] { fault(3000); }).join();
  const auto there = faults.read();
  ASSERT_TRUE(here && there);
  EXPECT_GE(*here - *before, 1000U);
  EXPECT_LT(*here - *before, 1500U);
  EXPECT_GE(*there - *here, 3000U);
  EXPECT_LT(*there - *here, 3500U);
}

TEST(EventCounter, CacheMisses_ExpectThoseOfARandomWalkThroughMemory) {
  EventCounter misses = EventCounter::cache_misses();
  if (!misses.missing().empty()) GTEST_SKIP() << misses.missing();
  constexpr std::size_t kSteps = 2'000'000;
  const std::uint64_t resident = walk(256, kSteps, &misses);                 // 16 KiB
  const std::uint64_t memory = walk(std::size_t{1} << 23, kSteps, &misses);  // 512 MiB
  // A last-level cache may hold a large part of this memory. Adjacent lines and page tables also miss.
  EXPECT_GT(memory, kSteps / 4);
  EXPECT_LT(memory, kSteps * 4);
  EXPECT_LT(resident, memory / 20);
}

TEST(EventCounter, NoSuchEvent_ExpectTheReason) {
  EventCounter none(PERF_TYPE_SOFTWARE, 1'000'000);
  EXPECT_FALSE(none.read());
  EXPECT_NE(none.missing(), "");
}

TEST(EventCounter, Reasons_ExpectAdvice) {
  EXPECT_NE(why_not_counted(EACCES, 4).find("perf_event_paranoid is 4: set it to 2"), std::string::npos);
  EXPECT_NE(why_not_counted(EPERM, 2).find("container"), std::string::npos);
  EXPECT_NE(why_not_counted(ENOENT, 2).find("hypervisor"), std::string::npos);
  EXPECT_NE(why_not_counted(ENOSYS, {}).find("system call"), std::string::npos);
}

TEST(EventCounter, TookTurns_ExpectScaledUp) {
  EXPECT_EQ(scaled(100, 10, 10), 100);
  EXPECT_EQ(scaled(100, 40, 10), 400);
  EXPECT_EQ(scaled(100, 10, 0), std::nullopt);
  EXPECT_EQ(scaled(0, 0, 0), std::nullopt);
}

}  // namespace
}  // namespace wherry
