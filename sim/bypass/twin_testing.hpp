// SPDX-License-Identifier: Apache-2.0
// For tests of the twin: a NIC model that makes one step per call, and a card between it and a function.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>

#include "base/random.hpp"
#include "sim/bypass/echo.hpp"
#include "sim/bypass/twin.hpp"

namespace wherry::sim::twin_testing {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kBar = 0x12'3400'0000;
inline constexpr std::uint64_t kNicBar = 0xFE00'0000;

inline Bytes pattern(std::uint32_t bytes, std::uint64_t seed) {
  SplitMix64 random(seed);
  Bytes data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

/// An igb or e1000e with what these tests need: one step per call, with the datasheets' formats. Queue 0.
class Nic {
 public:
  Nic(Twin& card, std::uint32_t entries, std::uint32_t queue = 0)
      : card_(&card), entries_(entries), rings_(queue * kRingStride) {}

  /// Runs the card's clock, and takes its tail writes.
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
  /// Writes back as QEMU does: first with DD 0, then the status alone.
  void write_back_in_dwords(std::uint32_t index, std::uint32_t status, std::uint32_t bytes) {
    const std::array<std::uint32_t, 5> words{1, 2, status & ~1U, bytes, status};
    const std::array<std::uint32_t, 5> at{0, 4, 8, 12, 8};
    for (std::size_t i = 0; i < words.size(); ++i)
      card_->write(rings_ + index * 16 + at[i], std::as_bytes(std::span(words).subspan(i, 1)));
  }
  [[nodiscard]] bool can_receive() { return rx_head != rx_tail(); }
  /// A frame from the wire. False: no descriptor was left, and a part of the frame may have been written.
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
  /// The next frame to the wire, read in pieces of `piece` bytes.
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

inline CardSetup setup_of(bool in_place, const char* nic = "e1000e", std::uint32_t slots = 96) {
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
  /// Takes the frames that wait at the stream.
  std::vector<Bytes> taken() {
    std::vector<Bytes> frames;
    while (auto frame = card.take()) frames.push_back(frame->bytes);
    return frames;
  }

  InPlaceEcho function;
  Twin card{&function};
  Nic nic{card, 64};
};

}  // namespace wherry::sim::twin_testing
