// SPDX-License-Identifier: Apache-2.0
// Tests the kv core's table through the DMA engine: driver, PCIe, engine, kv_host_path, memory. The expected content is
// the software node's table after the same requests.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kv/control/configuration.hpp"
#include "kv/generated/registers.hpp"
#include "kv/node/node.hpp"
#include "sim/bench_rig.hpp"
#include "sim/card_lister.hpp"
#include "sim/kv_card/engine_memory.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::size_t kLineBytes = kWays * WayHeader::kBytes;
constexpr std::uint32_t kBuckets = 1U << Rig::kBucketBits;

/// A software node that leads all slots alone, like the core of a Rig.
class Software final : DriverOutput, Output {
 public:
  Software()
      : node_({.channels = Core::kChannels}, static_cast<Output&>(*this)),
        driver_({.cluster = "bench",
                 .bucket_bits = Rig::kBucketBits,
                 .retry_cycles = 10'000'000,
                 .sources = {{}},
                 .busy_interval = 1000},
                node_, static_cast<DriverOutput&>(*this), 0) {
    Configuration c{.epoch = Rig::kEpoch, .members = 1, .serving = 1, .bucket_bits = Rig::kBucketBits};
    c.peers[0] = Rig::node(0);
    driver_.enter_static(c, 0);
    for (; now_ < 1'000'000 && registers::kStateOpened.get(node_.read(registers::kStateOffset)) == 0; now_ += 1000) {
      node_.set_now(now_);
      driver_.on_time(now_);
      node_.tick(now_);
    }
    EXPECT_NE(registers::kStateOpened.get(node_.read(registers::kStateOffset)), 0U);
  }
  void receive(const Kv& header, ByteView value) { node_.receive(Rig::client(), {header, value}, ++now_); }
  [[nodiscard]] const Table& table() const { return node_.table(); }

 private:
  void send(const ToKeeper&) override {}
  std::uint64_t draw_boot() override { return 1; }
  void send(const Endpoint&, const Message&) override {}

  Node node_;
  Driver driver_;
  Cycles now_ = 0;
};

/// Sends writes, overwrites and deletions, in buckets with one key and with several.
void load(Rig& rig, Software& software, std::uint64_t seed) {
  wherry::kv::sim::Random random(seed);
  std::uint32_t number = 0;
  for (int i = 0; i < 150; ++i) {
    const std::uint64_t key = 1 + random.below(60);
    const bool remove = random.below(3) == 0;
    std::vector<std::byte> value(remove ? 0 : random.below(4) == 0 ? kMaxValueBytes : random.below(200));
    for (std::byte& byte : value) byte = static_cast<std::byte>(random.below(256));
    const Kv request{.kind = static_cast<std::uint8_t>(remove ? Kind::remove : Kind::write),
                     .epoch = Rig::kEpoch,
                     .client = 1,
                     .request = ++number,
                     .key = key};
    rig.put(Rig::client(), request, value);
    while (rig.await(remove ? Kind::remove_done : Kind::write_done).header.request != number) {
    }
    software.receive(request, value);
  }
  rig.settle();
}

std::uint64_t base(Core& core, std::uint32_t (*offset)(std::uint32_t)) {
  return core.read(offset(0)) | std::uint64_t{core.read(offset(1))} << 32;
}

TEST(KvCard, ReadALoadedTableThroughTheEngine_ExpectTheSoftwareNodes) {
  Rig rig({});
  Software software;
  load(rig, software, 1);
  EngineMemory memory(rig.core());
  CardLister lister(rig.core(), memory);
  lister.settle();
  std::vector<std::byte> lines(kBuckets * kLineBytes);
  memory.read(base(rig.core(), registers::line_base_offset), lines);
  std::size_t present = 0, deleted = 0;
  for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (std::uint32_t way = 0; way < kWays; ++way) {
      const WayHeader here = WayHeader::unpack(
          std::span(lines).subspan(bucket * kLineBytes + way * WayHeader::kBytes).first<WayHeader::kBytes>());
      const Location at = location_of(bucket, way);
      const Way& there = software.table().way(at);
      ASSERT_EQ(here.version, there.version) << "bucket " << bucket << ", way " << way;
      if (there.version == 0) continue;
      ASSERT_EQ(here.key, there.key);
      ASSERT_EQ(here.present, there.present);
      ++(there.present != 0 ? present : deleted);
      if (there.present == 0 || there.length == 0) continue;
      ASSERT_EQ(here.length, there.length);
      std::vector<std::byte> value(there.length);
      memory.read(base(rig.core(), registers::value_base_offset) + at * kMaxValueBytes, value);
      ASSERT_TRUE(std::ranges::equal(value, software.table().value(at))) << "key " << there.key;
    }
  }
  EXPECT_GT(present, 20U);
  EXPECT_GT(deleted, 2U);
}

TEST(KvCard, ListKeysThroughTheEngineAndAtThePins_ExpectTheSame) {
  Rig rig({});
  Software software;
  load(rig, software, 2);
  EngineMemory through_engine(rig.core());
  PinMemory at_pins(rig.core());
  std::vector<std::uint64_t> engine, pins, node;
  for (std::uint32_t first = 0; first < kBuckets; first += kMaxPieceBuckets) {
    CardLister(rig.core(), through_engine).list(first, kMaxPieceBuckets, engine);
    CardLister(rig.core(), at_pins).list(first, kMaxPieceBuckets, pins);
  }
  for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket)
    for (const Way& way : software.table().line(bucket).ways)
      if (way.version != 0) node.push_back(way.key);
  EXPECT_EQ(engine, node);
  EXPECT_EQ(pins, node);
  EXPECT_GT(node.size(), 40U);
}

