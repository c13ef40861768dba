// SPDX-License-Identifier: Apache-2.0
#include "fabric/segment_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/temporary_directory.hpp"
#include "fabric/fabric.hpp"

namespace wherry::fabric {
namespace {

namespace fs = std::filesystem;

class Segments : public testing::Test {
 protected:
  [[nodiscard]] std::size_t directories() const {
    std::size_t count = 0;
    if (fs::exists(mine_)) {
      for ([[maybe_unused]] const auto& entry : fs::directory_iterator(mine_)) ++count;
    }
    return count;
  }
  /// Starts a process that locks a directory with a segment in it, as if it were about to map it. The caller kills it.
  pid_t holder() {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto directory = SegmentDirectory::get(place_.path());
      if (directory == nullptr) _exit(1);
      std::ofstream(directory->path() + "/ucx_shm_posix_1") << "segment";
      (void)!write(ready[1], "x", 1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte{};
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
  }
  static void end(pid_t child) {
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }

  TemporaryDirectory place_ = *TemporaryDirectory::create("segments");
  fs::path mine_ = place_.path() / ("wherry-" + std::to_string(getuid()));
};

TEST_F(Segments, KilledWhileItAllocates_ExpectTheNextProcessToClearUpAndTheLivingLeftAlone) {
  const pid_t lives = holder();
  std::vector<pid_t> doomed;
  for (int i = 0; i < 5; ++i) doomed.push_back(holder());
  EXPECT_EQ(directories(), 6U);
  for (const pid_t child : doomed) end(child);
  EXPECT_EQ(directories(), 6U);
  {
    const auto directory = SegmentDirectory::get(place_.path());
    ASSERT_NE(directory, nullptr);
    EXPECT_EQ(directories(), 2U) << "this process's, and that of the one that lives";
    EXPECT_EQ(SegmentDirectory::get(place_.path()), directory);
  }
  EXPECT_EQ(directories(), 1U);
  end(lives);
  (void)SegmentDirectory::get(place_.path());
  EXPECT_EQ(directories(), 0U);
}

TEST_F(Segments, ManyStartAndDieAtOnce_ExpectEachToHaveItsOwnAndNoneLeftInTheEnd) {
  std::vector<pid_t> children;
  for (int i = 0; i < 20; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (int round = 0; round < 50; ++round) {
      const auto directory = SegmentDirectory::get(place_.path());
      if (directory == nullptr || !fs::is_directory(directory->path())) _exit(1);
    }
    kill(getpid(), SIGKILL);
  }
  for (const pid_t child : children) {
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFSIGNALED(how)) << "one had no directory";
  }
  (void)SegmentDirectory::get(place_.path());
  EXPECT_EQ(directories(), 0U);
}

TEST_F(Segments, AChildOfForkEnds_ExpectItsParentsDirectoryToStay) {
  const auto directory = SegmentDirectory::get(place_.path());
  ASSERT_NE(directory, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    auto copy = std::make_unique<std::shared_ptr<const SegmentDirectory>>(directory);
    copy.reset();
    directory.~shared_ptr();
    _exit(0);
  }
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(fs::is_directory(directory->path()));
}

TEST_F(Segments, SomebodyElseMadeItFirst_ExpectNone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  fs::create_directory(mine_);
  ASSERT_EQ(chown(mine_.c_str(), 12345, 12345), 0);
  EXPECT_EQ(SegmentDirectory::get(place_.path()), nullptr);
  EXPECT_EQ(SegmentDirectory::get(place_.path() / "nowhere"), nullptr);
}

TEST_F(Segments, MemoryThatUcxAllocates_ExpectItToComeFromThere) {
  auto context = Context::create(Transport::kShm);
  ASSERT_TRUE(context) << context.status().message();
  auto memory = (*context)->allocate(1 << 20);
  ASSERT_TRUE(memory) << memory.status().message();
  const auto directory = SegmentDirectory::get();
  ASSERT_NE(directory, nullptr);
  std::ifstream maps("/proc/self/maps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    EXPECT_EQ(line.find("/dev/shm/ucx"), line.npos) << line;
    found |= line.find(directory->path()) != line.npos;
  }
  EXPECT_TRUE(found) << directory->path();
}

}  // namespace
}  // namespace wherry::fabric
