// SPDX-License-Identifier: Apache-2.0
#include "sim/hbm.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace wherry::kv::rtl {
namespace {

/// A port, and a scripted master that takes its requests from queues.
class Rig {
 public:
  explicit Rig(const HbmTiming& timing = kHbmHardware) : port(content, timing, 1) {}

  void read(std::uint64_t address, std::uint32_t beats) { reads.push_back({address, beats - 1}); }
  void write(std::uint64_t address, std::uint32_t beats, std::uint32_t value = 0) {
    writes.push_back({address, beats - 1});
    for (std::uint32_t i = 0; i < beats; ++i) data.push_back({{value + i}, i + 1 == beats});
  }
  /// Until all was answered.
  void run(Cycles limit = 10'000) {
    const Cycles end = port.now() + limit;
    while (port.now() < end && (!reads.empty() || !writes.empty() || !data.empty() || !port.quiet())) step();
  }
  void step() {
    AxiRequest in{.r_ready = r_ready, .b_ready = true};
    const AxiAnswer out = port.answer();
    if (!reads.empty()) {
      in.ar_valid = true;
      std::tie(in.ar_address, in.ar_length) = reads.front();
      if (out.ar_ready) reads.pop_front();
    }
    if (!writes.empty() && port.now() >= hold_addresses) {
      in.aw_valid = true;
      std::tie(in.aw_address, in.aw_length) = writes.front();
      if (out.aw_ready) writes.pop_front();
    }
    if (!data.empty()) {
      in.w_valid = true;
      std::tie(in.w_data, in.w_last) = data.front();
      in.w_strobes = strobes;
      if (out.w_ready) data.pop_front();
    }
    if (out.r_valid && r_ready) got.push_back(out.r_data[0]);
    port.step(in);
  }

