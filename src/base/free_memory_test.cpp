// SPDX-License-Identifier: Apache-2.0
#include "base/free_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.hpp"

namespace wherry {
namespace {

/// A directory tree that replaces /sys/fs/cgroup, in the format of the kernel's admin-guide.
class FreeMemories : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path at = std::filesystem::path(groups.root) / file;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text << '\n';
  }
  void member_of(const std::string& lines) const { std::ofstream(groups.membership) << lines; }
  [[nodiscard]] FreeMemory look() const { return free_memory("", groups); }

  TemporaryDirectory directory = *TemporaryDirectory::create("groups");
  ControlGroups groups{directory.file("membership"), directory.file("cgroup")};
};

TEST_F(FreeMemories, GroupOfVersion2_ExpectWhatItsLimitLeaves) {
  member_of("0::/user/job\n");
  write("user/job/memory.max", "6000000");
  write("user/job/memory.current", "5000000");
  write("user/job/memory.stat", "anon 2000000\nfile 3000000\ninactive_file 1500000\nactive_file 400000");
  EXPECT_EQ(look().bytes, 1000000U + 1500000U + 200000U);
  EXPECT_EQ(look().where, "the control group (" + groups.root + "/user/job/memory.max)");
}

TEST_F(FreeMemories, GroupAboveHasLess_ExpectThat) {
  member_of("0::/user/job/step\n");
  write("user/job/step/memory.max", "max");
  write("user/job/step/memory.current", "10");
  write("user/job/memory.max", "9000000");
  write("user/job/memory.current", "1000000");
  write("user/memory.max", "3000000");
  write("user/memory.current", "2999000");
  EXPECT_EQ(look().bytes, 1000U);
  EXPECT_NE(look().where.find("/user/memory.max"), std::string::npos) << look().where;
}

TEST_F(FreeMemories, GroupOfVersion1_ExpectWhatItsLimitLeaves) {
  member_of("9:name=systemd:/\n4:cpu,memory:/slurm/job\n0::/\n");
  write("memory/slurm/job/memory.limit_in_bytes", "9223372036854771712");  // none
  write("memory/slurm/job/memory.usage_in_bytes", "700000");
  write("memory/slurm/memory.limit_in_bytes", "1000000");
  write("memory/slurm/memory.usage_in_bytes", "900000");
  write("memory/slurm/memory.stat", "inactive_file 1\ntotal_inactive_file 50000\ntotal_active_file 10");
  EXPECT_EQ(look().bytes, 150005U);
}

TEST_F(FreeMemories, ContainerWhoseOwnGroupIsMounted_ExpectItsLimit) {
  member_of("0::/../../the/hosts/path\n4:memory:/docker/0123\n");
  write("memory/memory.limit_in_bytes", "1000000");
  write("memory/memory.usage_in_bytes", "400000");
  EXPECT_EQ(look().bytes, 600000U);
}

TEST_F(FreeMemories, MoreUsedThanTheLimit_ExpectNothingLeft) {
  member_of("0::/\n");
  write("memory.max", "1000");
  write("memory.current", "4000");
  write("memory.stat", "inactive_file 100");
  EXPECT_EQ(look().bytes, 0U);
}

TEST_F(FreeMemories, NoLimitOrNoGroups_ExpectWhatTheMachineHas) {
  const auto machine = [&] { return look().where == "memory" && look().bytes > (1U << 20); };
  EXPECT_TRUE(machine());
  member_of("0::/a\n");
  write("a/memory.max", "max");
  write("a/memory.current", "5");
  EXPECT_TRUE(machine());
  write("a/memory.max", "not a number");
  EXPECT_TRUE(machine());
}

}  // namespace
}  // namespace wherry
