// SPDX-License-Identifier: Apache-2.0
// Tests each receive rule by itself, behind a port that the test controls. Where QEMU's models behave the same, the
// test says so ("QEMU:"; research, section 1), as an independent comparison.
#include <gtest/gtest.h>

#include "sim/nic/testing.hpp"

namespace wherry::sim::nic {
namespace {

TEST(NicReceive, TailEqualsHead_ExpectFrameWaitsUntilTheTailMoves) {  // QEMU: e1000e, igb
  Bench bench("ixgbe");
  bench.start_rx();
  bench.arrive(0, 60);
  bench.settle();
  EXPECT_TRUE(bench.port.writes.empty());
  EXPECT_EQ(bench.nic.rx_waiting(), 1U);
  bench.tail(false, 8);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().delivered, 1U);
  EXPECT_TRUE(bench.is_done(0));
  EXPECT_TRUE(bench.ok && bench.conserved());
}

TEST(NicReceive, TailOneShortOfRing_ExpectExactlyOneLessThanTheRing) {  // QEMU: RDT = N - 1
  Bench bench("ixgbe");
  bench.start_rx();
  bench.tail(false, Bench::kEntries - 1);
  for (std::uint64_t i = 0; i < 100; ++i) bench.arrive(i, 60);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().delivered, Bench::kEntries - 1);
  EXPECT_FALSE(bench.is_done(Bench::kEntries - 1));
  EXPECT_EQ(bench.nic.counters().rx_fetched, Bench::kEntries - 1);  // nothing beyond the tail (I210 7.1.4.3)
  EXPECT_TRUE(bench.conserved());
}

TEST(NicReceive, FrameLongerThanBuffer_ExpectThreeDescriptorsAndEndInTheLast) {  // QEMU: 5000 B into 2 KiB slots
  for (const char* name : {"e1000e", "i210", "ixgbe", "i40e", "ice", "iavf"}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    bench.start_rx();
    bench.tail(false, 16);
    bench.arrive(7, 5000);
    bench.settle();
    for (std::uint32_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(bench.is_done(i));
      EXPECT_EQ(bench.received(i).end, i == 2);
      EXPECT_EQ(bench.received(i).bytes, i == 2 ? 904U : 2048U);
    }
    EXPECT_FALSE(bench.is_done(3));
    std::vector<std::byte> frame;
    for (std::uint32_t i = 0; i < 5000; ++i) frame.push_back(bench.port.byte(Bench::kBuffers + i));
    EXPECT_TRUE(frame_is_right(frame));  // buffers lie one after the other
    EXPECT_TRUE(bench.conserved());
  }
}

TEST(NicReceive, Frame_ExpectPayloadBeforeWriteback) {
  Bench bench("ixgbe");
  bench.start_rx();
  bench.tail(false, 16);
  bench.arrive(0, 300);
  bench.settle();
  ASSERT_EQ(bench.port.writes.size(), 2U);
  EXPECT_EQ(bench.port.writes[0].address, Bench::kBuffers);
  EXPECT_EQ(bench.port.writes[0].data.size(), 300U);
  EXPECT_EQ(bench.port.writes[1].address, Bench::kRx);
  EXPECT_EQ(bench.port.writes[1].data.size(), 16U);
}

TEST(NicReceive, Frame_ExpectFirstWriteAfterTheNicsOwnTime) {
  Bench bench("ixgbe");
  bench.start_rx();
  bench.tail(false, 16);
  bench.port.answer_all();
  bench.arrive(0, 300);
  bench.queue.run(bench.p.rx_ns * pcie::kNanosecond - 1);
  EXPECT_TRUE(bench.port.writes.empty());
  bench.queue.run(bench.p.rx_ns * pcie::kNanosecond);
  EXPECT_EQ(bench.port.writes.size(), 2U);
}

TEST(NicReceive, PortRefuses_ExpectFrameGoesOnWhenThereIsRoom) {
  Bench bench("ixgbe");
  bench.start_rx();
  bench.tail(false, 16);
  bench.port.answer_all();
  bench.port.refuse = 1;
  bench.arrive(0, 300);
  bench.settle();
  EXPECT_TRUE(bench.port.writes.empty());
  bench.nic.on_room();
  EXPECT_EQ(bench.port.writes.size(), 2U);
  EXPECT_TRUE(bench.conserved());
}

