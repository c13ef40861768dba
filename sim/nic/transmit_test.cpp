// SPDX-License-Identifier: Apache-2.0
// Tests each transmit rule by itself. "QEMU:" means the same as in receive_test.cpp.
#include <gtest/gtest.h>

#include "sim/nic/testing.hpp"

namespace wherry::sim::nic {
namespace {

using pcie::CompletionStatus;

TEST(NicTransmit, TailMovesOverEmptyChip_ExpectOneFetchUpToTheOnChipBuffer) {  // X550 7.2.3.4
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  for (std::uint32_t i = 0; i < 60; ++i) bench.put_tx(i, 60);
  bench.tail(true, 60);
  ASSERT_EQ(bench.port.reads.size(), 1U);
  EXPECT_EQ(bench.port.reads[0].address, Bench::kTx);
  EXPECT_EQ(bench.port.reads[0].bytes, 40U * 16);
}

TEST(NicTransmit, TailMovesOneByOne_ExpectAFetchEachWhilePrefetchThresholdAllows) {  // PTHRESH 32, HTHRESH 1
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  for (std::uint32_t i = 0; i < 60; ++i) {
    bench.put_tx(i, 60);
    bench.tail(true, i + 1);
  }
  EXPECT_EQ(bench.port.reads.size(), 32U);
  for (const pcie::ReadRequest& read : bench.port.reads) EXPECT_EQ(read.bytes, 16U);
}

TEST(NicTransmit, OneFetchAtATime_ExpectTheNextOneTakesAllThatCameMeanwhile) {
  NicOptions options = Bench::named("ixgbe");
  options.tx_fetches = 1;
  Bench bench(options);
  bench.start_tx();
  for (std::uint32_t i = 0; i < 9; ++i) bench.put_tx(i, 60);
  bench.port.hold_reads = true;
  for (std::uint32_t i = 0; i < 9; ++i) bench.tail(true, i + 1);
  ASSERT_EQ(bench.port.reads.size(), 1U);
  EXPECT_EQ(bench.port.reads[0].bytes, 16U);
  bench.port.hold_reads = false;
  bench.port.answer(0);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().tx_fetches, 2U);
  EXPECT_EQ(bench.nic.counters().tx_fetched, 9U);
  EXPECT_EQ(bench.nic.counters().sent, 9U);
}

TEST(NicTransmit, PrefetchNeedsHostThreshold_ExpectNoFetchBelowIt) {
  NicOptions options = Bench::named("ixgbe");
  options.nic.tx_prefetch_at_least = 8;
  Bench bench(options);
  bench.port.hold_reads = true;
  bench.start_tx();
  bench.tail(true, 1);  // empty chip: at once
  EXPECT_EQ(bench.port.reads.size(), 1U);
  bench.tail(true, 8);  // seven more
  EXPECT_EQ(bench.port.reads.size(), 1U);
  bench.tail(true, 9);
  ASSERT_EQ(bench.port.reads.size(), 2U);
  EXPECT_EQ(bench.port.reads[1].bytes, 8U * 16);
}

TEST(NicTransmit, TailBehindTheRingsEnd_ExpectFetchDoesNotWrap) {
  Bench bench("ixgbe");
  bench.start_tx();
  for (std::uint32_t i = 0; i < 60; ++i) bench.put_tx(i, 60);
  bench.tail(true, 60);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().sent, 60U);
  bench.port.seen.clear();
  for (std::uint32_t i = 60; i < 70; ++i) bench.put_tx(i % Bench::kEntries, 60);
  bench.tail(true, 6);
  bench.settle();
  ASSERT_GE(bench.port.seen.size(), 2U);
  EXPECT_EQ(bench.port.seen[0].address, Bench::kTx + 60 * 16);
  EXPECT_EQ(bench.port.seen[0].bytes, 4U * 16);
  EXPECT_EQ(bench.nic.counters().sent, 70U);
  EXPECT_TRUE(bench.conserved());
}

