// SPDX-License-Identifier: Apache-2.0
// Tests `wherry bypass up` with rings in the host's memory: when it does so, what it sets up, and what it gives back.
// Here a stand-in copies for the DMA engine. sim/bypass/up_host_test.cpp has the Verilated engine.
#include "bypass/process/host_way.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "bypass/process/bring_up_testing.hpp"

namespace wherry::bypass {
namespace {

using pci::testing_support::kCardWindow;
using testing_support::kCardName;
using testing_support::kNicName;
namespace reg = registers;

constexpr std::uint64_t kEngineBytes = 0x2000;

struct Bench : testing_support::UpBench {
  /// The engine of a card: copies between the window and the mirror when it is polled.
  class Copier final : public CardEngine {
   public:
    Copier(Bench& bench, std::uint64_t mirror) : bench_(bench), mirror_(mirror) {}
    bool try_post(Way way, std::uint32_t offset, std::uint32_t bytes) override {
      copies(way).push_back({offset, bytes});
      return true;
    }
    void ring(Way /*way*/) override {}
    Result<std::size_t> poll(Way way) override {
      if (bench_.engine_fails) return Status(StatusCode::kUnavailable, "the card's DMA engine failed a copy: reset");
      if (bench_.engine_stuck) return std::size_t{0};
      std::size_t ended = 0;
      for (; !copies(way).empty(); copies(way).pop_front(), ++ended) {
        const auto [offset, bytes] = copies(way).front();
        const std::span<std::byte> memory = bench_.memory_at(kCardName, mirror_ + offset, bytes);
        if (memory.empty()) return Status(StatusCode::kUnavailable, "the mirror cannot be reached");
        if (way == Way::kToHost)
          read(offset, memory);
        else
          bench_.card.write_window(offset, memory);
        if (bench_.engine_damages && bytes > 1) memory.front() ^= std::byte{1};
      }
      return ended;
    }
    void write_line(std::uint32_t offset, std::span<const std::byte> bytes) override {
      bench_.told.emplace_back(offset, bytes.size());
    }
    Status stop() override {
      to_host_.clear();
      to_card_.clear();
      return {};
    }

   private:
    /// Receive descriptors name the slots, as a core computes them; the model of the card has none.
    void read(std::uint32_t offset, std::span<std::byte> into) const {
      bench_.card.read_window(offset, into);
      if (offset >= kSlots) return;
      std::ranges::fill(into, std::byte{0});
      if (offset >= kTxRings) return;
      for (std::size_t i = 0; i + 16 <= into.size(); i += 16) {
        const std::uint64_t slot = mirror_ + kSlots + (offset + i) / 16 * kSlotBytes;
        std::memcpy(into.data() + i, &slot, sizeof slot);
      }
    }
    std::deque<std::pair<std::uint32_t, std::uint32_t>>& copies(Way way) {
      return way == Way::kToHost ? to_host_ : to_card_;
    }
    Bench& bench_;
    std::uint64_t mirror_;
    std::deque<std::pair<std::uint32_t, std::uint32_t>> to_host_, to_card_;
  };

  bool engine_fails = false, engine_stuck = false, engine_damages = false;
  std::vector<std::pair<std::uint32_t, std::size_t>> told;

