// SPDX-License-Identifier: Apache-2.0
// Tests two hops in one process, mapped and bridged: each message of one must arrive at the other exactly once.
#include "route/hop.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/clock.hpp"

namespace wherry::route {
namespace {

using wherry::testing_support::kPatience;
using namespace std::chrono_literals;

struct Way {
  bool mapped;
  Transport transport;
};

class Hops : public testing::TestWithParam<Way> {
 protected:
  static constexpr RingShape kShape{4, 8192};
  std::unique_ptr<Hop> make(Rank mine) {
    Hop::Options options;
    options.mine = mine;
    options.lanes = 1;
    options.inbox = {1, kShape};
    options.network = !GetParam().mapped;
    options.transport = GetParam().transport;
    options.stream.listen = "lo";
    auto hop = Hop::create(options);
    EXPECT_TRUE(hop) << hop.status().message();
    return hop ? *std::move(hop) : nullptr;
  }
  /// Connects a to b, and b to a.
  void SetUp() override {
    a = make(0), b = make(1);
    ASSERT_TRUE(a && b);
    for (const auto& [from, to] : {std::pair(a.get(), b.get()), std::pair(b.get(), a.get())}) {
      const Status s = from->connect(0, to->address(), 0, GetParam().mapped, "the other");
      ASSERT_TRUE(s) << s.message();
      if (!GetParam().mapped) {
        ASSERT_TRUE(to->expect(0, from->address(), 0, "the other"));
      }
    }
    a->router().set_table({0, 0});
    b->router().set_table({0, 0});
  }
  std::unique_ptr<Hop> a, b;
};

TEST_P(Hops, Send_ManyMessagesToAReaderThatStalls_ExpectEachOnce) {
  std::mt19937_64 random(1);
  constexpr std::uint64_t kMessages = 20'000;
  std::uint64_t sent = 0, received = 0, sum_sent = 0, sum_received = 0;
  const Deadline deadline(kPatience);
  while (received < kMessages && !deadline.passed()) {
    for (int i = 0; i < 50 && sent < kMessages; ++i) {
      const std::size_t size = 8 + random() % 2000;
      const Header header = Header::make(size, 20, 1);
      Lane& lane = a->router().lane_of(1);
      const auto copy = [&](std::byte* to) {
        std::memset(to, static_cast<int>(sent & 0xff), header.stride() - sizeof header);
        std::memcpy(to, &sent, sizeof sent);
      };
      if (!a->router().try_append(lane, header, copy)) break;
      sum_sent += sent * size;
      ++sent;
    }
    if (random() % 4 == 0) a->router().flush(Flush::kExplicit);
    a->progress();
    b->progress();
    if (random() % 3 != 0) continue;  // the reader computes
    b->router().each_input([&](Input& input) {
      const RingReader::Part part = input.ring.peek();
      ASSERT_FALSE(part.malformed);
      for (const std::byte* at = part.from; at != part.to; at += Header::load(at).stride()) {
        const Header header = Header::load(at);
        ASSERT_EQ(header.to(), 1u);
        std::uint64_t number = 0;
        std::memcpy(&number, at + 8, 8);
        if (header.size() > 8) {
          ASSERT_EQ(static_cast<std::uint8_t>(at[16]), number & 0xff);
        }
        sum_received += number * header.size();
        ++received;
      }
      input.ring.advance(static_cast<std::size_t>(part.to - part.from));
      input.waiting = true;
    });
  }
  EXPECT_EQ(received, kMessages);
  EXPECT_EQ(sum_received, sum_sent);
  EXPECT_TRUE(a->health() && b->health());
}

TEST_P(Hops, Send_ReaderNeverReads_ExpectTheWriterToStopWithinItsBuffers) {
  std::uint64_t sent = 0;
  for (int round = 0; round < 2000; ++round) {
    while (true) {
      Lane& lane = a->router().lane_of(1);
      if (!a->router().try_append(lane, Header::make(1000, 20, 1), [](std::byte*) {})) break;
      ++sent;
    }
    a->progress();
    b->progress();
  }
  // The lane's ring, plus the buffers that credits allow over the bridge: the receiver's ring, and as many that wait
  // before it.
  const std::uint64_t buffers = GetParam().mapped ? kShape.buffers : 3 * kShape.buffers;
  EXPECT_LE(sent, buffers * (kShape.buffer_bytes / 1008));
  EXPECT_GE(sent, kShape.buffers * (kShape.buffer_bytes / 1008));
  EXPECT_TRUE(a->health() && b->health());
}

TEST_P(Hops, OtherMakesNoProgress_ExpectOpenToNameItAndToSucceedOnceItDoes) {
  if (GetParam().mapped) {
    EXPECT_TRUE(a->open(Deadline(0s)));  // memory is there at once
    return;
  }
  const Status early = a->open(Deadline(200ms));
  EXPECT_EQ(early.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(early.message().find("the other"), std::string::npos) << early.message();
  Status late = early;
  const Deadline deadline(kPatience);
  while (!late && !deadline.passed()) {
    (void)b->progress();
    late = a->open(Deadline(0s));
  }
  EXPECT_TRUE(late) << late.message();
}

INSTANTIATE_TEST_SUITE_P(Ways, Hops, testing::Values(Way{true, Transport::kAuto}, Way{false, Transport::kTcp}),
                         [](const auto& way) { return way.param.mapped ? "mapped" : "tcp"; });

}  // namespace
}  // namespace wherry::route
