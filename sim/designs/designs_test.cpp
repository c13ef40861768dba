// SPDX-License-Identifier: Apache-2.0
// Tests of the engine, the crossing and the cards: bytes, AXI rules, and bounds that other code computes.
#include <gtest/gtest.h>

#include "sim/designs/crossing.hpp"
#include "sim/designs/measure.hpp"
#include "sim/designs/neighbours.hpp"
#include "sim/designs/rig.hpp"
#include "sim/memory/bram.hpp"
#include "sim/memory/traffic.hpp"

namespace wherry::sim::designs {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

PointOptions options_of(Design design, Flow flow, std::uint32_t channels, std::uint64_t bytes) {
  PointOptions options{.flow = flow, .channels = channels, .bytes = bytes};
  options.card.design = design;
  if (design == Design::kLinux) options.neighbour = linux_traffic();
  return options;
}

/// measure() compares every byte of the last transfers, and checks the port for violations.
TEST(Designs, CarryEveryByteInEveryDesign) {
  for (const Design design : kDesigns)
    for (const Flow flow : {Flow::kToCard, Flow::kToHost})
      for (const std::uint32_t channels : {1U, 3U, 4U})
        for (const std::uint64_t bytes : {64UL, 576UL, 4096UL, 70'016UL}) {
          PointOptions options = options_of(design, flow, channels, bytes);
          for (const EnginePreset& preset : {kXdma, kWherry}) {
            options.preset = preset;
            options.calls = 2;
            const Point point = measure(options);
            EXPECT_EQ(point.error, "") << name_of(design) << " " << channels << " channels, " << bytes << " bytes";
            EXPECT_GT(point.gbytes, 0);
          }
        }
}

TEST(Designs, AByteThatIsNotThereIsNoticed) {
  Rig rig({.design = Design::kDdr4}, kXdma, Flow::kToCard, 1, 4096, {}, 1);
  for (std::size_t i = 0; i < 4096; ++i) rig.host()[i] = static_cast<std::byte>(i * 7);
  const Transfer transfer{0, 8192, 4096};
  rig.engine().post(0, transfer);
  EXPECT_GT(rig.differing(transfer), 0U);
  while (!rig.engine().quiet()) rig.tick();
  EXPECT_EQ(rig.differing(transfer), 0U);
  rig.host()[1000] ^= std::byte{1};
  EXPECT_EQ(rig.differing(transfer), 1U);
}

/// The link is charged as in host_link.hpp, whose bounds are formulas.
TEST(Designs, NoFigureIsAboveTheLinksBound) {
  for (const Flow flow : {Flow::kToCard, Flow::kToHost}) {
    PointOptions options = options_of(Design::kBram, flow, 4, kMiB);
    options.preset = kWherry;
    const double bound = flow == Flow::kToCard ? dma::read_bound(kWherry.link, kWherry.piece)
                                               : dma::write_bound(kWherry.link, kWherry.piece, kWherry.mps);
    const Point point = measure(options);
    EXPECT_LE(point.gbytes, 1.005 * bound);  // each channel's rate is over its own calls
    EXPECT_GE(point.gbytes, 0.93 * bound);
  }
}

/// Little's law: the rate is the bytes in flight divided by the round trip.
TEST(Designs, ReadsUnderWayLimitAFarHost) {
  PointOptions options = options_of(Design::kBram, Flow::kToCard, 1, kMiB);
  options.preset.link.rtt_ns = 4'000;
  options.preset.link.jitter_ns = 0;
  options.preset.interrupt_ns = 0;
  const double most = options.preset.to_card_ids * options.preset.piece / options.preset.link.rtt_ns;
  const Point point = measure(options);
  EXPECT_LE(point.gbytes, most);
  EXPECT_GE(point.gbytes, 0.85 * most);
}

TEST(Designs, ChannelsShareEvenlyAndSmallTransfersOverlap) {
  const double one = measure(options_of(Design::kDdr4, Flow::kToHost, 1, 4096)).gbytes;
  const double four = measure(options_of(Design::kDdr4, Flow::kToHost, 4, 4096)).gbytes;
  EXPECT_NEAR(four / one, 4, 0.1);
}

TEST(Designs, ALongerWayTakesBandwidthOfOneChannelBothWays) {
  for (const Flow flow : {Flow::kToCard, Flow::kToHost}) {
    PointOptions options = options_of(Design::kSoftcore, flow, 1, 2 * kMiB);
    options.card.slices = 0;
    const double near = measure(options).gbytes;
    options.card.slices = 60;
    EXPECT_LT(measure(options).gbytes, 0.9 * near);
  }
}

/// Two equal runs must give equal results.
TEST(Designs, AreDeterministic) {
  const PointOptions options = options_of(Design::kLinux, Flow::kToHost, 2, 65'536);
  EXPECT_EQ(measure(options).cycles, measure(options).cycles);
}

/// A slower manager loses no beat, and a faster one gets at most one beat per cycle of the slower clock.
TEST(Crossing, PassesABeatACycleOfTheSlowerClock) {
  memory::Bram bram(kMiB, 3'333);
  memory::Content content;
  memory::AxiMemory port(bram, content, 1, memory::kBramPort);
  Crossing crossing(4'000, 3'333);
  memory::TrafficManager manager({.reads = true, .writes = true, .region = kMiB});
  std::uint64_t now = 0, below = 0;
  constexpr std::uint64_t kCycles = 20'000;
  for (std::uint64_t i = 0; i < kCycles; ++i) {
    now += 4'000;
    for (; below + 3'333 <= now; below += 3'333) {
      const memory::AxiAnswer answer = port.answer(0);
      port.step({&crossing.request(), 1});
      crossing.memory_step(answer, below);
    }
    const memory::AxiAnswer answer = crossing.answer();
    crossing.step(manager.request(), now);
    manager.step(answer);
  }
  EXPECT_EQ(port.violation(), "");
  const auto most = static_cast<double>(kCycles * memory::kBeatBytes);
  EXPECT_GE(static_cast<double>(manager.read_bytes()), 0.95 * most);
  EXPECT_GE(static_cast<double>(manager.written_bytes()), 0.95 * most);
  EXPECT_LE(static_cast<double>(manager.read_bytes()), most);
}

/// Each window contains its part of the recording. python/tests/test_linux_trace.py counts its content.
TEST(LinuxTraffic, HasItsWindowsAndIsWhatItWouldBeWrittenAs) {
  const softcore::BusTrace& trace = linux_trace();
  EXPECT_EQ(trace.clock_hz, 100'000'000U);
  for (std::uint32_t window = 0; window < kLinuxWindows; ++window) {
    const std::size_t first = first_of_window(window);
    ASSERT_LT(first, trace.accesses.size());
    EXPECT_EQ(trace.accesses[first].cycle / kWindowCycles, window);
    if (window != 0) {
      EXPECT_EQ(trace.accesses[first - 1].cycle / kWindowCycles, window - 1);
    }
  }
  EXPECT_LT(trace.accesses.back().cycle, kLinuxWindows * kWindowCycles);
  const auto again = softcore::BusTrace::decode(trace.encode());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->accesses, trace.accesses);
}

/// The memory is as fast as requested: every access must be performed once, without a violation of AXI.
TEST(LinuxTraffic, PlaysWhole) {
  const softcore::BusTrace& trace = linux_trace();
  std::uint64_t writes = 0;
  for (const softcore::BusAccess& access : trace.accesses) writes += access.writes() ? 1 : 0;
  memory::Bram bram(32 * kMiB, 10'000);
  memory::Content content;
  memory::AxiMemory port(bram, content, 1, memory::kBramPort);
  constexpr std::uint64_t kSlowBus = 1'000'000;  // so that one access follows the other
  softcore::TracePlayer player(trace, kSlowBus, 0, 32 * kMiB);
  while (player.rounds() == 0) {
    const memory::AxiAnswer answer = port.answer(0);
    port.step({&player.request(), 1});
    player.step(answer);
  }
  EXPECT_EQ(port.violation(), "");
  EXPECT_EQ(player.writes(), writes);
  EXPECT_EQ(player.reads() + player.writes(), trace.accesses.size() - 1) << "the last has begun";
}

}  // namespace
}  // namespace wherry::sim::designs
