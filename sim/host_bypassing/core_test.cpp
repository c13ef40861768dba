// SPDX-License-Identifier: Apache-2.0
// The paper's core behind the model of its NIC (82599), in its topologies. Compared with the paper's own figures
// (published/host_bypassing.csv); the values that are fitted are named beside each.
#include "sim/host_bypassing/core.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "sim/nic/traffic.hpp"
#include "sim/pcie/fabric.hpp"

namespace wherry::sim::host_bypassing {
namespace {

/// Keeps when each frame came in and measures when it leaves: last bit to last bit.
struct Meter final : nic::WireEnd {
  Meter(pcie::EventQueue& events, nic::Nic& card) : queue(events), nic(card) { nic.connect(&out); }
  void on_frame(std::span<const std::byte> frame, bool fcs_good) override {
    in.push_back(queue.now());
    nic.on_frame(frame, fcs_good);
  }
  struct Out final : nic::WireEnd {
    explicit Out(Meter& owner) : meter(owner) {}
    void on_frame(std::span<const std::byte> frame, bool fcs_good) override {
      meter.checker.on_frame(frame, fcs_good);
      const std::uint64_t number = nic::number_of(frame);
      if (number < meter.from || number >= meter.in.size()) return;  // a spoilt frame may have any number
      const double us = static_cast<double>(meter.queue.now() - meter.in[number]) / pcie::kMicrosecond;
      ++meter.count, meter.sum += us, meter.squares += us * us;
      meter.last = us;
    }
    Meter& meter;
  };
  [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
  pcie::EventQueue& queue;
  nic::Nic& nic;
  std::vector<pcie::Time> in;
  nic::Checker checker;
  Out out{*this};
  std::uint64_t from = 0;  ///< number of the first frame that counts
  std::uint64_t count = 0;
  double sum = 0, squares = 0, last = 0;
};

enum class Topology { kSwitch, kIntel, kAmd };

pcie::RootOptions root(Topology topology) {
  return topology == Topology::kIntel ? pcie::intel_xeon_4110()
         : topology == Topology::kAmd ? pcie::amd_epyc_7402()
                                      : pcie::ideal_root();
}

struct Set {
  Set(Topology topology, const CoreOptions& options)
      : fabric(queue, {.root = root(topology)}),
        nic(queue, nic::NicOptions{}),
        core(queue, options),
        meter(queue, nic) {
    // 82599: Gen2 x8. Alveo U50: Gen3 x8 (III-A), 130 ns for hard block and bridge each way (research, section 4).
    const pcie::NodeId above = topology == Topology::kSwitch
                                   ? fabric.add_switch(pcie::kRoot, {.generation = 3, .lanes = 16}).value()
                                   : pcie::kRoot;
    const pcie::NodeId card = fabric.add_endpoint(above, {.generation = 2, .lanes = 8}).value();
    const pcie::NodeId fpga =
        fabric
            .add_endpoint(above, {.generation = 3, .lanes = 8},
                          {.receive_latency = 130 * pcie::kNanosecond, .send_latency = 130 * pcie::kNanosecond})
            .value();
    nic_port = fabric.add_function(card, nic, nic::Nic::function_options(nic::NicOptions{})).value();
    pcie::Port* core_port = fabric.add_function(fpga, core, Core::function_options()).value();
    ready = fabric.enumerate().ok();
    nic.attach(*nic_port);
    core.attach(*core_port);
    nic.set_bus_master(true);
    core_port->set_bus_master(true);
    ready = ready && core.start(nic).ok();
  }
  void run(std::uint64_t frames, std::uint32_t bytes, std::uint32_t load_per_mille, std::uint64_t warm_up) {
    queue.run(20 * pcie::kMicrosecond);
    meter.from = warm_up;
    const nic::Source source(
        queue, meter, {.frames = frames, .sizes = {bytes}, .load_per_mille = load_per_mille, .start = queue.now()});
    queue.run();
  }
  pcie::EventQueue queue;
  pcie::Fabric fabric;
  nic::Nic nic;
  Core core;
  Meter meter;
  pcie::Port* nic_port = nullptr;
  bool ready = false;
};

constexpr std::uint32_t kPacket = 300;  // IV-A

TEST(HostBypassing, TableTwo_ExpectBytesAPacket) {
  struct Row {
    std::uint32_t batch;
    pcie::Time timeout;
    double out, in;  // hb_t2_b*_out, hb_t2_b*_in
  };
  for (const Row& row : {Row{1, 0, 324, 316}, Row{8, 2500 * pcie::kNanosecond, 317, 316},
                         Row{16, 2500 * pcie::kNanosecond, 316.7, 316}}) {
    SCOPED_TRACE(row.batch);
    Set set(Topology::kSwitch, {.batch = row.batch, .timeout = row.timeout});
    ASSERT_TRUE(set.ready);
    set.run(20'000, kPacket, 1000, 2000);
    const CoreCounters& c = set.core.counters();
    const auto packets = static_cast<double>(c.packets_in);
    const double in = static_cast<double>(c.received_payload + c.received_writebacks) / packets;
    const double out = static_cast<double>(c.sent_payload + c.sent_tx_descriptors + c.sent_tails) / packets;
    const double rx_descriptors = static_cast<double>(c.sent_rx_descriptors) / packets;
    std::printf(
        "batch %2u: out %.2f (paper %.1f), in %.2f (paper %.0f) bytes/packet; receive descriptors %.2f more; "
        "latency %.2f us\n",
        row.batch, out, row.out, in, row.in, rx_descriptors, set.meter.mean());
    EXPECT_NEAR(out, row.out, row.out / 1000);
    EXPECT_NEAR(in, row.in, row.in / 1000);
    EXPECT_EQ(set.meter.checker.frames, 20'000U);
    EXPECT_EQ(set.meter.checker.wrong + set.meter.checker.missing + set.meter.checker.reordered, 0U);
  }
}

TEST(HostBypassing, SwitchAtLineRate_ExpectNoLossAndThePapersLatency) {
  Set set(Topology::kSwitch, {});
  ASSERT_TRUE(set.ready);
  set.run(20'000, kPacket, 1000, 2000);
  std::printf("switch, both ways: %.2f us (paper 7.99; its Table II 8.14)\n", set.meter.mean());
  EXPECT_EQ(set.nic.counters().rx_dropped_all(), 0U);
  EXPECT_NEAR(set.meter.mean(), 7.99, 0.16);  // 2 %; NIC's own times are fitted to the one-way figures
}

/// Loss once the packet buffer is full: of the frames from number 40,000 to 90,000.
struct Steady {
  double dropped, requests, fetches;
  std::uint64_t reordered;
};
Steady overload(bool writeback) {
  Set set(Topology::kIntel, {.writeback = writeback});
  EXPECT_TRUE(set.ready);
  set.queue.run(20 * pcie::kMicrosecond);
  const pcie::Time slot = nic::slot_time(kPacket, 10'000);
  const pcie::Time start = set.queue.now();
  const nic::Source source(set.queue, set.meter, {.frames = 95'000, .sizes = {kPacket}, .start = start});
  set.queue.run(start + 40'000 * slot);
  const nic::NicCounters before = set.nic.counters();
  const std::uint64_t sent = set.meter.checker.frames, requests = set.fabric.counters().peer_requests;
  set.queue.run(start + 90'000 * slot);
  const nic::NicCounters& after = set.nic.counters();
  const auto packets = static_cast<double>(after.received - before.received);
  const auto out = static_cast<double>(set.meter.checker.frames - sent);
  const Steady steady{
      .dropped = 100 * static_cast<double>(after.rx_dropped_all() - before.rx_dropped_all()) / packets,
      .requests = static_cast<double>(set.fabric.counters().peer_requests - requests) / out,
      .fetches = static_cast<double>(after.tx_fetches - before.tx_fetches + after.rx_fetches - before.rx_fetches) / out,
      .reordered = set.meter.checker.reordered};
  std::printf(
      "Intel root, write-back %s: loss %.2f %%, %.2f requests and %.2f descriptor fetches a packet, latency %.0f us, "
      "%llu reordered\n",
      writeback ? "on" : "off", steady.dropped, steady.requests, steady.fetches, set.meter.last,
      static_cast<unsigned long long>(steady.reordered));
  // An overrun ring sends slots that are being written.
  EXPECT_TRUE(!writeback || set.meter.checker.wrong == 0);
  return steady;
}

TEST(HostBypassing, IntelRootOverloadedWithWriteback_ExpectThePapersLoss) {
  const Steady steady = overload(true);
  EXPECT_NEAR(steady.dropped, 15.79, 0.3);  // hb_loss_writeback: predicted
  EXPECT_NEAR(steady.requests, 16.0, 0.05);
  EXPECT_EQ(steady.reordered, 0U);  // IV-D
}

TEST(HostBypassing, IntelRootOverloadedWithoutWriteback_ExpectLessLossAndOverruns) {
  const Steady steady = overload(false);
  // hb_loss_no_writeback is 9.90. By 15 requests a packet it is 10.26; here fetches merge a little, and what the
  // overrun ring loses is not counted in the NIC. How much is reordered (0.49 % in the paper) is not predicted:
  // docs/nic-model.md.
  EXPECT_GT(steady.dropped, 7.5);
  EXPECT_LT(steady.dropped, 11.0);
  EXPECT_LE(steady.requests, 15.05);
  EXPECT_GT(steady.reordered, 0U);
}

TEST(HostBypassing, AmdRoot_ExpectNoLossAndLongerThanTheSwitch) {
  Set set(Topology::kAmd, {});
  ASSERT_TRUE(set.ready);
  set.run(20'000, kPacket, 1000, 2000);
  Set other(Topology::kSwitch, {});
  other.run(20'000, kPacket, 1000, 2000);
  std::printf("AMD root %.2f us, switch %.2f us\n", set.meter.mean(), other.meter.mean());
  EXPECT_EQ(set.nic.counters().rx_dropped_all(), 0U);
  EXPECT_GT(set.meter.mean(), other.meter.mean());
}

}  // namespace
}  // namespace wherry::sim::host_bypassing
