// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/axi_memory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/random.hpp"
#include "sim/memory/axi_mux.hpp"
#include "sim/memory/axi_pins.hpp"
#include "sim/memory/bram.hpp"
#include "sim/memory/ddr4.hpp"
#include "sim/memory/traffic.hpp"

namespace wherry::sim::memory {
namespace {

/// A manager with any strobes, sizes, gaps and identifiers, and an array of bytes that records what must be read. Only
/// one write or read is in flight, so the order is unambiguous.
class ByteManager {
 public:
  ByteManager(std::uint64_t base, std::uint32_t bytes, std::uint64_t seed)
      : base_(base), memory_(bytes), random_(seed) {}

  [[nodiscard]] const AxiRequest& request() const noexcept { return out_; }
  [[nodiscard]] unsigned transfers() const noexcept { return transfers_; }
  [[nodiscard]] unsigned wrong() const noexcept { return wrong_; }

  void step(const AxiAnswer& in) {
    if (out_.ar_valid && in.ar_ready) out_.ar_valid = false;
    if (out_.aw_valid && in.aw_ready) out_.aw_valid = false;
    if (out_.w_valid && in.w_ready) {
      out_.w_valid = false;
      ++beat_;
    }
    if (in.r_valid && out_.r_ready) compare(in);
    if (in.b_valid && out_.b_ready) {
      wrong_ += in.b_error || in.b_id != address_.id ? 1 : 0;
      busy_ = false;
    }
    if (!busy_) begin();
    if (writing_ && !out_.w_valid && beat_ <= address_.length && random_.below(4) != 0) put();
    out_.r_ready = random_.below(3) != 0;
    out_.b_ready = random_.below(3) != 0;
  }

 private:
  void begin() {
    busy_ = true;
    ++transfers_;
    beat_ = 0;
    writing_ = random_.below(2) != 0;
    address_ = {};
    address_.id = random_.below(16);
    if (random_.below(4) == 0) {
      address_.size = random_.below(7);
      address_.address = base_ + random_.below(static_cast<std::uint32_t>(memory_.size()) >> address_.size) *
                                     (std::uint64_t{1} << address_.size);
    } else {
      const auto at = random_.below(static_cast<std::uint32_t>(memory_.size() / kBeatBytes));
      address_.address = base_ + at * kBeatBytes;
      address_.length = random_.below(static_cast<std::uint32_t>(64 - at % 64));
    }
    (writing_ ? out_.aw_valid : out_.ar_valid) = true;
    (writing_ ? out_.aw : out_.ar) = address_;
  }
  [[nodiscard]] std::uint64_t beat_at() const {
    return address_.address / kBeatBytes * kBeatBytes - base_ + beat_ * kBeatBytes;
  }
  void put() {
    const std::uint64_t lane = address_.address % kBeatBytes;
    const Strobes lanes = address_.size == 6 ? kAllBytes : ((Strobes{1} << (1U << address_.size)) - 1) << lane;
    out_.w_valid = true;
    out_.w_last = beat_ == address_.length;
    out_.w_strobes = (random_.below(2) != 0 ? kAllBytes : random_()) & lanes;
    for (std::uint32_t& word : out_.w_data) word = static_cast<std::uint32_t>(random_());
    for (std::uint64_t i = 0; i < kBeatBytes; ++i)
      if ((out_.w_strobes >> i & 1) != 0)
        memory_[beat_at() + i] = static_cast<std::uint8_t>(out_.w_data[i / 4] >> 8 * (i % 4));
  }
  void compare(const AxiAnswer& in) {
    bool right = !in.r_error && in.r_id == address_.id && in.r_last == (beat_ == address_.length);
    for (std::uint64_t i = 0; i < kBeatBytes; ++i)
      right = right && memory_[beat_at() + i] == static_cast<std::uint8_t>(in.r_data[i / 4] >> 8 * (i % 4));
    wrong_ += right ? 0 : 1;
    if (in.r_last) busy_ = false;
    ++beat_;
  }

