// SPDX-License-Identifier: Apache-2.0
// Compiled without RTTI, as some programs are: then handlers are distinguished by their code addresses.
#include <gtest/gtest.h>

#include <functional>

#include "base/testing.hpp"
#include "route/client/testing.hpp"

#if defined(__cpp_rtti)
#error "this file tests what -fno-rtti leaves"
#endif

namespace wherry::route {
namespace {

using wherry::testing_support::kPatience;
using namespace std::chrono_literals;

struct Message {
  std::uint64_t word;
};
void first(const Message& /*message*/) {}
void second(const Message& /*message*/) {}

/// The status of a quiesce on rank 1 of two. Rank 1 registers `a` and `b` in the opposite order of rank 0.
template <typename A, typename B>
Status compare(A a, B b, bool swapped) {
  Status status;
  auto wirings = wire_threads({0, 0}, {2, 1024});
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank, wiring = std::move(wirings[rank])]() mutable {
      Runtime runtime = detail::make_runtime(Options{}, std::move(wiring));
      const bool other_way = swapped && rank == 1;
      if (other_way) runtime.on<Message>(b);
      runtime.on<Message>(a);
      if (!other_way) runtime.on<Message>(b);
      const Status done = runtime.quiesce(kPatience);
      if (rank == 1) status = done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return status;
}

TEST(WithoutRtti, AnotherOrder_ExpectFailedPrecondition) {
  const auto a = [](const Message&) {};
  const auto b = [](const Message& message) { EXPECT_EQ(message.word, 1U); };
  EXPECT_TRUE(compare(a, b, false));
  EXPECT_EQ(compare(a, b, true).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(compare(&first, &second, false));
  EXPECT_EQ(compare(&first, &second, true).code(), StatusCode::kFailedPrecondition);
}

TEST(WithoutRtti, IndistinguishableFunctions_ExpectAlreadyExists) {
  using Function = std::function<void(const Message&)>;
  EXPECT_EQ(compare(Function(&first), Function(&second), false).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(compare(&first, &first, false).code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace wherry::route