  HbmContent content;
  HbmPort port;
  std::deque<std::tuple<std::uint64_t, std::uint32_t>> reads, writes;
  std::deque<std::tuple<HbmBeat, bool>> data;
  std::vector<std::uint32_t> got;
  std::uint32_t strobes = ~0U;
  bool r_ready = true;
  Cycles hold_addresses = 0;
};

/// Time in ns from a read's command to its last byte, or from a packet's first beat to the memory's last answer, in the
/// thesis's pipeline: a DataMover before one port, with bursts of 16 beats. The time that the pipeline adds (Table 5.4)
/// is the same for all.
std::uint64_t thesis_read(const HbmTiming& timing, std::uint32_t bytes) {
  Rig rig(timing);
  for (std::uint32_t at = 0; at < bytes; at += 512)
    rig.read(at, std::min(bytes - at, 512U) / std::uint32_t{kHbmBeatBytes});
  rig.run();
  return (rig.port.times().last_data - rig.port.times().first_address) * kCycleNs;
}
std::uint64_t thesis_write(const HbmTiming& timing, std::uint32_t bytes) {
  Rig rig(timing);
  for (std::uint32_t at = 0; at < bytes; at += 512)
    rig.write(at, std::min(bytes - at, 512U) / std::uint32_t{kHbmBeatBytes});
  rig.run();
  return (rig.port.times().last_answer - rig.port.times().first_write) * kCycleNs;
}
constexpr std::uint64_t kDataMoverRead = 44;
constexpr std::uint64_t kDataMoverWrite = 20;

TEST(KvHbm, ThesisOnHardware_ExpectTable5_8) {
  EXPECT_EQ(kDataMoverRead + thesis_read(kHbmHardware, 1024), 376U);
  EXPECT_EQ(kDataMoverWrite + thesis_write(kHbmHardware, 1024), 384U);
}

TEST(KvHbm, ThesisInSimulation_ExpectTable5_4WhereItIsLinear) {
  const auto read = [](std::uint32_t bytes) { return thesis_read(kHbmSimulated, bytes); };
  EXPECT_EQ(read(128), 524U);
  EXPECT_EQ(read(256), 540U);
  EXPECT_NEAR(static_cast<double>(read(512)), 576, 4);
  EXPECT_EQ(read(1024), 636U);
  EXPECT_EQ(read(2048), 764U);
  EXPECT_NEAR(static_cast<double>(read(4096)), 1036, 16);
  const auto write = [](std::uint32_t bytes) { return thesis_write(kHbmSimulated, bytes); };
  EXPECT_EQ(write(128), 168U);
  EXPECT_EQ(write(256), 184U);
  EXPECT_EQ(write(512), 216U);
  EXPECT_NEAR(static_cast<double>(write(1024)), 296, 16);
  EXPECT_EQ(write(2048), 408U);
  EXPECT_EQ(write(4096), 664U);
}

TEST(KvHbm, WriteThenRead_ExpectItBackAndTheRestUntouched) {
  Rig rig;
  rig.write(0x3'0000'0000, 16, 100);
  rig.write(0x40, 2, 7);
  rig.run();
  rig.read(0x3'0000'0000 + 32 * 3, 2);
  rig.read(0x40, 4);
  rig.run();
  EXPECT_EQ(rig.got, (std::vector<std::uint32_t>{103, 104, 7, 8, 0, 0}));
  EXPECT_EQ(rig.content.pages(), 2U);
  EXPECT_EQ(rig.port.violation(), "");
}

TEST(KvHbm, WriteWithStrobes_ExpectTheOtherBytesKept) {
  for (int i = 0; i < 8; ++i) {  // early and late ones
    Rig rig;
    rig.data.push_back({{0x11111111, 0x22222222, 3, 4, 5, 6, 7, 0x88888888}, true});
    rig.writes.push_back({64, 0});
    rig.run();
    rig.strobes = 0x8000'0025;
    rig.data.push_back({{0xaaaaaaaa, 0xbbbbbbbb, 0, 0, 0, 0, 0, 0xcccccccc}, true});
    rig.writes.push_back({64, 0});
    rig.run();
    EXPECT_EQ(rig.content.read(64), (HbmBeat{0x11aa11aa, 0x2222bb22, 3, 4, 5, 6, 7, 0xcc888888}));
    EXPECT_EQ(rig.port.violation(), "");
  }
}

TEST(KvHbm, RubbishContent_ExpectItTheSameEachTimeAndKeptAroundAWrite) {
  HbmContent content(5);
  const HbmBeat before = content.read(96);
  EXPECT_NE(before, HbmBeat{});
  content.write(64, HbmBeat{1});
  EXPECT_EQ(content.read(96), before);
  EXPECT_EQ(content.read(64), HbmBeat{1});
}

TEST(KvHbm, WritesToOneAddress_ExpectTheLastToStay) {
  Rig rig;
  for (std::uint32_t i = 1; i <= 200; ++i) rig.write(4096 + 64 * (i % 7), 2, 1000 * i);
  rig.run();
  for (std::uint32_t i = 194; i <= 200; ++i)
    EXPECT_EQ(rig.content.read(4096 + 64 * (i % 7))[0], 1000 * i) << "of write " << i;
}

TEST(KvHbm, WriteWhileARead_ExpectEitherContent) {
  bool old = false, fresh = false;
  Rig rig;
  for (int i = 0; i < 50; ++i) {
    rig.write(0, 1, 0);
    rig.run();
    rig.got.clear();
    rig.read(0, 1);
    rig.write(0, 1, 1);
    rig.run();
    (rig.got.at(0) == 1 ? fresh : old) = true;
  }
  EXPECT_TRUE(old && fresh);
}

TEST(KvHbm, LongRead_ExpectABeatACycle) {
  Rig rig;
  for (std::uint32_t i = 0; i < 100; ++i) rig.read(512 * std::uint64_t{i}, 16);
  rig.run();
  EXPECT_EQ(rig.port.times().last_data - rig.port.times().first_address, kHbmHardware.read + 100 * 16 - 1);
}

TEST(KvHbm, ReadsAndWritesTogether_ExpectWhatTheMemoryBehindThePortCanGive) {
  Rig rig;
  for (std::uint32_t i = 0; i < 200; ++i) {
    rig.read(512 * std::uint64_t{i}, 16);
    rig.write(512 * std::uint64_t{i}, 16);
  }
  rig.run(2000);
  const HbmCounts& counts = rig.port.counts();
  const double rate = static_cast<double>(rig.got.size() + counts.write_beats) / 2000;
  EXPECT_NEAR(rate, 1.797, 0.06);
}

TEST(KvHbm, Refresh_ExpectTheRateLessItsShare) {
  HbmTiming timing = kHbmHardware;
  timing.refresh_every = 1000;
  timing.refresh_cycles = 100;
  Rig rig(timing);
  for (std::uint32_t i = 0; i < 500; ++i) rig.read(512 * std::uint64_t{i}, 16);
  rig.run(5000);
  EXPECT_NEAR(static_cast<double>(rig.got.size()), 4500, 60);
}

TEST(KvHbm, MasterNotReady_ExpectTheBeatKept) {
  Rig rig;
  rig.write(0, 2, 5);
  rig.run();
  rig.r_ready = false;
  rig.read(0, 2);
  for (int i = 0; i < 100; ++i) rig.step();
  EXPECT_TRUE(rig.port.answer().r_valid);
  rig.r_ready = true;
  rig.run();
  EXPECT_EQ(rig.got, (std::vector<std::uint32_t>{5, 6}));
}

TEST(KvHbm, DataBeforeItsAddress_ExpectItTaken) {
  Rig rig;
  rig.hold_addresses = 40;
  rig.write(64, 16, 9);
  rig.run();
  EXPECT_EQ(rig.port.violation(), "");
  EXPECT_EQ(rig.content.read(64)[0], 9U);
}

TEST(KvHbm, BrokenRules_ExpectEachNamed) {
  const auto violation = [](auto&& offend) {
    Rig rig;
    offend(rig);
    rig.run(200);
    return rig.port.violation();
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_PRED2(has, violation([](Rig& r) { r.read(0, 17); }), "17 beats, at most 16");
  EXPECT_PRED2(has, violation([](Rig& r) { r.read(4096 - 32, 2); }), "crosses a 4 KiB boundary");
  EXPECT_PRED2(has, violation([](Rig& r) { r.read(16, 1); }), "not a multiple of 32");
  EXPECT_PRED2(has, violation([](Rig& r) { r.read(kHbmBytes, 1); }), "outside of 16 GiB");
  EXPECT_PRED2(has, violation([](Rig& r) {
                 r.write(0, 2);
                 std::get<1>(r.data.front()) = true;
               }),
               "WLAST is 1 with beat 1 of 2");
  EXPECT_PRED2(has, violation([](Rig& r) {
                 r.write(0, 2);
                 std::get<1>(r.data.back()) = false;
               }),
               "WLAST is 0 with beat 2 of 2");
  EXPECT_PRED2(has, violation([](Rig& r) {
                 r.hold_addresses = 1000;
                 r.write(0, 16);
                 r.write(512, 16);
               }),
               "no address for them");
}

TEST(KvHbm, OfferWithdrawn_ExpectItNamed) {
  HbmTiming timing = kHbmHardware;
  timing.reads = 1;
  Rig rig(timing);
  rig.read(0, 1);
  rig.step();
  rig.read(32, 1);
  rig.step();
  rig.reads.clear();
  rig.step();
  EXPECT_NE(rig.port.violation().find("the read of 0x20 was offered, not taken, and changed"), std::string::npos);
}

}  // namespace
}  // namespace wherry::kv::rtl
