// SPDX-License-Identifier: Apache-2.0
#include "base/user.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace wherry {
namespace {

TEST(UserOutside, Map_ExpectTheNumberOfItsLine) {
  // user_namespaces(7): a rootless container's map, and the machine's own map.
  const std::string container = "         0       1000          1\n         1     100000      65536\n";
  EXPECT_EQ(user_outside(container, 0), 1000U);
  EXPECT_EQ(user_outside(container, 5), 100004U);
  EXPECT_EQ(user_outside("0 0 4294967295\n", 12), 12U);
}

TEST(UserOutside, NoLine_ExpectTheNumberItself) {
  EXPECT_EQ(user_outside("0 1000 1\n", 7), 7U);
  EXPECT_EQ(user_outside("", 7), 7U);
  EXPECT_EQ(user_outside("nonsense\n", 7), 7U);
}

TEST(UserOutside, InANamespace_ExpectTheNumberOutside) {
  constexpr int kSame = 0, kOther = 1, kRefused = 2;
  const uid_t mine = ::getuid();
  const std::string map = fmt::format("{} {} 1\n", mine + 5, mine);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(kRefused);
    const Fd file(::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC));
    if (::write(file.get(), map.data(), map.size()) != static_cast<ssize_t>(map.size())) ::_exit(kRefused);
    ::_exit(::getuid() == mine + 5 && user_outside() == mine ? kSame : kOther);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kRefused) GTEST_SKIP() << "this machine allows no user namespaces";
  EXPECT_EQ(WEXITSTATUS(status), kSame);
}

}  // namespace
}  // namespace wherry