TEST(KvCard, RequestsWhileTheEngineReads_ExpectAnswers) {
  Rig rig({});
  EngineMemory memory(rig.core());
  const std::uint64_t key = Rig::keys(1).front();
  std::vector<std::byte> value(500, std::byte{7}), lines(EngineMemory::kBuffer);
  rig.put(Rig::client(),
          {.kind = static_cast<std::uint8_t>(Kind::write), .epoch = Rig::kEpoch, .client = 1, .request = 1, .key = key},
          value);
  rig.await(Kind::write_done);
  for (std::uint32_t number = 1; number <= 50; ++number)
    rig.put(Rig::client(),
            {.kind = static_cast<std::uint8_t>(Kind::read), .epoch = Rig::kEpoch, .request = number, .key = key});
  memory.read(base(rig.core(), registers::line_base_offset), lines);
  std::uint32_t answers = 0;
  rig.collect([&](const Sent& sent) {
    EXPECT_EQ(sent.header.kind, static_cast<std::uint8_t>(Kind::read_done));
    EXPECT_EQ(sent.header.request, ++answers);
    EXPECT_EQ(sent.value, value);
  });
  EXPECT_EQ(answers, 50U) << "the core's time passed with the transfer";
}

TEST(KvCard, WriteBesideTheTableThroughTheEngine_ExpectItInMemoryAndNothingElse) {
  Rig rig({});
  EngineMemory memory(rig.core());
  constexpr std::uint64_t kPlace = std::uint64_t{9} << 30;
  wherry::kv::sim::Random random(3);
  for (const auto& [off, bytes] : {std::pair{0U, 64U}, {1U, 1U}, {63U, 130U}, {4000U, 5000U}, {17U, 20'000U}}) {
    std::vector<std::byte> all(24'576, std::byte{0xA5}), found(all.size());
    memory.write(kPlace, all);
    std::vector<std::byte> data(bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random.below(256));
    memory.write(kPlace + off, data);
    std::ranges::copy(data, all.begin() + off);
    rig.core().read_memory(kPlace, found);
    EXPECT_TRUE(found == all) << bytes << " bytes at " << off;
    std::ranges::fill(found, std::byte{0});
    memory.read(kPlace, found);
    EXPECT_TRUE(found == all) << bytes << " bytes at " << off;
  }
}

TEST(KvCard, AddressBeyondTheMemory_ExpectAnErrorAndTheNextTransferToBeGood) {
  Rig rig({});
  EngineMemory memory(rig.core());
  for (const dma::Direction direction : {dma::Direction::kToHost, dma::Direction::kToCard}) {
    EXPECT_EQ(memory.move(direction, kHbmBytes, 256).error, dma::Error::kMemory);
    ASSERT_TRUE(memory.engine().ring(direction, 0).recover().ok());
    EXPECT_EQ(memory.move(direction, kHbmBytes - 4096, 4096).error, dma::Error::kNone);
  }
  EXPECT_TRUE(memory.port().quiet());
}

TEST(KvCard, ResetInFlight_ExpectNothingLeftOfItAndTheNextReadRight) {
  Rig rig({});
  Software software;
  load(rig, software, 4);
  EngineMemory memory(rig.core());
  const std::uint64_t lines = base(rig.core(), registers::line_base_offset);
  std::vector<std::byte> expected(16'384), found(expected.size());
  rig.core().read_memory(lines, expected);
  for (int pause = 100; pause < 3000; pause += 400) {
    dma::Ring& ring = memory.engine().ring(dma::Direction::kToHost, 0);
    ASSERT_TRUE(ring.post({.host = memory.iova(), .card = lines, .bytes = 16'384}).ok());
    ring.ring_bell();
    memory.rig().device.pause(std::chrono::nanoseconds(pause));
    ASSERT_TRUE(memory.engine().reset().ok());
    std::array<dma::Done, 1> done;
    ASSERT_EQ(ring.poll(done), 1U);
    EXPECT_EQ(done[0].error, dma::Error::kReset);
    EXPECT_TRUE(memory.port().quiet());
    memory.read(lines, found);
    EXPECT_TRUE(found == expected);
  }
}

// The pins, without an engine: a reset abandons bursts after any number of their beats.
TEST(KvPort, ManagerResetInTheMiddleOfBursts_ExpectItQuietAndNothingWritten) {
  using wherry::sim::memory::AxiRequest;
  constexpr std::uint64_t kPlace = std::uint64_t{5} << 30;
  constexpr std::uint32_t kBeats = 16;
  Core core({});
  KvPort port(core);
  const auto step = [&](const AxiRequest& in) { port.step({&in, 1}); };
  std::vector<std::byte> before(kBeats * 64), after(before.size());
  core.read_memory(kPlace, before);
  for (const std::uint64_t place : {kPlace, kHbmBytes}) {
    for (std::uint32_t beats = 0; beats < 4; ++beats) {
      AxiRequest in{.ar_valid = true, .ar = {.address = place, .length = kBeats - 1}};
      in.aw_valid = true;
      in.aw = in.ar;
      step(in);
      for (std::uint32_t taken = 0; taken < beats;) {
        AxiRequest data{.r_ready = beats % 2 == 0, .w_valid = true, .w_strobes = 0};
        taken += port.answer(0).w_ready ? 1 : 0;
        step(data);
      }
      EXPECT_FALSE(port.quiet());
      port.managers_reset();
      EXPECT_TRUE(port.quiet());
      for (int i = 0; i < 300; ++i) {
        EXPECT_FALSE(port.answer(0).r_valid || port.answer(0).b_valid) << "to whom?";
        step({.r_ready = true, .b_ready = true});
      }
    }
  }
  core.read_memory(kPlace, after);
  EXPECT_TRUE(after == before);
}

}  // namespace
}  // namespace wherry::kv::rtl
