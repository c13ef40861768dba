// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "wherry/route.hpp"

namespace wherry::route {
namespace {

TEST(Start, ProcessWithoutDescriptors_ExpectThemNamedInTheError) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(STDERR_FILENO);
  ::close(lowest_free);
  const rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status refused = Runtime::start().status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("this process has no file descriptors left"), std::string::npos)
      << refused.message();
  EXPECT_TRUE(Runtime::start());
}

}  // namespace
}  // namespace wherry::route
