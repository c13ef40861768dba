// SPDX-License-Identifier: Apache-2.0
// The promises of quiesce(), try_quiesce() and reduce() when ranks send, poll and give up in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>
#include <regex>
#include <thread>

#include "base/clock.hpp"
#include "base/testing.hpp"
#include "route/client/quiesce_testing.hpp"
#include "route/client/testing.hpp"
#include "wherry/route_codec.hpp"

namespace wherry::route {
namespace {

using namespace std::chrono_literals;
using testing_support::QuiescePlay;
using testing_support::run_ranks;
using wherry::testing_support::kPatience;

TEST(Quiesce, RandomInterleavings_ExpectOkOnlyWhenEveryMessageWasHandled) {
  const std::vector<std::vector<std::uint32_t>> jobs{{0}, {0, 0}, {0, 1}, {0, 0, 0}, {0, 0, 1, 1}, {0, 1, 2, 2, 1, 0}};
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    QuiescePlay play({.node_of_rank = jobs[seed % jobs.size()]}, [&](std::uint32_t n) { return random() % n; });
    ASSERT_EQ(play.run(), "") << "seed " << seed;
  }
}

TEST(Quiesce, SendsBetweenTheCallsOfThreads_ExpectThemHandledBeforeOk) {
  constexpr int kRounds = 400;
  std::atomic<std::uint64_t> sent{0}, handled{0};
  run_ranks({0, 0}, {}, {}, [&](Runtime& runtime) {
    const auto add = runtime.on<std::uint64_t>([&](const std::uint64_t&) { ++handled; });
    std::mt19937 random(1);
    for (int round = 0; round < kRounds; ++round) {
      for (int extra = 0;;) {
        const StatusCode code = runtime.try_quiesce();
        if (code == StatusCode::kOk) break;
        ASSERT_EQ(code, StatusCode::kWouldBlock) << runtime.status().message();
        if (runtime.rank() != 0 || extra == 20 || random() % 4 != 0) continue;
        ++sent;
        // The send is refused if all ranks have agreed meanwhile; then the message was not sent.
        if (runtime.send(1, add, std::uint64_t{1}) != StatusCode::kOk) --sent;
        ++extra;
      }
      if (runtime.rank() == 0) {
        ASSERT_EQ(sent, handled) << "round " << round;
      }
      ASSERT_TRUE(runtime.reduce(std::uint64_t{0}));
    }
  });
}

TEST(Quiesce, TimedOutThenSendsThenAgain_ExpectThemHandledBeforeOk) {
  std::atomic<std::uint64_t> sent{0}, handled{0};
  run_ranks({0, 1}, {}, {}, [&](Runtime& runtime) {
    const auto add = runtime.on<std::uint64_t>([&](const std::uint64_t&) { ++handled; });
    for (int round = 0; round < 300; ++round) {
      for (int extra = 0;; ++extra) {
        const Status s = runtime.quiesce(0ns);
        if (s) break;
        ASSERT_EQ(s.code(), StatusCode::kDeadlineExceeded) << s.message();
        if (runtime.rank() != 0 || extra % 7 != 0 || extra > 100) continue;
        ++sent;
        if (runtime.send(1, add, std::uint64_t{1}) != StatusCode::kOk) --sent;
      }
      if (runtime.rank() == 0) {
        ASSERT_EQ(sent, handled) << "round " << round;
      }
      ASSERT_TRUE(runtime.reduce(std::uint64_t{0}));
    }
  });
}

TEST(Quiesce, ReduceAfterATimeOut_ExpectFailedPreconditionAndTheQuiesceToGoOn) {
  std::atomic<bool> tried{false};
  run_ranks({0, 0}, {}, {}, [&](Runtime& runtime) {
    const auto take = runtime.on<std::uint64_t>([](const std::uint64_t&) {});
    for (int i = 0; i < 77; ++i) ASSERT_EQ(runtime.send(0, take, std::uint64_t{1}), StatusCode::kOk);
    if (runtime.rank() == 1) {
      EXPECT_EQ(runtime.quiesce(20ms).code(), StatusCode::kDeadlineExceeded);
      const auto sum = runtime.reduce(std::uint64_t{1000});
      EXPECT_EQ(sum.status().code(), StatusCode::kFailedPrecondition);
      EXPECT_NE(sum.status().message().find("quiesce"), std::string::npos) << sum.status().message();
      tried = true;
    }
    while (!tried) std::this_thread::yield();
    ASSERT_TRUE(runtime.quiesce(kPatience));
    const auto sum = runtime.reduce(std::uint64_t{1000});
    ASSERT_TRUE(sum);
    EXPECT_EQ(*sum, 2000u);
  });
}

/// Runs `body(runtime)` as each rank until it returns. The job may fail.
std::vector<Status> run_until_failure(Rank ranks, const std::function<void(Runtime&)>& body) {
  std::vector<Status> statuses(ranks);
  auto wirings = wire_threads(std::vector<std::uint32_t>(ranks, 0), {2, 1024});
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank, wiring = std::move(wirings[rank])]() mutable {
      Runtime runtime = detail::make_runtime(Options{}, std::move(wiring));
      body(runtime);
      statuses[rank] = runtime.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

struct A {
  std::uint64_t a;
};
struct B {
  std::uint64_t b;
};

TEST(Handlers, AnotherOrderOnOneRank_ExpectFailedPreconditionOnAllRanks) {
  const auto statuses = run_until_failure(4, [](Runtime& runtime) {
    const auto on_a = [](const A&) {};
    const auto on_b = [](const B&) {};
    if (runtime.rank() == 2) {
      runtime.on<B>(on_b);
      runtime.on<A>(on_a);
    } else {
      runtime.on<A>(on_a);
      runtime.on<B>(on_b);
    }
    EXPECT_FALSE(runtime.quiesce(kPatience));
  });
  // Rank 0 compares the reports. Besides rank 2 it names another rank, which depends on the order of arrival.
  for (const Status& status : statuses)
    EXPECT_TRUE(std::regex_search(status.message(),
                                  std::regex("ranks ([013] and 2|2 and [013]) have registered different handlers")))
        << status.to_string();
  for (const Status& status : statuses)
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << "the same code for all";
}

/// `register_both(runtime, swapped)` registers two functions of one type; rank 1 uses the opposite order.
void expect_order_compared(const std::function<void(Runtime&, bool)>& register_both) {
  const auto statuses = run_until_failure(2, [&](Runtime& runtime) {
    register_both(runtime, runtime.rank() == 1);
    EXPECT_FALSE(runtime.quiesce(kPatience));
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.to_string();
    EXPECT_NE(status.message().find("have registered different handlers"), std::string::npos) << status.to_string();
    EXPECT_NE(status.message().find("by name"), std::string::npos) << status.to_string();
  }
  run_ranks({0, 0}, {}, {}, [&](Runtime& runtime) {
    register_both(runtime, false);
    EXPECT_TRUE(runtime.quiesce(kPatience)) << "the same order on both";
  });
}

void add_a(const A& /*message*/) {}
void add_b(const A& /*message*/) {}

/// Registers `a` and `b` for type T.
template <typename T, typename Fa, typename Fb>
auto both(Fa a, Fb b) {
  return [a, b](Runtime& runtime, bool swapped) {
    if (swapped) runtime.on<T>(b);
    runtime.on<T>(a);
    if (!swapped) runtime.on<T>(b);
  };
}

TEST(Handlers, LambdasOfOneTypeInAnotherOrder_ExpectFailedPrecondition) {
  expect_order_compared(both<A>([](const A&) {}, [](const A&) {}));
  expect_order_compared(both<ByteView>([](ByteView) {}, [](ByteView) {}));
  expect_order_compared(both<std::string>([](const std::string&) {}, [](const std::string&) {}));
}

TEST(Handlers, FunctionsOfOneTypeInAnotherOrder_ExpectFailedPrecondition) {
  expect_order_compared(both<A>(&add_a, &add_b));
  using Function = std::function<void(const A&)>;
  expect_order_compared(both<A>(Function(&add_a), Function(&add_b)));
  expect_order_compared(both<A>(Function([](const A&) {}), Function([](const A&) {})));
  expect_order_compared(both<A>(Function(&add_a), Function([](const A&) {})));
}

TEST(Handlers, ServicesOfOneTypeInAnotherOrder_ExpectFailedPrecondition) {
  expect_order_compared([](Runtime& runtime, bool swapped) {
    const auto twice = [](const std::uint32_t& x) { return 2 * x; };
    const auto thrice = [](const std::uint32_t& x) { return 3 * x; };
    if (swapped) runtime.serve<std::uint32_t, std::uint32_t>(thrice);
    runtime.serve<std::uint32_t, std::uint32_t>(twice);
    if (!swapped) runtime.serve<std::uint32_t, std::uint32_t>(thrice);
  });
}

/// The status after the registration of `first` and then `second` for type A without names.
template <typename First, typename Second>
Status add_both(First first, Second second) {
  const auto statuses = run_until_failure(1, [&](Runtime& runtime) {
    runtime.on<A>(first);
    if (runtime.status()) runtime.on<A>(second);
  });
  return statuses[0];
}

TEST(Handlers, IndistinguishableFunctions_ExpectAlreadyExists) {
  std::uint64_t sums[2] = {};
  const auto adder = [&](int i) { return [&sums, i](const A& message) { sums[i] += message.a; }; };
  using Function = std::function<void(const A&)>;
  for (const Status& status :
       {add_both(adder(0), adder(1)), add_both(&add_a, &add_a), add_both(Function(adder(0)), Function(adder(1)))}) {
    EXPECT_EQ(status.code(), StatusCode::kAlreadyExists) << status.to_string();
    EXPECT_NE(status.message().find("give each a name"), std::string::npos) << status.to_string();
  }
  EXPECT_TRUE(add_both(&add_a, &add_b));
  EXPECT_TRUE(add_both(adder(0), [](const A&) {}));
}

TEST(Handlers, IndistinguishableFunctionsWithNames_ExpectEachMessageAtItsHandler) {
  run_ranks({0, 0}, {}, {}, [](Runtime& runtime) {
    std::vector<std::uint64_t> sums(3);
    std::vector<Handler<A>> handlers(sums.size());
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const std::size_t i = (k + runtime.rank()) % sums.size();
      handlers[i] = runtime.on<A>(std::to_string(i), [&sums, i](const A& message) { sums[i] += message.a; });
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      for (Rank to = 0; to < runtime.ranks(); ++to) ASSERT_EQ(runtime.send(to, handlers[i], A{i + 1}), StatusCode::kOk);
    }
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(sums, (std::vector<std::uint64_t>{2, 4, 6}));
  });
}

TEST(Handlers, AnotherSizeUnderOneName_ExpectFailedPrecondition) {
  const auto statuses = run_until_failure(2, [](Runtime& runtime) {
    if (runtime.rank() == 0) {
      runtime.on<std::uint64_t>("update", [](const std::uint64_t&) {});
    } else {
      runtime.on<std::uint32_t>("update", [](const std::uint32_t&) {});
    }
    EXPECT_FALSE(runtime.reduce(std::uint64_t{1}));
  });
  for (const Status& status : statuses)
    EXPECT_NE(status.message().find("different handlers"), std::string::npos) << status.to_string();
}

TEST(Handlers, NamesInAnyOrder_ExpectEachMessageAtItsHandler) {
  run_ranks({0, 0, 1}, {}, {}, [](Runtime& runtime) {
    std::uint64_t a = 0, b = 0;
    Handler<A> to_a;
    Handler<B> to_b;
    Service<std::uint32_t, std::uint64_t> twice;
    std::vector<std::function<void()>> steps{
        [&] { to_a = runtime.on<A>("one library: a", [&](const A& message) { a += message.a; }); },
        [&] { to_b = runtime.on<B>("another library: b", [&](const B& message) { b += message.b; }); },
        [&] {
          twice = runtime.serve<std::uint32_t, std::uint64_t>(
              "twice", [](const std::uint32_t& x) { return std::uint64_t{2} * x; });
        }};
    std::rotate(steps.begin(), steps.begin() + runtime.rank(), steps.end());
    for (const auto& step : steps) step();
    std::uint64_t doubled = 0;
    for (Rank to = 0; to < runtime.ranks(); ++to) {
      ASSERT_EQ(runtime.send(to, to_a, A{1}), StatusCode::kOk);
      ASSERT_EQ(runtime.send(to, to_b, B{10}), StatusCode::kOk);
      ASSERT_EQ(
          (runtime.request<std::uint32_t, std::uint64_t>(to, twice, 4, [&](const std::uint64_t& y) { doubled += y; })),
          StatusCode::kOk);
    }
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(a, 3u);
    EXPECT_EQ(b, 30u);
    EXPECT_EQ(doubled, 24u);
  });
}

TEST(Handlers, NameThatIsTaken_ExpectAlreadyExists) {
  const auto statuses = run_until_failure(1, [](Runtime& runtime) {
    runtime.on<A>("a", [](const A&) {});
    runtime.on<B>("a", [](const B&) {});
  });
  EXPECT_EQ(statuses[0].code(), StatusCode::kAlreadyExists);
}

TEST(Collectives, RanksInDifferentCalls_ExpectFailedPreconditionOnAllRanks) {
  const auto statuses = run_until_failure(3, [](Runtime& runtime) {
    if (runtime.rank() == 1) {
      EXPECT_FALSE(runtime.quiesce(kPatience));
    } else {
      EXPECT_FALSE(runtime.reduce(std::uint64_t{1}));
    }
  });
  for (const Status& status : statuses)
    EXPECT_NE(status.message().find("different collective calls"), std::string::npos) << status.to_string();
}

TEST(Collectives, OtherOperationsAndTypes_ExpectEachRanksCallNamed) {
  const auto statuses = run_until_failure(2, [](Runtime& runtime) {
    if (runtime.rank() == 1) {
      EXPECT_FALSE(runtime.reduce(1.0, Runtime::Combine::kMax));
    } else {
      EXPECT_FALSE(runtime.reduce(std::uint64_t{1}));
    }
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("rank 0 is in reduce() of integers, kSum, rank 1 in reduce() of doubles, kMax"),
              std::string::npos)
        << status.to_string();
  }
}

TEST(Collectives, RankThatLeavesInTheMiddle_ExpectUnavailableOnTheOthers) {
  const auto statuses = run_until_failure(4, [](Runtime& runtime) {
    ASSERT_TRUE(runtime.quiesce(kPatience));
    if (runtime.rank() == 1) return;
    EXPECT_FALSE(runtime.quiesce(kPatience));
  });
  for (const Rank rank : {0U, 2U, 3U}) {
    EXPECT_EQ(statuses[rank].code(), StatusCode::kUnavailable);
    EXPECT_NE(statuses[rank].message().find("rank 1 has left the job"), std::string::npos) << statuses[rank].message();
  }
}

TEST(Collectives, RanksThatLeaveAfterTheLastOne_ExpectNoFailure) {
  for (int round = 0; round < 8; ++round) {
    const auto statuses = run_until_failure(6, [](Runtime& runtime) {
      const auto take = runtime.on<std::uint64_t>([](const std::uint64_t&) {});
      for (Rank to = 0; to < 6; ++to) ASSERT_EQ(runtime.send(to, take, std::uint64_t{1}), StatusCode::kOk);
      EXPECT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
      // The remaining ranks check many times for ranks that have left. On a busy machine each check takes milliseconds.
      const Deadline enough(1s);
      for (int i = 0; i < 40'000 && runtime.rank() % 2 == 0 && !enough.passed(); ++i) runtime.poll();
    });
    for (const Status& status : statuses) ASSERT_TRUE(status) << status.message();
  }
}

TEST(Collectives, OutcomeAndDepartureInOneBuffer_ExpectTheOutcomeToCount) {
  auto wirings = wire_threads({0, 0}, {2, 1024});
  Runtime root = detail::make_runtime(Options{}, std::move(wirings[0]));
  Runtime leaf = detail::make_runtime(Options{}, std::move(wirings[1]));
  StatusCode code = StatusCode::kWouldBlock;
  while ((code = root.try_quiesce()) == StatusCode::kWouldBlock) ASSERT_EQ(leaf.try_quiesce(), StatusCode::kWouldBlock);
  ASSERT_EQ(code, StatusCode::kOk);
  const Departure departure{0, 2};  // a counting round, and a confirming one
  const Header header = Header::make(sizeof departure, kLeftHandler, 1);
  const auto space = root.try_buffer(1, header.stride());
  ASSERT_EQ(space.size(), header.stride());
  header.store(space.data());
  std::memcpy(space.data() + sizeof header, &departure, sizeof departure);
  root.post_buffer(1, header.stride(), 0);
  root.flush();
  EXPECT_EQ(leaf.try_quiesce(), StatusCode::kOk) << leaf.status().message();
  EXPECT_EQ(leaf.quiesce(kPatience).code(), StatusCode::kUnavailable) << "another one cannot end";
}

TEST(Collectives, OutcomeForARankWithMegabytesOnTheirWay_ExpectItAheadOfThem) {
  std::atomic<bool> in_reduce{false};
  std::uint64_t of_child = 0;
  const auto statuses = run_until_failure(2, [&](Runtime& runtime) {
    const auto take = runtime.on<std::uint64_t>([&](const std::uint64_t&) {
      while (!in_reduce) std::this_thread::yield();  // so that the root's buffers stay full
    });
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
    if (runtime.rank() == 1) {
      const auto sum = runtime.reduce(std::uint64_t{2});
      ASSERT_TRUE(sum) << sum.status().message();
      of_child = *sum;
      return;
    }
    const std::uint64_t before = runtime.statistics().bytes_in;
    while (runtime.statistics().bytes_in == before) runtime.poll();  // until the child's report is here
    for (int i = 0; i < 300'000; ++i) ASSERT_EQ(runtime.send(1, take, std::uint64_t{1}), StatusCode::kOk);
    ASSERT_GT(runtime.statistics().backlog_bytes, 1U << 20) << "nothing is on its way: this shows nothing";
    in_reduce = true;
    const auto sum = runtime.reduce(std::uint64_t{1});
    ASSERT_TRUE(sum) << sum.status().message();
    EXPECT_EQ(*sum, 3U);
    // Most messages are lost when this rank ends, but not the outcome.
  });
  EXPECT_EQ(of_child, 3U) << statuses[1].message();
}

TEST(Sends, ThroughSeveralThatHaveLeft_ExpectTheRankOfTheMessageNamed) {
  auto wirings = wire_threads({0, 0, 0}, {2, 1024});
  Runtime sender = detail::make_runtime(Options{}, std::move(wirings[0]));
  const auto take = sender.on<std::uint64_t>([](const std::uint64_t&) {});
  for (const Rank rank : {2U, 1U}) {
    const Runtime gone = detail::make_runtime(Options{}, std::move(wirings[rank]));
  }
  const Deadline deadline(kPatience);
  while (detail::core_of(sender).departed().size() != 2 && !deadline.passed()) sender.poll();
  ASSERT_EQ(detail::core_of(sender).departed().size(), 2U);
  const Rank last = detail::core_of(sender).departed().back().rank;
  (void)sender.send(last, take, std::uint64_t{1});
  sender.poll();
  EXPECT_EQ(sender.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(sender.status().message().find("rank " + std::to_string(last)), std::string::npos)
      << sender.status().message();
  EXPECT_EQ(sender.status().message().find("rank " + std::to_string(3 - last)), std::string::npos)
      << "that one has nothing to do with it: " << sender.status().message();
}

TEST(Sends, ToARankThatHasLeft_ExpectUnavailable) {
  const auto statuses = run_until_failure(2, [](Runtime& runtime) {
    const auto take = runtime.on<std::uint64_t>([](const std::uint64_t&) {});
    if (runtime.rank() == 1) return;
    while (runtime.send(1, take, std::uint64_t{1}) == StatusCode::kOk) runtime.poll();
  });
  EXPECT_EQ(statuses[0].code(), StatusCode::kUnavailable);
  EXPECT_NE(statuses[0].message().find("left the job"), std::string::npos) << statuses[0].message();
}

}  // namespace
}  // namespace wherry::route
