// SPDX-License-Identifier: Apache-2.0
// Tests the paper's core behind the model of its NIC (82599), in the paper's topologies. It is compared with the
// paper's own figures (published/host_bypassing.csv); fitted values are named beside each.
#include "sim/host_bypassing/core.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "sim/host_bypassing/testbed.hpp"

namespace wherry::sim::host_bypassing {
namespace {

constexpr std::uint32_t kPacket = 300;  // IV-A
constexpr std::uint64_t kFrames = 20'000, kWarmUp = 2000;

TEST(HostBypassing, TableTwo_ExpectBytesAPacket) {
  struct Row {
    std::uint32_t batch;
    pcie::Time timeout;
    double out, in;  // hb_t2_b*_out, hb_t2_b*_in
  };
  for (const Row& row : {Row{1, 0, 324, 316}, Row{8, 2500 * pcie::kNanosecond, 317, 316},
                         Row{16, 2500 * pcie::kNanosecond, 316.7, 316}}) {
    SCOPED_TRACE(row.batch);
    Testbed set({.core = {.batch = row.batch, .timeout = row.timeout}});
    ASSERT_TRUE(set.ready());
    set.run(kWarmUp, kFrames - kWarmUp, kPacket, 1000);
    set.queue.run();
    const CoreCounters& c = set.core.counters();
    const auto packets = static_cast<double>(c.packets_in);
    const double in = static_cast<double>(c.received_payload + c.received_writebacks) / packets;
    const double out = static_cast<double>(c.sent_payload + c.sent_tx_descriptors + c.sent_tails) / packets;
    const double rx_descriptors = static_cast<double>(c.sent_rx_descriptors) / packets;
    std::printf(
        "batch %2u: out %.2f (paper %.1f), in %.2f (paper %.0f) bytes/packet; receive descriptors %.2f more; "
        "latency %.2f us\n",
        row.batch, out, row.out, in, row.in, rx_descriptors, set.meter.total().mean_us());
    EXPECT_NEAR(out, row.out, row.out / 1000);
    EXPECT_NEAR(in, row.in, row.in / 1000);
    EXPECT_EQ(set.meter.checker().frames, 20'000U);
    EXPECT_EQ(set.meter.checker().wrong + set.meter.checker().missing + set.meter.checker().reordered, 0U);
  }
}

TEST(HostBypassing, SwitchAtLineRate_ExpectNoLossAndThePapersLatency) {
  Testbed set({});
  ASSERT_TRUE(set.ready());
  set.run(kWarmUp, kFrames - kWarmUp, kPacket, 1000);
  std::printf("switch, both ways: %.2f us (paper 7.99; its Table II 8.14)\n", set.meter.total().mean_us());
  EXPECT_EQ(set.nic.counters().rx_dropped_all(), 0U);
  EXPECT_NEAR(set.meter.total().mean_us(), 7.99, 0.16);  // 2 %; NIC's own times are fitted to the one-way figures
}

/// The steady state, after the packet buffer is full: frames number 40,000 to 90,000.
struct Steady {
  double dropped, requests;
  std::uint64_t reordered;
};
Steady overload(bool writeback) {
  Testbed set({.topology = Topology::kIntel, .core = {.writeback = writeback}});
  EXPECT_TRUE(set.ready());
  const Interval found = set.run(40'000, 50'000, kPacket, 1000);
  const Steady steady{.dropped = found.loss_percent(),
                      .requests = static_cast<double>(found.requests) / static_cast<double>(found.out),
                      .reordered = set.meter.checker().reordered};
  std::printf(
      "Intel root, write-back %s: loss %.2f %%, %.2f requests and %.2f descriptor fetches a packet, latency %.0f us, "
      "%llu reordered\n",
      writeback ? "on" : "off", steady.dropped, steady.requests,
      static_cast<double>(found.rx_fetches + found.tx_fetches) / static_cast<double>(found.out),
      set.meter.total().mean_us(), static_cast<unsigned long long>(steady.reordered));
  // An overrun ring sends slots while they are written, so frames may be wrong.
  EXPECT_TRUE(!writeback || set.meter.checker().wrong == 0);
  return steady;
}

TEST(HostBypassing, IntelRootOverloadedWithWriteback_ExpectThePapersLoss) {
  const Steady steady = overload(true);
  EXPECT_NEAR(steady.dropped, 15.79, 0.3);  // hb_loss_writeback: fitted, docs/design/nic-model.md
  EXPECT_NEAR(steady.requests, 16.0, 0.05);
  EXPECT_EQ(steady.reordered, 0U);  // IV-D
}

TEST(HostBypassing, IntelRootOverloadedWithoutWriteback_ExpectLessLossAndOverruns) {
  const Steady steady = overload(false);
  // The paper's hb_loss_no_writeback is 9.90. With 15 requests a packet it would be 10.26. Here fetches merge a little,
  // and the NIC does not count what the overrun ring loses. The model does not predict how much is reordered (0.49 % in
  // the paper): docs/design/nic-model.md.
  EXPECT_GT(steady.dropped, 7.5);
  EXPECT_LT(steady.dropped, 11.0);
  EXPECT_LE(steady.requests, 15.05);
  EXPECT_GT(steady.reordered, 0U);
}

TEST(HostBypassing, AmdRoot_ExpectNoLossAndLongerThanTheSwitch) {
  Testbed set({.topology = Topology::kAmd});
  ASSERT_TRUE(set.ready());
  set.run(kWarmUp, kFrames - kWarmUp, kPacket, 1000);
  Testbed other({});
  other.run(kWarmUp, kFrames - kWarmUp, kPacket, 1000);
  std::printf("AMD root %.2f us, switch %.2f us\n", set.meter.total().mean_us(), other.meter.total().mean_us());
  EXPECT_EQ(set.nic.counters().rx_dropped_all(), 0U);
  EXPECT_GT(set.meter.total().mean_us(), other.meter.total().mean_us());
}

}  // namespace
}  // namespace wherry::sim::host_bypassing
