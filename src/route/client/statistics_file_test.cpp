// SPDX-License-Identifier: Apache-2.0
#include "route/client/statistics_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/temporary_directory.hpp"
#include "route/client/runtime_core.hpp"

namespace wherry::route {
namespace {

using Json = nlohmann::json;

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

/// CPU time of the process so far, in seconds.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
void compute(double seconds) {
  const double begin = cpu_seconds();
  while (cpu_seconds() - begin < seconds) {
  }
}

TEST_F(StatisticsFileTest, WorkBeforeTheFirstAndAfterTheLastMessage_ExpectItNotCounted) {
  double between = 0;
  {
    auto runtime = Runtime::start();
    ASSERT_TRUE(runtime) << runtime.status().message();
    std::uint64_t sum = 0;
    const auto take = runtime->on<std::uint64_t>([&](std::uint64_t value) { sum += value; });
    compute(0.3);  // draws its input
    ASSERT_TRUE(runtime->reduce(std::uint64_t{0}));
    const double begin = cpu_seconds();
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(runtime->send(0, take, i), StatusCode::kOk);
    compute(0.05);
    ASSERT_TRUE(runtime->quiesce());
    between = cpu_seconds() - begin;
    compute(0.3);  // writes its result
    ASSERT_TRUE(runtime->reduce(std::uint64_t{0}));
  }
  std::ifstream file(directory_.file("rank-0.json"));
  const Json json = Json::parse(file);
  EXPECT_GE(json["cpu_seconds"], 0.05);
  EXPECT_LE(json["cpu_seconds"], between);
}

TEST_F(StatisticsFileTest, VariableNotSet_ExpectNoFile) {
  unsetenv("WHERRY_STATISTICS");
  const auto none = StatisticsFile::open();
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, nullptr);
}

TEST_F(StatisticsFileTest, NoSuchDirectory_ExpectStartToFailWithItsName) {
  set(directory_.file("nowhere"));
  const auto runtime = Runtime::start();
  ASSERT_FALSE(runtime);
  EXPECT_NE(runtime.status().message().find("nowhere': want a directory"), std::string::npos)
      << runtime.status().message();
}

TEST_F(StatisticsFileTest, DirectoryThatIsAFile_ExpectStartToFailWithItsName) {
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
