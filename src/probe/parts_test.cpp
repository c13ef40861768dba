// SPDX-License-Identifier: Apache-2.0
// Tests registry, environment, cores, clock and CPU cost.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/clock.hpp"
#include "base/machine.hpp"
#include "base/temporary_directory.hpp"
#include "probe/cores.hpp"
#include "probe/cpu_cost.hpp"
#include "probe/environment.hpp"
#include "probe/registry.hpp"
#include "probe/testing.hpp"
#include "probe/timer.hpp"

namespace wherry::probe {
namespace {

Paths one_of(const char* id, const char* group) {
  Paths paths;
  paths.push_back(std::make_unique<testing_support::FakePath>(id, group));
  return paths;
}
Paths first() {
  Paths paths = one_of("a.get", "a");
  paths.push_back(std::make_unique<testing_support::FakePath>("a.get.x", "a"));
  paths.push_back(std::make_unique<testing_support::FakePath>("a.gets", "a"));
  return paths;
}
Paths again() { return one_of("a.gets", "a"); }
Paths badly_named() { return one_of("A get", "a"); }
Paths doubly_dotted() { return one_of("a..b", "a"); }
Paths nameless_group() { return one_of("b", ""); }

TEST(Registry, Lists_ExpectTheirPathsInOrderAndEachOnce) {
  Registry registry;
  ASSERT_TRUE(registry.add(first));
  EXPECT_EQ(registry.add(again).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(registry.add(badly_named).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(registry.add(doubly_dotted).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(registry.add(nameless_group).code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(registry.paths().size(), 3U);
  EXPECT_EQ(registry.find("a.get.x"), registry.paths()[1].get());
  EXPECT_EQ(registry.find("a"), nullptr);
  EXPECT_EQ(registry.matching("a.get").size(), 2U) << "itself and what is below, not a.gets";
  EXPECT_EQ(registry.matching("a").size(), 3U) << "a group";
  EXPECT_EQ(registry.matching("").size(), 3U);
  EXPECT_TRUE(registry.matching("a.g").empty());
}

TEST(Environment, ListsOfTheKernel_ExpectTheirNumbersOrNothing) {
  using List = std::vector<unsigned>;
  EXPECT_EQ(parse_list("0"), List{0});
  EXPECT_EQ(parse_list("0-2,5,7-8"), (List{0, 1, 2, 5, 7, 8}));
  for (const char* text : {"", "x", "3-1", "0-99999999", "1-", ","}) EXPECT_TRUE(parse_list(text).empty()) << text;
}

class Machine : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  [[nodiscard]] std::string root() const { return folder_.path(); }
  TemporaryDirectory folder_ = *TemporaryDirectory::create("wherry-probe");
};

TEST_F(Machine, OfFiles_ExpectWhatTheySay) {
  write("/proc/cpuinfo", "processor : 0\nmodel name\t: Some CPU @ 3 GHz\nflags\t\t: fpu hypervisor sse\n");
  write("/proc/meminfo", "MemTotal: 1 kB\nHugePages_Total:      12\n");
  write("/proc/loadavg", "0.50 0.40 0.30 1/100 1234\n");
  write("/sys/devices/system/cpu/smt/control", "on\n");
  write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  write("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3500000\n");
  write("/sys/devices/system/node/online", "0-1\n");
  write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  write("/sys/class/iommu/dmar0/name", "\n");
  auto found = environment(root());
  const std::map<std::string, std::string> wanted{{"cpu", "Some CPU @ 3 GHz"},
                                                  {"hypervisor", "yes"},
                                                  {"hugepages", "12"},
                                                  {"load", "0.50"},
                                                  {"smt", "on"},
                                                  {"numa_nodes", "2"},
                                                  {"governor", "performance"},
                                                  {"frequency_max_mhz", "3500"},
                                                  {"thp", "madvise"},
                                                  {"iommu", "1 units"}};
  for (const auto& [name, value] : wanted) EXPECT_EQ(found[name], value) << name;
  EXPECT_EQ(this_machine(root()).cpu, found["cpu"]);
  EXPECT_EQ(this_machine(root()).kernel, found["kernel"]);
}

TEST_F(Machine, ThatTellsNothing_ExpectUnknown) {
  auto found = environment(root() + "/nowhere");
  EXPECT_EQ(found["cpu"], this_machine(root() + "/nowhere").cpu) << "the architecture";
  for (const char* name : {"smt", "governor", "frequency_max_mhz", "thp", "hugepages", "iommu", "load"})
    EXPECT_EQ(found[name], "unknown") << name;
  EXPECT_EQ(found["numa_nodes"], "1");
  EXPECT_EQ(numa_nodes(root() + "/nowhere"), std::vector<unsigned>{0});
}

TEST_F(Machine, Siblings_ExpectACoreOfItsOwnForTheOtherSide) {
  write("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2,3\n");
  const Cores many = choose_cores({2, 3, 4}, root());
  EXPECT_EQ(many.here, 2);
  EXPECT_EQ(many.other, 4);
  EXPECT_EQ(many.relation, "other core");
  const Cores siblings = choose_cores({2, 3}, root());
  EXPECT_EQ(siblings.other, 3);
  EXPECT_EQ(siblings.relation, "SMT sibling");
  const Cores alone = choose_cores({2}, root());
  EXPECT_EQ(alone.other, 2);
  EXPECT_EQ(alone.count, 1U);
  EXPECT_EQ(alone.relation, "same core");
}

TEST(MachineClock, BesideTheKernels_ExpectTheSameTimeToAThousandth) {
  MachineClock clock;
  const std::uint64_t ours = clock.now_ns(), kernels = now_ns();
  usleep(50'000);
  const auto our_time = static_cast<double>(clock.now_ns() - ours),
             their_time = static_cast<double>(now_ns() - kernels);
  // The machine may interrupt between the two readings at either end, for any time. Each pair of
  // readings encloses the other, so only a time shorter than the kernel's indicates a wrong rate.
  EXPECT_GT(our_time, 50e6 * 0.999);
  EXPECT_GT(their_time, 50e6 * 0.999);
  EXPECT_GE(clock.resolution_ns(), 1.0);
}

TEST(CpuCost, OfAThreadThatComputes_ExpectItsTime) {
  const CpuCost before = thread_cpu_cost();
  const std::uint64_t begin = thread_cpu_ns();
  while (thread_cpu_ns() - begin < 20'000'000) {
  }
  const CpuCost used = thread_cpu_cost() - before;
  EXPECT_GE(used.user_ns + used.system_ns, 19'000'000U);
  const auto process = process_cpu_time();
  EXPECT_GE(process.user_ns + process.system_ns, used.user_ns + used.system_ns);
}

TEST(CpuCost, StealOfTheKernelsText_ExpectItsTicks) {
  const auto tick = 1'000'000'000U / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(steal_ns_of("cpu  1 2 3 4 5 6 7 89 0 0\ncpu0 1 2 3 4 5 6 7 8\n"), 89 * tick);
  EXPECT_EQ(steal_ns_of("cpu 1 2 3\n"), 0U);
  EXPECT_EQ(steal_ns_of(""), 0U);
}

}  // namespace
}  // namespace wherry::probe
