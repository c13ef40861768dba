// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/load.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "base/random.hpp"
#include "sim/pcie/parameters.hpp"

namespace wherry::sim::shell::load {
namespace {

LoadOptions flow(Path path, std::uint32_t bytes, double gbytes_per_s, std::uint32_t packets) {
  return {.flows = {{path, bytes, gbytes_per_s}}, .packets = packets};
}

/// Offers more packets than the shell can take, one behind the other. `most`: the rate that it can take, in GB/s; 0:
/// its bound.
LoadFound saturated(Path path, std::uint32_t bytes, std::uint32_t packets, const Limits& limits = {}, double most = 0) {
  if (most == 0) most = bound_of(path, bytes, {}, limits).gbytes_per_s;
  LoadOptions options = flow(path, bytes, 1.2 * most, packets);
  options.regular = true;
  options.limits = limits;
  LoadFound found = run(options);
  EXPECT_EQ(found.wrong, 0U) << found.broken;
  return found;
}

/// Without load, the times must equal those of the model that was compared with the thesis's tables, to the picosecond.
TEST(Load, OnePacket_ExpectTheTimesOfTheUnloadedShell) {
  for (const PathName& path : paths()) {
    for (const std::uint32_t bytes : {64U, 128U, 256U, 512U, 1024U, 2048U, 4096U}) {
      for (const std::uint32_t store : {0U, 1U, 2U}) {
        LoadOptions options = flow(path.path, bytes, 1, 1);
        options.parameters.second_store = store;
        const Measured alone = shell::run(path.path, bytes, options.parameters);
        const LoadFound found = run(options);
        EXPECT_EQ(found.wrong, 0U) << path.number << path.name << bytes << found.broken;
        EXPECT_NEAR(found.flows[0].mean_ns, alone.total + alone.descriptor, 1e-6) << path.number << path.name << bytes;
      }
    }
  }
}

/// Packets that come far apart do not meet each other. They may arrive at any time between two clock edges.
TEST(Load, PacketsFarApart_ExpectTheTimesOfTheUnloadedShell) {
  for (const PathName& path : paths()) {
    LoadOptions options = flow(path.path, 1024, 0.2, 50);
    options.regular = true;  // 5.1 us apart
    const Measured alone = shell::run(path.path, 1024, {});
    const FlowFound found = run(options).flows[0];
    EXPECT_NEAR(found.mean_ns, alone.total + alone.descriptor, 12) << path.number << path.name;
    EXPECT_LT(found.most_ns - found.p50_ns, 12);
  }
}

/// in = out + counted drops must hold for any seed. Every outgoing byte must be right. Each packet from the network to
/// the host must have one entry in a completion ring.
TEST(Load, EachSeed_ExpectNothingLostUncounted) {
  std::uint64_t dropped = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SplitMix64 random(seed);
    LoadOptions options{.packets = 400, .seed = seed};
    options.limits.queues = 1 + random.below(8);
    options.limits.prefetch = 8 * random.below(2);
    options.limits.interrupts = random.below(2);
    options.limits.memory_order = random.below(3);
    options.limits.adapter_beats = 64U << random.below(2);
    options.limits.ring = 16U << random.below(4);
    options.parameters.card_offset = 32 * random.below(128);
    options.parameters.host_offset = 64 * random.below(64);
    for (const PathName& path : paths())
      options.flows.push_back({path.path, 64 * (1 + random.below(64)), 1.0 + random.below(9)});
    const LoadFound found = run(options);
    EXPECT_EQ(found.wrong, 0U) << seed << ": " << found.broken;
    std::uint64_t from_wire = 0, lost = 0;
    for (const FlowFound& one : found.flows) {
      EXPECT_EQ(one.offered, one.delivered + one.dropped) << seed;
      if (one.flow.path == Path::kWireToHost || one.flow.path == Path::kWireToHbm) {
        from_wire += one.offered;
        lost += one.dropped;
      } else {
        EXPECT_EQ(one.dropped, 0U) << seed;
      }
      if (one.flow.path == Path::kWireToHost) {
        EXPECT_EQ(found.entries, one.delivered);
      }
    }
    EXPECT_EQ(found.adapter_received, from_wire);
    EXPECT_EQ(found.adapter_dropped, lost);
    EXPECT_LE(found.adapter_most, options.limits.adapter_beats);
    dropped += lost;
  }
  EXPECT_GT(dropped, 0U);  // otherwise nothing was tried
}

TEST(Load, SameSeed_ExpectTheSameRun) {
  const LoadOptions options = flow(Path::kWireToHost, 256, 8, 300);
  const FlowFound a = run(options).flows[0], b = run(options).flows[0];
  EXPECT_EQ(a.mean_ns, b.mean_ns);
  EXPECT_EQ(a.p99_ns, b.p99_ns);
}

/// Bounds computed by hand, from sizes alone. No run may exceed them; where a stage can be kept busy, runs come near.
TEST(Load, Saturation_ExpectTheSlowestStagesRate) {
  struct Expected {
    Path path;
    std::uint32_t bytes;
    std::string_view stage;
    double bound, least;  ///< GB/s, share of it
  };
  const std::vector<Expected> all{{Path::kHostToWire, 1024, "wire", 12.5 * 1024 / 1048, 0.99},
                                  {Path::kWireToHost, 1024, "wire", 12.5 * 1024 / 1048, 0.98},
                                  {Path::kWireToHost, 64, "RQ", 64 / 12.0, 0.85},  // 80 bytes: 2 beats; a completion: 1
                                  {Path::kHostToWire, 64, "RC", 64 / 8.0, 0.85},   // 76 bytes: 2 beats
                                  {Path::kWireToHbm, 1024, "memory's port", 8, 0.99},
                                  {Path::kHbmToWire, 1024, "memory's port", 8, 0.99},
                                  {Path::kHostToHbm, 1024, "memory's port", 8, 0.99},
                                  {Path::kHbmToHost, 1024, "memory's port", 8, 0.99}};
  for (const Expected& one : all) {
    const Bound bound = bound_of(one.path, one.bytes, {}, {});
    EXPECT_EQ(bound.stage, one.stage);
    EXPECT_NEAR(bound.gbytes_per_s, one.bound, 1e-9);
    const double rate = saturated(one.path, one.bytes, one.bytes == 64 ? 6000 : 800).flows[0].gbytes_per_s;
    EXPECT_LE(rate, 1.005 * one.bound) << one.stage;
    EXPECT_GE(rate, one.least * one.bound) << one.stage << ' ' << static_cast<int>(one.path);
  }
}

/// Two cases write to the host at once. A TLP of 512 bytes takes nine beats of RQ, 36 ns, and 532 bytes of the link,
/// 33.9 ns. So RQ is slower; it carries data, completions, statuses, messages and requests for descriptors.
TEST(Load, TwoCasesToTheHost_ExpectRqBusyAndTheLinkNotOverfull) {
  LoadOptions options{.packets = 1600, .regular = true};
  options.limits.memory_order = kOverlap;
  options.flows = {{Path::kWireToHost, 2048, 12}, {Path::kHbmToHost, 2048, 7.9}};
  const LoadFound found = run(options);
  EXPECT_EQ(found.wrong, 0U) << found.broken;
  const double byte_ns = static_cast<double>(pcie::byte_time({.generation = 3, .lanes = 16})) / (1 << 20) / 1000;
  const double rate = found.flows[0].gbytes_per_s + found.flows[1].gbytes_per_s;
  EXPECT_LE(rate, 512 / (532 * byte_ns));
  EXPECT_LE(rate, 512 / 36.0);
  const double small = static_cast<double>(found.entries + found.statuses + found.interrupts + found.fetches);
  const double data = 4 * 9 * static_cast<double>(found.flows[0].delivered + found.flows[1].delivered);
  EXPECT_GE(4 * (data + small), 0.95 * found.duration_ns) << rate << ' ' << small << ' ' << data;
}

/// A queue with one deterministic server and Poisson arrivals (Pollaczek and Khinchine): the waiting time is S rho / (2
/// (1 - rho)). In a chain of deterministic servers, a packet waits as long as at the slowest one alone (Friedman,
/// 1965). The network's path to the memory has wire, adapter and the memory's port, which takes 128 ns for 1 KiB.
TEST(Load, PoissonArrivals_ExpectTheWaitingOfMD1) {
  for (const Path path : {Path::kHbmToWire, Path::kWireToHbm}) {
    for (const double load : {0.3, 0.6}) {
      const double unloaded = shell::run(path, 1024, {}).total;
      double waiting = 0, dropped = 0;
      constexpr int kSeeds = 4;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        LoadOptions options = flow(path, 1024, 8 * load, 2500);
        options.seed = seed;
        const FlowFound found = run(options).flows[0];
        waiting += (found.mean_ns - unloaded) / kSeeds;
        dropped += found.dropped;
      }
      const double expected = 128 * load / (2 * (1 - load));
      EXPECT_LE(dropped, 0.001 * kSeeds * 2500);
      EXPECT_NEAR(waiting, expected, 0.08 * expected + 4) << load;  // 4 ns: packets wait for clock edges, too
    }
  }
}

