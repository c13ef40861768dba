// SPDX-License-Identifier: Apache-2.0
// For tests: host, card and driver, and transfers with a check of every byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "sim/card/rig.hpp"

namespace wherry::sim::card::testing_support {

using namespace std::chrono_literals;
namespace driver = wherry::dma;
using driver::Bell;
using driver::Direction;
using driver::Done;
using driver::Ring;

inline std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  std::vector<std::byte> data(count);
  SplitMix64 random(seed);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

struct Bench {
  explicit Bench(const RigOptions& options = {}, const driver::EngineOptions& engine_options = {}) : rig(options) {
    auto made = driver::Engine::open(rig.device, engine_options);
    EXPECT_TRUE(made) << made.status().to_string();
    if (made) engine = *std::move(made);
    memory = rig.device.allocate(kMemoryBytes).value();
  }
  ~Bench() { EXPECT_EQ(rig.card.violation(), ""); }

  static constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;
  static constexpr std::byte kPoison{0xA5};

  [[nodiscard]] Ring& ring(Direction direction, unsigned channel = 0) const { return engine->ring(direction, channel); }
  void load_card(std::uint64_t at, std::span<const std::byte> data) {
    rig.card.content().load(at, {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()});
  }
  [[nodiscard]] std::vector<std::byte> dump_card(std::uint64_t at, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    rig.card.content().dump(at, {reinterpret_cast<std::uint8_t*>(data.data()), bytes});
    return data;
  }
  /// The next completion that the ring reports.
  Done next(Ring& from, bool by_interrupt = false) {
    EXPECT_TRUE(from.wait(5ms, by_interrupt)) << "ring " << from.number() << " tells nothing";
    std::array<Done, 1> done;
    EXPECT_EQ(from.poll(done), 1U);
    return done[0];
  }
  /// Makes one transfer, and checks its bytes and those around. `host_off`: place in memory; `card`: place on the card.
  Done move(Direction direction, std::uint64_t host_off, std::uint64_t card, std::uint32_t bytes,
            Bell bell = Bell::kTail, unsigned channel = 0) {
    constexpr std::size_t kAround = 64;
    const std::vector<std::byte> data = random_bytes(bytes, ++seed), around(bytes + 2 * kAround, kPoison);
    std::byte* const host = memory.bytes.data() + host_off;
    if (direction == Direction::kToCard) {
      std::memcpy(host, data.data(), bytes);
      load_card(card - kAround, around);
    } else {
      std::memcpy(host - kAround, around.data(), around.size());
      load_card(card, data);
    }
    Ring& one = ring(direction, channel);
    EXPECT_TRUE(one.post({.host = memory.iova + host_off, .card = card, .bytes = bytes, .cookie = seed}).ok());
    one.ring_bell(bell);
    const Done done = next(one);
    EXPECT_EQ(done.cookie, seed);
    if (done.error != driver::Error::kNone) return done;
    std::vector<std::byte> expected = around;
    std::memcpy(expected.data() + kAround, data.data(), bytes);
    const std::vector<std::byte> found = direction == Direction::kToCard
                                             ? dump_card(card - kAround, expected.size())
                                             : std::vector<std::byte>(host - kAround, host + bytes + kAround);
    const auto differs =
        static_cast<std::size_t>(std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin());
    EXPECT_EQ(differs, found.size()) << "(64 before it) "
                                     << (direction == Direction::kToCard ? "to the card, " : "to the host, ") << bytes
                                     << " bytes, host " << host_off << ", card " << card;
    return done;
  }

  Rig rig;
  std::unique_ptr<driver::Engine> engine;
  pci::DmaMemory memory;
  std::uint64_t seed = 0;
};

}  // namespace wherry::sim::card::testing_support