TEST(NicReceive, WritebackByLine_ExpectFullLineAtOnceAndRestByTimer) {
  Bench bench("i40e");  // four descriptors of 32 bytes
  bench.start_rx();
  bench.tail(false, 32);
  bench.port.answer_all();
  for (std::uint64_t i = 0; i < 6; ++i) bench.arrive(i, 60);
  bench.queue.run(bench.p.rx_ns * pcie::kNanosecond);
  ASSERT_EQ(bench.port.writes.size(), 7U);  // six payloads; one line after the fourth
  EXPECT_EQ(bench.port.writes[4].address, Bench::kRx);
  EXPECT_EQ(bench.port.writes[4].data.size(), 128U);
  bench.queue.run();
  ASSERT_EQ(bench.port.writes.size(), 8U);
  EXPECT_EQ(bench.queue.now(), (bench.p.rx_ns + bench.p.writeback_timer_ns) * pcie::kNanosecond);
  EXPECT_EQ(bench.port.writes[7].address, Bench::kRx + 4 * 32);
  EXPECT_EQ(bench.port.writes[7].data.size(), 64U);
  for (std::uint64_t i = 6; i < 8; ++i) bench.arrive(i, 60);  // the line's rest makes it whole: aligned again
  bench.queue.run(bench.queue.now() + bench.p.rx_ns * pcie::kNanosecond);
  EXPECT_EQ(bench.port.writes.back().address, Bench::kRx + 6 * 32);
  EXPECT_EQ(bench.port.writes.back().data.size(), 64U);
}

TEST(NicReceive, WritebackByLineWithoutTimer_ExpectLowRateLooksDead) {
  NicOptions options = Bench::named("i40e");
  options.nic.writeback_timer_ns = 0;  // WB_ON_ITR off
  Bench bench(options);
  bench.start_rx();
  bench.tail(false, 32);
  for (std::uint64_t i = 0; i < 3; ++i) bench.arrive(i, 60);
  bench.settle();
  bench.nic.on_room();
  EXPECT_FALSE(bench.is_done(0));
  bench.arrive(3, 60);
  bench.settle();
  EXPECT_TRUE(bench.is_done(0) && bench.is_done(3));
}

TEST(NicReceive, TailNotMultipleOfEight_ExpectIceRoundsDownAndIxgbeDoesNot) {
  for (const auto& [name, usable] : {std::pair{"ice", 8U}, {"iavf", 8U}, {"ixgbe", 13U}, {"i40e", 13U}}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    bench.start_rx();
    bench.tail(false, 13);
    for (std::uint64_t i = 0; i < 20; ++i) bench.arrive(i, 60);
    bench.settle();
    EXPECT_EQ(bench.nic.counters().delivered, usable);
  }
}

TEST(NicReceive, ThirtyTwoByteDescriptors_ExpectFetchesAndWritebacksOfTheirSize) {
  Bench bench("ice");
  bench.start_rx();
  bench.tail(false, 8);
  ASSERT_FALSE(bench.port.seen.empty());
  EXPECT_EQ(bench.port.seen[0].bytes, 8U * 32);
  for (std::uint64_t i = 0; i < 4; ++i) bench.arrive(i, 60);
  bench.settle();
  EXPECT_EQ(bench.port.writes.back().data.size(), 4U * 32);
}

TEST(NicReceive, PacketBufferFull_ExpectDropsCountedAndTheRestDelivered) {
  NicOptions options = Bench::named("ixgbe");
  options.nic.rx_buffer_kib = 16;  // 10 frames of 1518 bytes in lines of 32: 1536 each
  Bench bench(options);
  bench.start_rx();
  for (std::uint64_t i = 0; i < 25; ++i) bench.arrive(i, 1514);
  EXPECT_EQ(bench.nic.rx_waiting(), 10U);
  EXPECT_EQ(bench.nic.counters().dropped(RxDrop::kBufferFull), 15U);
  bench.tail(false, 32);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().delivered, 10U);
  EXPECT_LE(bench.nic.counters().rx_buffer_peak, 16U * 1024);
  EXPECT_TRUE(bench.conserved());
}

TEST(NicReceive, RingEmptyAndDropSwitchedOn_ExpectDropAtTheHead) {
  NicOptions options = Bench::named("ixgbe");
  options.nic.rx_drop_without_descriptor = true;
  Bench bench(options);
  bench.start_rx();
  bench.tail(false, 8);
  for (std::uint64_t i = 0; i < 20; ++i) bench.arrive(i, 60);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().delivered, 8U);
  EXPECT_EQ(bench.nic.counters().dropped(RxDrop::kNoDescriptor), 12U);
  EXPECT_TRUE(bench.conserved());
}

