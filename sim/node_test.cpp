// SPDX-License-Identifier: Apache-2.0
// Tests the core as a node, from the clients' side.
#include <gtest/gtest.h>

#include "kv/generated/registers.hpp"
#include "sim/bench_rig.hpp"

namespace wherry::kv::rtl {
namespace {

Kv request_of(Kind kind, std::uint64_t key, std::uint16_t lane, std::uint32_t number) {
  return {.kind = static_cast<std::uint8_t>(kind), .epoch = Rig::kEpoch, .client = lane, .request = number, .key = key};
}

std::vector<std::byte> filled(std::size_t bytes, int with) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(with));
}

TEST(KvCoreNode, SetUpByTheDriver_ExpectValuesBehindTheLines) {
  Rig rig({});
  EXPECT_EQ(rig.core().read(registers::line_base_offset(0)), 0U);
  EXPECT_EQ(rig.core().read(registers::value_base_offset(0)), 64U << Rig::kBucketBits);
}

TEST(KvCoreNode, SourceNotInTheDriversList_ExpectNoAnswerAndItCounted) {
  Rig rig({.sources = {{.ip = Rig::node(0).ip, .mask = ~7U}, {.ip = Rig::client().ip, .mask = ~0U}}});
  Endpoint stranger = Rig::client();
  ++stranger.ip;
  rig.put(stranger, request_of(Kind::ping, 0, 0, 1));
  rig.put(Rig::client(), request_of(Kind::ping, 0, 0, 2));
  EXPECT_EQ(rig.await(Kind::pong).header.request, 2U);
  rig.settle();
  EXPECT_EQ(rig.core().read(registers::kDroppedSourceOffset), 1U);
}

/// The process starts again, or learns that the node was left out: the card continues meanwhile.
TEST(KvCoreNode, DriverBeginsOnACoreInAnEpoch_ExpectItEmptiedBeforeItIsReady) {
  struct Silent final : DriverOutput {
    void send(const ToKeeper&) override {}
    std::uint64_t draw_boot() override { return 2; }
  } output;
  Rig rig({});
  const std::uint64_t key = Rig::keys(1).front();
  rig.put(Rig::client(), request_of(Kind::write, key, 1, 41), filled(100, 1));
  rig.await(Kind::write_done);
  Driver driver({.cluster = "bench", .bucket_bits = Rig::kBucketBits, .sources = {{}}, .busy_interval = 1000},
                rig.core(), output, rig.core().now());
  Configuration alone{.epoch = 2, .members = 1, .serving = 1, .bucket_bits = Rig::kBucketBits};
  alone.peers[0] = Rig::node(0);
  driver.enter_static(alone, rig.core().now());
  for (const Cycles end = rig.core().now() + 1'000'000; driver.epoch() != 2;) {
    ASSERT_LT(rig.core().now(), end);
    rig.core().step(1000);
    driver.on_time(rig.core().now());
  }
  while (rig.core().read(registers::kEpochOffset) != 2) {
  }
  rig.put(Rig::client(), request_of(Kind::lane, 0, 1, 1));
  EXPECT_EQ(rig.await(Kind::lane_record).header.key, 0U);
  rig.put(Rig::client(), request_of(Kind::read, key, 0, 1));
  EXPECT_EQ(static_cast<Status>(rig.await(Kind::read_done).header.detail), Status::no_such_key);
}

TEST(KvCoreNode, WriteRepeatedWhileAnotherIsStored_ExpectTheNewerValue) {
  const std::uint64_t key = Rig::keys(1).front();
  for (const bool gaps : {false, true}) {
    Rig rig({.gaps = gaps});
    std::uint32_t number = 0;
    for (Cycles offset = 0; offset < 200; ++offset) {
      ++number;
      rig.put(Rig::client(), request_of(Kind::write, key, 1, number), filled(1024, 1));
      rig.await(Kind::write_done);
      const Cycles now = rig.core().now();
      rig.put(Rig::client(), request_of(Kind::write, key, 2, number), filled(545, 2));
      rig.put(Rig::client(), request_of(Kind::write, key, 1, number), filled(1024, 1), now + offset);
      rig.settle();
      rig.put(Rig::client(), request_of(Kind::read, key, 0, 1));
      const Sent reply = rig.await(Kind::read_done);
      ASSERT_EQ(reply.bytes, kHeaderBytes + 545) << "offset " << offset;
      ASSERT_EQ(reply.value, filled(545, 2)) << "offset " << offset;
    }
  }
}

/// Sends writes one after the other, repeats old ones, and reads any key in between. Each value names its write.
TEST(KvCoreNode, RandomRequests_ExpectEachReadToShowTheLastWrite) {
  constexpr std::uint16_t kLanes = 4;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    sim::Random random(seed);
    Rig rig({.accept = seed % 2 == 0, .memory = seed % 3 == 0 ? kHbmSimulated : kHbmHardware, .gaps = seed % 4 < 2});
    const std::vector<std::uint64_t> keys = Rig::keys(6);
    std::vector<std::vector<std::byte>> content(keys.size());
    std::vector<std::pair<Kv, std::vector<std::byte>>> last(kLanes);
    std::uint32_t number = 0;
    for (int turn = 0; turn < 400; ++turn) {
      const auto which = random.below(static_cast<std::uint32_t>(keys.size()));
      const auto lane = static_cast<std::uint16_t>(random.below(kLanes));
      content[which] = filled(random.below(3) == 0 ? 1024 : random.below(1025), static_cast<int>(++number));
      last[lane] = {request_of(Kind::write, keys[which], lane, number), content[which]};
      rig.put(Rig::client(), last[lane].first, content[which], rig.core().now() + random.below(30));
      for (std::uint32_t i = random.below(4); i-- > 0;) {
        const auto& [header, value] = last[random.below(kLanes)];
        if (header.kind != 0) rig.put(Rig::client(), header, value, rig.core().now() + random.below(40));
        rig.put(Rig::client(), request_of(Kind::read, keys[random.below(6)], 0, 0));
      }
      while (rig.await(Kind::write_done).header.request != number) {
      }
      rig.put(Rig::client(), request_of(Kind::read, keys[which], 0, number));
      Sent reply;
      while (reply.header.request != number) reply = rig.await(Kind::read_done);
      ASSERT_EQ(reply.value, content[which]) << "seed " << seed << ", write " << number;
    }
  }
}

}  // namespace
}  // namespace wherry::kv::rtl
