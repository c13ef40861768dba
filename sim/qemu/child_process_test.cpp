// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/child_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/testing.hpp"

namespace wherry::sim {
namespace {

/// Whether a process is alive, and not a zombie that waits for its parent.
bool lives(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return !state.empty() && state != "Z";
}

TEST(SimQemuChildProcess, Ends_ExpectItsStatusAndOutput) {
  auto child = ChildProcess::start("sh", {"-c", "echo said; echo wrong >&2; exit 7"}, {});
  ASSERT_TRUE(child);
  EXPECT_EQ(child->wait(), 7);
  EXPECT_FALSE(child->running());
  EXPECT_EQ(child->said(), "said\nwrong");
}

TEST(SimQemuChildProcess, EndsBySignal_ExpectItsNumber) {
  auto child = ChildProcess::start("sh", {"-c", "kill -9 $$"}, {});
  ASSERT_TRUE(child);
  EXPECT_EQ(child->wait(), 128 + SIGKILL);
}

TEST(SimQemuChildProcess, NoSuchProgram_ExpectNotFound) {
  const auto child = ChildProcess::start("no-such-program-anywhere", {}, {});
  EXPECT_EQ(child.status().code(), StatusCode::kNotFound);
}

TEST(SimQemuChildProcess, KeptDescriptor_ExpectItInTheChildAndNoOther) {
  std::array<int, 2> kept{}, other{};
  ASSERT_EQ(::pipe2(kept.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(other.data(), O_CLOEXEC), 0);
  const Fd ends[] = {Fd(kept[0]), Fd(kept[1]), Fd(other[0]), Fd(other[1])};
  auto child = ChildProcess::start("sh",
                                   {"-c", "test -e /proc/self/fd/$0 && test ! -e /proc/self/fd/$1",
                                    std::to_string(kept[1]), std::to_string(other[1])},
                                   std::array{kept[1]});
  ASSERT_TRUE(child);
  EXPECT_EQ(child->wait(), 0);
}

TEST(SimQemuChildProcess, Destroyed_ExpectItsEnd) {
  pid_t pid = -1;
  {
    auto child = ChildProcess::start("sleep", {"1000"}, {});
    ASSERT_TRUE(child);
    EXPECT_TRUE(child->running());
    pid = child->pid();
  }
  EXPECT_FALSE(lives(pid));
}

TEST(SimQemuChildProcess, MovedAway_ExpectOneOwner) {
  auto first = ChildProcess::start("sleep", {"1000"}, {});
  ASSERT_TRUE(first);
  const pid_t pid = first->pid();
  ChildProcess second = std::move(*first);
  EXPECT_TRUE(second.running());
  second = ChildProcess();
  EXPECT_FALSE(lives(pid));
}

TEST(SimQemuChildProcess, ItsParentIsKilled_ExpectItsEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd in(ends[0]);
  Fd out(ends[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto child = ChildProcess::start("sleep", {"1000"}, {});
    const pid_t pid = child ? child->pid() : -1;
    (void)!::write(out.get(), &pid, sizeof pid);
    for (;;) ::pause();
  }
  out.reset();
  pid_t pid = -1;
  ASSERT_EQ(::read(in.get(), &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(lives(pid));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(testing_support::turn_until([pid] { return !lives(pid); }));
}

}  // namespace
}  // namespace wherry::sim
