// SPDX-License-Identifier: Apache-2.0
// Flow control: credits limit the bytes in flight, nothing is lost, and TLPs that must pass blocked ones do so.
#include <gtest/gtest.h>

#include "sim/pcie/testing.hpp"

namespace wherry::sim::pcie {
namespace {

using testing_support::Hierarchy;
using testing_support::kBarBytes;
using testing_support::pattern;
using testing_support::seeds;

Hierarchy::Shape tight() {
  Hierarchy::Shape shape;
  shape.endpoint.buffer = {.posted = {6, 64}, .non_posted = {3, 3}};
  shape.switch_options.buffer = {.posted = {5, 48}, .non_posted = {2, 2}, .completion = {4, 32}};
  shape.fabric.root.buffer = {.posted = {4, 32}, .non_posted = {2, 2}};
  return shape;
}

void expect_never_negative(Hierarchy& system) {
  std::vector<NodeId> nodes = system.nodes;
  if (system.switch_node != kRoot) nodes.push_back(system.switch_node);
  for (const NodeId node : nodes) {
    for (const bool up : {false, true}) {
      const LinkCounters& link = system.fabric.link_counters(node, up);
      for (std::size_t flow = 0; flow < kFlowClasses; ++flow) {
        EXPECT_GE(link.lowest_headers[flow], 0);
        EXPECT_GE(link.lowest_data[flow], 0);
      }
    }
  }
}

TEST(Credits, DeviceThatTakesNoWritesForEver_ExpectExactlyTheBuffersToFill) {
  Hierarchy system(tight());
  system[1].port->set_ready(false, true);
  for (std::uint64_t i = 0; i < 100; ++i) system[0].port->post_write(system.bar(1) + i * 64, pattern(64, i));
  system.queue.run(100 * kMillisecond);
  EXPECT_EQ(system[1].bytes_written, 0U);
  EXPECT_EQ(system.queue.pending(), 0U);  // it waits, it does not poll
  // The device's buffer holds 6 headers, and the switch's holds 5.
  EXPECT_EQ(system.fabric.link_counters(system.nodes[1], false).tlps[0], 6U);
  EXPECT_EQ(system.fabric.link_counters(system.nodes[0], true).tlps[0], 6U + 5);
  EXPECT_EQ(system.fabric.link_counters(system.nodes[1], false).lowest_headers[0], 0);
  // Finally the device takes them.
  system[1].port->set_ready(true, true);
  system.queue.run();
  EXPECT_EQ(system[1].bytes_written, 6400U);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(system[1].writes[i].offset, i * 64);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
  expect_never_negative(system);
}

TEST(Credits, DataRunOutBeforeHeaders_ExpectDataCreditsToBound) {
  Hierarchy system(tight());
  system[1].port->set_ready(false, true);
  for (std::uint64_t i = 0; i < 100; ++i) system[0].port->post_write(system.bar(1) + i * 256, pattern(256));
  system.queue.run();
  // 256 bytes are 16 data credits: 64 / 16 in the device, 48 / 16 in the switch.
  EXPECT_EQ(system.fabric.link_counters(system.nodes[1], false).tlps[0], 4U);
  EXPECT_EQ(system.fabric.link_counters(system.nodes[0], true).tlps[0], 4U + 3);
  EXPECT_EQ(system.fabric.link_counters(system.nodes[1], false).lowest_data[0], 0);
  expect_never_negative(system);
}

TEST(Credits, ReadsThatNobodyTakes_ExpectWritesAndCompletionsToPass) {
  Hierarchy system(tight());
  system[1].port->set_ready(true, false);
  for (int i = 0; i < 20; ++i) system[0].port->post_read({.address = system.bar(1), .bytes = 64, .token = 1});
  for (std::uint64_t i = 0; i < 20; ++i) system[0].port->post_write(system.bar(1) + i * 64, pattern(64));
  // Device 1 reads from device 0: its completion must follow the stuck reads.
  system[1].port->post_read({.address = system.bar(0), .bytes = 1024, .token = 2});
  system.queue.run();
  EXPECT_EQ(system[1].bytes_written, 1280U);  // A3
  ASSERT_EQ(system[1].done.size(), 1U);       // D3
  EXPECT_EQ(system[0].done.size(), 0U + 20);  // in the end they time out
  EXPECT_EQ(system[0].port->counters().timeouts, 20U);
  expect_never_negative(system);
}

TEST(Credits, WritesThatNobodyTakes_ExpectReadsAndCompletionsBehindToWait) {
  Hierarchy system(tight());
  system[0].port->set_completion_timeout(kSecond);
  system[1].port->set_completion_timeout(kSecond);
  system[1].port->set_ready(false, true);
  system[1].port->post_read({.address = system.bar(0), .bytes = 64, .token = 2});  // answered behind the writes
  for (std::uint64_t i = 0; i < 40; ++i) system[0].port->post_write(system.bar(1) + i * 64, pattern(64));
  system[0].port->post_read({.address = system.bar(1), .bytes = 64, .token = 1});
  system.queue.run(500 * kMillisecond);
  EXPECT_EQ(system[0].done.size() + system[1].done.size(), 0U);  // B2a, D2a
  system[1].port->set_ready(true, true);
  system.queue.run();
  EXPECT_EQ(system[0].done.size(), 1U);
  EXPECT_EQ(system[1].done.size(), 1U);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
}

TEST(Credits, AllToAllThroughTheSmallestBuffers_ExpectNoDeadlock) {
  for (std::uint64_t seed = 1; seed <= seeds(200); ++seed) {
    Hierarchy::Shape shape = tight();
    shape.endpoint.buffer = {.posted = {1, 16}, .non_posted = {1, 1}};
    shape.switch_options.buffer = {.posted = {1, 16}, .non_posted = {1, 1}, .completion = {1, 16}};
    shape.fabric.root.buffer = {.posted = {1, 16}, .non_posted = {1, 1}};
    shape.fabric.seed = seed;
    shape.devices = 4;
    shape.with_switch = seed % 2 == 0;
    if (seed % 3 == 0) shape.fabric.root = intel_xeon_4110();
    if (seed % 5 == 0) shape.fabric.reordering = {.per_mille = 300};
    Hierarchy system(shape);
    if (seed % 7 == 0 && shape.with_switch) {
      for (const NodeId node : system.nodes) {
        system.fabric.set_acs(node, {.request_redirect = true, .completion_redirect = true});
      }
    }
    std::uint64_t written = 0, reads = 0;
    for (int round = 0; round < 30; ++round) {
      for (std::size_t from = 0; from < 4; ++from) {
        for (std::size_t to = 0; to < 4; ++to) {
          if (from == to) continue;
          system[from].port->post_write(system.bar(to), pattern(300));
          system[from].port->post_read({.address = system.bar(to), .bytes = 600, .token = 1});
          written += 300;
          ++reads;
        }
      }
    }
    system.queue.run();
    std::uint64_t got = 0, done = 0;
    for (auto& device : system.devices) {
      got += device->bytes_written;
      for (const auto& outcome : device->done) done += outcome.second == CompletionStatus::kSuccess ? 1 : 0;
    }
    ASSERT_EQ(got, written) << seed;
    ASSERT_EQ(done, reads) << seed;
    ASSERT_EQ(system.fabric.in_flight(), 0U) << seed;
    expect_never_negative(system);
  }
}

TEST(Credits, QueueOfTheDeviceFull_ExpectTryWriteToRefuseAndRoomLater) {
  Hierarchy::Shape shape = tight();
  shape.function.queue_bytes = 1000;
  Hierarchy system(shape);
  system[1].port->set_ready(false, true);
  std::uint64_t taken = 0;
  while (system[0].port->try_write(system.bar(1) + taken * 64, pattern(64))) ++taken;
  EXPECT_FALSE(system[0].port->try_read({.address = system.bar(1), .bytes = 4, .token = 1}));
  system.queue.run();
  while (system[0].port->try_write(system.bar(1) + taken * 64, pattern(64))) ++taken;
  const std::uint32_t rooms = system[0].rooms;
  system.queue.run();
  EXPECT_EQ(system[0].rooms, rooms);  // nothing moves
  system[1].port->set_ready(true, true);
  system.queue.run();
  EXPECT_EQ(system[0].rooms, rooms + 1);
  EXPECT_EQ(system[1].writes.size(), taken);
  EXPECT_EQ(system[0].port->bytes_queued(), 0U);
}

// With credit for only one TLP, the rate is one TLP per round trip: sending, crossing, and the update's way back.
TEST(Credits, OneHeader_ExpectOneTlpEachRoundTrip) {
  Hierarchy::Shape shape;
  shape.with_switch = false;
  shape.endpoint.buffer.posted = {1, 16};
  shape.link.propagation = 500 * kNanosecond;
  Hierarchy system(shape);
  for (std::uint64_t i = 0; i < 50; ++i) system[0].port->post_write(system.bar(1) + i * 64, pattern(64));
  system.queue.run();
  // 88 bytes, an ACK and an UpdateFC of 8 each take 13.238 ns at 7.877 GB/s less the SKP ordered sets.
  const double gap = static_cast<double>(system[1].last_write - system[1].first_write) / 49;
  EXPECT_NEAR(gap, 1'013'238, 10);
  EXPECT_GT(system.fabric.link_counters(system.nodes[1], false).blocked, 48 * kMicrosecond);
}

}  // namespace
}  // namespace wherry::sim::pcie
