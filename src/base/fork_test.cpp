// SPDX-License-Identifier: Apache-2.0
#include "base/fork.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wherry {
namespace {

bool told = false;

/// Whether a child that is forked now gets the call of in_child().
bool child_is_told() {
  const pid_t child = fork();
  if (child == 0) _exit(told ? 1 : 0);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status) == 1;
}

class Watching : private ForkWatch {
 public:
  Watching() { start_watching(); }
  ~Watching() override { stop_watching(); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  [[nodiscard]] bool told_while_it_was_made() const { return told_early_; }

 private:
  void in_child() noexcept override { told = true; }
  bool told_early_ = child_is_told();  // as if another thread forked now
};

TEST(ForkWatches, ForkWhileAnObjectIsMade_ExpectItToBeToldOnlyWhenItIsWhole) {
  {
    const Watching one;
    EXPECT_FALSE(one.told_while_it_was_made());
    EXPECT_TRUE(child_is_told());
  }
  EXPECT_FALSE(child_is_told());
}

}  // namespace
}  // namespace wherry
