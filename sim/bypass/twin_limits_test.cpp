// SPDX-License-Identifier: Apache-2.0
// Tests of the twin's refusals, counters and waits: credits, stops, a faulty or hostile NIC, wrong set-ups.
#include "sim/bypass/twin_testing.hpp"

namespace wherry::sim {
namespace {

using namespace twin_testing;

constexpr std::uint32_t kNowhere = 0x3F'0000;

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
  for (const std::uint32_t offset : {kRingStride, kHeadWritebacks, kNowhere, kPack + 0x1'0000, kSlots, kTxRing}) {
    const std::uint64_t before = strays();
    word.fill(std::byte{0xFF});
    card.read(offset, word);
    if (offset != kSlots) {
      EXPECT_EQ(word, (std::array<std::byte, 4>{})) << std::hex << offset;
    }
    EXPECT_EQ(strays(), before + 1) << std::hex << offset;
  }
  for (const std::uint32_t offset : {kRingStride, kNowhere, kPack, kSlots, kSlots + 200 * kSlotBytes}) {
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
