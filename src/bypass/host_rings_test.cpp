// SPDX-License-Identifier: Apache-2.0
// Tests the rules of docs/design/bypass-host-rings.md with a mover that ends copies when the test says so.
#include "bypass/host_rings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace wherry::bypass {
namespace {

using Way = Mover::Way;
constexpr std::uint64_t kMirror = 0x12'0080'0000;
constexpr std::uint32_t kPacked = 0x28'0000;

struct Copy {
  std::uint32_t offset = 0, bytes = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

/// Window and mirror are plain memory; the bytes of a copy move when the copy ends.
struct Bench final : Mover, HostRingsAccess {
  const Personality& nic;
  std::vector<std::byte> window = std::vector<std::byte>(kWindowBytes), mirror = std::vector<std::byte>(kWindowBytes);
  std::vector<std::byte> mailbox = std::vector<std::byte>(4 * kMailboxBytes);
  std::deque<Copy> to_host, to_card;
  std::size_t room = 1000, ended_to_host = 0, ended_to_card = 0;
  bool fails = false;
  std::uint32_t pair = 0;  ///< that is in use
  std::vector<std::string> rung;
  std::vector<Copy> told;  ///< writes of the processor to the window
  std::vector<std::uint32_t> rx_tails, tx_tails;
  HostRings rings;

  explicit Bench(std::string_view name = "ixgbe", std::uint32_t entries = 64)
      : nic(*find_personality(name)),
        rings({.nic = &nic,
               .rx_entries = entries,
               .tx_entries = entries,
               .pairs = 4,
               .mirror = mirror,
               .mirror_address = kMirror,
               .mailbox = mailbox},
              *this, *this) {}
  std::deque<Copy>& queue(Way way) { return way == Way::kToHost ? to_host : to_card; }
  [[nodiscard]] bool try_post(Way way, std::uint32_t offset, std::uint32_t bytes) override {
    if (to_host.size() + to_card.size() >= room) return false;
    queue(way).push_back({offset, bytes});
    return true;
  }
  void ring(Way way) override { rung.emplace_back(way == Way::kToHost ? "to host" : "to card"); }
  [[nodiscard]] Result<std::size_t> poll(Way way) override {
    if (fails) return Status(StatusCode::kUnavailable, "the engine failed");
    return std::exchange(way == Way::kToHost ? ended_to_host : ended_to_card, 0);
  }
  void write_window(std::uint32_t offset, std::span<const std::byte> bytes) override {
    EXPECT_EQ(offset / 64, (offset + bytes.size() - 1) / 64) << "a write that crosses a line";
    std::ranges::copy(bytes, window.begin() + offset);
    told.push_back({offset, static_cast<std::uint32_t>(bytes.size())});
  }
  void write_rx_tail(std::uint32_t of, std::uint32_t value) override {
    EXPECT_EQ(of, pair);
    rx_tails.push_back(value);
  }
  void write_tx_tail(std::uint32_t of, std::uint32_t value) override {
    EXPECT_EQ(of, pair);
    tx_tails.push_back(value);
  }

