// SPDX-License-Identifier: Apache-2.0
#include "route/client/statistics_file.hpp"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "base/temporary_directory.hpp"
#include "route/client/runtime_core.hpp"

namespace wherry::route {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPage = 4096, kLine = 64;

/// Touches `pages` pages for the first time, each of which is a page fault.
void fault(std::size_t pages) {
  const std::size_t bytes = pages * kPage;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(memory)[at] = 1;
  munmap(memory, bytes);
}

/// A walk of `steps` through `lines` cache lines in a random order, each step of which waits for the one before.
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
  // A last-level cache may hold a good part of it; the lines beside, and page tables, are misses, too.
  EXPECT_GT(memory, kSteps / 4);
  EXPECT_LT(memory, kSteps * 4);
  EXPECT_LT(resident, memory / 20);
}

TEST(EventCounter, NoSuchEvent_ExpectTheReason) {
  EventCounter none(PERF_TYPE_SOFTWARE, 1'000'000);
  EXPECT_FALSE(none.read());
  EXPECT_NE(none.missing(), "");
}

TEST(EventCounter, Reasons_ExpectWhatToDo) {
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

class StatisticsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryDirectory::create("statistics");
    ASSERT_TRUE(made);
    directory_ = *std::move(made);
    set(directory_.path().string());
  }
  void TearDown() override { unsetenv("WHERRY_STATISTICS"); }
  static void set(const std::string& value) { setenv("WHERRY_STATISTICS", value.c_str(), 1); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      found.push_back(entry.path().filename());
    return found;
  }
  TemporaryDirectory directory_;
};

TEST_F(StatisticsFileTest, RuntimeThatSends_ExpectItsStatistics) {
  Statistics statistics;
  {
    auto runtime = Runtime::start();
    ASSERT_TRUE(runtime) << runtime.status().message();
    const auto take = runtime->on<std::uint64_t>([](std::uint64_t) {});
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(runtime->send(0, take, i), StatusCode::kOk);
    ASSERT_TRUE(runtime->quiesce());
    statistics = runtime->statistics();
    EXPECT_TRUE(names().empty()) << "it is written at the end";
  }
  ASSERT_EQ(names(), std::vector<std::string>{"rank-0.json"});
  std::ifstream file(directory_.file("rank-0.json"));
  const Json json = Json::parse(file);
  EXPECT_EQ(json["rank"], 0);
  EXPECT_EQ(json["node"], 0);
  EXPECT_EQ(json["placement"], "inline");
  EXPECT_GT(json["seconds"], 0.0);
  EXPECT_GT(json["cpu_seconds"], 0.0);
  EXPECT_EQ(json["cache_misses"].is_null(), json["cache_misses_missing"] != "");
  const Json& got = json["statistics"];
  EXPECT_EQ(got.size(), sizeof(Statistics) / 8);
  EXPECT_EQ(got["sent"], 1000);
  EXPECT_EQ(got["handled"], 1000);
  EXPECT_EQ(got["bytes_out"], statistics.bytes_out);
  EXPECT_EQ(got["bytes_in"], statistics.bytes_in);
  EXPECT_EQ(got["transfers"], statistics.transfers);
  EXPECT_EQ(got["flush_explicit"], statistics.flush_explicit);
}

TEST_F(StatisticsFileTest, VariableNotSet_ExpectNoFile) {
  unsetenv("WHERRY_STATISTICS");
  const auto none = StatisticsFile::open();
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, nullptr);
}

TEST_F(StatisticsFileTest, NoDirectory_ExpectStartToSaySo) {
  set(directory_.file("nowhere"));
  const auto runtime = Runtime::start();
  ASSERT_FALSE(runtime);
  EXPECT_NE(runtime.status().message().find("nowhere': want a directory"), std::string::npos)
      << runtime.status().message();
}

TEST_F(StatisticsFileTest, DirectoryThatIsAFile_ExpectStartToSaySo) {
  std::ofstream(directory_.file("file")) << "x";
  set(directory_.file("file"));
  EXPECT_FALSE(Runtime::start());
}

TEST_F(StatisticsFileTest, DirectoryThatIsGone_ExpectAnErrorThatNamesIt) {
  StatisticsFile file(directory_.file("nowhere"));
  file.begin();
  const Status status = file.write({0, Topology({0}), Placement::kInline}, {});
  EXPECT_FALSE(status);
  EXPECT_NE(status.message().find("nowhere/rank-0.json"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace wherry::route