TEST(NicTransmit, ReportNever_ExpectNoWritebackAndHeadMoves) {  // QEMU: RS = 0
  for (const char* name : {"e1000e", "i210", "ixgbe", "i40e", "ice", "iavf"}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    bench.start_tx();
    for (std::uint32_t i = 0; i < 10; ++i) bench.put_tx(i, 300);
    bench.tail(true, 10);
    bench.settle();
    EXPECT_EQ(bench.sent.frames, 10U);
    EXPECT_EQ(bench.sent.wrong + bench.sent.reordered + bench.sent.missing, 0U);
    EXPECT_TRUE(bench.port.writes.empty());
    EXPECT_EQ(bench.nic.tx_ring(0).head, 10U);
    EXPECT_TRUE(bench.conserved());
  }
}

TEST(NicTransmit, ReportOnSome_ExpectWritebackOfThoseOnly) {  // X550 7.2.3.5.1
  for (const char* name : {"ixgbe", "ice"}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    bench.start_tx();
    for (std::uint32_t i = 0; i < 8; ++i) bench.put_tx(i, 60, i % 4 == 3);
    bench.tail(true, 8);
    bench.settle();
    ASSERT_EQ(bench.port.writes.size(), 2U);
    EXPECT_EQ(bench.port.writes[0].address, Bench::kTx + 3 * 16);
    EXPECT_EQ(bench.port.writes[0].data.size(), 16U);
    EXPECT_EQ(bench.port.writes[1].address, Bench::kTx + 7 * 16);
    EXPECT_TRUE(tx_done(bench.p, bench.port.peek(Bench::kTx + 3 * 16)));
  }
}

TEST(NicTransmit, HeadWriteback_ExpectFourBytesAndNoDescriptor) {  // X550 7.2.3.5.2; QEMU: igb
  Bench bench("igb");
  bench.start_tx(Bench::kHead);
  for (std::uint32_t i = 0; i < 6; ++i) bench.put_tx(i, 60, i % 2 == 1);
  bench.tail(true, 6);
  bench.settle();
  ASSERT_EQ(bench.port.writes.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.port.writes[i].address, Bench::kHead);
    ASSERT_EQ(bench.port.writes[i].data.size(), 4U);
    EXPECT_EQ(std::to_integer<std::uint32_t>(bench.port.writes[i].data[0]), 2 * i + 2);
  }
}

TEST(NicTransmit, HeadWritebackWhereThereIsNone_ExpectRefused) {
  Bench bench("ice");
  EXPECT_EQ(bench.nic.start_tx(0, Bench::kTx, 64, Bench::kHead).code(), StatusCode::kInvalidArgument);
}

TEST(NicTransmit, WritebackThreshold_ExpectAccumulatedWhateverRsSays) {  // X550 7.2.3.5.1, WTHRESH > 0
  NicOptions options = Bench::named("ixgbe");
  options.nic.tx_writeback = 4;
  options.nic.writeback_timer_ns = 5000;
  Bench bench(options);
  bench.start_tx();
  for (std::uint32_t i = 0; i < 6; ++i) bench.put_tx(i, 60);
  bench.tail(true, 6);
  bench.settle();
  ASSERT_EQ(bench.port.writes.size(), 2U);
  EXPECT_EQ(bench.port.writes[0].data.size(), 4U * 16);
  EXPECT_EQ(bench.port.writes[1].data.size(), 2U * 16);  // the timer
  EXPECT_EQ(bench.port.writes[1].address, Bench::kTx + 4 * 16);
}

TEST(NicTransmit, CompletionsInReverse_ExpectFramesInOrder) {
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  for (std::uint32_t i = 0; i < 8; ++i) bench.put_tx(i, 300);
  bench.tail(true, 8);
  bench.port.answer(0);  // the descriptors
  ASSERT_EQ(bench.port.reads.size(), 8U);
  while (!bench.port.reads.empty()) {
    EXPECT_EQ(bench.nic.tx_ring(0).head, 0U);
    bench.port.answer(bench.port.reads.size() - 1);
  }
  bench.queue.run();
  EXPECT_EQ(bench.sent.frames, 8U);
  EXPECT_EQ(bench.sent.reordered + bench.sent.missing + bench.sent.wrong, 0U);
}