  explicit Bench(RingPlace place = RingPlace::kHost, std::uint64_t engine = kEngineBytes) : UpBench(engine) {
    options.rings = place;
    if (engine != 0)
      open_engine = [this](pci::Vfio& /*vfio*/, std::size_t device, std::uint64_t mirror) {
        EXPECT_EQ(device, 1U) << "the card";
        return Result<std::unique_ptr<CardEngine>>(std::make_unique<Copier>(*this, mirror));
      };
  }
  void redirect() {
    machine.sysfs.write("devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/config",
                        pci::testing_support::ConfigBytes()
                            .bridge(0xE000'0000, 0xE0FF'FFFF, kCardWindow, kCardWindow + 0xFFF'FFFF)
                            .express(6)
                            .acs(0x5F, 0x1D)
                            .text());
  }
  [[nodiscard]] std::uint64_t rx_ring() const { return std::uint64_t{nic.value(0x1004)} << 32 | nic.value(0x1000); }
  [[nodiscard]] bool notes_say(std::string_view words) const {
    return std::ranges::any_of(report.notes,
                               [&](const std::string& note) { return note.find(words) != std::string::npos; });
  }
};

TEST(HostWay, BeginAndEnd_ExpectRingsInMemoryThatBothReach) {
  Bench bench;
  {
    auto up = bench.begin();
    ASSERT_TRUE(up) << up.status().message();
    EXPECT_TRUE(bench.report.in_host);
    EXPECT_TRUE(bench.notes_say("this process must run"));
    const std::uint64_t mirror = bench.rx_ring();
    EXPECT_EQ(mirror % kWindowBytes, 0U);
    EXPECT_FALSE(bench.memory_at(kNicName, mirror, kWindowBytes).empty());
    EXPECT_EQ(bench.nic.value(0x6000), static_cast<std::uint32_t>(mirror + 0x1'0000));
    EXPECT_EQ(bench.card.value(reg::kBaseLowOffset), static_cast<std::uint32_t>(mirror));
    EXPECT_EQ(bench.card.value(reg::kBaseHighOffset), static_cast<std::uint32_t>(mirror >> 32));
    for (const std::uint32_t low : {reg::rx_tail_low_offset(0), reg::tx_tail_low_offset(0)})
      EXPECT_FALSE(
          bench.memory_at(kCardName, std::uint64_t{bench.card.value(low + 4)} << 32 | bench.card.value(low), 4).empty())
          << "the card's tails go to the host's memory";
    EXPECT_NE(bench.card.value(reg::kCompletionOffset), 0U) << "frames are done by their write-backs";
    EXPECT_EQ(bench.nic.value(0x1018), 255U) << "the host wrote the tail";
    for (const auto& [address, mapping] : bench.kernel->mappings())
      EXPECT_TRUE(mapping.device.empty()) << "a BAR is mapped for DMA at " << address;
    ASSERT_NE((*up)->host_counters(), nullptr);
    EXPECT_EQ((*up)->host_counters()->tails, 1U);
    const Status ended = (*up)->end();
    EXPECT_TRUE(ended) << ended.message();
  }
  bench.expect_given_back();
}

TEST(HostWay, ReceivedFrame_ExpectItsBytesInTheSlotThenTheWriteBack) {
  Bench bench;
  auto up = bench.begin();
  ASSERT_TRUE(up) << up.status().message();
  for (std::uint8_t i = 0; i < 3; ++i) bench.nic.arrive(std::vector<std::byte>(60 + i, std::byte{i}));
  for (int i = 0; i < 4; ++i) {
    const auto turned = (*up)->turn();
    ASSERT_TRUE(turned) << turned.status().message();
  }
  EXPECT_EQ((*up)->host_counters()->received, 3U);
  EXPECT_EQ(bench.told, (std::vector<std::pair<std::uint32_t, std::size_t>>{{0, 48}}));
  EXPECT_TRUE((*up)->end());
  up->reset();
  bench.expect_given_back();
}

TEST(HostWay, SeveralPairs_ExpectEachAtItsRingsAndMailbox) {
  Bench bench;
  bench.card.pairs = 4;
  bench.options.pairs = 4;
  {
    auto up = bench.begin();
    ASSERT_TRUE(up) << up.status().message();
    EXPECT_TRUE(bench.nic.only_pairs_run(4));
    const std::uint64_t mirror = bench.rx_ring();
    std::set<std::uint32_t> boxes;
    for (std::uint32_t pair = 0; pair < 4; ++pair) {
      EXPECT_EQ(bench.nic.value(0x1000 + 0x40 * pair), static_cast<std::uint32_t>(mirror + 0x2'0000 * pair));
      EXPECT_EQ(bench.nic.value(0x1018 + 0x40 * pair), 255U) << pair;
      boxes.insert(bench.card.value(reg::rx_tail_low_offset(pair)));
      boxes.insert(bench.card.value(reg::tx_tail_low_offset(pair)));
    }
    EXPECT_EQ(boxes.size(), 8U);
    EXPECT_TRUE((*up)->end());
  }
  bench.expect_given_back();
}

TEST(HostWay, AutoAndAnOpenPath_ExpectRingsInTheCard) {
  Bench bench(RingPlace::kAuto);
  auto up = bench.begin();
  ASSERT_TRUE(up) << up.status().message();
  EXPECT_FALSE(bench.report.in_host);
  EXPECT_EQ((*up)->host_counters(), nullptr);
  EXPECT_EQ(bench.rx_ring(), kCardWindow);
  const auto turned = (*up)->turn();
  ASSERT_TRUE(turned);
  EXPECT_FALSE(*turned);
  up->reset();
  bench.expect_given_back();
}

TEST(HostWay, AutoAndNoPath_ExpectRingsInTheHostsMemorySaidAloud) {
  enum class Fault : std::uint8_t { redirect, reads, tails, reserved };
  for (const Fault fault : {Fault::redirect, Fault::reads, Fault::tails, Fault::reserved}) {
    SCOPED_TRACE(static_cast<int>(fault));
    Bench bench(RingPlace::kAuto);
    const auto dma = bench.nic.bus;
    const auto post = bench.card.post;
    if (fault == Fault::redirect) bench.redirect();
    if (fault == Fault::reads)
      bench.nic.bus.read = [&](std::uint64_t from, std::span<std::byte> into) {
        return from < kCardWindow && dma.read(from, into);
      };
    if (fault == Fault::tails)
      bench.card.post = [&](std::uint64_t to, std::uint32_t value) {
        if (to >= std::uint64_t{4} << 30) post(to, value);
      };
    if (fault == Fault::reserved) bench.kernel->ranges = {{0, 0xFEDF'FFFF}, {0x1'0000'0000, 0x2'0000'0000}};
    {
      auto up = bench.begin();
      ASSERT_TRUE(up) << up.status().message();
      EXPECT_TRUE(bench.report.in_host);
      EXPECT_TRUE(bench.notes_say("Rings in the card are not possible: "));
      EXPECT_TRUE(bench.notes_say("this process must run"));
      EXPECT_EQ(bench.report.finding.cause, Cause::kNone);
      EXPECT_TRUE((*up)->end());
    }
    bench.expect_given_back();
  }
}

TEST(HostWay, CardIsAskedForAndNoPath_ExpectRefusal) {
  Bench bench(RingPlace::kCard);
  bench.redirect();
  EXPECT_FALSE(bench.begin());
  EXPECT_EQ(bench.report.finding.cause, Cause::kAcsRedirect);
  EXPECT_TRUE(bench.kernel->log.empty()) << "something was taken";
}

TEST(HostWay, AnotherBar4_ExpectTheFirstFinding) {
  Bench bench(RingPlace::kAuto);
  bench.redirect();
  bench.open_engine = [](pci::Vfio& /*vfio*/, std::size_t /*device*/, std::uint64_t /*mirror*/) {
    return Result<std::unique_ptr<CardEngine>>(Status(StatusCode::kNotFound, "no DMA engine answers"));
  };
  const auto up = bench.begin();
  ASSERT_FALSE(up);
  EXPECT_EQ(up.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(bench.report.finding.cause, Cause::kAcsRedirect);
  EXPECT_TRUE(bench.notes_say("no DMA engine answers"));
  bench.expect_given_back();
}

TEST(HostWay, NoEngineInTheCard_ExpectRefusal) {
  for (const RingPlace place : {RingPlace::kHost, RingPlace::kAuto}) {
    Bench bench(place, 0);
    bench.redirect();
    const auto up = bench.begin();
    ASSERT_FALSE(up);
    if (place == RingPlace::kHost) {
      EXPECT_EQ(up.status().code(), StatusCode::kNotFound) << up.status().message();
    } else {
      EXPECT_EQ(bench.report.finding.cause, Cause::kAcsRedirect);
      EXPECT_TRUE(bench.notes_say("the DMA engine"));
    }
    bench.expect_given_back();
  }
}

TEST(HostWay, EngineThatDoesNotCopy_ExpectItsCause) {
  for (const bool damages : {true, false}) {
    Bench bench;
    (damages ? bench.engine_damages : bench.engine_stuck) = true;
    EXPECT_FALSE(bench.begin());
    EXPECT_EQ(bench.report.finding.cause, Cause::kEngineDead);
    bench.expect_given_back();
  }
}

TEST(HostWay, EngineThatFailsWhileUp_ExpectAnErrorAndEverythingGivenBack) {
  Bench bench;
  auto up = bench.begin();
  ASSERT_TRUE(up) << up.status().message();
  bench.engine_stuck = true;
  bench.nic.arrive(std::vector<std::byte>(60));
  ASSERT_TRUE((*up)->turn()) << "a copy is under way from now on";
  bench.engine_fails = true;
  EXPECT_EQ((*up)->turn().status().code(), StatusCode::kUnavailable);
  const std::uint64_t tails = (*up)->host_counters()->tails;
  EXPECT_TRUE((*up)->end());
  EXPECT_EQ(tails, 1U) << "only the first";
  up->reset();
  bench.expect_given_back();
}

TEST(HostWay, FailAtAnyCall_ExpectEverythingGivenBack) {
  Bench bench;
  for (int n = 0;; ++n) {
    bench.kernel->calls = 0;
    bench.kernel->fail_at = n;
    {
      auto up = bench.begin();
      bench.kernel->fail_at = -1;
      if (bench.kernel->calls <= n) {
        EXPECT_TRUE(up);
        EXPECT_GT(n, 30);
        break;
      }
    }
    SCOPED_TRACE(n);
    bench.expect_given_back();
  }
}

}  // namespace
}  // namespace wherry::bypass