/// Little's law: the rate is the number in flight over each one's time: six DataMover commands; one QDMA transaction.
TEST(Load, BoundedConcurrency_ExpectLittlesLaw) {
  Limits six;
  six.mover_reads = 6;
  const double reading = shell::run(Path::kHbmToWire, 64, {}).sections.front().ns;
  EXPECT_NEAR(saturated(Path::kHbmToWire, 64, 2000, six).flows[0].gbytes_per_s, 6 * 64 / reading,
              0.03 * 6 * 64 / reading);
  Limits serial;
  serial.memory_order = kEngineSerial;
  for (const std::uint32_t bytes : {64U, 1024U, 4096U}) {
    const double alone = bytes / shell::run(Path::kHbmToHost, bytes, {}).total;
    EXPECT_NEAR(saturated(Path::kHbmToHost, bytes, 200, serial, alone).flows[0].gbytes_per_s, alone, 0.03 * alone)
        << bytes;
  }
  Limits one;
  one.h2c_requests = 1;
  const double request = shell::run(Path::kHostToWire, 1024, {}).sections.front().ns;
  EXPECT_NEAR(saturated(Path::kHostToWire, 1024, 300, one, 1024 / request).flows[0].gbytes_per_s, 1024 / request,
              0.03 * 1024 / request);
}