TEST(NicReceive, FramesThatAreNotForTheRing_ExpectEachReasonCounted) {
  Bench bench("ixgbe");
  bench.arrive(0, 60);
  bench.start_rx();
  bench.tail(false, 32);
  bench.arrive(1, 60, false);
  bench.arrive(2, 59);
  bench.arrive(3, bench.p.frame_max - 3U);
  bench.nic.set_link(false);
  bench.arrive(4, 60);
  bench.nic.set_link(true);
  bench.arrive(5, 60);
  bench.settle();
  const NicCounters& c = bench.nic.counters();
  EXPECT_EQ(c.dropped(RxDrop::kQueueOff), 1U);
  EXPECT_EQ(c.dropped(RxDrop::kBadFcs), 1U);
  EXPECT_EQ(c.dropped(RxDrop::kTooShort), 1U);
  EXPECT_EQ(c.dropped(RxDrop::kTooLong), 1U);
  EXPECT_EQ(c.dropped(RxDrop::kLinkDown), 1U);
  EXPECT_EQ(c.delivered, 1U);
  EXPECT_TRUE(bench.conserved());
}

TEST(NicReceive, LongestFrame_ExpectDelivered) {
  Bench bench("ixgbe");
  bench.start_rx();
  bench.tail(false, 32);
  bench.arrive(0, bench.p.frame_max - kFcsBytes);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().delivered, 1U);
}

TEST(NicReceive, FourQueues_ExpectEveryFlowInItsQueueAndAllQueuesUsed) {
  NicOptions options = Bench::named("ixgbe");
  options.queues = 4;
  Bench bench(options);
  for (std::uint32_t queue = 0; queue < 4; ++queue) {
    const std::uint64_t ring = Bench::kRx + queue * 0x1000;
    for (std::uint32_t i = 0; i < 64; ++i)
      bench.port.poke(ring + 16 * i, bypass::make_rx(0x200000 + queue * 0x20000 + i * 2048));
    ASSERT_TRUE(bench.nic.start_rx(queue, ring, 64, 2048).ok());
    bench.write_register(bench.p.rx_tail_offset + queue * bench.p.rx_tail_stride, 63);
  }
  std::vector<std::byte> frame(60);
  for (std::uint32_t i = 0; i < 64; ++i) {
    make_frame(frame, i / 16, i % 16);
    bench.nic.on_frame(frame, true);
  }
  bench.settle();
  std::array<int, 16> queue_of{};
  queue_of.fill(-1);
  std::array<std::uint32_t, 4> used{};
  for (const HandPort::Write& write : bench.port.writes) {
    if (write.address < 0x200000) continue;
    const auto queue = static_cast<int>((write.address - 0x200000) / 0x20000);
    const auto flow = std::to_integer<std::size_t>(write.data[35]);
    if (queue_of[flow] == -1) queue_of[flow] = queue;
    EXPECT_EQ(queue_of[flow], queue);
    ++used[static_cast<std::size_t>(queue)];
  }
  for (const std::uint32_t count : used) EXPECT_GT(count, 0U);
  EXPECT_EQ(bench.nic.counters().delivered, 64U);
}

TEST(NicReceive, HostileLengths_ExpectLengthsBeyondTheBuffer) {
  NicOptions options = Bench::named("ixgbe");
  options.hostile.long_lengths = 1000;
  Bench bench(options);
  bench.start_rx();
  bench.tail(false, 8);
  bench.arrive(0, 60);
  bench.settle();
  EXPECT_GT(bench.received(0).bytes, Bench::kBuffer);
  EXPECT_EQ(bench.nic.counters().hostile_acts, 1U);
}

TEST(NicReceive, HostileWritebacks_ExpectDescriptorsDoneThatWereNeverFetched) {
  NicOptions options = Bench::named("ixgbe");
  options.hostile.ghost_writebacks = 1000;
  Bench bench(options);
  bench.start_rx();
  bench.tail(false, 8);
  for (std::uint64_t i = 0; i < 8; ++i) bench.arrive(i, 60);
  bench.settle();
  std::uint32_t ghosts = 0;
  for (std::uint32_t i = 8; i < Bench::kEntries; ++i) ghosts += bench.is_done(i) ? 1 : 0;
  EXPECT_GT(ghosts, 0U);
  EXPECT_EQ(bench.nic.counters().hostile_acts, 8U);
}

}  // namespace
}  // namespace wherry::sim::nic
