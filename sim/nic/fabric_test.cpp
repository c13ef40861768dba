// SPDX-License-Identifier: Apache-2.0
// NIC models over the whole fabric, with a plain driver in host memory: line rate both ways, a million packets, and a
// thousand seeds of reordering, faults and resets. In all cases every frame must be delivered, sent or counted.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <optional>
#include <random>

#include "sim/nic/host_driver.hpp"
#include "sim/nic/traffic.hpp"

namespace wherry::sim::nic {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kMany = 50'000, kSeeds = 60;
#else
constexpr std::uint64_t kMany = 1'000'000, kSeeds = 1000;
#endif

/// The processor's path to the NIC, which only writes tails.
struct Processor final : pcie::Function {
  void on_write(const pcie::InboundWrite& write) override { static_cast<void>(write); }
  void on_read(const pcie::InboundRead& read) override { static_cast<void>(read); }
};

NicOptions named(std::string_view name, std::uint32_t mbits) {
  NicOptions options;
  options.nic = *bypass::find_personality(name);
  options.mbits = mbits;
  return options;
}

struct Rig {
  Rig(const NicOptions& nic_options, const pcie::FabricOptions& fabric_options, const pcie::LinkOptions& link,
      const DriverOptions& driver_options)
      : fabric(queue, fabric_options), nic(queue, nic_options) {
    endpoint = fabric.add_endpoint(pcie::kRoot, link).value();
    pcie::Port* port = fabric.add_function(endpoint, nic, Nic::function_options(nic_options)).value();
    pcie::Port* host = fabric.add_host(processor).value();
    ready = fabric.enumerate().ok();
    nic.attach(*port);
    nic.connect(&wire);
    nic.set_bus_master(true);
    nic_port = port;
    driver.emplace(fabric, nic, *host, driver_options);
    ready = ready && driver->start().ok();
  }
  [[nodiscard]] bool conserved() const {
    const NicCounters& c = nic.counters();
    return c.received == c.delivered + c.rx_dropped_all() + nic.rx_waiting() &&
           c.accepted == c.sent + c.tx_dropped_all() + nic.tx_waiting() && c.sent == wire.frames;
  }
  pcie::EventQueue queue;
  pcie::Fabric fabric;
  Processor processor;
  Nic nic;
  Checker wire;
  pcie::NodeId endpoint = 0;
  pcie::Port* nic_port = nullptr;
  std::optional<HostDriver> driver;
  bool ready = false;
};

struct LineRate {
  const char* name;
  std::uint32_t mbits;
  std::uint32_t generation, lanes;
};
// The links of the cards: I210 and 82574 x1 Gen1 (2.1), I225 x1 Gen2, 82599 x8 Gen2, XL710 x8 Gen3, E810 x16 Gen4.
constexpr LineRate kLineRates[] = {{"e1000e", 1000, 1, 1}, {"i210", 1000, 1, 1},    {"igb", 1000, 2, 4},
                                   {"igc", 2500, 2, 1},    {"ixgbe", 10'000, 2, 8}, {"x550", 10'000, 3, 4},
                                   {"i40e", 25'000, 3, 8}, {"i40e", 40'000, 3, 8},  {"iavf", 25'000, 3, 8},
                                   {"ice", 100'000, 4, 16}};

/// Sends frames in at line rate, and each one back unchanged. Returns how many found no room in the driver.
std::uint64_t echo(Rig& rig, const SourceOptions& options) {
  std::uint64_t no_room = 0;
  rig.driver->receive([&](std::span<const std::byte> frame) { no_room += rig.driver->send(frame) ? 0 : 1; });
  rig.queue.run(20 * pcie::kMicrosecond);
  SourceOptions from = options;
  from.start = rig.queue.now();
  const Source source(rig.queue, rig.nic, from);
  while (rig.queue.pending() != 0) {
    rig.queue.run(rig.queue.now() + 2 * pcie::kMicrosecond);
    rig.driver->flush();
  }
  return no_room;
}

TEST(NicFabric, LineRateInAndOut_ExpectEveryFrameBackInOrder) {
  for (const LineRate& rate : kLineRates) {
    for (const std::uint32_t bytes : {300U, 1514U}) {
      SCOPED_TRACE(std::string(rate.name) + " " + std::to_string(rate.mbits) + " " + std::to_string(bytes));
      Rig rig(named(rate.name, rate.mbits), {}, {.generation = rate.generation, .lanes = rate.lanes},
              {.rx_tail_batch = 16, .tx_tail_batch = 4, .report_every = 16});
      ASSERT_TRUE(rig.ready);
      EXPECT_EQ(echo(rig, {.mbits = rate.mbits, .frames = 5000, .sizes = {bytes}}), 0U);
      EXPECT_EQ(rig.nic.counters().rx_dropped_all() + rig.nic.counters().tx_dropped_all(), 0U);
      EXPECT_EQ(rig.wire.frames, 5000U);
      EXPECT_EQ(rig.wire.missing + rig.wire.reordered + rig.wire.wrong, 0U);
      EXPECT_TRUE(rig.conserved());
    }
  }
}

TEST(NicFabric, ShortestFramesAtLineRate_ExpectEveryFrameBackInOrder) {
  for (const LineRate& rate : kLineRates) {
    SCOPED_TRACE(rate.name);
    if (rate.lanes == 1) continue;  // such a link does not carry it: some 130 bytes a packet and direction
    Rig rig(
        named(rate.name, rate.mbits), {}, {.generation = rate.generation, .lanes = rate.lanes},
        {.rx_descriptors = 2048, .tx_descriptors = 2048, .rx_tail_batch = 32, .tx_tail_batch = 32, .report_every = 32});
    ASSERT_TRUE(rig.ready);
    EXPECT_EQ(echo(rig, {.mbits = rate.mbits, .frames = 20'000, .sizes = {60}}), 0U);
    EXPECT_EQ(rig.nic.counters().rx_dropped_all(), 0U);
    EXPECT_EQ(rig.wire.frames, 20'000U);
    EXPECT_EQ(rig.wire.missing + rig.wire.reordered + rig.wire.wrong, 0U);
  }
}

TEST(NicFabric, MillionPackets_ExpectAllBack) {
  Rig rig(named("ixgbe", 10'000), {}, {.generation = 3, .lanes = 8},
          {.rx_tail_batch = 32, .tx_tail_batch = 16, .report_every = 32});
  ASSERT_TRUE(rig.ready);
  const std::clock_t begin = std::clock();  // processor time: others work on this machine
  EXPECT_EQ(echo(rig, {.frames = kMany, .sizes = {60}}), 0U);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("%.0f packets/s in and out (60 bytes), %.1f s, %.1f events a packet\n",
              static_cast<double>(kMany) / seconds, seconds,
              static_cast<double>(rig.queue.events()) / static_cast<double>(kMany));
  EXPECT_EQ(rig.wire.frames, kMany);
  EXPECT_EQ(rig.wire.missing + rig.wire.reordered + rig.wire.wrong, 0U);
}

/// How many frames of 60 bytes a second the NIC sends with this limit of reads in flight.
double send_rate(std::uint8_t reads) {
  NicOptions options = named("ixgbe", 10'000);
  options.nic.reads_outstanding = reads;
  Rig rig(options, {}, {.generation = 3, .lanes = 8}, {.tx_tail_batch = 16, .report_every = 16});
  std::vector<std::byte> frame(60);
  std::uint64_t given = 0;
  const auto give = [&] {
    for (; given < 4000; ++given) {
      make_frame(frame, given, 0);
      if (!rig.driver->send(frame)) return;
    }
  };
  rig.driver->on_space(give);
  give();
  while (rig.wire.frames != 4000 && rig.queue.step()) {
  }
  EXPECT_EQ(rig.wire.frames, 4000U);
  return 4000 / (static_cast<double>(rig.queue.now()) / pcie::kSecond);
}

TEST(NicFabric, FewReadsOutstanding_ExpectRateInProportion) {
  const double one = send_rate(1), four = send_rate(4), many = send_rate(64);
  EXPECT_NEAR(four / one, 4.0, 0.4);  // a read's round trip is the same
  EXPECT_GT(many, 14.5e6);            // line rate
}

TEST(NicFabric, LinkSlowerThanTheWire_ExpectPacketBufferFillsAndDropsAreCounted) {
  Rig rig(named("ixgbe", 10'000), {}, {.generation = 1, .lanes = 4}, {});  // 8 Gbit/s raw
  ASSERT_TRUE(rig.ready);
  echo(rig, {.frames = 20'000, .sizes = {300}});
  const NicCounters& c = rig.nic.counters();
  EXPECT_GT(c.dropped(RxDrop::kBufferFull), 0U);
  EXPECT_GT(c.rx_buffer_peak, 500U * 1024);
  EXPECT_EQ(c.received, c.delivered + c.dropped(RxDrop::kBufferFull));
  EXPECT_EQ(rig.wire.wrong + rig.wire.reordered, 0U);
}

/// What happened at a NIC with one seed while frames went both ways.
struct Outcome {
  bool conserved = true;
  std::uint64_t drops = 0, retries = 0, stopped = 0, resets = 0;
};
Outcome strike(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  constexpr const char* kNames[] = {"e1000e", "i210", "igb", "ixgbe", "ixgbevf", "i40e", "ice", "iavf", "iavf_flex"};
  NicOptions options = named(kNames[below(std::size(kNames))], 10'000);
  options.seed = seed;
  options.nic.rx_buffer_kib = static_cast<std::uint16_t>(8 + below(60));
  options.nic.rx_drop_without_descriptor = below(4) == 0;
  pcie::FabricOptions fabric_options;
  fabric_options.seed = seed;
  fabric_options.reordering = {.per_mille = static_cast<std::uint32_t>(below(400)), .split_anywhere = below(2) == 0};
  fabric_options.root.memory_jitter = static_cast<pcie::Time>(below(2)) * 400 * pcie::kNanosecond;
  Rig rig(options, fabric_options, {.generation = 3, .lanes = 8, .replay_one_in = below(3) == 0 ? 50U : 0U},
          {.rx_descriptors = 128,
           .tx_descriptors = 128,
           .rx_tail_batch = 1 + static_cast<std::uint32_t>(below(16)),
           .tx_tail_batch = 1 + static_cast<std::uint32_t>(below(4)),
           .report_every = 1 + static_cast<std::uint32_t>(below(8))});
  EXPECT_TRUE(rig.ready);
  rig.nic_port->set_completion_timeout(20 * pcie::kMicrosecond);
  const std::uint64_t kind = below(6);
  const auto fault = [&](pcie::FaultKind what, pcie::TlpKind tlp, std::uint32_t one_in, std::uint64_t count) {
    rig.fabric.add_fault({.kind = what,
                          .tlp = tlp,
                          .requester = rig.nic_port->id(),
                          .skip = 4,
                          .count = count,
                          .one_in = one_in,
                          .delay = static_cast<pcie::Time>(below(3000)) * pcie::kNanosecond});
  };
  if (kind == 1) fault(pcie::FaultKind::kVanish, pcie::TlpKind::kRead, 20, 10);
  if (kind == 2) fault(pcie::FaultKind::kVanish, pcie::TlpKind::kCompletion, 20, 10);
  if (kind == 3) fault(pcie::FaultKind::kPoison, pcie::TlpKind::kCompletion, 30, 3);
  if (kind == 4) fault(pcie::FaultKind::kUnsupportedRequest, pcie::TlpKind::kRead, 60, 2);
  if (kind == 5) fault(pcie::FaultKind::kCompleterAbort, pcie::TlpKind::kRead, 60, 2);
  fault(pcie::FaultKind::kDelay, pcie::TlpKind::kCompletion, 10, 1000);

  Checker host;
  std::uint64_t given = 0;
  rig.driver->receive([&](std::span<const std::byte> frame) { host.on_frame(frame, true); });
  const std::vector<std::uint32_t> sizes{60, 300, 1514, 64, 5000, 128, 256};
  const Source source(
      rig.queue, rig.nic,
      {.frames = 150, .sizes = sizes, .start = 5 * pcie::kMicrosecond, .bad_fcs_one_in = below(2) == 0 ? 40U : 0U});
  std::vector<std::byte> frame;
  const auto give = [&] {
    while (given < 150) {
      frame.resize(sizes[given % sizes.size()]);
      make_frame(frame, given, 0);
      if (!rig.driver->send(frame)) return;
      ++given;
    }
    rig.driver->flush();
  };
  rig.driver->on_space(give);
  give();

  // One event happens in the middle of the traffic.
  Outcome outcome;
  const pcie::Time when = static_cast<pcie::Time>(10 + below(120)) * pcie::kMicrosecond;
  const std::uint64_t event = below(6);
  rig.queue.run(when);
  if (event == 1) rig.nic.set_link(false);
  if (event == 2) rig.nic.set_bus_master(false);
  if (event == 3) rig.nic.reset();
  if (event == 4) rig.nic_port->reset();
  if (event == 5) rig.fabric.remove(rig.endpoint);
  outcome.resets = event >= 3 ? 1 : 0;
  rig.queue.run(when + 30 * pcie::kMicrosecond);
  if (event == 1) rig.nic.set_link(true);
  if (event == 2) rig.nic.set_bus_master(true);
  if (event == 5) rig.fabric.insert(rig.endpoint);
  if (event >= 3 && below(2) == 0) {  // the driver comes back; nothing is on its way any more
    rig.nic.set_bus_master(true);
    EXPECT_TRUE(rig.driver->start().ok());
    give();
  }
  for (int i = 0; i < 200 && rig.queue.pending() != 0; ++i) {
    rig.queue.run(rig.queue.now() + 10 * pcie::kMicrosecond);
    rig.driver->flush();
  }
  rig.queue.run();

  const NicCounters& c = rig.nic.counters();
  outcome.drops = c.rx_dropped_all() + c.tx_dropped_all();
  outcome.retries = c.retries;
  outcome.stopped = c.rings_stopped;
  EXPECT_TRUE(rig.conserved());
  EXPECT_EQ(c.received, source.sent());
  EXPECT_EQ(host.wrong + host.reordered, 0U) << "to the host";
  EXPECT_EQ(rig.wire.wrong + rig.wire.reordered, 0U) << "to the wire";
  if (event == 5 || event == 4) {
    EXPECT_LE(host.frames, c.delivered);  // posted writes may have been lost with the link
  } else {
    EXPECT_EQ(host.frames, c.delivered);
  }
  if (outcome.resets == 0 && c.rings_stopped == 0) {
    EXPECT_EQ(c.accepted, given);
    EXPECT_EQ(given, 150U);
    EXPECT_EQ(rig.nic.tx_waiting() + rig.nic.rx_waiting(), 0U);
  }
  outcome.conserved = rig.conserved();
  return outcome;
}

TEST(NicFabric, ReorderingFaultsAndResets_ExpectInIsOutPlusCountedDropsForEverySeed) {
  Outcome sum;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Outcome one = strike(seed);
    ASSERT_FALSE(::testing::Test::HasFailure());
    sum.drops += one.drops;
    sum.retries += one.retries;
    sum.stopped += one.stopped;
    sum.resets += one.resets;
  }
  // The seeds must reach their intended cases.
  EXPECT_GT(sum.drops, 0U);
  EXPECT_GT(sum.retries, 0U);
  EXPECT_GT(sum.stopped, 0U);
  EXPECT_GT(sum.resets, 0U);
  std::printf("%llu seeds: %llu drops, %llu reads again, %llu rings stopped, %llu resets\n",
              static_cast<unsigned long long>(kSeeds), static_cast<unsigned long long>(sum.drops),
              static_cast<unsigned long long>(sum.retries), static_cast<unsigned long long>(sum.stopped),
              static_cast<unsigned long long>(sum.resets));
}

}  // namespace
}  // namespace wherry::sim::nic
