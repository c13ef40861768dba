// SPDX-License-Identifier: Apache-2.0
// The rate of a link, against numbers from the specification and from publications.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/pcie/testing.hpp"

namespace wherry::sim::pcie {
namespace {

using testing_support::Hierarchy;
using testing_support::kBarBytes;
using testing_support::pattern;

/// Device 0 writes to device 1 as fast as it can, `bytes` per call. Returns GB/s at the receiver.
double write_rate(Hierarchy& system, std::uint32_t bytes, std::uint32_t count = 4000) {
  const auto data = pattern(bytes);
  system[1].keep_writes = false;
  const std::uint64_t stride = (bytes + 4095) / 4096 * 4096;
  for (std::uint32_t i = 0; i < count; ++i) {
    system[0].port->post_write(system.bar(1) + i * stride % kBarBytes, data);
  }
  system.queue.run();
  EXPECT_EQ(system[1].bytes_written, std::uint64_t{bytes} * count);
  // The time begins with the first TLP's arrival, so this TLP is not counted.
  const double first = std::min<double>(bytes, system.devices[0]->port->mps());
  return (static_cast<double>(bytes) * count - first) /
         static_cast<double>(system[1].last_write - system[1].first_write) * 1000;
}

/// Device 0 reads host memory, `bytes` per call, with `depth` calls at once. Gigabytes a second.
struct Reader final : Function {
  void on_write(const InboundWrite&) override {}
  void on_read(const InboundRead&) override {}
  void on_read_done(Token, CompletionStatus status) override {
    ok = ok && status == CompletionStatus::kSuccess;
    last = queue->now();
    if (done++ == 0) first = last;
    post();
  }
  void post() {
    if (posted == count) return;
    port->post_read({.address = high + posted++ * 4096 % kBarBytes, .bytes = bytes});
  }
  EventQueue* queue = nullptr;
  Port* port = nullptr;
  std::uint64_t high = std::uint64_t{1} << 32;
  std::uint32_t bytes = 0, count = 0, posted = 0, done = 0;
  bool ok = true;
  Time first = 0, last = 0;
};
double read_rate(const LinkOptions& link, const FabricOptions& options, std::uint32_t bytes) {
  EventQueue queue;
  FabricOptions fabric_options = options;
  fabric_options.memory_bytes = std::uint64_t{1} << 33;
  Fabric fabric(queue, fabric_options);
  Reader reader;
  reader.queue = &queue;
  reader.bytes = bytes;
  reader.count = 4000;
  const NodeId node = fabric.add_endpoint(kRoot, link).value();
  reader.port = fabric.add_function(node, reader, {.queue_bytes = 1 << 20}).value();
  EXPECT_TRUE(fabric.enumerate().ok());
  reader.port->set_bus_master(true);
  for (int depth = 0; depth < 256; ++depth) reader.post();
  queue.run();
  EXPECT_TRUE(reader.ok);
  EXPECT_EQ(reader.done, reader.count);
  return static_cast<double>(bytes) * (reader.count - 1) / static_cast<double>(reader.last - reader.first) * 1000;
}

double raw(std::uint32_t generation, std::uint32_t lanes) {  // GB/s with SKP ordered sets
  const double gt = std::array{2.5, 5.0, 8.0, 16.0, 32.0}[generation - 1];
  return gt * lanes / 8 * (generation <= 2 ? 0.8 * 1534 / 1538 : 128.0 / 130 * 374 / 375);
}

struct Case {
  std::uint32_t generation, lanes, mps, bytes;
};
class Writes : public testing::TestWithParam<Case> {};
TEST_P(Writes, OneWay_ExpectPayloadOverPayloadAndHeaders) {
  const Case& c = GetParam();
  Hierarchy system(
      {.fabric = {.mps = c.mps}, .with_switch = false, .link = {.generation = c.generation, .lanes = c.lanes}});
  // Computed by hand (research/bypass section 3): 24 bytes per TLP with a 64-bit address.
  const double tlps = std::ceil(static_cast<double>(c.bytes) / c.mps);
  const double expected = raw(c.generation, c.lanes) * c.bytes / (c.bytes + 24 * tlps);
  EXPECT_NEAR(write_rate(system, c.bytes) / expected, 1.0, 0.001);
}
INSTANTIATE_TEST_SUITE_P(BySize, Writes,
                         testing::Values(Case{1, 1, 128, 64}, Case{2, 8, 256, 64}, Case{2, 8, 256, 300},
                                         Case{3, 8, 256, 64}, Case{3, 8, 256, 256}, Case{3, 8, 256, 1024},
                                         Case{3, 8, 128, 1024}, Case{3, 16, 256, 256}, Case{3, 16, 512, 512},
                                         Case{4, 8, 256, 256}, Case{4, 16, 512, 4096}, Case{5, 16, 512, 512}));

// R. Neugebauer et al., "Understanding PCIe performance for end host networking", SIGCOMM 2018, Fig. 1, from their
// published model (pcie-bench/pcie-model, pcie_bw.py, Gen3 x8, MPS 256, MRRS 512, 64-bit addresses): Gbit/s of writes.
TEST(Sigcomm2018, WritesWithTheirShareForDllps_ExpectTheirEffectiveBandwidth) {
  const std::pair<std::uint32_t, double> published[] = {
      {64, 42.10}, {128, 48.75}, {256, 52.92}, {512, 52.92}, {1024, 52.92}};
  for (const auto& [bytes, gigabits] : published) {
    LinkOptions link{.generation = 3, .lanes = 8};
    link.overhead.dllps = false;
    link.overhead.reserved_ppm = 78'818;  // 8/203 for ACKs, 8/203 for UpdateFCs
    Hierarchy system({.with_switch = false, .link = link});
    EXPECT_NEAR(8 * write_rate(system, bytes) / gigabits, 1.0, 0.002) << bytes << " bytes";
  }
}

TEST(Sigcomm2018, ReadsWithTheirShareForDllps_ExpectTheirEffectiveBandwidth) {
  // The published values count requests of 512 bytes; the wire towards the device is the limit.
  const std::pair<std::uint32_t, double> published[] = {{64, 44.10}, {128, 50.06}, {256, 53.69}, {512, 53.69}};
  for (const auto& [bytes, gigabits] : published) {
    LinkOptions link{.generation = 3, .lanes = 8};
    link.overhead.dllps = false;
    link.overhead.reserved_ppm = 78'818;
    EXPECT_NEAR(8 * read_rate(link, {}, bytes) / gigabits, 1.0, 0.004) << bytes << " bytes";
  }
}

// Intel AN 690 (PCI Express DMA reference design, Stratix V, Gen3 x8, 256-bit): 7.1 GB/s of writes and 7.0 of reads,
// measured on hardware (research/probe.md section 3, [S9]). No parameter is fitted to it. The model is an upper bound:
// real devices acknowledge more often than they must.
TEST(IntelAn690, MeasuredOnHardware_ExpectTheModelAboveByFourPercentAtMost) {
  Hierarchy system({.with_switch = false, .link = {.generation = 3, .lanes = 8}});
  const double writes = write_rate(system, 4096) / 7.1;
  EXPECT_GE(writes, 1.0);
  EXPECT_LE(writes, 1.04);
  const double reads = read_rate({.generation = 3, .lanes = 8}, {}, 512) / 7.0;
  EXPECT_GE(reads, 1.0);
  EXPECT_LE(reads, 1.04);
}

// research/probe.md section 3: H2C(c) = raw mrrs / (mrrs + mrrs / c x 20 + 16), Gen3 x16, MRRS 512, c = completion
// size: 64: 11.69, 128: 13.23, 256: 14.16 GB/s. The 16 bytes are an ACK and an UpdateFC for each request; the model
// sends them less often.
TEST(Reads, CompletionSize_ExpectTheBoundOfTheWireTowardsTheDevice) {
  for (const auto& [completion, expected] : {std::pair{64U, 11.69}, std::pair{128U, 13.23}, std::pair{256U, 14.16}}) {
    FabricOptions options;
    options.root.completion_bytes = completion;
    const double rate = read_rate({.generation = 3, .lanes = 16}, options, 512);
    const double upper = raw(3, 16) * completion / (completion + 20);
    EXPECT_GT(rate, expected * 0.999) << completion;
    EXPECT_LT(rate, upper * 1.0005) << completion;
  }
}

// From research/probe.md section 3: C2H, writes to host memory, Gen3 x16.
TEST(Writes, ToHostMemory_ExpectTheBoundOfTheProbeModel) {
  for (const auto& [mps, expected] : {std::pair{128U, 13.23}, std::pair{256U, 14.37}, std::pair{512U, 15.01}}) {
    Hierarchy system({.fabric = {.mps = mps, .memory_bytes = std::uint64_t{1} << 33},
                      .with_switch = false,
                      .link = {.lanes = 16},
                      .devices = 1});
    const auto data = pattern(4096);
    constexpr int kCount = 2000;
    for (int i = 0; i < kCount; ++i) system[0].port->post_write(std::uint64_t{1} << 32, data);
    system.queue.run();
    const double time = static_cast<double>(system.queue.now() - 60 * kNanosecond);  // less the propagation
    EXPECT_NEAR(4096.0 * kCount / time * 1000 / expected, 1, 0.002) << mps;
  }
}

// Little's law: bytes awaited divided by the round trip. research/probe.md section 5: 64 tags of 512 bytes, 3 us.
TEST(Reads, FewTagsAndALongRoundTrip_ExpectTagsTimesSizeOverTheRoundTrip) {
  const auto run = [](std::uint32_t count, std::uint32_t bytes) {
    EventQueue queue;
    FabricOptions options;
    options.root.memory_latency = 3 * kMicrosecond;
    Fabric fabric(queue, options);
    Reader reader;
    reader.queue = &queue;
    reader.high = 0x10000;
    reader.bytes = bytes;
    reader.count = count;
    const NodeId node = fabric.add_endpoint(kRoot, {.lanes = 16}).value();
    reader.port = fabric.add_function(node, reader, {.tags = 64}).value();
    EXPECT_TRUE(fabric.enumerate().ok());
    reader.port->set_bus_master(true);
    for (std::uint32_t depth = 0; depth < std::min(count, 128U); ++depth) reader.post();
    queue.run();
    EXPECT_EQ(reader.done, count);
    return std::pair(reader.last, reader.port->counters().most_bytes_awaited);
  };
  const double round_trip = static_cast<double>(run(1, 512).first);
  EXPECT_NEAR(round_trip, 3'160'000, 10'000);
  const auto [time, awaited] = run(6400, 512);
  EXPECT_NEAR(6400.0 * 512 / static_cast<double>(time) / (64 * 512 / round_trip), 1, 0.02);
  EXPECT_EQ(awaited, 64U * 512);  // what its completion buffer must hold
}

TEST(Writes, BothWaysAtOnce_ExpectEachToPayForTheDllpsOfTheOther) {
  Hierarchy system({.with_switch = false, .link = {.generation = 3, .lanes = 8}});
  const auto data = pattern(256);
  for (std::uint32_t i = 0; i < 4000; ++i) {
    system[0].port->post_write(system.bar(1) + i * 256 % kBarBytes, data);
    system[1].port->post_write(system.bar(0) + i * 256 % kBarBytes, data);
  }
  system.queue.run();
  // At most one ACK and one UpdateFC each 203 symbol times of 1 ns (Spec, tables 2-48 and 3-9), 8 bytes each.
  const double most = 2 * 8 / (203 * raw(3, 8));
  for (int i = 0; i < 2; ++i) {
    const double rate = 256.0 * 3999 / static_cast<double>(system[i].last_write - system[i].first_write) * 1000;
    const double share = rate / (raw(3, 8) * 256 / 280);
    EXPECT_GT(share, 1 - most - 0.001);
    EXPECT_LT(share, 1 - most / 2);
    const LinkCounters& up = system.fabric.link_counters(system.nodes[i], true);
    EXPECT_GT(up.acks, 500U);
    EXPECT_GT(up.credit_updates, 500U);
  }
}

TEST(Counters, OneWriteOfThreeHundredBytes_ExpectTwoTlpsAndTheirBytes) {
  Hierarchy system({});
  system[0].port->post_write(system.bar(1), pattern(300));
  system.queue.run();
  for (const auto& [node, up] : {std::pair{system.nodes[0], true}, std::pair{system.nodes[1], false}}) {
    const LinkCounters& link = system.fabric.link_counters(node, up);
    EXPECT_EQ(link.tlps[0], 2U);
    EXPECT_EQ(link.payload_bytes, 300U);
    EXPECT_EQ(link.header_bytes, 48U);
  }
  EXPECT_EQ(system.fabric.link_counters(system.switch_node, true).tlps[0], 0U);  // it did not go up
}

// Latency computed by hand, in picoseconds: Gen3 x8 without SKP, 126.953125 a byte.
TEST(Latency, CutThroughSwitch_ExpectFirstBitToFirstBitAndOneSerialisation) {
  LinkOptions link{.propagation = 60'000};
  link.overhead.skip = false;
  Hierarchy system({.link = link});
  system[0].port->post_write(system.bar(1), pattern(64));
  system.queue.run();
  // 60 ns of link, 100 ns of the switch, 88 bytes, 60 ns of link.
  const double expected = 60'000 + 100'000 + 88 * 126.953125 + 60'000;
  EXPECT_NEAR(static_cast<double>(system[1].last_write), expected, 3);
}

TEST(Latency, StoreAndForwardSwitch_ExpectTwoSerialisations) {
  LinkOptions link{.propagation = 60'000};
  link.overhead.skip = false;
  Hierarchy system({.link = link, .switch_options = {.cut_through = false}});
  system[0].port->post_write(system.bar(1), pattern(64));
  system.queue.run();
  EXPECT_NEAR(static_cast<double>(system[1].last_write), 220'000 + 2 * 88 * 126.953125, 3);
}

TEST(Latency, CutThroughToAFasterLink_ExpectTheLastBitNotBeforeItHasCome) {
  EventQueue queue;
  Fabric fabric(queue, {});
  LinkOptions slow{.generation = 1, .lanes = 1}, fast{.generation = 5, .lanes = 16};
  slow.overhead.skip = fast.overhead.skip = false;
  const NodeId middle = fabric.add_switch(kRoot, fast).value();
  testing_support::MemoryDevice from(queue), to(queue);
  from.port = fabric.add_function(fabric.add_endpoint(middle, slow).value(), from, {}).value();
  to.port = fabric
                .add_function(fabric.add_endpoint(middle, fast).value(), to,
                              {.bars = {BarOptions{.bytes = 4096, .prefetchable = true}}})
                .value();
  ASSERT_TRUE(fabric.enumerate().ok());
  from.port->set_bus_master(true);
  from.port->post_write(to.port->bar_address(0), pattern(256));
  queue.run();
  EXPECT_NEAR(static_cast<double>(to.last_write), 220'000 + 280 * 4000.0, 100);
}

TEST(Latency, EndpointLatencies_ExpectThemOnTop) {
  LinkOptions link{.propagation = 60'000};
  link.overhead.skip = false;
  Hierarchy system({.link = link, .endpoint = {.receive_latency = 130'000, .send_latency = 30'000}});
  system[0].port->post_write(system.bar(1), pattern(64));
  system.queue.run();
  EXPECT_NEAR(static_cast<double>(system[1].last_write), 380'000 + 88 * 126.953125, 3);
}

TEST(Replay, OneTlpInTwenty_ExpectAllDataInOrderAndLessThroughput) {
  LinkOptions link{.generation = 3, .lanes = 8};
  link.replay_one_in = 20;
  Hierarchy damaged({.with_switch = false, .link = link});
  const double rate = write_rate(damaged, 256);
  Hierarchy sound({.with_switch = false, .link = {.generation = 3, .lanes = 8}});
  EXPECT_LT(rate, write_rate(sound, 256) * 0.9);
  EXPECT_NEAR(static_cast<double>(damaged.fabric.link_counters(damaged.nodes[0], true).replays), 200, 60);
}

}  // namespace
}  // namespace wherry::sim::pcie
