// SPDX-License-Identifier: Apache-2.0
// Tests of both halves: registers, resets, loopback, bus mastering, RSS, the wire's arithmetic.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/nic/rss.hpp"
#include "sim/nic/testing.hpp"

namespace wherry::sim::nic {
namespace {

TEST(NicWire, LineRate_ExpectThePacketRatesOfTheStandards) {
  // Frames of 64 bytes with FCS, in Mpps: 1.488, 3.720, 14.881, 37.202, 59.524, 148.81; of 1518 at 10 Gbit/s: 0.81274.
  EXPECT_NEAR(1e12 / static_cast<double>(slot_time(60, 1000)), 1.488e6, 1e3);
  EXPECT_NEAR(1e12 / static_cast<double>(slot_time(60, 2500)), 3.720e6, 1e3);
  EXPECT_NEAR(1e12 / static_cast<double>(slot_time(60, 10'000)), 14.881e6, 1e3);
  EXPECT_NEAR(1e12 / static_cast<double>(slot_time(60, 25'000)), 37.202e6, 1e3);
  EXPECT_NEAR(1e12 / static_cast<double>(slot_time(60, 40'000)), 59.524e6, 1e3);
  EXPECT_NEAR(1e12 / static_cast<double>(slot_time(60, 100'000)), 148.81e6, 1e4);
  EXPECT_NEAR(1e12 / static_cast<double>(slot_time(1514, 10'000)), 0.81274e6, 1e2);
  EXPECT_EQ(slot_time(1, 10'000), slot_time(60, 10'000));  // padding
}

// Microsoft, "Verifying the RSS hash calculation": source, destination, ports in the order of the wire.
TEST(NicRss, VerificationSuite_ExpectItsHashes) {
  const auto hash = [](std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return toeplitz(bytes);
  };
  EXPECT_EQ(hash({66, 9, 149, 187, 161, 142, 100, 80}), 0x323E8FC2U);
  EXPECT_EQ(hash({66, 9, 149, 187, 161, 142, 100, 80, 2794 >> 8, 2794 & 255, 1766 >> 8, 1766 & 255}), 0x51CCC178U);
  EXPECT_EQ(hash({199, 92, 111, 2, 65, 69, 140, 83, 14230 >> 8, 14230 & 255, 4739 >> 8, 4739 & 255}), 0xC626B0EAU);
  EXPECT_EQ(hash({24, 19, 198, 95, 12, 22, 207, 184, 12898 >> 8, 12898 & 255, 38024 >> 8, 38024 & 255}), 0x5C2B394AU);
}

TEST(NicRss, Frame_ExpectAddressesAndPortsWhereTheyLie) {
  std::vector<std::byte> frame(60);
  make_frame(frame, 0, 2794);
  const int addresses[] = {66, 9, 149, 187, 161, 142, 100, 80};
  for (std::size_t i = 0; i < 8; ++i) frame[26 + i] = static_cast<std::byte>(addresses[i]);
  frame[36] = static_cast<std::byte>(1766 >> 8), frame[37] = static_cast<std::byte>(1766 & 255);
  EXPECT_EQ(rss_hash(frame), 0x51CCC178U);
  frame[20] = std::byte{0x20};  // a fragment: no ports
  EXPECT_EQ(rss_hash(frame), 0x323E8FC2U);
  frame[12] = std::byte{0x88};
  EXPECT_EQ(rss_hash(frame), 0U);
}

TEST(Nic, RingsByRegisters_ExpectThemToRunAndHeadsToRead) {
  for (const char* name : {"e1000e", "i210", "igb", "igbvf", "igc", "ixgbe", "x550", "ixgbevf"}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    const bypass::Personality& p = bench.p;
    for (std::uint32_t i = 0; i < Bench::kEntries; ++i) {
      bench.port.poke(Bench::kRx + i * 16, bypass::make_rx(Bench::kBuffers + std::uint64_t{i} * 2048));
    }
    const auto ring = [&](std::uint32_t at, std::uint64_t base) {
      bench.write_register(at + 0x00, static_cast<std::uint32_t>(base) | 0x40);  // low bits are ignored
      bench.write_register(at + 0x04, static_cast<std::uint32_t>(base >> 32));
      bench.write_register(at + 0x08, Bench::kEntries * 16);
      bench.write_register(at + 0x28, p.ring_enable_mask);
    };
    if (p.rx_buffer_offset != 0) bench.write_register(p.rx_buffer_offset, 0x02000002);  // SRRCTL: ADV_ONEBUF, 2 KiB
    ring(p.rx_ring_offset, Bench::kRx);
    ring(p.tx_ring_offset, Bench::kTx);
    bench.tail(false, 32);
    bench.arrive(0, 3000);
    bench.put_tx(0, 300);
    bench.tail(true, 1);
    bench.settle();
    EXPECT_EQ(bench.nic.counters().delivered, 1U);
    EXPECT_EQ(bench.received(0).bytes, 2048U);
    EXPECT_EQ(bench.sent.frames, 1U);
    EXPECT_EQ(bench.read_register(p.rx_ring_offset + 0x10), 2U);
    EXPECT_EQ(bench.read_register(p.tx_ring_offset + 0x10), 1U);
    EXPECT_EQ(bench.read_register(p.rx_tail_offset), 32U);
  }
}

TEST(Nic, HeadWritebackByRegisters_ExpectIt) {
  for (const char* name : {"igb", "ixgbe", "ixgbevf"}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    bench.write_register(bench.p.tx_ring_offset, Bench::kTx);
    bench.write_register(bench.p.tx_ring_offset + 8, Bench::kEntries * 16);
    bench.write_register(bench.p.tx_head_offset, Bench::kHead | bench.p.tx_head_enable);
    bench.write_register(bench.p.tx_head_offset + 4, 0);
    bench.write_register(bench.p.tx_ring_offset + 0x28, bench.p.ring_enable_mask);
    bench.put_tx(0, 60, true);
    bench.tail(true, 1);
    bench.settle();
    ASSERT_EQ(bench.port.writes.size(), 1U);
    EXPECT_EQ(bench.port.writes[0].address, Bench::kHead);
  }
}

TEST(Nic, ResetRegister_ExpectRingsStopAndFramesInsideAreCounted) {
  for (const char* name : {"e1000e", "igb", "ixgbe"}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    bench.start_rx();
    bench.start_tx();
    for (std::uint32_t i = 0; i < 4; ++i) {
      bench.arrive(i, 60);
      bench.put_tx(i, 300);
    }
    bench.port.hold_reads = true;
    bench.tail(true, 4);
    bench.port.answer(0);
    bench.port.answer(0);  // one frame's payload; three are under way
    bench.write_register(bench.p.reset_offset, bench.p.reset_mask);
    EXPECT_EQ(bench.nic.counters().dropped(RxDrop::kReset), 4U);
    EXPECT_EQ(bench.nic.counters().dropped(TxDrop::kReset), 1U);
    EXPECT_TRUE(bench.conserved());
    EXPECT_EQ(bench.read_register(bench.p.rx_tail_offset), 0U);
    bench.start_tx();  // before the late completions come
    bench.put_tx(0, 300);
    bench.tail(true, 1);
    bench.port.hold_reads = false;
    bench.settle();
    EXPECT_EQ(bench.nic.counters().dropped(TxDrop::kReset), 4U);
    EXPECT_EQ(bench.sent.frames, 1U);
    EXPECT_EQ(bench.sent.wrong, 0U);
    EXPECT_TRUE(bench.conserved());
    EXPECT_EQ(bench.nic.tx_waiting() + bench.nic.rx_waiting(), 0U);
  }
}

TEST(Nic, ReadTimesOutAfterReset_ExpectNotIssuedAgain) {
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  bench.put_tx(0, 300);
  bench.tail(true, 1);
  bench.port.answer(0);  // the descriptor; the payload is under way
  bench.nic.reset();
  ASSERT_EQ(bench.port.reads.size(), 1U);
  bench.port.answer(0, pcie::CompletionStatus::kTimeout);
  EXPECT_TRUE(bench.port.reads.empty());
  EXPECT_EQ(bench.nic.counters().retries, 0U);
  EXPECT_EQ(bench.nic.counters().dropped(TxDrop::kReset), 1U);
  EXPECT_EQ(bench.nic.tx_waiting(), 0U);
}

TEST(Nic, FunctionReset_ExpectAsTheRegister) {
  Bench bench("i40e");
  bench.start_rx();
  bench.start_tx();
  bench.arrive(0, 60);
  bench.put_tx(0, 300);
  bench.port.hold_reads = true;
  bench.tail(true, 1);
  bench.port.answer(0);
  bench.port.answer(0, pcie::CompletionStatus::kAborted);  // as the port does before on_reset()
  bench.nic.on_reset(pcie::ResetKind::kFunctionLevel);
  EXPECT_EQ(bench.nic.counters().dropped(TxDrop::kReset), 1U);
  EXPECT_EQ(bench.nic.counters().dropped(RxDrop::kReset), 1U);
  EXPECT_TRUE(bench.conserved());
  EXPECT_FALSE(bench.nic.rx_ring(0).running());
}

TEST(Nic, MacLoopback_ExpectFrameFromSlotToSlotAndNothingOnTheWire) {  // QEMU: RCTL.LBM
  for (const char* name : {"e1000e", "igb", "ixgbe", "ice"}) {
    SCOPED_TRACE(name);
    Bench bench(name);
    bench.nic.set_link(false);  // loopback does not need it
    if (bench.p.loopback_mask != 0) {
      bench.write_register(bench.p.loopback_offset, bench.p.loopback_mask);
    } else {
      bench.nic.set_loopback(true);
      bench.nic.set_link(false);
    }
    bench.start_rx();
    bench.start_tx();
    bench.tail(false, 16);
    bench.put_tx(40, 300);
    const bypass::Descriptor descriptor = bench.port.peek(Bench::kTx + 40 * bench.p.tx_descriptor_bytes);
    bench.port.poke(Bench::kTx, descriptor);
    bench.tail(true, 1);
    bench.arrive(9, 60);  // from outside: not heard
    bench.settle();
    ASSERT_TRUE(bench.is_done(0));
    EXPECT_EQ(bench.received(0).bytes, 300U);
    std::vector<std::byte> frame;
    for (std::uint32_t i = 0; i < 300; ++i) frame.push_back(bench.port.byte(Bench::kBuffers + i));
    EXPECT_TRUE(frame_is_right(frame));
    EXPECT_EQ(number_of(frame), 40U);
    EXPECT_EQ(bench.sent.frames, 0U);
    EXPECT_TRUE(bench.conserved());
  }
}

TEST(Nic, BusMasterOff_ExpectNothingMovesAndItGoesOnWhenOnAgain) {  // QEMU: the same
  Bench bench("ixgbe");
  bench.start_rx();
  bench.start_tx();
  bench.tail(false, 16);
  bench.settle();
  bench.nic.set_bus_master(false);
  for (std::uint32_t i = 0; i < 5; ++i) {
    bench.arrive(i, 60);
    bench.put_tx(i, 300);
  }
  bench.queue.run();
  EXPECT_TRUE(bench.port.writes.empty());
  bench.nic.set_bus_master(true);
  bench.tail(true, 5);
  bench.settle();
  EXPECT_EQ(bench.nic.counters().delivered, 5U);
  EXPECT_EQ(bench.sent.frames, 5U);
  EXPECT_EQ(bench.sent.wrong + bench.sent.missing, 0U);
  EXPECT_TRUE(bench.conserved());
}

TEST(Nic, BusMasterOffWhenTheWritebackTimerExpires_ExpectWritebackWhenOnAgain) {
  Bench bench("i40e");
  bench.start_rx();
  bench.tail(false, 32);
  bench.port.answer_all();
  bench.arrive(0, 60);
  bench.queue.run(bench.p.rx_ns * pcie::kNanosecond);
  bench.nic.set_bus_master(false);
  bench.queue.run();
  EXPECT_FALSE(bench.is_done(0));
  bench.nic.set_bus_master(true);
  EXPECT_TRUE(bench.is_done(0));
  EXPECT_TRUE(bench.conserved());
}

TEST(Nic, BusMasterOffWhileReading_ExpectAbortedReadsAreIssuedAgain) {
  Bench bench("ixgbe");
  bench.port.hold_reads = true;
  bench.start_tx();
  bench.put_tx(0, 300);
  bench.tail(true, 1);
  bench.nic.set_bus_master(false);
  bench.port.answer(0, pcie::CompletionStatus::kAborted);
  EXPECT_TRUE(bench.port.reads.empty());
  bench.nic.set_bus_master(true);
  ASSERT_EQ(bench.port.reads.size(), 1U);
  bench.port.hold_reads = false;
  bench.settle();
  EXPECT_EQ(bench.sent.frames, 1U);
}

TEST(Nic, TailBeyondTheRing_ExpectIgnoredAndCounted) {
  Bench bench("ixgbe");
  bench.start_rx();
  bench.tail(false, Bench::kEntries);
  EXPECT_EQ(bench.nic.counters().bad_tails, 1U);
  EXPECT_TRUE(bench.port.reads.empty());
}

TEST(Nic, RingThatThePersonalityDoesNotAllow_ExpectRefused) {
  Bench bench("i40e");
  EXPECT_FALSE(bench.nic.start_rx(1, Bench::kRx, 64, 2048).ok());
  EXPECT_FALSE(bench.nic.start_rx(0, Bench::kRx + 64, 64, 2048).ok());
  EXPECT_FALSE(bench.nic.start_rx(0, Bench::kRx, 40, 2048).ok());
  EXPECT_FALSE(bench.nic.start_rx(0, Bench::kRx, 64, 2000).ok());
  EXPECT_FALSE(bench.nic.start_rx(0, Bench::kRx, 8192, 2048).ok());
  EXPECT_TRUE(bench.nic.start_rx(0, Bench::kRx, 8160, 2048).ok());
}

TEST(Nic, RoomForOneAtATime_ExpectNeitherReceptionNorTransmissionStarves) {
  constexpr std::uint32_t kFrames = 16;
  Bench bench("ixgbe");
  bench.start_rx();
  bench.start_tx();
  bench.tail(false, 2 * kFrames);
  bench.port.answer_all();
  for (std::uint32_t i = 0; i < kFrames; ++i) bench.put_tx(i, 300);
  bench.tail(true, kFrames);
  bench.port.room = 0;
  bench.port.answer_all();  // the descriptors are on the chip; no frame can be asked for
  bench.port.hold_reads = true;
  for (std::uint32_t i = 0; i < kFrames; ++i) bench.arrive(i, 300);
  bench.queue.run();
  const auto asked = [&bench] {
    return std::ranges::count_if(bench.port.seen, [](const auto& read) { return read.address >= Bench::kBuffers; });
  };
  ASSERT_EQ(bench.nic.counters().delivered, 0U);
  ASSERT_EQ(asked(), 0);
  for (std::uint32_t turn = 0; turn < kFrames; ++turn) {
    bench.port.room = 1;
    bench.nic.on_room();
  }
  EXPECT_EQ(bench.nic.counters().delivered, kFrames / 2);
  EXPECT_EQ(asked(), kFrames / 2);
}

TEST(Nic, FunctionOptions_ExpectTailsInsideTheBarAndTagsOfThePersonality) {
  for (const bypass::Personality& p : bypass::kPersonalities) {
    SCOPED_TRACE(std::string(p.name));
    NicOptions options;
    options.nic = p;
    options.queues = std::min<std::uint32_t>(p.queues, 16);
    const pcie::FunctionOptions function = Nic::function_options(options);
    EXPECT_GT(function.bars[0].bytes, p.rx_tail_offset + (options.queues - 1) * p.rx_tail_stride);
    EXPECT_GT(function.bars[0].bytes, p.tx_tail_offset + (options.queues - 1) * p.tx_tail_stride);
    EXPECT_EQ(function.tags, p.reads_outstanding);
  }
}

}  // namespace
}  // namespace wherry::sim::nic
