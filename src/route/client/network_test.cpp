// SPDX-License-Identifier: Apache-2.0
// Tests ranks that route for themselves over a network. Outcomes, departures and failures must be sent at once, even if
// the sending rank then makes no call for a long time, or ever.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/testing.hpp"
#include "route/client/network_testing.hpp"

namespace wherry::route {
namespace {

using namespace std::chrono_literals;
using testing_support::run_over_network;
using wherry::testing_support::kPatience;

constexpr RingShape kShape{2, 4096};

/// Waits without a call to the runtime, to show that something does not happen. The wait is much longer than that event
/// would need.
bool seen(const std::atomic<int>& count, int wanted) {
  const Deadline deadline(kPatience);
  while (count < wanted) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

TEST(Network, RootThatComputesAfterQuiesce_ExpectTheOthersToLearnTheOutcome) {
  std::atomic<int> told{0};
  const auto statuses = run_over_network(3, kShape, [&](Runtime& runtime) {
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
    if (runtime.rank() == 0) {
      EXPECT_TRUE(seen(told, 2)) << "the outcome is still in the root's buffers";
    } else {
      ++told;
    }
  });
  for (const Status& status : statuses) EXPECT_TRUE(status) << status.message();
}

TEST(Network, RootThatComputesAfterReduce_ExpectTheOthersToLearnTheOutcome) {
  std::atomic<int> told{0};
  const auto statuses = run_over_network(3, kShape, [&](Runtime& runtime) {
    const auto sum = runtime.reduce(std::uint64_t{1});
    ASSERT_TRUE(sum) << sum.status().message();
    EXPECT_EQ(*sum, 3U);
    if (runtime.rank() == 0) {
      EXPECT_TRUE(seen(told, 2)) << "the outcome is still in the root's buffers";
    } else {
      ++told;
    }
  });
  for (const Status& status : statuses) EXPECT_TRUE(status) << status.message();
}

TEST(Network, RootThatComputesAfterTryQuiesce_ExpectTheOthersToLearnTheOutcome) {
  std::atomic<int> told{0};
  const auto statuses = run_over_network(2, kShape, [&](Runtime& runtime) {
    StatusCode code = StatusCode::kWouldBlock;
    while ((code = runtime.try_quiesce()) == StatusCode::kWouldBlock) {
    }
    ASSERT_EQ(code, StatusCode::kOk) << runtime.status().message();
    if (runtime.rank() == 0) {
      EXPECT_TRUE(seen(told, 1)) << "the outcome is still in the root's buffers";
    } else {
      ++told;
    }
  });
  for (const Status& status : statuses) EXPECT_TRUE(status) << status.message();
}

TEST(Network, RankThatComputesAfterItsStart_ExpectTheOthersToReachItOnceItCalls) {
  const auto statuses = run_over_network(2, kShape, [&](Runtime& runtime) {
    int arrived = 0;
    const auto take = runtime.on<std::uint64_t>([&](const std::uint64_t&) { ++arrived; });
    // Sleep longer than the other ranks' time limit for one of several addresses.
    if (runtime.rank() == 1) std::this_thread::sleep_for(4s);
    ASSERT_EQ(runtime.send(1 - runtime.rank(), take, std::uint64_t{1}), StatusCode::kOk);
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
    EXPECT_EQ(arrived, 1);
  });
  for (const Status& status : statuses) EXPECT_TRUE(status) << status.message();
}

TEST(Network, FlushThenNoCall_ExpectTheMessageToArrive) {
  std::atomic<int> arrived{0};
  const auto statuses = run_over_network(2, kShape, [&](Runtime& runtime) {
    const auto take = runtime.on<std::uint64_t>([&](const std::uint64_t&) { ++arrived; });
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
    if (runtime.rank() == 0) {
      ASSERT_EQ(runtime.send(1, take, std::uint64_t{1}), StatusCode::kOk);
      runtime.flush();
      EXPECT_TRUE(seen(arrived, 1)) << "the message is still in the sender's buffers";
    } else {
      const Deadline deadline(kPatience);
      while (arrived == 0 && !deadline.passed()) runtime.poll();
    }
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status) << status.message();
}

/// The first rank that detects the mismatch fails and ends. The other ranks learn the reason from it.
void expect_all_to_learn_of_a_mismatch(RingShape shape) {
  const auto statuses = run_over_network(3, shape, [](Runtime& runtime) {
    if (runtime.rank() == 1) {
      runtime.on<std::uint32_t>("update", [](const std::uint32_t&) {});
      runtime.on<std::uint32_t>(std::string(300, 'x'), [](const std::uint32_t&) {});
    } else {
      runtime.on<std::uint64_t>("update", [](const std::uint64_t&) {});
      runtime.on<std::uint64_t>(std::string(300, 'y'), [](const std::uint64_t&) {});
    }
    EXPECT_FALSE(runtime.quiesce(kPatience));
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.to_string();
    EXPECT_NE(status.message().find("have registered different handlers"), std::string::npos) << status.to_string();
  }
}

TEST(Network, RankThatFailsAndEnds_ExpectTheOthersToLearnWhy) { expect_all_to_learn_of_a_mismatch(kShape); }

TEST(Network, ReasonLongerThanABuffer_ExpectItTruncated) { expect_all_to_learn_of_a_mismatch({2, 256}); }

/// Two ranks. The second has closed its connections like a departing rank, but has sent no departure message.
class SilentDeparture final : public Wiring {
 public:
  explicit SilentDeparture(std::unique_ptr<Wiring> inner) : Wiring(inner->place()), inner_(std::move(inner)) {
    router_ = &inner_->router();
    presence_ = inner_->presence();
    bridged_hops_ = {1};
  }
  [[nodiscard]] bool has_left(std::uint32_t lane) noexcept override {
    return lane == router_->index_of(router_->lane_of(1));
  }
  [[nodiscard]] std::string transport() const override { return inner_->transport(); }

 private:
  std::unique_ptr<Wiring> inner_;
};

TEST(Network, RankThatLeavesWithoutAMessage_ExpectUnavailableInACollectiveCall) {
  auto wirings = wire_threads({0, 1}, kShape);
  Runtime runtime = detail::make_runtime(Options{}, std::make_unique<SilentDeparture>(std::move(wirings[0])));
  EXPECT_EQ(runtime.quiesce(kPatience).code(), StatusCode::kUnavailable);
  EXPECT_NE(runtime.status().message().find("rank 1 has left the job"), std::string::npos)
      << runtime.status().message();
}

TEST(Network, RankThatFailsWhileAllLanesAreFull_ExpectTheOthersToFailWhenItHasGone) {
  // Rank 0 does not read until rank 1 has gone, so only the bridge's own message gets through.
  std::atomic<int> gone{0};
  const auto statuses = run_over_network(2, {2, 256}, [&](Runtime& runtime) {
    const auto take = runtime.on<std::uint64_t>([](const std::uint64_t&) {});
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
    if (runtime.rank() == 1) {
      while (runtime.try_send(0, take, std::uint64_t{1}) == StatusCode::kOk) {
      }
      for (int i = 0; i < 1000; ++i) {
        runtime.poll();
        while (runtime.try_send(0, take, std::uint64_t{1}) == StatusCode::kOk) {
        }
      }
      detail::core_of(runtime).fail(Status{StatusCode::kResourceExhausted, "the reason"});
      ++gone;
      return;
    }
    EXPECT_TRUE(seen(gone, 1));
    std::this_thread::sleep_for(1500ms);  // longer than rank 1 has patience: a shorter one only makes this easier
    EXPECT_FALSE(runtime.quiesce(kPatience));
  });
  EXPECT_FALSE(statuses[0]);
  EXPECT_NE(statuses[0].code(), StatusCode::kDeadlineExceeded) << statuses[0].to_string();
}

/// Waits for this rank's messages up to `given` instead of the rank's own limit, and records that it waited.
class PatienceOf final : public Wiring {
 public:
  PatienceOf(std::unique_ptr<Wiring> inner, std::chrono::nanoseconds given, std::chrono::nanoseconds& asked)
      : Wiring(inner->place()), inner_(std::move(inner)), given_(given), asked_(asked) {
    router_ = &inner_->router();
    presence_ = inner_->presence();
    bridged_hops_ = inner_->bridged_hops();
  }
  bool progress() noexcept override { return inner_->progress(); }
  [[nodiscard]] Status health() noexcept override { return inner_->health(); }
  [[nodiscard]] bool has_sent(std::uint32_t lane, std::uint64_t written) noexcept override {
    return inner_->has_sent(lane, written);
  }
  [[nodiscard]] bool has_left(std::uint32_t lane) noexcept override { return inner_->has_left(lane); }
  [[nodiscard]] bool settled(std::chrono::nanoseconds patience) noexcept override {
    asked_ = patience;
    return inner_->settled(given_);
  }
  [[nodiscard]] std::string unsettled() override { return inner_->unsettled(); }
  void leave() noexcept override { inner_->leave(); }
  [[nodiscard]] std::string transport() const override { return inner_->transport(); }

 private:
  std::unique_ptr<Wiring> inner_;
  std::chrono::nanoseconds given_;
  std::chrono::nanoseconds& asked_;
};

struct Departed {
  std::uint64_t sent = 0, arrived = 0;
  std::chrono::nanoseconds asked{};
  std::string said;
};

/// Rank 0 fills all buffers on the way to rank 1, which does not read, and then leaves. `late`: rank 1 reads when rank
/// 0 has waited for more than a second. Otherwise rank 1 reads when rank 0 has gone.
Departed leave_with_full_lanes(std::chrono::nanoseconds given, bool late) {
  Departed result;
  std::atomic<int> leaving{0}, gone{0};
  ::testing::internal::CaptureStderr();
  const auto wrap = [&](Rank rank, std::unique_ptr<Wiring> wiring) -> std::unique_ptr<Wiring> {
    if (rank != 0) return wiring;
    return std::make_unique<PatienceOf>(std::move(wiring), given, result.asked);
  };
  const auto body = [&](std::unique_ptr<Runtime> runtime) {
    const auto take = runtime->on<std::uint64_t>([&](const std::uint64_t&) { ++result.arrived; });
    if (runtime->rank() == 0) {
      for (int refused = 0; refused < 2000;) {  // in a row: nothing goes on any more
        const bool went = runtime->try_send(1, take, std::uint64_t{1}) == StatusCode::kOk;
        result.sent += went ? 1 : 0;
        refused = went ? 0 : refused + 1;
        runtime->poll();
      }
      ++leaving;
      runtime.reset();
      ++gone;
      return;
    }
    EXPECT_TRUE(seen(leaving, 1));
    if (late) {
      std::this_thread::sleep_for(1500ms);
      const Deadline deadline(kPatience);
      while (result.arrived < result.sent && !deadline.passed()) runtime->poll();
    } else {
      EXPECT_TRUE(seen(gone, 1));
      for (int i = 0; i < 1000; ++i) runtime->poll();
    }
  };
  run_over_network(2, kShape, wrap, body);
  result.said = ::testing::internal::GetCapturedStderr();
  return result;
}

TEST(Network, RankThatLeavesBeforeASlowOneHasTakenItsMessages_ExpectAllToArrive) {
  const Departed departed = leave_with_full_lanes(60s, true);
  EXPECT_GE(departed.asked, 10s) << "as long as an agent waits";
  EXPECT_EQ(departed.arrived, departed.sent);
  EXPECT_EQ(departed.said, "");
}

TEST(Network, RankThatLeavesAndIsNotReadInTime_ExpectALineThatNamesTheReader) {
  const Departed departed = leave_with_full_lanes(100ms, false);
  EXPECT_LT(departed.arrived, departed.sent);
  EXPECT_NE(departed.said.find("rank 0 leaves the job and drops messages: rank 1 did not take them"), std::string::npos)
      << departed.said;
}

}  // namespace
}  // namespace wherry::route