  void turn() {
    const auto turned = rings.turn();
    ASSERT_TRUE(turned) << turned.status().message();
  }
  /// Ends the first `count` copies of a direction.
  void end(Way way, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const Copy copy = queue(way).front();
      queue(way).pop_front();
      const auto& from = way == Way::kToHost ? window : mirror;
      auto& to = way == Way::kToHost ? mirror : window;
      std::memcpy(to.data() + copy.offset, from.data() + copy.offset, copy.bytes);
    }
    (way == Way::kToHost ? ended_to_host : ended_to_card) += count;
  }
  void mail(std::uint32_t place, std::uint32_t value) {
    std::memcpy(mailbox.data() + pair * kMailboxBytes + place, &value, 4);
  }
  void put(std::vector<std::byte>& into, std::uint32_t offset, const Descriptor& descriptor) {
    std::array<std::byte, kDescriptorBytes> bytes;
    store(descriptor, bytes);
    std::ranges::copy(bytes, into.begin() + offset);
  }
  void receive(std::uint32_t index, std::uint32_t bytes) {  // as the NIC writes back
    put(mirror, kRxRings + pair * kRingStride + index * nic.rx_descriptor_bytes,
        make_rx_done(nic, {.bytes = bytes, .end = true}));
  }
  void transmit(std::uint32_t index, std::uint64_t address, std::uint32_t bytes) {  // as the core computes it
    put(window, kTxRings + pair * kRingStride + index * 16,
        make_tx(nic, {.address = address, .bytes = bytes, .total = bytes, .end = true}));
  }
  void give_slots_of_pair() {
    mail(kRxMail, 63);
    turn();
    end(Way::kToHost, 1);
    turn();
  }
  /// Gives the NIC all slots except one.
  void give_slots() {
    mail(kRxMail, 63);
    turn();
    end(Way::kToHost, 1);
    turn();
    ASSERT_EQ(rx_tails, std::vector<std::uint32_t>{63});
  }
};

TEST(HostRings, ReceiveTail_ExpectDescriptorsCopiedBeforeTheNicIsTold) {
  for (const auto& [name, stride] : {std::pair{"ixgbe", 16U}, std::pair{"iavf", 32U}}) {
    Bench bench(name);
    bench.turn();
    EXPECT_TRUE(bench.to_host.empty());
    bench.mail(kRxMail, 40);
    bench.turn();
    EXPECT_EQ(bench.to_host, (std::deque<Copy>{{kRxRings, 40 * stride}}));
    EXPECT_EQ(bench.rung, std::vector<std::string>{"to host"});
    bench.turn();
    EXPECT_TRUE(bench.rx_tails.empty());
    EXPECT_FALSE(bench.rings.idle());
    bench.end(Way::kToHost, 1);
    bench.turn();
    EXPECT_EQ(bench.rx_tails, std::vector<std::uint32_t>{40});
    EXPECT_TRUE(bench.rings.idle());
  }
}

TEST(HostRings, ReceivedFrame_ExpectItInItsSlotBeforeItsWriteBack) {
  Bench bench;
  bench.give_slots();
  bench.receive(0, 300);
  std::memset(bench.mirror.data() + kSlots, 0x5A, 300);
  bench.turn();
  EXPECT_EQ(bench.to_card, (std::deque<Copy>{{kSlots, 300}}));
  EXPECT_TRUE(bench.told.empty());
  bench.turn();
  EXPECT_TRUE(bench.told.empty());
  bench.end(Way::kToCard, 1);
  bench.turn();
  EXPECT_EQ(bench.told, (std::vector<Copy>{{kRxRings, 16}}));
  EXPECT_EQ(bench.window[kSlots + 299], std::byte{0x5A});
  EXPECT_EQ(std::memcmp(bench.window.data() + kRxRings, bench.mirror.data() + kRxRings, 16), 0);
  EXPECT_EQ(bench.rings.counters().received, 1U);
}

TEST(HostRings, ReceivedFramesOfALine_ExpectOneWriteForThem) {
  Bench bench;
  bench.give_slots();
  for (std::uint32_t i = 0; i < 7; ++i) bench.receive(i, 60 + i);
  bench.turn();
  ASSERT_EQ(bench.to_card.size(), 7U);
  EXPECT_EQ(bench.to_card[6], (Copy{kSlots + 6 * kSlotBytes, 66}));
  bench.end(Way::kToCard, 3);
  bench.turn();
  bench.end(Way::kToCard, 4);
  bench.turn();
  EXPECT_EQ(bench.told, (std::vector<Copy>{{0, 48}, {48, 16}, {64, 48}}));
}

TEST(HostRings, DescriptorsThatTheNicHasNot_ExpectNoLook) {
  Bench bench;
  bench.receive(0, 300);  // nobody gave it
  bench.turn();
  EXPECT_TRUE(bench.to_card.empty());
}

TEST(HostRings, LengthsOfAHostileNic_ExpectCopiesWithinTheSlot) {
  Bench bench;
  bench.give_slots();
  bench.receive(0, 0);
  bench.receive(1, 0xFFFF);
  bench.turn();
  EXPECT_EQ(bench.to_card, (std::deque<Copy>{{kSlots, 1}, {kSlots + kSlotBytes, kSlotBytes}}));
}

TEST(HostRings, TransmitTail_ExpectDescriptorsThenFramesThenTheNic) {
  Bench bench;
  bench.transmit(0, kMirror + kPacked, 300);
  bench.transmit(1, kMirror + kPacked + 320, 9000);
  bench.mail(kTxMail, 2);
  bench.turn();
  EXPECT_EQ(bench.to_host, (std::deque<Copy>{{kTxRings, 32}}));
  bench.end(Way::kToHost, 1);
  bench.turn();
  EXPECT_EQ(bench.to_host, (std::deque<Copy>{{kPacked, 300}, {kPacked + 320, 9000}}));
  EXPECT_TRUE(bench.tx_tails.empty());
  bench.end(Way::kToHost, 1);
  bench.turn();
  EXPECT_EQ(bench.tx_tails, std::vector<std::uint32_t>{1});
  bench.end(Way::kToHost, 1);
  bench.turn();
  EXPECT_EQ(bench.tx_tails, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(bench.told.empty());
  bench.put(bench.mirror, kTxRings, make_tx_done(bench.nic));
  bench.turn();
  EXPECT_EQ(bench.told, (std::vector<Copy>{{kTxRings, 16}}));
  bench.put(bench.mirror, kTxRings + 16, make_tx_done(bench.nic));
  bench.turn();
  EXPECT_EQ(bench.told, (std::vector<Copy>{{kTxRings, 16}, {kTxRings + 16, 16}}));
  EXPECT_EQ(bench.rings.counters().transmitted, 2U);
}

TEST(HostRings, AnotherPair_ExpectItsRingsSlotsAndTails) {
  Bench bench;
  bench.pair = 3;
  const std::uint32_t slots = kSlots + 3 * 64 * 4096, rings = 3 * 0x2'0000;  // docs/design/bypass-core.md
  bench.give_slots();
  bench.receive(0, 300);
  bench.transmit(0, kMirror + kPacked, 200);
  bench.mail(kTxMail, 1);
  bench.turn();
  EXPECT_EQ(bench.to_card, (std::deque<Copy>{{slots, 300}}));
  EXPECT_EQ(bench.to_host, (std::deque<Copy>{{kTxRings + rings, 16}}));
  bench.end(Way::kToCard, 1);
  bench.end(Way::kToHost, 1);
  bench.turn();
  bench.end(Way::kToHost, 1);
  bench.turn();
  EXPECT_EQ(bench.tx_tails, std::vector<std::uint32_t>{1});
  bench.put(bench.mirror, kTxRings + rings, make_tx_done(bench.nic));
  bench.turn();
  EXPECT_EQ(bench.told, (std::vector<Copy>{{rings, 16}, {kTxRings + rings, 16}}));
}

TEST(HostRings, CopiesOfSeveralPairs_ExpectEachForItsOwn) {
  Bench bench;
  for (bench.pair = 0; bench.pair < 4; ++bench.pair) {
    bench.transmit(0, kMirror + kPacked + 64 * bench.pair, 60);
    bench.mail(kTxMail, 1);
  }
  bench.turn();
  ASSERT_EQ(bench.to_host.size(), 4U);
  bench.end(Way::kToHost, 4);
  bench.turn();
  ASSERT_EQ(bench.to_host.size(), 4U);
  std::set<std::uint32_t> pairs;
  for (std::size_t n = 1; n <= 4; ++n) {
    bench.pair = (bench.to_host.front().offset - kPacked) / 64;
    pairs.insert(bench.pair);
    bench.end(Way::kToHost, 1);
    bench.turn();  // write_tx_tail() checks the pair
    EXPECT_EQ(bench.tx_tails.size(), n);
  }
  EXPECT_EQ(pairs.size(), 4U);
}

TEST(HostRings, WriteBacksWhileTheHostLooks_ExpectEachLengthAsWritten) {
  for (const char* name : {"ixgbe", "ice"}) {  // the length is in the same half as DD, and in the other one
    Bench bench(name);
    bench.give_slots();
    std::thread writer([&] {  // as a NIC: in order, and each half at once
      for (std::uint32_t i = 0; i < 63; ++i) {
        const Descriptor done = make_rx_done(bench.nic, {.bytes = 100 + i, .end = true});
        auto* const words = reinterpret_cast<std::uint64_t*>(bench.mirror.data() + i * bench.nic.rx_descriptor_bytes);
        std::atomic_ref(words[0]).store(done.low, std::memory_order_relaxed);
        std::atomic_ref(words[1]).store(done.high, std::memory_order_release);
      }
    });
    while (bench.to_card.size() < 63) bench.turn();
    writer.join();
    for (std::uint32_t i = 0; i < 63; ++i) EXPECT_EQ(bench.to_card[i].bytes, 100 + i) << name;
  }
}

TEST(HostRings, DescriptorThatTheNicChangesLater_ExpectTheCheckedOne) {
  Bench bench;
  bench.give_slots();
  bench.receive(0, 300);
  bench.turn();
  const std::vector<std::byte> before(bench.mirror.begin(), bench.mirror.begin() + 16);
  bench.receive(0, 2000);
  bench.end(Way::kToCard, 1);
  bench.turn();
  EXPECT_TRUE(std::ranges::equal(std::span(bench.window).first(16), before));
}

TEST(HostRings, TailThatGoesBack_ExpectAnError) {
  for (const std::uint32_t place : {kRxMail, kTxMail}) {
    Bench bench;
    bench.mail(place, 40);
    bench.turn();
    bench.mail(place, 39);
    EXPECT_EQ(bench.rings.turn().status().code(), StatusCode::kProtocol);
  }
}

TEST(HostRings, RoomForOneCopy_ExpectEveryPairServed) {
  Bench bench;
  for (bench.pair = 0; bench.pair < 4; ++bench.pair) bench.give_slots_of_pair();
  bench.room = 1;
  std::set<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < 8; ++i) {
    for (bench.pair = 0; bench.pair < 4; ++bench.pair) bench.receive(i, 60);
    bench.turn();
    ASSERT_EQ(bench.to_card.size(), 1U);
    slots.insert((bench.to_card.front().offset - kSlots) / (64 * 4096));
    bench.end(Way::kToCard, 1);
  }
  EXPECT_EQ(slots.size(), 4U);
}

TEST(HostRings, RingsThatGoRound_ExpectTwoCopiesAndEveryDescriptorInTurn) {
  Bench bench;
  bench.give_slots();
  for (std::uint32_t i = 0; i < 63; ++i) bench.receive(i, 60);
  bench.turn();
  bench.end(Way::kToCard, 63);
  bench.turn();
  EXPECT_EQ(bench.rings.counters().received, 63U);
  bench.mail(kRxMail, 10);  // 63, and 0 to 9
  bench.turn();
  EXPECT_EQ(bench.to_host, (std::deque<Copy>{{63 * 16, 16}, {0, 160}}));
  bench.end(Way::kToHost, 2);
  bench.turn();
  EXPECT_EQ(bench.rx_tails.back(), 10U);
  bench.told.clear();
  bench.receive(63, 60);
  bench.receive(0, 60);
  bench.turn();
  bench.end(Way::kToCard, 2);
  bench.turn();
  EXPECT_EQ(bench.told, (std::vector<Copy>{{63 * 16, 16}, {0, 16}}));
}

TEST(HostRings, NoRoomForCopies_ExpectThemLaterInOrder) {
  Bench bench;
  bench.room = 1;
  for (std::uint32_t i = 0; i < 3; ++i) bench.transmit(i, kMirror + kPacked + 64 * i, 60);
  bench.mail(kRxMail, 5);
  bench.mail(kTxMail, 3);
  std::vector<Copy> order;
  for (int i = 0; i < 20; ++i) {
    bench.turn();
    if (bench.to_host.empty()) continue;
    order.push_back(bench.to_host.front());
    bench.end(Way::kToHost, 1);
  }
  EXPECT_EQ(order, (std::vector<Copy>{
                       {kRxRings, 80}, {kTxRings, 48}, {kPacked, 60}, {kPacked + 64, 60}, {kPacked + 128, 60}}));
  EXPECT_EQ(bench.tx_tails.back(), 3U);
  EXPECT_TRUE(bench.rings.idle());
}

TEST(HostRings, WhatCannotBe_ExpectAnErrorOrNothing) {
  for (const std::uint64_t address : {kMirror - 64, kMirror + kWindowBytes - 64, std::uint64_t{0}}) {
    Bench bench;
    bench.transmit(0, address, 300);
    bench.mail(kTxMail, 1);
    bench.turn();
    bench.end(Way::kToHost, 1);
    EXPECT_EQ(bench.rings.turn().status().code(), StatusCode::kProtocol) << address;
    EXPECT_TRUE(bench.to_host.empty());
  }
  Bench bench;
  bench.mail(kRxMail, ~0U);  // of a card that was removed
  bench.turn();
  EXPECT_TRUE(bench.to_host.empty());
  bench.fails = true;
  EXPECT_EQ(bench.rings.turn().status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wherry::bypass
