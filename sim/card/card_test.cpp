// SPDX-License-Identifier: Apache-2.0
// Tests of the driver and the Verilated engine, with simulated PCIe between them: cases without faults.
#include <gtest/gtest.h>

#include <deque>

#include "sim/card/soak.hpp"
#include "sim/card/testing.hpp"

namespace wherry::sim::card {
namespace {

using namespace testing_support;

TEST(SimCard, OpenTheEngine_ExpectFourChannels) {
  Bench bench;
  EXPECT_EQ(bench.engine->channels(), 4U);
  EXPECT_TRUE(bench.engine->alive());
}

TEST(SimCard, OpenWithMoreChannelsThanThereAre_ExpectARefusal) {
  Rig rig({});
  const auto engine = driver::Engine::open(rig.device, {.channels = 5});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
}

TEST(SimCard, MoveAnyAlignmentAndSize_ExpectEveryByte) {
  for (const bool with_switch : {false, true}) {
    Bench bench({.with_switch = with_switch});
    for (const auto& [host, card] : {std::pair{0U, 0U}, {1U, 0U}, {0U, 1U}, {3U, 62U}, {63U, 17U}, {4093U, 4095U}}) {
      for (const std::uint32_t bytes : {1U, 3U, 64U, 65U, 511U, 4096U, 10'007U}) {
        for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
          const Done done =
              bench.move(direction, 4096 + host, 8192 + card, bytes, bytes % 2 == 0 ? Bell::kTail : Bell::kDescriptor);
          EXPECT_EQ(done.error, driver::Error::kNone) << driver::to_string(done.error);
          EXPECT_EQ(done.bytes, bytes);
        }
      }
    }
  }
}

TEST(SimCard, MoveThroughDdr4_ExpectEveryByte) {
  Bench bench({.card = {.memory = MemoryKind::kDdr4}});
  for (const std::uint32_t bytes : {5U, 4096U, 20'001U})
    for (const Direction direction : {Direction::kToCard, Direction::kToHost})
      EXPECT_EQ(bench.move(direction, 4097, 0x1'0000'0013, bytes).error, driver::Error::kNone);
}

TEST(SimCard, RingADoorbellWithItsDescriptor_ExpectNoReadOfIt) {
  Bench bench;
  const std::uint64_t before = bench.rig.card.counters().reads;
  bench.move(Direction::kToCard, 4096, 4096, 64, Bell::kDescriptor);
  EXPECT_EQ(bench.rig.card.counters().reads - before, 1U);
  bench.move(Direction::kToCard, 4096, 4096, 64, Bell::kTail);
  EXPECT_EQ(bench.rig.card.counters().reads - before, 3U);
}

// Uses every channel in both directions at once, with rings of 16 that wrap around.
TEST(SimCard, FillAllChannels_ExpectEveryTransferOnceAndInOrder) {
  constexpr std::uint32_t kBytes = 700, kTransfers = 100, kStride = 1024;
  Bench bench({}, {.ring_bits = 4});
  const std::vector<std::byte> data = random_bytes(std::size_t{8} * 16 * kStride, 5);
  std::memcpy(bench.memory.bytes.data(), data.data(), data.size() / 2);  // to the card: the first half
  bench.load_card(data.size() / 2, std::span(data).subspan(data.size() / 2));
  std::array<std::uint32_t, 8> posted{}, told{};
  const auto end = bench.rig.device.now() + 20ms;
  for (bool open = true; open && bench.rig.device.now() < end;) {
    open = false;
    for (unsigned i = 0; i < 8; ++i) {
      Ring& ring = bench.ring(i < 4 ? Direction::kToCard : Direction::kToHost, i % 4);
      for (; posted[i] < kTransfers && ring.room() != 0; ++posted[i]) {
        const std::uint64_t place = (std::uint64_t{i} * 16 + posted[i] % 16) * kStride + posted[i] % 16;
        ASSERT_TRUE(
            ring.post({.host = bench.memory.iova + place, .card = place, .bytes = kBytes, .cookie = posted[i]}).ok());
        if (posted[i] % 3 == 0) ring.ring_bell(posted[i] % 2 == 0 ? Bell::kTail : Bell::kDescriptor);
      }
      ring.ring_bell();
      std::array<Done, 5> done;
      const std::size_t count = ring.poll(done);
      for (std::size_t k = 0; k < count; ++k) {
        ASSERT_EQ(done[k].error, driver::Error::kNone);
        ASSERT_EQ(done[k].cookie, told[i]++);
      }
      open = open || told[i] != kTransfers;
    }
    bench.rig.device.pause(100ns);
  }
  for (unsigned i = 0; i < 8; ++i) {
    ASSERT_EQ(told[i], kTransfers) << "ring " << i;
    for (unsigned slot = 0; slot < 16; ++slot) {
      const std::uint64_t place = (std::uint64_t{i} * 16 + slot) * kStride + slot;
      const std::vector<std::byte> card = bench.dump_card(place, kBytes);
      EXPECT_EQ(std::memcmp(card.data(), bench.memory.bytes.data() + place, kBytes), 0)
          << "ring " << i << ", slot " << slot;
      EXPECT_EQ(std::memcmp(card.data(), data.data() + place, kBytes), 0) << "ring " << i << ", slot " << slot;
    }
  }
}

TEST(SimCard, PostToAFullRing_ExpectBackPressure) {
  Bench bench({}, {.ring_bits = 4});
  Ring& ring = bench.ring(Direction::kToCard);
  for (unsigned i = 0; i < 16; ++i) ASSERT_TRUE(ring.post({.host = bench.memory.iova, .card = 0, .bytes = 64}).ok());
  EXPECT_TRUE(ring.post({.host = bench.memory.iova, .card = 0, .bytes = 64}).is_would_block());
  EXPECT_EQ(ring.post({.host = bench.memory.iova, .card = 0, .bytes = 0}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ring.post({.host = 0, .card = 0, .bytes = driver::kMostBytes + 1}).code(), StatusCode::kInvalidArgument);
}

// The card sends each packet back on its channel.
TEST(SimCard, SendPackets_ExpectThemBackWhole) {
  Bench bench;
  constexpr std::uint32_t kBuffer = 4096, kBuffers = 24;
  std::uint64_t seed = 100;
  for (unsigned channel = 0; channel < 4; ++channel) {
    Ring &out = bench.ring(Direction::kToCard, channel), &in = bench.ring(Direction::kToHost, channel);
    const std::uint64_t buffers = std::uint64_t{256} << 10;
    for (std::uint32_t i = 0; i < kBuffers; ++i)
      ASSERT_TRUE(
          in.post({.host = bench.memory.iova + buffers + i * kBuffer, .bytes = kBuffer, .cookie = i, .stream = true})
              .ok());
    in.ring_bell();
    for (const std::uint32_t bytes : {1U, 64U, 65U, 1500U, 4096U, 4097U, 9001U}) {
      const std::vector<std::byte> packet = random_bytes(bytes, ++seed);
      std::memcpy(bench.memory.bytes.data() + 5, packet.data(), bytes);
      // A long packet takes two descriptors: the first one does not end it.
      const std::uint32_t first = bytes > 4096 ? 2048 : bytes;
      ASSERT_TRUE(
          out.post({.host = bench.memory.iova + 5, .bytes = first, .stream = true, .end_of_packet = first == bytes})
              .ok());
      if (first != bytes) {
        ASSERT_TRUE(out.post({.host = bench.memory.iova + 5 + first, .bytes = bytes - first, .stream = true}).ok());
      }
      out.ring_bell();
      std::vector<std::byte> found;
      for (bool end = false; !end;) {
        const Done done = bench.next(in);
        ASSERT_EQ(done.error, driver::Error::kNone) << driver::to_string(done.error);
        const std::byte* const at = bench.memory.bytes.data() + buffers + done.cookie * kBuffer;
        found.insert(found.end(), at, at + done.bytes);
        end = done.end_of_packet;
        ASSERT_LE(found.size(), bytes);
      }
      EXPECT_TRUE(found == packet) << bytes << " bytes on channel " << channel;
      EXPECT_EQ(bench.next(out).error, driver::Error::kNone);
      if (first != bytes) {
        EXPECT_EQ(bench.next(out).error, driver::Error::kNone);
      }
    }
  }
  EXPECT_EQ(bench.rig.card.core().packets.worthless(), 0U);
}

TEST(SimCard, PostPacketsThatCannotBe_ExpectRefusals) {
  Bench bench;
  EXPECT_EQ(bench.ring(Direction::kToHost).post({.host = bench.memory.iova + 1, .bytes = 4096, .stream = true}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(bench.ring(Direction::kToCard)
                .post({.host = bench.memory.iova, .bytes = 65, .stream = true, .end_of_packet = false})
                .code(),
            StatusCode::kInvalidArgument);
}

TEST(SimCard, SleepUntilTheMessage_ExpectOneForEachTransfer) {
  Bench bench;
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    Ring& ring = bench.ring(direction, 2);
    const std::uint64_t before = bench.rig.device.messages()[ring.number()];
    for (std::uint64_t i = 1; i <= 5; ++i) {
      ASSERT_TRUE(ring.post({.host = bench.memory.iova, .card = 0, .bytes = 3000, .interrupt = true}).ok());
      ring.ring_bell();
      EXPECT_EQ(bench.next(ring, true).error, driver::Error::kNone);
      bench.rig.device.pause(5us);
      EXPECT_EQ(bench.rig.device.messages()[ring.number()] - before, i);
    }
  }
}

TEST(SimCard, ModerateInterrupts_ExpectOneByThresholdAndOneByTimer) {
  Bench bench;
  Ring& ring = bench.ring(Direction::kToCard);
  ring.moderate(4, 1000);  // the timer: 32 us
  const auto messages = [&] { return bench.rig.device.messages()[ring.number()]; };
  const auto post = [&](unsigned count) {
    for (; count != 0; --count)
      ASSERT_TRUE(ring.post({.host = bench.memory.iova, .card = 0, .bytes = 64, .interrupt = true}).ok());
    ring.ring_bell();
    bench.rig.device.pause(20us);
  };
  post(4);
  EXPECT_EQ(messages(), 1U);
  post(1);
  EXPECT_EQ(messages(), 1U);
  bench.rig.device.pause(40us);
  EXPECT_EQ(messages(), 2U);
  std::array<Done, 8> done;
  EXPECT_EQ(ring.poll(done), 5U);
}

TEST(SimCard, StopAndStart_ExpectNothingBetweenAndAllAfterwards) {
  Bench bench;
  Ring& ring = bench.ring(Direction::kToHost, 1);
  ASSERT_TRUE(ring.stop().ok());
  ASSERT_TRUE(ring.post({.host = bench.memory.iova, .card = 0, .bytes = 640}).ok());
  ring.ring_bell();
  EXPECT_FALSE(ring.wait(50us));
  ring.start();
  EXPECT_EQ(bench.next(ring).error, driver::Error::kNone);
}

TEST(SimCardSoak, RandomTransfersWithEveryFault_ExpectNoneWrongAndNoneLost) {
  const SoakResult found = soak({.seed = 1, .bytes = 4'000'000, .event_in = 40});
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.good + found.failed + found.voided, found.transfers);
  EXPECT_GT(found.good, found.transfers / 3);
  EXPECT_GT(found.failed, 0U);
  EXPECT_GT(found.voided, 0U);
  EXPECT_GT(found.struck, 0U);
  EXPECT_GT(found.resets, 0U);
}

/// Found by the soak: its link is slower than the engine's time-out, so answers come late, to tags in use again.
TEST(SimCardSoak, AnswersThatComeAfterTheirTimeout_ExpectNoneTakenForAnother) {
  const SoakResult found = soak({.seed = 118, .bytes = 100'000});
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.struck, 0U);
  EXPECT_GT(found.engine_timeouts, 0U);
  EXPECT_GT(found.unexpected, 0U);
  EXPECT_GT(found.good, 0U);
}

}  // namespace
}  // namespace wherry::sim::card