/// SmartConnect's arbiters are round-robin, burst by burst: two masters that could each fill the port get half of it.
TEST(Load, TwoMastersOfTheMemory_ExpectEqualShares) {
  LoadOptions options{.packets = 1600, .regular = true};
  options.flows = {{Path::kWireToHbm, 1024, 7.9}, {Path::kHostToHbm, 1024, 7.9}};
  const LoadFound found = run(options);
  EXPECT_EQ(found.wrong, 0U) << found.broken;
  for (const FlowFound& one : found.flows) EXPECT_NEAR(one.gbytes_per_s, 4, 0.1);
}

/// The adapter gives packets out in order. Packets for HBM exceed its port's rate and block those for the host behind
/// them. Both are lost in front of the adapter.
TEST(Load, HbmPathBesideHostPath_ExpectLossOfBoth) {
  LoadOptions options{.packets = 1500};
  options.flows = {{Path::kWireToHost, 1024, 2.5}, {Path::kWireToHbm, 1024, 9.5}};
  const LoadFound found = run(options);
  EXPECT_EQ(found.wrong, 0U) << found.broken;
  for (const FlowFound& one : found.flows) EXPECT_GT(one.dropped, one.offered / 30);
  EXPECT_LE(found.flows[1].gbytes_per_s, 8.01);
  EXPECT_EQ(run(flow(Path::kWireToHost, 1024, 2.5, 300)).adapter_dropped, 0U);  // alone it loses none
}

/// Each queue has one outstanding interrupt, so under load one reports many completions.
TEST(Load, Interrupts_ExpectFewerThanCompletionsUnderLoad) {
  const LoadFound busy = run(flow(Path::kWireToHost, 64, 4, 2000));
  EXPECT_EQ(busy.entries, 2000U);
  EXPECT_LT(busy.interrupts, 400U);
  EXPECT_EQ(busy.statuses, busy.interrupts);
  LoadOptions apart = flow(Path::kWireToHost, 64, 0.01, 20);
  apart.regular = true;
  const LoadFound quiet = run(apart);
  EXPECT_EQ(quiet.interrupts, 20U);
  // Entry, status and message follow the data: over RQ, with a beat each, and over the link.
  EXPECT_GT(quiet.flows[0].told_ns - quiet.flows[0].mean_ns, 3.9);
  EXPECT_LT(quiet.flows[0].told_ns - quiet.flows[0].mean_ns, 24);
  apart.limits.interrupts = 0;
  const LoadFound polled = run(apart);
  EXPECT_EQ(polled.interrupts, 0U);
  EXPECT_LT(polled.flows[0].told_ns, quiet.flows[0].told_ns);
}

/// Prefetched descriptors are on the card when a packet comes (PG302, C2H Stream Engine).
TEST(Load, Prefetch_ExpectPacketsNotToWaitForDescriptors) {
  LoadOptions options = flow(Path::kWireToHost, 1024, 6, 800);
  const double without = run(options).flows[0].mean_ns;
  options.limits.prefetch = 8;
  EXPECT_LT(run(options).flows[0].mean_ns, without - 300);
}

TEST(Load, EachLimitIsNamedOnce) {
  std::map<std::string_view, int> names;
  for (const Limit& one : limits()) {
    EXPECT_EQ(++names[one.name], 1);
    EXPECT_TRUE(one.mark == "given" || one.mark == "bound") << one.name;
    EXPECT_FALSE(one.source.empty());
  }
  EXPECT_EQ(names.size() * sizeof(std::uint32_t), sizeof(Limits));
}

}  // namespace
}  // namespace wherry::sim::shell::load
