// SPDX-License-Identifier: Apache-2.0
// Resets and removals with much traffic in flight: each read ends once, nothing hangs, and all losses are counted.
#include <gtest/gtest.h>

#include <set>

#include "sim/pcie/testing.hpp"

namespace wherry::sim::pcie {
namespace {

using testing_support::Hierarchy;
using testing_support::kBarBytes;
using testing_support::MemoryDevice;
using testing_support::pattern;
using testing_support::seeds;
using enum CompletionStatus;

TEST(FunctionLevelReset, ReadsUnderWay_ExpectEachAbortedOnceThenTheReset) {
  Hierarchy system({});
  system[1].latency = 2 * kMicrosecond;
  for (Token token = 0; token < 10; ++token)
    system[0].port->post_read({.address = system.bar(1), .bytes = 700, .token = token});
  system.queue.call(kMicrosecond, [&] { system[0].port->reset(); });
  system.queue.run();
  ASSERT_EQ(system[0].done.size(), 10U);
  std::set<Token> tokens;
  for (const auto& [token, status] : system[0].done) {
    EXPECT_EQ(status, kAborted);
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 10U);
  EXPECT_EQ(system[0].resets, std::vector<ResetKind>{ResetKind::kFunctionLevel});
  EXPECT_FALSE(system[0].port->bus_master());
  // No read waits for the late completions. The 700 bytes are requests of 512 and 188, which come in 256, 256 and 188.
  EXPECT_EQ(system[0].port->counters().unexpected_completions, 30U);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
}

TEST(FunctionLevelReset, NewReadsAtOnce_ExpectNoOldCompletionAmongTheirData) {
  Hierarchy::Shape shape;
  shape.function.tags = 4;  // so that tags come round
  Hierarchy system(shape);
  system[1].memory = pattern(kBarBytes);
  system[1].latency = 2 * kMicrosecond;
  std::vector<std::byte> data(4096);
  for (Token token = 0; token < 4; ++token) {
    system[0].port->post_read({.address = system.bar(1) + 0x8000, .bytes = 512, .into = data.data(), .token = token});
  }
  std::vector<std::byte> fresh(4096);
  system.queue.call(kMicrosecond, [&] {
    system[0].port->reset();
    system[0].port->set_bus_master(true);
    system[0].port->post_read({.address = system.bar(1), .bytes = 4096, .into = fresh.data(), .token = 9});
  });
  system.queue.run();
  EXPECT_EQ(data, std::vector<std::byte>(4096));
  EXPECT_TRUE(std::equal(fresh.begin(), fresh.end(), system[1].memory.begin()));
  EXPECT_EQ(system[0].done.back(), (std::pair<Token, CompletionStatus>{9, kSuccess}));
}

TEST(FunctionLevelReset, OfTheCompleter_ExpectItsAnswersFromBeforeDroppedAndCounted) {
  Hierarchy system({});
  system[1].latency = 2 * kMicrosecond;
  system[0].port->post_read({.address = system.bar(1), .bytes = 64, .token = 1});
  system.queue.call(kMicrosecond, [&] { system[1].port->reset(); });
  system.queue.run();
  ASSERT_EQ(system[0].done.size(), 1U);
  EXPECT_EQ(system[0].done[0].second, kTimeout);
  EXPECT_EQ(system[1].port->counters().stale_completes, 1U);
}

TEST(Removal, InMidFlight_ExpectTimeoutThenUnsupportedThenWellAgainWhenBack) {
  Hierarchy system({});
  system[1].latency = 2 * kMicrosecond;
  Port& port = *system[0].port;
  port.post_read({.address = system.bar(1), .bytes = 64, .token = 1});
  system.queue.call(kMicrosecond, [&] { system.fabric.remove(system.nodes[1]); });
  system.queue.call(3 * kMicrosecond, [&] {
    port.post_write(system.bar(1), pattern(64));
    port.post_read({.address = system.bar(1), .bytes = 64, .token = 2});
  });
  system.queue.run();
  ASSERT_EQ(system[0].done.size(), 2U);
  EXPECT_EQ(system[0].done[0], (std::pair<Token, CompletionStatus>{2, kUnsupportedRequest}));
  EXPECT_EQ(system[0].done[1], (std::pair<Token, CompletionStatus>{1, kTimeout}));
  EXPECT_EQ(system[1].bytes_written, 0U);
  EXPECT_EQ(system[1].resets, std::vector<ResetKind>{ResetKind::kRemoved});
  // The removed device's actions have no effect.
  system[1].port->set_bus_master(true);
  system[1].port->post_write(system.bar(0), pattern(4));
  system[1].port->post_read({.address = system.bar(0), .bytes = 4, .token = 3});
  system.queue.run();
  EXPECT_EQ(system[0].bytes_written, 0U);
  ASSERT_EQ(system[1].done.size(), 1U);
  EXPECT_EQ(system[1].done[0].second, kAborted);

  system.fabric.insert(system.nodes[1]);
  port.post_read({.address = system.bar(1), .bytes = 64, .token = 4});
  system.queue.run();
  EXPECT_EQ(system[0].done.back(), (std::pair<Token, CompletionStatus>{4, kSuccess}));
  EXPECT_FALSE(system[1].port->bus_master());
  EXPECT_EQ(system[1].resets.back(), ResetKind::kInserted);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
}

TEST(Removal, OfASwitch_ExpectAllBelowToBeGone) {
  Hierarchy system({});
  system[0].port->post_read({.address = system.bar(1), .bytes = 64, .token = 1});
  system.fabric.remove(system.switch_node);
  system.host->port->post_read({.address = system.bar(1), .bytes = 4, .token = 5});
  system.queue.run();
  EXPECT_EQ(system[0].done, (std::vector<std::pair<Token, CompletionStatus>>{{1, kAborted}}));
  EXPECT_EQ(system.host->done, (std::vector<std::pair<Token, CompletionStatus>>{{5, kUnsupportedRequest}}));
  EXPECT_EQ(system[1].resets, std::vector<ResetKind>{ResetKind::kRemoved});
  system.fabric.insert(system.switch_node);
  system.host->port->post_read({.address = system.bar(1), .bytes = 4, .token = 6});
  system.queue.run();
  EXPECT_EQ(system.host->done.back().second, kSuccess);
}

TEST(HotReset, UnderTraffic_ExpectReadsAbortedAndCreditsAsNew) {
  Hierarchy::Shape shape;
  shape.endpoint.buffer.posted = {4, 64};
  Hierarchy system(shape);
  system[1].port->set_ready(false, true);  // its buffer is full of writes
  for (std::uint64_t i = 0; i < 20; ++i) system[0].port->post_write(system.bar(1) + i * 64, pattern(64));
  system.queue.run();
  system.fabric.hot_reset(system.nodes[1]);
  system[1].port->set_ready(true, true);
  system.queue.run();
  EXPECT_EQ(system[1].resets, std::vector<ResetKind>{ResetKind::kHot});
  // Four were in the device's buffer, the others in the switch's queue for it or still with device 0.
  EXPECT_EQ(system[1].writes.size() + system.fabric.counters().link_down, 20U);
  for (std::uint64_t i = 0; i < 20; ++i) system[0].port->post_write(system.bar(1) + i * 64, pattern(64));
  const std::size_t before = system[1].writes.size();
  system.queue.run();
  EXPECT_EQ(system[1].writes.size(), before + 20);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
}

/// Devices that always have operations in flight, with a reset or removal at a random moment.
TEST(Removal, RandomMomentUnderRandomTraffic_ExpectEachReadToEndOnceAndEveryTlpAccountedFor) {
  struct Count final : Observer {
    void on_tlp(Point point, std::uint32_t, const Tlp& tlp, Time) override {
      if (point == Point::kIssued) open.insert(tlp.number);
      if (point == Point::kDelivered || point == Point::kDropped) open.erase(tlp.number);
    }
    std::set<std::uint64_t> open;
  };
  for (std::uint64_t seed = 1; seed <= seeds(1500); ++seed) {
    SplitMix64 random(seed);
    Hierarchy::Shape shape;
    shape.fabric.seed = seed;
    shape.devices = 3;
    shape.with_switch = random.below(2) == 0;
    if (random.below(3) == 0) {
      shape.fabric.root = intel_xeon_4110();
      shape.with_switch = false;
    }
    shape.endpoint.buffer = {.posted = {4, 32}, .non_posted = {4, 4}};
    shape.switch_options.buffer = {.posted = {4, 32}, .non_posted = {4, 4}, .completion = {4, 32}};
    if (random.below(2) == 0) shape.fabric.reordering = {.per_mille = 300, .split_anywhere = true};
    const bool cuts = shape.fabric.root.peer_cut != 0;
    Hierarchy system(shape);
    Count count;
    system.fabric.observe(&count);
    std::map<std::pair<std::size_t, Token>, int> asked;
    Token next = 0;
    for (int i = 0; i < 120; ++i) {
      const std::size_t from = random.below(3);
      const std::size_t to = (from + 1 + random.below(2)) % 3;
      const std::uint64_t address = system.bar(to) + random.below(kBarBytes - 2048);
      const std::uint32_t bytes = 1 + random.below(1500);
      const bool reads = random.below(2) == 0;
      const Token token = next++;
      system.queue.call(random.below(3000) * kNanosecond, [&, from, address, bytes, reads, token] {
        if (reads) {
          system[from].port->post_read({.address = address, .bytes = bytes, .token = token});
          asked[{from, token}] = 0;
        } else {
          system[from].port->post_write(address, pattern(bytes));
        }
      });
    }
    const std::size_t victim = random.below(3);
    const std::uint32_t fate = random.below(4);
    system[victim].latency = random.below(500) * kNanosecond;
    system.queue.call(random.below(3000) * kNanosecond, [&] {
      switch (fate) {
        case 0:
          system.fabric.remove(system.nodes[victim]);
          break;
        case 1:
          system.fabric.hot_reset(system.nodes[victim]);
          break;
        case 2:
          system[victim].port->reset();
          break;
        default:
          if (system.switch_node != kRoot) {
            system.fabric.hot_reset(system.switch_node);
          } else {
            system[victim].port->set_bus_master(false);
          }
      }
    });
    if (fate == 0) {
      system.queue.call((3000 + random.below(1000)) * kNanosecond, [&] { system.fabric.insert(system.nodes[victim]); });
    }
    system.queue.run();
    for (std::size_t i = 0; i < 3; ++i) {
      for (const auto& [token, status] : system[i].done) ++asked[{i, token}];
      ASSERT_EQ(system[i].port->reads_pending(), 0U) << seed;
      ASSERT_EQ(system[i].port->bytes_queued(), 0U) << seed;
    }
    for (const auto& [key, times] : asked) ASSERT_EQ(times, 1) << "seed " << seed << ", token " << key.second;
    ASSERT_EQ(system.fabric.in_flight(), 0U) << seed;
    if (!cuts) {
      ASSERT_TRUE(count.open.empty()) << "seed " << seed;
    }
    // Afterwards everything must work again.
    for (auto& device : system.devices) device->port->set_bus_master(true);
    std::vector<std::byte> back(3000);
    system[victim].memory = pattern(kBarBytes, seed);
    system[(victim + 1) % 3].port->post_read(
        {.address = system.bar(victim), .bytes = 3000, .into = back.data(), .token = next});
    system.queue.run();
    ASSERT_EQ(system[(victim + 1) % 3].done.back(), (std::pair<Token, CompletionStatus>{next, kSuccess})) << seed;
    ASSERT_TRUE(std::equal(back.begin(), back.end(), system[victim].memory.begin())) << seed;
  }
}

}  // namespace
}  // namespace wherry::sim::pcie
