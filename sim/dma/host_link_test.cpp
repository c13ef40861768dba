// SPDX-License-Identifier: Apache-2.0
// Compares the link model with sums done by hand: what it charges, and what it delivers.
#include "sim/dma/host_link.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sim/dma/checked_memory.hpp"

namespace wherry::sim::dma {
namespace {

constexpr std::uint32_t kLine = 64;

/// All beats of requests of 512 bytes, which are sent as fast as the link takes them.
struct Heard {
  std::map<std::uint8_t, std::vector<CompletionBeat>> of;
  double first_ns = 0, last_ns = 0;
};

Heard hear(HostLink& link, std::uint32_t requests, std::uint64_t address, std::uint32_t bytes) {
  Heard heard;
  std::uint32_t sent = 0, ended = 0;
  for (std::uint64_t cycle = 0; ended < requests && cycle < 100'000; ++cycle) {
    link.cycle();
    if (sent < requests && link.read_ready()) link.request({static_cast<std::uint8_t>(sent++), bytes, address});
    const CompletionBeat* beat = link.completion();
    if (beat == nullptr) continue;
    if (heard.first_ns == 0) heard.first_ns = link.now();
    heard.last_ns = link.now();
    heard.of[beat->tag].push_back(*beat);
    if (beat->last && beat->final_) ++ended;
    link.completion_taken();
  }
  return heard;
}

TEST(HostLink, Read_512BytesAlone_ExpectRoundTripAndBytesOfTwoCompletions) {
  HostLink link({.jitter_ns = 0}, 1);
  const Heard heard = hear(link, 1, 0x1000, 512);
  ASSERT_EQ(heard.of.at(0).size(), 512 / kLine);
  // 800 ns, plus a completion of 256 + 20 bytes at 15.713 bytes a ns, in steps of 4 ns.
  EXPECT_NEAR(heard.first_ns, 800 + 17.6, 3 * kCycleNs);
  EXPECT_DOUBLE_EQ(link.down_bytes, 512 + 2 * 20);
  EXPECT_DOUBLE_EQ(link.up_bytes, 24);
}

TEST(HostLink, Read_Many_ExpectTheBoundOfCompletions) {
  HostLink link({}, 1);
  const Heard heard = hear(link, 200, 0x1000, 512);
  EXPECT_NEAR(199 * 512 / (heard.last_ns - heard.first_ns), 14.57, 0.15);
  EXPECT_NEAR(read_bound({}, 4096), 15.754 * (1 - 4.0 / 1538) * 256 / 276, 1e-9);
  EXPECT_NEAR(write_bound({}, 4096, 256), 15.754 * (1 - 4.0 / 1538) * 256 / 280, 1e-9);
}

TEST(HostLink, Read_RandomSplits_ExpectEveryByteOnceInOrderAndCutAt64) {
  HostLink link({.jitter_ns = 500, .random_splits = true}, 3);
  const Heard heard = hear(link, 100, 0x1013, 300);
  bool cut = false;
  for (const auto& [tag, beats] : heard.of) {
    std::uint64_t next = 0x1013;
    for (std::size_t i = 0; i < beats.size(); ++i) {
      EXPECT_EQ(beats[i].address, next);
      next += beats[i].bytes;
      EXPECT_EQ(beats[i].first, i == 0 || beats[i - 1].last);
      if (beats[i].last && !beats[i].final_) {
        EXPECT_EQ(next % kLine, 0);
        cut = true;
      }
    }
    EXPECT_EQ(next, 0x1013 + 300);
  }
  EXPECT_TRUE(cut);
  EXPECT_EQ(heard.of.size(), 100);
}

TEST(HostLink, Request_Faults_ExpectEachToldAndOfItsKind) {
  for (const Error kind : {Error::kUnsupported, Error::kAborted, Error::kPoisoned}) {
    HostLink link({}, 4);
    std::uint32_t& chance = kind == Error::kUnsupported ? link.faults.unsupported
                            : kind == Error::kAborted   ? link.faults.aborted
                                                        : link.faults.poisoned;
    chance = 1'000'000;
    std::vector<Error> told;
    link.on_fault = [&](const ReadRequest&, Error error) { told.push_back(error); };
    const Heard heard = hear(link, 20, 0x1000, 512);
    EXPECT_EQ(told, std::vector<Error>(20, kind));
    for (const auto& [tag, beats] : heard.of) {
      bool seen = false;
      for (const CompletionBeat& beat : beats) seen = seen || beat.error == kind;
      EXPECT_TRUE(seen);
    }
  }
}

TEST(CheckedMemory, Write_WrongOrTwiceOrUnasked_ExpectASentence) {
  CheckedMemory memory("memory", 0x1000, 256);
  memory.open(0x1010, 16, 5, 0x99);
  EXPECT_EQ(memory.write(0x1010, source_byte(5, 0x99)), "");
  EXPECT_NE(memory.write(0x1010, source_byte(5, 0x99)), "");
  EXPECT_NE(memory.write(0x1011, source_byte(5, 0x9A) ^ 1), "");
  EXPECT_NE(memory.write(0x100F, 0), "");
  EXPECT_NE(memory.write(0x1020, 0), "");
  EXPECT_NE(memory.write(0x2000, 0), "");
  EXPECT_EQ(memory.close(0x1010, 16), 2U);
  EXPECT_NE(memory.write(0x1012, source_byte(5, 0x9B)), "");
}

}  // namespace
}  // namespace wherry::sim::dma
