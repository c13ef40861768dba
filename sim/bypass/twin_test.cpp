// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/twin.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>

#include "base/random.hpp"
#include "sim/bypass/echo.hpp"

namespace wherry::sim {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kBar = 0x12'3400'0000;
constexpr std::uint64_t kNicBar = 0xFE00'0000;

Bytes pattern(std::uint32_t bytes, std::uint64_t seed) {
  SplitMix64 random(seed);
  Bytes data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

/// An igb or e1000e as these tests need it: one step at a time, by the datasheets' formats. Queue 0.
class Nic {
 public:
  Nic(Twin& card, std::uint32_t entries, std::uint32_t queue = 0)
      : card_(&card), entries_(entries), rings_(queue * kRingStride) {}

  /// The card's clock runs; tail writes arrive.
  void turn(int ticks = 4) {
    for (int i = 0; i < ticks; ++i) {
      card_->tick();
      while (const auto tail = card_->next_tail()) {
        tails[tail->address] = tail->value;
        ++tail_writes;
      }
    }
  }
  [[nodiscard]] std::uint32_t rx_tail() { return tails[kNicBar + 0x2818]; }
  [[nodiscard]] std::uint32_t tx_tail() { return tails[kNicBar + 0x3818]; }

  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> fetch(std::uint32_t ring, std::uint32_t index) {
    std::array<std::uint64_t, 2> words{};
    card_->read(rings_ + ring + index * 16, std::as_writable_bytes(std::span(words)));
    return {words[0], words[1]};
  }
  void write_back(std::uint32_t index, std::uint32_t status, std::uint32_t bytes) {
    const std::array<std::uint32_t, 4> words{0x1111'1111, 0x2222'2222, status, bytes};
    card_->write(rings_ + index * 16, std::as_bytes(std::span(words)));
  }
  /// As QEMU does: with DD 0 first, and then the status by itself.
  void write_back_in_dwords(std::uint32_t index, std::uint32_t status, std::uint32_t bytes) {
    const std::array<std::uint32_t, 5> words{1, 2, status & ~1U, bytes, status};
    const std::array<std::uint32_t, 5> at{0, 4, 8, 12, 8};
    for (std::size_t i = 0; i < words.size(); ++i)
      card_->write(rings_ + index * 16 + at[i], std::as_bytes(std::span(words).subspan(i, 1)));
  }
  [[nodiscard]] bool can_receive() { return rx_head != rx_tail(); }
  /// A frame from the wire. False: no descriptor; then a part of it may have been written.
  bool receive(const Bytes& frame) {
    for (std::size_t at = 0; at < frame.size(); at += kSlotBytes) {
      if (!can_receive()) return false;
      const std::size_t part = std::min<std::size_t>(kSlotBytes, frame.size() - at);
      const std::uint64_t address = fetch(0, rx_head).first;
      for (std::size_t done = 0; done < part; done += 256)
        card_->write(static_cast<std::uint32_t>(address - kBar + done),
                     std::span(frame).subspan(at + done, std::min<std::size_t>(256, part - done)));
      const bool last = at + part == frame.size();
      write_back(rx_head, last ? 3 : 1, static_cast<std::uint32_t>(part));
      rx_head = (rx_head + 1) % entries_;
    }
    return true;
  }
  struct Buffer {
    std::uint32_t offset, bytes;
    bool last;
    std::uint64_t word;
  };
  [[nodiscard]] bool can_transmit() { return tx_head != tx_tail(); }
  Buffer next_buffer() {
    const auto [address, word] = fetch(kTxRing, tx_head);
    tx_head = (tx_head + 1) % entries_;
    return {static_cast<std::uint32_t>(address - kBar), static_cast<std::uint32_t>(word & 0xFFFF),
            (word >> 24 & 1) != 0, word};
  }
  Bytes read(const Buffer& buffer, std::uint32_t from, std::uint32_t count) {
    Bytes data(count);
    card_->read(buffer.offset + from, data);
    return data;
  }
  /// The next frame to the wire; by pieces of `piece` bytes.
  Bytes transmit(std::uint32_t piece = 512) {
    Bytes frame;
    for (bool last = false; !last;) {
      if (!can_transmit()) return {};
      const Buffer buffer = next_buffer();
      for (std::uint32_t at = 0; at < buffer.bytes; at += piece) {
        const Bytes part = read(buffer, at, std::min(piece, buffer.bytes - at));
        frame.insert(frame.end(), part.begin(), part.end());
      }
      last = buffer.last;
    }
    return frame;
  }

  std::map<std::uint64_t, std::uint32_t> tails;
  std::uint64_t tail_writes = 0;
  std::uint32_t rx_head = 0, tx_head = 0;

 private:
  Twin* card_;
  std::uint32_t entries_;
  std::uint32_t rings_;
};

CardSetup setup_of(bool in_place, const char* nic = "e1000e", std::uint32_t slots = 96) {
  CardSetup setup;
  setup.nic = bypass::find_personality(nic);
  setup.bar = kBar;
  setup.nic_bar = kNicBar;
  setup.in_place = in_place;
  setup.pack_bytes = 1U << 15;
  setup.queues = {{.rx_entries = 64, .tx_entries = 64, .first_slot = 8, .slots = slots}};
  return setup;
}

class SimBypassTwin : public ::testing::Test {
 protected:
  void start(bool in_place, std::uint32_t slots = 96, std::uint32_t tx_credits = 3) {
    CardSetup setup = setup_of(in_place, "e1000e", slots);
    setup.doorbell.tx_credits = tx_credits;
    ASSERT_TRUE(card.configure(setup));
    ASSERT_TRUE(card.start(0));
    nic.turn();
  }
  void TearDown() override {
    EXPECT_TRUE(holds_balance(card.counters()));
    EXPECT_TRUE(card.slots_conserved());
  }
  /// What comes out by the stream now.
  std::vector<Bytes> taken() {
    std::vector<Bytes> frames;
    while (auto frame = card.take()) frames.push_back(frame->bytes);
    return frames;
  }

  InPlaceEcho function;
  Twin card{&function};
  Nic nic{card, 64};
};

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

/// The bytes of a descriptor as the NIC's read finds them.
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

// By hand: 82574 datasheet, 7.1.4.1 and 7.2.10 (extended data descriptor: DTALEN 19:0, DTYP 23:20 = 1, DCMD 31:24 with
// EOP 0, IFCS 1, RS 3, DEXT 5). Slot 8 lies at kBar + 0x40'4000, the transmit buffer at kBar + 0x28'0000.
TEST_F(SimBypassTwin, RingsOf82574_ExpectGoldenBytes) {
  start(false);
  EXPECT_EQ(ring_bytes(card, 0), golden({0x00, 0x40, 0x40, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ring_bytes(card, 16), golden({0x00, 0x48, 0x40, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  ASSERT_TRUE(card.try_put({.queue = 0, .bytes = pattern(1514, 1)}));
  nic.turn();
  EXPECT_EQ(ring_bytes(card, kTxRing),
            golden({0x00, 0x00, 0x28, 0x34, 0x12, 0, 0, 0, 0xEA, 0x05, 0x10, 0x23, 0, 0, 0, 0}));
}

// By hand: 82576 datasheet, 7.2.2.3 (advanced data descriptor: DTALEN 15:0, DTYP 23:20 = 3, DCMD as above, PAYLEN 63:46
// = 3562, 0xDEA << 14 in the upper dword). Two slots: 2048 bytes without EOP, and 1514 with it.
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
  // The new frame lies where the first one has been read; what is left of that is still its own.
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

TEST_F(SimBypassTwin, NicThatDoesNotFetch_ExpectAsManyTailWritesAsCredits) {
  start(false, 96, 2);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(card.try_put({.queue = 0, .bytes = pattern(60, i)}));
    nic.turn();
  }
  EXPECT_EQ(card.counters().tx_tails, 2U);
  EXPECT_EQ(nic.tx_tail(), 2U);
  (void)nic.fetch(kTxRing, 0);  // answers the first
  nic.turn();
  EXPECT_EQ(nic.tx_tail(), 10U);
  EXPECT_EQ(card.counters().tx_tails, 3U);
}

TEST_F(SimBypassTwin, NoCreditForLong_ExpectATailWriteAllTheSame) {
  start(false, 96, 1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(card.try_put({.queue = 0, .bytes = pattern(60, i)}));
    nic.turn();
  }
  EXPECT_EQ(nic.tx_tail(), 1U);
  nic.turn(4096);
  EXPECT_EQ(nic.tx_tail(), 2U);
}

TEST_F(SimBypassTwin, Stopped_ExpectWhatItHeldCounted) {
  start(true);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(nic.receive(pattern(3000, i)));
  nic.turn();
  ASSERT_FALSE(nic.transmit().empty());
  (void)nic.fetch(0, nic.rx_head);
  nic.write_back(nic.rx_head, 1, 2048);  // a frame begins
  card.stop(0);
  const CardCounters counters = card.counters();
  EXPECT_EQ(counters.tx_frames, 1U);
  EXPECT_EQ(counters.tx_stopped, 9U);
  EXPECT_EQ(counters.rx_cut, 1U);
  EXPECT_EQ(counters.tx_waiting + counters.rx_waiting, 0U);
  const std::uint64_t tails = nic.tail_writes;
  nic.turn(5000);
  EXPECT_EQ(nic.tail_writes, tails);
  EXPECT_FALSE(card.try_put({.queue = 0, .bytes = pattern(60, 1)}));
}

TEST_F(SimBypassTwin, NicGoesOnAfterStop_ExpectNothingChangedAndCounted) {
  start(false);
  (void)nic.fetch(0, 0);
  card.stop(0);
  card.write(kSlots + 8 * kSlotBytes, pattern(60, 1));
  nic.write_back(0, 3, 60);
  EXPECT_EQ(card.counters().stray_writes, 1U);
  EXPECT_EQ(card.counters().wrong_writebacks, 1U);
  EXPECT_EQ(card.counters().rx_frames, 0U);
}

TEST_F(SimBypassTwin, StartedAgain_ExpectRingsFromTheirBegin) {
  start(false);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(nic.receive(pattern(60, i)));
  card.stop(0);
  nic = Nic(card, 64);
  ASSERT_TRUE(card.start(0));
  nic.turn();
  EXPECT_EQ(nic.rx_tail(), 63U);
  ASSERT_TRUE(nic.receive(pattern(100, 9)));
  EXPECT_EQ(taken(), std::vector<Bytes>{pattern(100, 9)});
}

TEST_F(SimBypassTwin, WriteBackOfDescriptorsThatWereNotReadOrAreNotNext_ExpectCounted) {
  start(false);
  nic.write_back(0, 3, 60);  // not read
  (void)nic.fetch(0, 1);
  nic.write_back(1, 3, 60);   // 0 comes first
  nic.write_back(63, 3, 60);  // behind the tail
  nic.write_back(4000, 3, 60);
  EXPECT_EQ(card.counters().wrong_writebacks, 4U);
  EXPECT_TRUE(taken().empty());
  ASSERT_TRUE(nic.receive(pattern(60, 1)));  // and all goes on
  EXPECT_EQ(taken(), std::vector<Bytes>{pattern(60, 1)});
}

TEST_F(SimBypassTwin, ImpossibleLengthsAndErrors_ExpectFramesDroppedAndCounted) {
  start(false);
  const std::array<std::pair<std::uint32_t, std::uint32_t>, 3> wrong{{{3, 2049}, {3, 0}, {0x8000'0003, 60}}};
  std::uint32_t index = 0;
  for (const auto& [status, bytes] : wrong) {
    (void)nic.fetch(0, index);
    nic.write_back(index++, status, bytes);
  }
  EXPECT_EQ(card.counters().rx_damaged, 3U);
  for (int i = 0; i < 6; ++i) {  // a frame of six buffers: none of those that can be sent has as many
    (void)nic.fetch(0, index);
    nic.write_back(index++, i == 5 ? 3 : 1, 100);
  }
  EXPECT_EQ(card.counters().rx_damaged, 4U);
  for (int i = 0; i < 5; ++i) {
    (void)nic.fetch(0, index);
    nic.write_back(index++, i == 4 ? 3 : 1, 2048);
  }
  EXPECT_EQ(card.counters().rx_too_long, 1U);
  EXPECT_TRUE(taken().empty());
}

TEST_F(SimBypassTwin, AccessesToNowhere_ExpectZerosAndCounted) {
  start(false);
  const auto strays = [this] { return card.counters().stray_reads + card.counters().stray_writes; };
  std::array<std::byte, 4> word{};
  for (const std::uint32_t offset :
       {kRingStride, kHeadWritebacks, kScratch + kScratchBytes, kPack + 0x1'0000, kSlots, kTxRing}) {
    const std::uint64_t before = strays();
    word.fill(std::byte{0xFF});
    card.read(offset, word);
    if (offset != kSlots) {
      EXPECT_EQ(word, (std::array<std::byte, 4>{})) << std::hex << offset;
    }
    EXPECT_EQ(strays(), before + 1) << std::hex << offset;
  }
  for (const std::uint32_t offset : {kRingStride, kScratch + kScratchBytes, kPack, kSlots, kSlots + 200 * kSlotBytes}) {
    const std::uint64_t before = strays();
    card.write(offset, word);
    EXPECT_EQ(strays(), before + 1) << std::hex << offset;
  }
}

TEST_F(SimBypassTwin, TransmitWriteBacks_ExpectCountedAndNothingElse) {
  start(false);
  ASSERT_TRUE(card.try_put({.queue = 0, .bytes = pattern(60, 1)}));
  nic.turn();
  std::array<std::byte, 4> word{};
  card.write(kTxRing + 12, word);
  card.write(kHeadWritebacks, word);
  EXPECT_EQ(card.counters().tx_writebacks, 2U);
  EXPECT_EQ(card.counters().tx_frames, 0U);
}

TEST_F(SimBypassTwin, Scratch_ExpectMemory) {
  start(false);
  const Bytes data = pattern(1000, 1);
  card.write(kScratch + 333, data);
  Bytes back(1000);
  card.read(kScratch + 333, back);
  EXPECT_EQ(back, data);
}

TEST(SimBypassTwinQueues, Two_ExpectOwnRingsSlotsAndTails) {
  Twin card;
  CardSetup setup = setup_of(false);
  setup.queues.push_back({.rx_entries = 64, .tx_entries = 64, .first_slot = 200, .slots = 20});
  ASSERT_TRUE(card.configure(setup));
  ASSERT_TRUE(card.start(0));
  ASSERT_TRUE(card.start(1));
  Nic first(card, 64), second(card, 64, 1);
  first.turn();
  EXPECT_EQ(first.tails.at(kNicBar + 0x2818), 63U);
  EXPECT_EQ(first.tails.at(kNicBar + 0x2918), 20U);
  second.tails[kNicBar + 0x2818] = 20;
  ASSERT_TRUE(second.receive(pattern(77, 1)));
  const auto frame = card.take();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->queue, 1);
  ASSERT_TRUE(card.try_put(*frame));
  second.turn();
  EXPECT_EQ(second.tails.at(kNicBar + 0x3918), 1U);
  second.tails[kNicBar + 0x3818] = 1;
  EXPECT_EQ(second.transmit(), pattern(77, 1));
  EXPECT_TRUE(card.slots_conserved() && holds_balance(card.counters()));
}

TEST(SimBypassTwinTails, NicThatTakesMultiplesOfEight_ExpectThose) {
  Twin card;
  ASSERT_TRUE(card.configure(setup_of(false, "ice", 30)));
  ASSERT_TRUE(card.start(0));
  Nic nic(card, 64);
  nic.turn(10'000);
  EXPECT_EQ(nic.tails.at(kNicBar + 0x29'0000), 24U);
}

TEST(SimBypassTwinSetup, Nonsense_ExpectTheFieldNamed) {
  Twin card;
  const auto refused = [&card](auto change) {
    CardSetup setup = setup_of(false);
    change(setup);
    const Status status = card.configure(setup);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  using ::std::string;
  const auto names = [](const string& text, const char* word) { return text.find(word) != string::npos; };
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.nic = nullptr; }), "NIC"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.bar += 4096; }), "aligned"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.pack_bytes = 5000; }), "pack_bytes"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.in_place = true; }), "in_place"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.queues.clear(); }), "queue pairs"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.queues[0].rx_entries = 60; }), "rx_entries"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.queues[0].tx_entries = 8192; }), "tx_entries"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.queues[0].slots = 2048; }), "slots"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.queues.push_back(s.queues[0]); }), "slots"));
  ASSERT_TRUE(card.configure(setup_of(false)));
  ASSERT_TRUE(card.start(0));
  EXPECT_EQ(card.configure(setup_of(false)).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(card.start(1).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wherry::sim
