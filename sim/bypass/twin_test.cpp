// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/twin_testing.hpp"

namespace wherry::sim {
namespace {

using namespace twin_testing;

TEST_F(SimBypassTwin, Started_ExpectAllButOneDescriptorOfferedWithSlotsOfTheQueue) {
  start(false);
  EXPECT_EQ(nic.rx_tail(), 63U);
  std::vector<std::uint64_t> addresses;
  for (std::uint32_t i = 0; i < 63; ++i) {
    const auto [address, rest] = nic.fetch(0, i);
    EXPECT_EQ(rest, 0U);
    EXPECT_EQ((address - kBar - kSlots) % kSlotBytes, 0U);
    EXPECT_GE(address, kBar + kSlots + 8 * kSlotBytes);
    EXPECT_LT(address, kBar + kSlots + (8 + 96) * kSlotBytes);
    addresses.push_back(address);
  }
  std::sort(addresses.begin(), addresses.end());
  EXPECT_EQ(std::unique(addresses.begin(), addresses.end()), addresses.end());
  EXPECT_EQ(card.counters().stray_reads, 0U);
}

/// The bytes of a descriptor as a read of the NIC returns them.
Bytes ring_bytes(Twin& card, std::uint32_t offset) {
  Bytes bytes(16);
  card.read(offset, bytes);
  return bytes;
}
Bytes golden(const std::vector<int>& values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// Computed by hand: 82574 datasheet, 7.1.4.1 and 7.2.10 (extended data descriptor: DTALEN 19:0, DTYP 23:20 = 1, DCMD
// 31:24 with EOP 0, IFCS 1, RS 3, DEXT 5). Slot 8 lies at kBar + 0x40'4000, the transmit buffer at kBar + 0x28'0000.
TEST_F(SimBypassTwin, RingsOf82574_ExpectGoldenBytes) {
  start(false);
  EXPECT_EQ(ring_bytes(card, 0), golden({0x00, 0x40, 0x40, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ring_bytes(card, 16), golden({0x00, 0x48, 0x40, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  ASSERT_TRUE(card.try_put({.queue = 0, .bytes = pattern(1514, 1)}));
  nic.turn();
  EXPECT_EQ(ring_bytes(card, kTxRing),
            golden({0x00, 0x00, 0x28, 0x34, 0x12, 0, 0, 0, 0xEA, 0x05, 0x10, 0x23, 0, 0, 0, 0}));
}

// Computed by hand: 82576 datasheet, 7.2.2.3 (advanced data descriptor: DTALEN 15:0, DTYP 23:20 = 3, DCMD as above,
// PAYLEN 63:46 = 3562, 0xDEA << 14 in the upper dword). Two slots: 2048 bytes without EOP, and 1514 with it.
TEST(SimBypassTwinInPlace, RingOf82576_ExpectGoldenBytes) {
  InPlaceEcho function;
  Twin card(&function);
  ASSERT_TRUE(card.configure(setup_of(true, "igb")));
  ASSERT_TRUE(card.start(0));
  Nic nic(card, 64);
  nic.turn();
  nic.tails[kNicBar + 0x2818] = 63;
  ASSERT_TRUE(nic.receive(pattern(3562, 1)));
  nic.turn();
  EXPECT_EQ(ring_bytes(card, kTxRing),
            golden({0x00, 0x40, 0x40, 0x34, 0x12, 0, 0, 0, 0x00, 0x08, 0x30, 0x22, 0x00, 0x80, 0x7A, 0x03}));
  EXPECT_EQ(ring_bytes(card, kTxRing + 16),
            golden({0x00, 0x48, 0x40, 0x34, 0x12, 0, 0, 0, 0xEA, 0x05, 0x30, 0x23, 0x00, 0x80, 0x7A, 0x03}));
}

TEST_F(SimBypassTwin, FrameInOneSlot_ExpectItOnTheStreamAndTheSlotOfferedAgain) {
  start(false, 63);
  const Bytes frame = pattern(60, 1);
  ASSERT_TRUE(nic.receive(frame));
  nic.turn();
  EXPECT_EQ(nic.rx_tail(), 63U);  // all slots are in use
  EXPECT_EQ(taken(), std::vector<Bytes>{frame});
  nic.turn();
  EXPECT_EQ(nic.rx_tail(), 0U);
}

TEST_F(SimBypassTwin, FrameOfFiveSlots_ExpectItWhole) {
  start(false);
  const Bytes frame = pattern(9000, 2);
  ASSERT_TRUE(nic.receive(frame));
  EXPECT_EQ(taken(), std::vector<Bytes>{frame});
  EXPECT_EQ(card.counters().rx_bytes, 9000U);
}

TEST_F(SimBypassTwin, FrameWithoutEnd_ExpectNothingYet) {
  start(false);
  (void)nic.fetch(0, 0);
  nic.write_back(0, 1, 2048);
  EXPECT_TRUE(taken().empty());
  EXPECT_EQ(card.counters().rx_frames, 0U);
}

TEST_F(SimBypassTwin, WriteBackInDwordsAfterOneWithoutDd_ExpectOneFrame) {
  start(false);
  for (std::uint32_t i = 0; i < 3; ++i) {
    (void)nic.fetch(0, i);
    nic.write_back_in_dwords(i, 3, 60 + i);
  }
  const auto frames = taken();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[2].size(), 62U);
  EXPECT_EQ(card.counters().wrong_writebacks, 0U);
}

TEST_F(SimBypassTwin, FourWriteBacksInALine_ExpectFourFrames) {
  start(false);
  std::array<std::uint32_t, 16> line{};
  for (std::uint32_t i = 0; i < 4; ++i) {
    (void)nic.fetch(0, i);
    line[4 * i + 2] = 3;
    line[4 * i + 3] = 100 + i;
  }
  card.write(0, std::as_bytes(std::span(line)));
  const auto frames = taken();
  ASSERT_EQ(frames.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(frames[i].size(), 100 + i);
}

TEST_F(SimBypassTwin, FrameByTheStream_ExpectOneDescriptorAndNoReportAsked) {
  start(false);
  const Bytes frame = pattern(9000, 3);
  ASSERT_TRUE(card.try_put({.queue = 0, .bytes = frame}));
  nic.turn();
  EXPECT_EQ(nic.tx_tail(), 1U);
  const Nic::Buffer buffer = nic.next_buffer();
  EXPECT_EQ(buffer.bytes, 9000U);
  EXPECT_TRUE(buffer.last);
  EXPECT_EQ(buffer.word >> 27 & 1, 0U);  // RS
  EXPECT_EQ(nic.read(buffer, 0, 9000), frame);
  EXPECT_EQ(card.counters().tx_frames, 1U);
  EXPECT_EQ(card.counters().tx_bytes, 9000U);
}

TEST_F(SimBypassTwin, ReadsInAnyOrder_ExpectDoneWithTheLastMissingByte) {
  start(false);
  ASSERT_TRUE(card.try_put({.queue = 0, .bytes = pattern(300, 4)}));
  nic.turn();
  const Nic::Buffer buffer = nic.next_buffer();
  (void)nic.read(buffer, 256, 44);
  (void)nic.read(buffer, 0, 128);
  (void)nic.read(buffer, 64, 64);  // once more
  (void)nic.read(buffer, 129, 127);
  EXPECT_EQ(card.counters().tx_frames, 0U);
  (void)nic.read(buffer, 128, 1);
  EXPECT_EQ(card.counters().tx_frames, 1U);
}

TEST_F(SimBypassTwin, LaterFrameReadFirst_ExpectBothDoneInRingOrder) {
  start(false);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(card.try_put({.queue = 0, .bytes = pattern(64, 5)}));
  nic.turn();
  const Nic::Buffer first = nic.next_buffer(), second = nic.next_buffer();
  (void)nic.read(second, 0, 64);
  EXPECT_EQ(card.counters().tx_frames, 0U);
  (void)nic.read(first, 0, 64);
  EXPECT_EQ(card.counters().tx_frames, 2U);
}

TEST_F(SimBypassTwin, InPlace_ExpectItsOwnSlotsSentWithTheFirstLineReplaced) {
  start(true);
  const Bytes frame = pattern(5000, 6);
  ASSERT_TRUE(nic.receive(frame));
  nic.turn();
  ASSERT_EQ(nic.tx_tail(), 3U);
  const Nic::Buffer a = nic.next_buffer(), b = nic.next_buffer(), c = nic.next_buffer();
  EXPECT_EQ(a.offset, kSlots + 8 * kSlotBytes);
  EXPECT_EQ(std::tuple(a.bytes, b.bytes, c.bytes), std::tuple(2048U, 2048U, 904U));
  EXPECT_TRUE(!a.last && !b.last && c.last);
  const Bytes head = nic.read(a, 0, 2048);
  EXPECT_TRUE(std::equal(head.begin(), head.begin() + 6, frame.begin() + 6));
  EXPECT_TRUE(std::equal(head.begin() + 6, head.begin() + 12, frame.begin()));
  EXPECT_TRUE(std::equal(head.begin() + 12, head.end(), frame.begin() + 12));
  (void)nic.read(b, 0, 2048);
  EXPECT_EQ(card.counters().tx_frames, 0U);
  (void)nic.read(c, 0, 904);
  EXPECT_EQ(card.counters().tx_frames, 1U);
  EXPECT_EQ(card.counters().tx_bytes, 5000U);
}

TEST(SimBypassTwinInPlace, Igb_ExpectTheFramesLengthInEveryDescriptor) {
  InPlaceEcho function;
  Twin card(&function);
  ASSERT_TRUE(card.configure(setup_of(true, "igb")));
  ASSERT_TRUE(card.start(0));
  Nic nic(card, 64);
  nic.turn();
  nic.tails[kNicBar + 0x2818] = nic.tails.at(kNicBar + 0xC018);  // where igb's tails are
  ASSERT_TRUE(nic.receive(pattern(3000, 7)));
  nic.turn();
  EXPECT_EQ(nic.tails.at(kNicBar + 0xE018), 2U);
  EXPECT_EQ(nic.next_buffer().word >> 46, 3000U);
  EXPECT_EQ(nic.next_buffer().word >> 46, 3000U);
}

struct Refuse final : InPlaceFunction {
  bool forward(std::span<std::byte>, std::uint32_t) override { return false; }
};

TEST(SimBypassTwinInPlace, Refused_ExpectSlotsFreeAndCounted) {
  Refuse function;
  Twin card(&function);
  ASSERT_TRUE(card.configure(setup_of(true)));
  ASSERT_TRUE(card.start(0));
  Nic nic(card, 64);
  for (int i = 0; i < 1000; ++i) {
    nic.turn();
    ASSERT_TRUE(nic.receive(pattern(4000, i)));
  }
  nic.turn();
  EXPECT_EQ(card.counters().rx_refused, 1000U);
  EXPECT_FALSE(nic.can_transmit());
  EXPECT_TRUE(card.slots_conserved() && holds_balance(card.counters()));
}

TEST_F(SimBypassTwin, NicThatDoesNotSend_ExpectReceivingToEndAndNothingLost) {
  start(true);
  int count = 0;
  while (nic.can_receive()) {
    ASSERT_TRUE(nic.receive(pattern(60, count++)));
    nic.turn();
  }
  nic.turn(5000);                       // until there is patience no more for the NIC's fetches
  EXPECT_EQ(count, 96);                 // slots
  EXPECT_EQ(nic.tx_tail(), 64U - 33U);  // the guard of NICs whose RS is never set
  EXPECT_EQ(card.counters().rx_frames, 96U);
  for (int i = 0; i < count; ++i) {
    const Bytes frame = nic.transmit();
    const Bytes sent = pattern(60, i);
    ASSERT_EQ(frame.size(), 60U) << i;
    EXPECT_TRUE(std::equal(frame.begin() + 12, frame.end(), sent.begin() + 12)) << i;
    nic.turn();
  }
  EXPECT_EQ(card.counters().tx_frames, 96U);
}

TEST_F(SimBypassTwin, TransmitBufferFull_ExpectNoRoomUntilLinesAreRead) {
  start(false);
  while (card.try_put({.queue = 0, .bytes = pattern(9000, 8)})) nic.turn();
  EXPECT_EQ(card.counters().tx_taken, 3U);  // of 32 KiB
  const Nic::Buffer buffer = nic.next_buffer();
  (void)nic.read(buffer, 0, 6000);  // 93 lines, and there were 512 - 3 * 141 = 89
  EXPECT_TRUE(card.try_put({.queue = 0, .bytes = pattern(9000, 9)}));
  nic.turn();
  // The new frame uses the part of the first one that was read already. The rest of the old frame must be unchanged.
  (void)nic.read(buffer, 6000, 3000);
  EXPECT_EQ(card.counters().tx_frames, 1U);
  nic.tx_head = 3;
  const Nic::Buffer wrapped = nic.next_buffer();
  EXPECT_EQ(nic.read(wrapped, 0, 9000), pattern(9000, 9));
}

TEST_F(SimBypassTwin, ManyFramesBothWays_ExpectAllOfThemInOrder) {
  for (const bool in_place : {false, true}) {
    card.stop(0);
    nic = Nic(card, 64);
    start(in_place);
    SplitMix64 random(in_place ? 11 : 12);
    StreamEcho stream(card);
    std::deque<Bytes> expected;
    std::uint64_t sent = 0, got = 0;
    while (got < 3000) {
      if (sent < 3000 && random.below(2) == 0) {
        Bytes frame = pattern(60 + random.below(random.below(4) == 0 ? 8940 : 400), sent);
        const std::size_t parts = (frame.size() + kSlotBytes - 1) / kSlotBytes;
        if ((nic.rx_tail() + 64 - nic.rx_head) % 64 >= parts) {
          ASSERT_TRUE(nic.receive(frame));
          std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
          expected.push_back(std::move(frame));
          ++sent;
        }
      }
      if (!in_place) stream.turn();
      nic.turn(static_cast<int>(random.below(3)));
      if (random.below(2) == 0 && nic.can_transmit()) {
        ASSERT_EQ(nic.transmit(4U << random.below(8)), expected.front()) << got;
        expected.pop_front();
        ++got;
      }
      ASSERT_TRUE(holds_balance(card.counters()) && card.slots_conserved());
    }
    EXPECT_LE(card.counters().tx_tails, card.counters().tx_frames);
  }
  EXPECT_EQ(card.counters().tx_frames, 6000U);
  EXPECT_EQ(card.counters().tx_writebacks, 0U);
}

}  // namespace
}  // namespace wherry::sim
