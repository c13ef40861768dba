// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sim/pcie/parameters.hpp"
#include "sim/shell/bed.hpp"
#include "sim/shell/stream.hpp"

namespace wherry::sim::shell {
namespace {

/// Thesis, Tables 5.1, 5.3 and 5.5, from 128 bytes on, in ns.
struct Published {
  Path path;
  std::vector<double> descriptor, total;
};
const std::vector<Published>& published() {
  static const std::vector<Published> all{
      {Path::kHostToWire, {540, 540, 540, 540, 540}, {941, 971, 1005, 1120, 1236}},
      {Path::kWireToHost, {532, 536, 536, 536, 528}, {886, 915, 977, 1038, 1166}},
      {Path::kWireToHbm, {}, {261, 281, 325, 417, 593, 949}},
      {Path::kHbmToWire, {}, {635, 660, 722, 834, 1064, 1536}},
      {Path::kHostToHbm, {544, 540, 544, 544, 544, 544}, {1160, 1200, 1276, 1463, 1576, 1828}},
      {Path::kHbmToHost, {540, 544, 544, 540, 540, 536}, {956, 992, 1072, 1136, 1264, 3617}}};
  return all;
}

double off(double value, double known) { return std::abs(value / known - 1); }

TEST(Shell, EachLatencyIsWithinTenPercent) {
  for (const Published& known : published()) {
    for (std::size_t i = 0; i < known.total.size(); ++i) {
      const Measured found = run(known.path, 128U << i, {});
      EXPECT_EQ(found.wrong, 0U);
      EXPECT_LE(off(found.total, known.total[i]), 0.1) << static_cast<int>(known.path) << ", " << (128U << i);
      if (known.descriptor.empty()) continue;
      EXPECT_LE(off(found.descriptor, known.descriptor[i]), 0.1) << static_cast<int>(known.path);
    }
  }
}

/// Cases 1 and 2: each section lies between its own marks, so no time may be counted twice or left out. In case 3,
/// QDMA's section is the remainder beside the others.
TEST(Shell, SectionsAddUp) {
  for (const PathName& path : paths()) {
    for (const std::uint32_t bytes : {64U, 128U, 192U, 1024U, 2048U, 4096U, 8192U}) {
      const Measured found = run(path.path, bytes, {});
      double sum = 0;
      for (const Section& section : found.sections) sum += section.ns;
      EXPECT_NEAR(sum, found.total, 1e-6) << path.number << path.name << bytes;
      EXPECT_EQ(found.wrong, 0U) << path.number << path.name << bytes;
    }
  }
}

/// Every byte must arrive, wherever the buffers are.
TEST(Shell, DataArriveFromAnyPlace) {
  for (const PathName& path : paths()) {
    for (const std::uint32_t card : {0U, 32U, 2048U, 4064U}) {
      for (const std::uint32_t host : {0U, 96U, 1024U, 4064U}) {
        for (const std::uint32_t overlap : {0U, 1U}) {
          Parameters parameters;
          parameters.card_offset = card;
          parameters.host_offset = host;
          parameters.one_at_a_time = overlap;
          EXPECT_EQ(run(path.path, 4096, parameters).wrong, 0U) << path.number << path.name << card << ' ' << host;
        }
      }
    }
  }
}

double spike(std::uint32_t bytes, std::uint32_t card, std::uint32_t host, std::uint32_t one_at_a_time,
             std::uint32_t transactions) {
  Parameters parameters;
  parameters.card_offset = card;
  parameters.host_offset = host;
  parameters.one_at_a_time = one_at_a_time;
  const Measured found = run(Path::kHbmToHost, bytes, parameters);
  EXPECT_EQ(found.transactions, transactions);
  return found.total;
}

/// The 4 KiB spike must come from boundaries and from transactions that wait for each other, not from the size.
TEST(Shell, TheSpikeHasACause) {
  const double without = spike(4096, 0, 0, 1, 1);
  EXPECT_LT(without, 1600);  // Table 5.5 goes up by some 128 ns a KiB up to 2 KiB: 1264 + 256
  EXPECT_GT(spike(4096, 1024, 2048, 1, 3), 2 * without);
  EXPECT_NEAR(spike(4096, 1024, 2048, 0, 3), without, 0.02 * without);
  const double small = spike(2048, 1024, 2048, 1, 1);
  EXPECT_GT(spike(2048, 3072, 2048, 1, 2), 1.5 * small);  // 2 KiB across a boundary have it, too
  EXPECT_NEAR(spike(4096, 1024, 1024, 1, 2), spike(4096, 1024, 0, 1, 2), 10);
  // Writes and the DataMover have no spike, wherever the buffers are, as in Tables 5.3 and 5.5.
  for (const Path path : {Path::kHostToHbm, Path::kWireToHbm, Path::kHbmToWire}) {
    Parameters aligned;
    aligned.card_offset = aligned.host_offset = 0;
    EXPECT_NEAR(run(path, 4096, {}).total, run(path, 4096, aligned).total, 20);
  }
}

/// Computed by hand, from the page's own numbers: a packet's path from the network to the card.
TEST(Shell, AStoreTakesAPacketTwice) {
  const Parameters p;
  const auto cmac = [&](std::uint32_t bytes) { return run(Path::kWireToHost, bytes, p).sections.front().ns; };
  // 16 more beats take 16 cycles of 322 MHz in and 16 of 250 MHz out, within a cycle of crossing.
  const double beat = 1e9 / 322'265'625 + 4;
  EXPECT_NEAR(cmac(2048) - cmac(1024), 16 * beat, 4);
  // Towards the network, a packet is read out once, or twice where the fit found a second store.
  const auto tx = [&](Path path) {
    return run(path, 2048, p).sections.back().ns - run(path, 1024, p).sections.back().ns;
  };
  EXPECT_NEAR(tx(Path::kHostToWire), 16 * 1e9 / 322'265'625, 4);
  EXPECT_NEAR(tx(Path::kHbmToWire), 32 * 1e9 / 322'265'625, 4);
}

/// The write of one TLP, by hand: 16 + 512 bytes are nine beats of RQ. With a header of 12 bytes and 8 of framing, they
/// are 532 bytes of a Gen3 x16 link.
TEST(Shell, OneWriteByHand) {
  const Measured found = run(Path::kWireToHost, 512, {});
  const double link = 532 * static_cast<double>(pcie::byte_time({.generation = 3, .lanes = 16})) / (1 << 20) / 1000;
  EXPECT_NEAR(link, 532 / 15.754 * (1 + 4.0 / 1538), 0.1);
  EXPECT_NEAR(found.sections.back().ns, 9 * 4 + link + Parameters{}.flight * 4, 0.1);
}

TEST(Shell, ParametersAreNamedOnceAndRefusedWhenAbsurd) {
  Parameters parameters;
  std::map<std::string_view, int> names;
  for (const Parameter& one : shell::parameters()) {
    EXPECT_EQ(++names[one.name], 1);
    EXPECT_TRUE(one.mark == "fitted" || one.mark == "chosen") << one.name;
    EXPECT_FALSE(one.source.empty());
    EXPECT_TRUE(set(parameters, std::string(one.name) + "=" + std::to_string(Parameters{}.*one.member)).ok());
  }
  EXPECT_EQ(names.size() * sizeof(std::uint32_t), sizeof(Parameters));
  for (const char* wrong :
       {"mps=300", "mps=64", "flight=", "flight=x", "flight", "speed=3", "card_offset=33", "rx=1001"})
    EXPECT_FALSE(set(parameters, wrong).ok()) << wrong;
  EXPECT_TRUE(set(parameters, "rx=77").ok());
  EXPECT_EQ(parameters.rx, 77U);
}

TEST(Clock, EdgesAreWholeCycles) {
  static_assert(kShellClock.cycles(3) == 12'000);
  static_assert(kShellClock.edge(12'000) == 12'000 && kShellClock.edge(12'001) == 16'000);
  for (Time at = 0; at < 100'000; at += 7) {
    const Time edge = kCmacClock.edge(at);
    EXPECT_GE(edge, at);
    EXPECT_LT(edge - at, 3104);
    EXPECT_EQ(kCmacClock.edge(edge), edge);
  }
}

}  // namespace
}  // namespace wherry::sim::shell