TEST(NicTransmit, DescriptorFetchesCompleteInReverse_ExpectFramesInOrder) {
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  for (std::uint32_t i = 0; i < 8; ++i) {
    bench.put_tx(i, 300);
    bench.tail(true, i + 1);
  }
  ASSERT_EQ(bench.port.reads.size(), 8U);
  for (std::size_t i = 8; i-- > 0;) bench.port.answer(i);
  bench.port.hold_reads = false;
  bench.settle();
  EXPECT_EQ(bench.sent.frames, 8U);
  EXPECT_EQ(bench.sent.reordered + bench.sent.missing + bench.sent.wrong, 0U);
}

TEST(NicTransmit, Frame_ExpectStoreAndForwardAndReportBeforeTheWire) {  // X550 7.2.1, 7.2.1.2
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  bench.put_part(0, Bench::kBuffers, 100, false);
  bench.put_part(1, Bench::kBuffers + 100, 200, true, true);
  bench.tail(true, 2);
  bench.port.answer(0);
  ASSERT_EQ(bench.port.reads.size(), 2U);
  bench.port.answer(1);
  bench.queue.run();
  EXPECT_EQ(bench.sent.frames, 0U);
  EXPECT_TRUE(bench.port.writes.empty());
  bench.port.answer(0);
  EXPECT_EQ(bench.port.writes.size(), 1U);  // the report
  EXPECT_EQ(bench.sent.frames, 0U);
  const Time there = bench.queue.now();
  bench.queue.run();
  EXPECT_EQ(bench.sent.frames, 1U);
  EXPECT_EQ(bench.sent.bytes, 300U);
  EXPECT_EQ(bench.queue.now() - there, bench.p.tx_ns * pcie::kNanosecond + frame_time(300, 10'000));
}

TEST(NicTransmit, DescriptorsOfAFrameComeLate_ExpectNothingReadBeforeAllAreThere) {
  Bench bench("ixgbe");
  bench.start_tx();
  bench.put_part(0, Bench::kBuffers, 100, false);
  bench.tail(true, 1);  // against the datasheet, which wants tails on packet boundaries
  bench.settle();
  EXPECT_EQ(bench.port.seen.size(), 1U);
  bench.put_part(1, Bench::kBuffers + 100, 200, true);
  bench.tail(true, 2);
  bench.settle();
  EXPECT_EQ(bench.sent.frames, 1U);
}

TEST(NicTransmit, ShortFrame_ExpectPaddedWithZeros) {  // QEMU: 30 bytes are padded to 60
  Bench bench("e1000e");
  bench.start_tx();
  bench.put_tx(0, 30);
  bench.tail(true, 1);
  bench.settle();
  EXPECT_EQ(bench.sent.frames, 1U);
  EXPECT_EQ(bench.sent.bytes, 60U);
}

TEST(NicTransmit, ContextDescriptorBetweenData_ExpectConsumedWithoutEffect) {  // QEMU: the same
  for (const char* name : {"e1000e", "igb", "ixgbe", "i40e", "ice"}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    bench.start_tx();
    bench.put_tx(0, 300);
    bench.port.poke(Bench::kTx + 16, bypass::Descriptor{0, bench.p.tx_type_context});
    bench.put_tx(2, 300);
    bench.tail(true, 3);
    bench.settle();
    EXPECT_EQ(bench.sent.frames, 2U);
    EXPECT_EQ(bench.nic.counters().contexts, 1U);
    EXPECT_EQ(bench.nic.tx_ring(0).head, 3U);
    bench.port.poke(Bench::kTx + 3 * 16, bypass::Descriptor{0, bench.p.tx_type_context});  // alone
    bench.tail(true, 4);
    bench.settle();
    EXPECT_EQ(bench.nic.tx_ring(0).head, 4U);
    EXPECT_TRUE(bench.conserved());
  }
}

TEST(NicTransmit, FramesThatMayNotBeSent_ExpectEachReasonCountedAndTheNextFrameSent) {
  Bench bench("i40e");
  bench.start_tx();
  bench.put_tx(0, 16);  // I40E_TX_MIN_PKT_LEN is 17
  for (std::uint32_t i = 1; i <= 6; ++i) bench.put_part(i, Bench::kBuffers, 2048, i == 6);
  for (std::uint32_t i = 7; i < 17; ++i) bench.put_part(i, Bench::kBuffers, 60, i == 16);  // ten; eight are allowed
  bench.put_tx(17, 60);
  bench.tail(true, 18);
  bench.settle();
  const NicCounters& c = bench.nic.counters();
  EXPECT_EQ(c.dropped(TxDrop::kTooShort), 1U);
  EXPECT_EQ(c.dropped(TxDrop::kTooLong), 1U);
  EXPECT_EQ(c.dropped(TxDrop::kBadChain), 1U);
  EXPECT_EQ(c.sent, 1U);
  EXPECT_EQ(c.accepted, 4U);
  EXPECT_EQ(bench.nic.tx_ring(0).head, 18U);
  EXPECT_TRUE(bench.conserved());
}

TEST(NicTransmit, PayloadReadFails_ExpectFrameDroppedAndTheNextOneSent) {
  for (const auto& [status, why] : {std::pair{CompletionStatus::kUnsupportedRequest, TxDrop::kReadFailed},
                                    {CompletionStatus::kCompleterAbort, TxDrop::kReadFailed},
                                    {CompletionStatus::kPoisoned, TxDrop::kPoisoned}}) {
    Bench bench("ixgbe");
    bench.port.hold_reads = true;
    bench.start_tx();
    bench.put_tx(0, 300);
    bench.put_tx(1, 300);
    bench.tail(true, 2);
    bench.port.answer(0);
    ASSERT_EQ(bench.port.reads.size(), 2U);
    bench.port.answer(0, status);
    bench.port.hold_reads = false;
    bench.settle();
    EXPECT_EQ(bench.nic.counters().dropped(why), 1U);
    EXPECT_EQ(bench.nic.counters().sent, 1U);
    EXPECT_TRUE(bench.conserved());
  }
}

TEST(NicTransmit, ReadTimesOut_ExpectItIsIssuedAgain) {
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  bench.put_tx(0, 300);
  bench.tail(true, 1);
  bench.port.answer(0, CompletionStatus::kTimeout);  // the descriptor
  ASSERT_EQ(bench.port.reads.size(), 1U);
  bench.port.answer(0);
  bench.port.answer(0, CompletionStatus::kTimeout);  // the payload
  bench.port.hold_reads = false;
  bench.settle();
  EXPECT_EQ(bench.nic.counters().retries, 2U);
  EXPECT_EQ(bench.sent.frames, 1U);
  EXPECT_EQ(bench.sent.wrong, 0U);
}

TEST(NicTransmit, ReadTimesOutForGood_ExpectFrameDropped) {
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  bench.put_tx(0, 300);
  bench.tail(true, 1);
  bench.port.answer(0);
  for (std::uint32_t i = 0; i <= kReadRetries; ++i) {
    ASSERT_EQ(bench.port.reads.size(), 1U);
    bench.port.answer(0, CompletionStatus::kTimeout);
  }
  EXPECT_EQ(bench.nic.counters().dropped(TxDrop::kReadFailed), 1U);
  EXPECT_EQ(bench.nic.counters().retries, kReadRetries);
}

TEST(NicTransmit, DescriptorReadFails_ExpectRingStopsAndRestarts) {
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  bench.put_tx(0, 300);
  bench.tail(true, 1);
  bench.port.answer(0, CompletionStatus::kUnsupportedRequest);
  EXPECT_FALSE(bench.nic.tx_ring(0).running());
  EXPECT_EQ(bench.nic.counters().rings_stopped, 1U);
  bench.tail(true, 2);
  EXPECT_EQ(bench.nic.counters().bad_tails, 1U);
  bench.port.hold_reads = false;
  bench.start_tx();
  bench.tail(true, 1);
  bench.settle();
  EXPECT_EQ(bench.sent.frames, 1U);
}

TEST(NicTransmit, PacketBufferFull_ExpectReadsWaitForTheWire) {
  NicOptions options = Bench::named("ixgbe");
  options.nic.tx_buffer_kib = 4;
  Bench bench(options);
  bench.start_tx();
  for (std::uint32_t i = 0; i < 20; ++i) bench.put_tx(i, 1514);
  bench.tail(true, 20);
  bench.port.answer_all();
  EXPECT_EQ(bench.nic.tx_waiting(), 2U);
  bench.settle();
  EXPECT_EQ(bench.sent.frames, 20U);
  EXPECT_LE(bench.nic.counters().tx_buffer_peak, 4096U);
}

TEST(NicTransmit, Frames_ExpectExactLineRate) {
  for (const auto& [name, mbits] : {std::pair{"i210", 1000U},
                                    {"igc", 2500U},
                                    {"ixgbe", 10'000U},
                                    {"i40e", 25'000U},
                                    {"i40e", 40'000U},
                                    {"ice", 100'000U}}) {
    for (const std::uint32_t bytes : {60U, 300U, 1514U}) {
      NicOptions options = Bench::named(name);
      options.mbits = mbits;
      Bench bench(options);
      bench.start_tx();
      for (std::uint32_t i = 0; i < 50; ++i) bench.put_tx(i, bytes);
      bench.tail(true, 50);
      bench.settle();
      EXPECT_EQ(bench.sent.frames, 50U);
      // Answers take no time here, so 49 slots of preamble, frame, FCS and gap follow the first frame.
      const Time first = bench.p.tx_ns * pcie::kNanosecond + frame_time(bytes, mbits);
      if (50U <= bench.p.tx_buffer_kib * 1024U / bytes) {
        EXPECT_EQ(bench.queue.now(), first + 49 * slot_time(bytes, mbits));
      }
    }
  }
}

TEST(NicTransmit, LinkDown_ExpectFrameOnTheWireLostAndTheRestWaits) {
  Bench bench("ixgbe");
  bench.start_tx();
  for (std::uint32_t i = 0; i < 5; ++i) bench.put_tx(i, 1514);
  bench.tail(true, 5);
  bench.port.answer_all();
  bench.queue.run(bench.p.tx_ns * pcie::kNanosecond + 100 * pcie::kNanosecond);
  bench.nic.set_link(false);
  bench.queue.run();
  EXPECT_EQ(bench.nic.counters().dropped(TxDrop::kLinkDown), 1U);
  EXPECT_EQ(bench.nic.tx_waiting(), 4U);
  bench.nic.set_link(true);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().sent, 4U);
  EXPECT_TRUE(bench.conserved());
}

TEST(NicTransmit, TwoQueues_ExpectTurns) {
  NicOptions options = Bench::named("ixgbe");
  options.queues = 2;
  Bench bench(options);
  bench.sent = Checker(2);
  ASSERT_TRUE(bench.nic.start_tx(0, Bench::kTx, 64).ok() && bench.nic.start_tx(1, Bench::kTx + 0x1000, 64).ok());
  std::vector<std::byte> frame(300);
  for (std::uint32_t i = 0; i < 40; ++i) {
    make_frame(frame, i / 2, i % 2);
    const std::uint64_t at = Bench::kBuffers + i * 2048;
    bench.port.poke(at, frame);
    bench.port.poke(Bench::kTx + i % 2 * 0x1000 + i / 2 * 16,
                    bypass::make_tx(bench.p, {.address = at, .bytes = 300, .total = 300, .end = true}));
  }
  bench.write_register(bench.p.tx_tail_offset, 20);
  bench.write_register(bench.p.tx_tail_offset + bench.p.tx_tail_stride, 20);
  bench.settle();
  EXPECT_EQ(bench.sent.frames, 40U);
  EXPECT_EQ(bench.sent.reordered + bench.sent.missing + bench.sent.wrong, 0U);
}

TEST(NicTransmit, HostileReads_ExpectReadsOutsideTheFrames) {
  NicOptions options = Bench::named("ixgbe");
  options.hostile.outside_reads = 1000;
  Bench bench(options);
  bench.start_tx();
  bench.put_tx(0, 300);
  bench.tail(true, 1);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().hostile_acts, 1U);
  EXPECT_EQ(bench.port.seen.size(), 3U);
  EXPECT_EQ(bench.sent.frames, 1U);
}

}  // namespace
}  // namespace wherry::sim::nic