  std::uint64_t base_;
  std::vector<std::uint8_t> memory_;
  SplitMix64 random_;
  bool busy_ = false, writing_ = false;
  AxiAddress address_;
  std::uint32_t beat_ = 0;
  unsigned transfers_ = 0, wrong_ = 0;
  AxiRequest out_;
};

constexpr std::uint32_t kRegion = 1 << 16;

/// Runs the given number of managers, each in its own region.
void expect_right_bytes(AxiBus& bus, std::uint32_t count, unsigned cycles, unsigned least) {
  std::deque<ByteManager> managers;
  for (std::uint32_t i = 0; i < count; ++i) managers.emplace_back(i * kRegion, kRegion, i + 1);
  std::vector<AxiRequest> requests(count);
  std::vector<AxiAnswer> answers(count);
  for (unsigned cycle = 0; cycle < cycles; ++cycle) {
    for (std::uint32_t i = 0; i < count; ++i) {
      requests[i] = managers[i].request();
      answers[i] = bus.answer(i);
    }
    bus.step(requests);
    for (std::uint32_t i = 0; i < count; ++i) managers[i].step(answers[i]);
  }
  for (const ByteManager& manager : managers) {
    EXPECT_EQ(manager.wrong(), 0U);
    EXPECT_GT(manager.transfers(), least);
  }
}

TEST(AxiMemory, RandomBytesThroughBram_ExpectWhatWasWritten) {
  Bram bram(2 * kRegion);
  Content content;
  AxiMemory memory(bram, content, 2, kBramPort);
  expect_right_bytes(memory, 2, 40'000, 400);
  EXPECT_EQ(memory.violation(), "");
}

TEST(AxiMemory, RandomBytesThroughDdr4_ExpectWhatWasWritten) {
  for (const Ddr4Controller& controller : {kCardController, kLitedramController}) {
    Ddr4 ddr4(controller);
    Content content;
    AxiMemory memory(ddr4, content, 2);
    expect_right_bytes(memory, 2, 40'000, 300);
    EXPECT_EQ(memory.violation(), "");
  }
}

/// The members that Verilator generates for a design with a manager of 64 address, 512 data and 8 identifier bits.
struct Pins {
  std::uint8_t m_axi_arvalid, m_axi_arready, m_axi_arlen, m_axi_arsize, m_axi_arid;
  std::uint8_t m_axi_rvalid, m_axi_rready, m_axi_rlast, m_axi_rresp, m_axi_rid;
  std::uint8_t m_axi_awvalid, m_axi_awready, m_axi_awlen, m_axi_awsize, m_axi_awid;
  std::uint8_t m_axi_wvalid, m_axi_wready, m_axi_wlast;
  std::uint8_t m_axi_bvalid, m_axi_bready, m_axi_bresp, m_axi_bid;
  std::uint64_t m_axi_araddr, m_axi_awaddr, m_axi_wstrb;
  std::uint32_t m_axi_rdata[16], m_axi_wdata[16];
};

TEST(AxiPins, RandomBytesThroughADesignsPins_ExpectWhatWasWritten) {
  Bram bram(kRegion);
  Content content;
  AxiMemory memory(bram, content, 1, kBramPort);
  ByteManager manager(0, kRegion, 7);
  Pins pins{};
  for (unsigned cycle = 0; cycle < 20'000; ++cycle) {
    drive_axi(pins, memory.answer(0));
    const AxiRequest& out = manager.request();
    const auto bit = [](bool value) { return static_cast<std::uint8_t>(value ? 1 : 0); };
    pins.m_axi_arvalid = bit(out.ar_valid);
    pins.m_axi_araddr = out.ar.address;
    pins.m_axi_arlen = static_cast<std::uint8_t>(out.ar.length);
    pins.m_axi_arsize = static_cast<std::uint8_t>(out.ar.size);
    pins.m_axi_arid = static_cast<std::uint8_t>(out.ar.id);
    pins.m_axi_rready = bit(out.r_ready);
    pins.m_axi_awvalid = bit(out.aw_valid);
    pins.m_axi_awaddr = out.aw.address;
    pins.m_axi_awlen = static_cast<std::uint8_t>(out.aw.length);
    pins.m_axi_awsize = static_cast<std::uint8_t>(out.aw.size);
    pins.m_axi_awid = static_cast<std::uint8_t>(out.aw.id);
    pins.m_axi_wvalid = bit(out.w_valid);
    pins.m_axi_wlast = bit(out.w_last);
    pins.m_axi_wstrb = out.w_strobes;
    std::copy(out.w_data.begin(), out.w_data.end(), std::begin(pins.m_axi_wdata));
    pins.m_axi_bready = bit(out.b_ready);
    AxiAnswer seen{.ar_ready = pins.m_axi_arready != 0,
                   .r_valid = pins.m_axi_rvalid != 0,
                   .r_last = pins.m_axi_rlast != 0,
                   .r_error = pins.m_axi_rresp != 0,
                   .r_id = pins.m_axi_rid,
                   .aw_ready = pins.m_axi_awready != 0,
                   .w_ready = pins.m_axi_wready != 0,
                   .b_valid = pins.m_axi_bvalid != 0,
                   .b_error = pins.m_axi_bresp != 0,
                   .b_id = pins.m_axi_bid};
    std::copy(std::begin(pins.m_axi_rdata), std::end(pins.m_axi_rdata), seen.r_data.begin());
    const AxiRequest in = sample_axi(pins);
    memory.step({&in, 1});
    manager.step(seen);
  }
  EXPECT_EQ(manager.wrong(), 0U);
  EXPECT_GT(manager.transfers(), 200U);
  EXPECT_EQ(memory.violation(), "");
}

TEST(AxiMux, RandomBytesOfThreeManagers_ExpectWhatWasWritten) {
  for (const std::uint32_t slices : {0U, 1U, 5U}) {
    Ddr4 ddr4;
    Content content;
    AxiMemory memory(ddr4, content, 1);
    AxiMux mux(memory, {slices, 0, 2 * slices});
    expect_right_bytes(mux, 3, 40'000, 200);
    EXPECT_EQ(memory.violation(), "");
  }
}

/// Many bursts at once: one manager writes everything, then another reads it back.
TEST(AxiMemory, StreamWrittenAndReadBack_ExpectThePattern) {
  Ddr4 ddr4;
  Content content;
  AxiMemory memory(ddr4, content, 1);
  const auto run = [&memory](TrafficManager& manager, std::uint64_t bytes) {
    for (unsigned cycle = 0; cycle < 100'000; ++cycle) {
      if (manager.read_bytes() + manager.written_bytes() >= bytes) manager.stop();
      if (cycle > 100 && manager.quiet()) return;
      const AxiAnswer answer = memory.answer(0);
      memory.step({&manager.request(), 1});
      manager.step(answer);
    }
    ADD_FAILURE() << "not answered";
  };
  const Load load{.beats = 8, .region = 1 << 18, .streams = 4, .stride = 1 << 16};
  Load write = load, read = load;
  write.writes = read.reads = true;
  TrafficManager writer(write), reader(read);
  run(writer, 1 << 18);
  reader.verify();
  run(reader, 1 << 18);
  EXPECT_GE(reader.read_bytes(), 1U << 18);
  EXPECT_EQ(reader.wrong_beats(), 0U);
  // The opposite case: a byte that differs from the pattern must be found.
  content.load(64, std::vector<std::uint8_t>{static_cast<std::uint8_t>(~pattern_word(64))});
  TrafficManager again(read);
  again.verify();
  run(again, 1 << 18);
  EXPECT_GT(again.wrong_beats(), 0U);
}

/// Measures the cycles from a read's address to its first beat through a mux, and the rate of one beat a cycle.
TEST(AxiMux, Slices_ExpectEachAddsACycleEachWay) {
  const auto latency = [](std::uint32_t slices) {
    Bram bram;
    Content content;
    AxiMemory memory(bram, content, 1, kBramPort);
    AxiMux mux(memory, {slices});
    TrafficManager manager({.reads = true, .beats = 1, .outstanding = 1, .region = 1 << 16});
    for (unsigned cycle = 0; cycle < 2'000; ++cycle) {
      const AxiAnswer answer = mux.answer(0);
      mux.step({&manager.request(), 1});
      manager.step(answer);
    }
    return manager.median_latency();
  };
  EXPECT_EQ(latency(3) - latency(0), 6U);
  EXPECT_EQ(latency(10) - latency(3), 14U);

  Bram bram;
  Content content;
  AxiMemory memory(bram, content, 1, kBramPort);
  AxiMux mux(memory, {4});
  TrafficManager manager({.reads = true, .writes = true, .beats = 64, .region = 1 << 18});
  for (unsigned cycle = 0; cycle < 10'000; ++cycle) {
    const AxiAnswer answer = mux.answer(0);
    mux.step({&manager.request(), 1});
    manager.step(answer);
  }
  EXPECT_GT(manager.read_bytes(), 9'800U * kBeatBytes);
  EXPECT_GT(manager.written_bytes(), 9'500U * kBeatBytes);
}

/// A long path to the memory: the rate is the bytes in flight divided by the latency, however fast the memory is (paper
/// 000, section 6.3).
TEST(AxiMux, LongWayToDdr4_ExpectBytesUnderWayOverLatency) {
  for (const bool reads : {true, false}) {
    Ddr4 ddr4;
    Content content;
    AxiMemory memory(ddr4, content, 1);
    AxiMux mux(memory, {250});
    TrafficManager manager({.reads = reads, .writes = !reads});
    for (unsigned cycle = 0; cycle < 40'000; ++cycle) {
      if (cycle == 4'000) manager.forget();
      const AxiAnswer answer = mux.answer(0);
      mux.step({&manager.request(), 1});
      manager.step(answer);
    }
    const double rate = static_cast<double>(manager.read_bytes() + manager.written_bytes()) / 36'000;
    EXPECT_NEAR(rate * 0.3, 9.2, 0.4) << (reads ? "reads" : "writes");  // a byte a cycle of 300 MHz is 0.3 GB/s
    if (reads) {
      EXPECT_NEAR(rate * static_cast<double>(manager.median_latency()), 16 * 1024, 0.03 * 16 * 1024);
    }
  }
}

TEST(AxiMemory, AddressBeyondTheMemory_ExpectDecodeError) {
  Bram bram(4096);
  Content content;
  AxiMemory memory(bram, content, 1, kBramPort);
  AxiRequest in{.ar_valid = true,
                .ar = {4096, 1},
                .r_ready = true,
                .aw_valid = true,
                .aw = {8192, 0},
                .w_valid = true,
                .w_last = true,
                .b_ready = true};
  unsigned errors = 0;
  for (unsigned cycle = 0; cycle < 20; ++cycle) {
    const AxiAnswer out = memory.answer(0);
    memory.step({&in, 1});
    if (out.ar_ready) in.ar_valid = false;
    if (out.aw_ready) in.aw_valid = false;
    if (out.w_ready) in.w_valid = false;
    errors += (out.r_valid && out.r_error) + (out.b_valid && out.b_error);
  }
  EXPECT_EQ(errors, 3U);
  EXPECT_EQ(content.pages(), 0U);
}

/// Each case breaks one rule.
TEST(AxiMemory, ManagerBreaksARule_ExpectItsName) {
  const auto violation = [](const std::vector<AxiRequest>& requests) {
    Ddr4 ddr4;
    Content content;
    AxiMemory memory(ddr4, content, 1);
    for (const AxiRequest& request : requests) memory.step({&request, 1});
    return memory.violation();
  };
  const AxiRequest crosses{.ar_valid = true, .ar = {4096 - 64, 1}};
  EXPECT_NE(violation({crosses}).find("crosses a 4 KiB boundary"), std::string::npos);
  const AxiRequest narrow{.ar_valid = true, .ar = {0, 1, 2}};
  EXPECT_NE(violation({narrow}).find("several have 64 bytes"), std::string::npos);
  AxiRequest first{.aw_valid = true, .aw = {0, 1}, .w_valid = true, .w_last = true};
  EXPECT_NE(violation({first}).find("WLAST after 1 beats of a burst of 2"), std::string::npos);
  const AxiRequest read{.ar_valid = true, .ar = {0, 63}};
  AxiRequest other = read;
  other.ar.address = 8192;
  EXPECT_NE(violation({read, read, read, other}).find("offered, not taken, and changed"), std::string::npos);
}

}  // namespace
}  // namespace wherry::sim::memory
