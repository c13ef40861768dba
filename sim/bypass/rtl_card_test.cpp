// SPDX-License-Identifier: Apache-2.0
// Runs the Verilated core and its twin, which were written independently, with the same NIC and the same function. The
// function's input, the wire and the counters must be equal, and must match the script.
#include "sim/bypass/rtl_card.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <tuple>

#include "sim/bypass/nic_testing.hpp"
#include "sim/bypass/twin.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint64_t kBar = 0x38'C000'8000'0000;  // above 4 GiB
constexpr std::uint64_t kNicBar = 0x70'F000'0000;
constexpr std::uint32_t kEntries = 64;
constexpr std::uint32_t kNowhere = 0x3F'0000;
constexpr std::uint32_t kShortest = 17;  ///< that the core transmits
constexpr std::uint32_t kFiveSlots = 5 * kSlotBytes;

Bytes random_bytes(std::size_t count, SplitMix64& random) {
  Bytes bytes(count);
  for (std::byte& one : bytes) one = static_cast<std::byte>(random());
  return bytes;
}

/// A random size, often near a multiple of a line or of a slot.
std::uint32_t random_size(SplitMix64& random, std::uint32_t most) {
  std::uint32_t size = kShortest + random.below(500);
  const std::uint32_t kind = random.below(8);
  if (kind < 3) size = kLineBytes * (1 + random.below(8)) + random.below(5) - 2;
  if (kind == 3) size = kSlotBytes * (1 + random.below(5)) + random.below(5) - 2;
  if (kind == 4) size = kShortest + random.below(most - kShortest);
  return std::clamp(size, kShortest, most);
}

/// Drops, changes or keeps a frame, depending on its contents.
class Judge final : public InPlaceFunction {
 public:
  bool forward(std::span<std::byte> head, std::uint32_t frame_bytes) override {
    const auto draw = std::to_integer<std::uint32_t>(head[0]) + frame_bytes;
    if (draw % 4 == 0) return false;
    if (draw % 4 == 1) std::reverse(head.begin(), head.end());
    return true;
  }
};

struct Arriving {
  Bytes frame;
  bool bad = false;
  bool out_of_turn = false;  ///< the NIC does something wrong before
};

struct Script {
  std::vector<Arriving> arriving;
  std::vector<Bytes> leaving;  ///< by the stream
  std::vector<Bytes> delivered, sent;
  std::uint64_t wrong = 0;
};

Script script_of(std::uint32_t frames, bool in_place, SplitMix64& random) {
  Script script;
  Judge judge;
  for (std::uint32_t i = 0; i < frames; ++i) {
    const std::uint32_t size = random_size(random, random.below(8) == 0 ? kFiveSlots : kMaxFrameBytes);
    Arriving one{
        .frame = random_bytes(size, random), .bad = random.below(16) == 0, .out_of_turn = random.below(16) == 0};
    if (one.out_of_turn) ++script.wrong;
    if (!one.bad && size <= kMaxFrameBytes) {
      Bytes frame = one.frame;
      if (!in_place)
        script.delivered.push_back(frame);
      else if (judge.forward(std::span(frame).first(std::min(size, kLineBytes)), size))
        script.sent.push_back(frame);
    }
    script.arriving.push_back(std::move(one));
    if (!in_place) {
      script.leaving.push_back(random_bytes(random_size(random, kMaxFrameBytes), random));
      script.sent.push_back(script.leaving.back());
    }
  }
  return script;
}

CardSetup setup_of(const bypass::Personality& nic, bool in_place) {
  CardSetup setup;
  setup.nic = &nic;
  setup.bar = kBar;
  setup.nic_bar = kNicBar;
  setup.in_place = in_place;
  setup.pack_bytes = 1U << 15;
  setup.queues = {{.rx_entries = kEntries, .tx_entries = kEntries, .first_slot = 0, .slots = 96}};
  return setup;
}

TestingNic nic_at(Card& card, const bypass::Personality& nic, const NicHabits& habits, std::uint64_t seed) {
  return {
      card, nic, {.card_bar = kBar, .nic_bar = kNicBar, .rx_entries = kEntries, .tx_entries = kEntries}, habits, seed};
}

struct Outcome {
  std::vector<Bytes> delivered, sent;
  CardCounters counters;
  std::string complaint;
};

class Traffic {
 public:
  Traffic(Card& card, const bypass::Personality& nic, const NicHabits& habits, std::uint64_t seed, const Script& script)
      : card_(card),
        nic_(nic_at(card, nic, habits, seed)),
        script_(script),
        random_(seed),
        haste_(seed % 2 == 0 ? 1 : 6) {}

  Outcome outcome() {
    constexpr std::uint32_t kMostSteps = 200'000, kAfterwards = 60;
    std::uint32_t more = kAfterwards;  // nothing may come behind the last
    for (std::uint32_t steps = 0; steps < kMostSteps && more > 0; ++steps) {
      if (is_over()) --more;
      step();
    }
    if (more > 0) found_.complaint = "it does not end";
    if (!nic_.complaint().empty()) found_.complaint = nic_.complaint();
    found_.counters = card_.counters();
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool is_over() const {
    return arrived_ == script_.arriving.size() && found_.delivered.size() >= script_.delivered.size() &&
           found_.sent.size() >= script_.sent.size();
  }
  void step() {
    arrive();
    while (const auto frame = card_.take()) found_.delivered.push_back(frame->bytes);
    while (left_ < script_.leaving.size() && card_.try_put({.queue = 0, .bytes = script_.leaving[left_]})) {
      ++left_;
      if (random_.below(2) == 0) break;
    }
    nic_.turn(random_.below(4));
    // A slow NIC keeps the ring or the packed buffer full, so data that the card frees too early are overwritten.
    if (random_.below(8) >= haste_) return;
    if (auto frame = nic_.transmit()) found_.sent.push_back(std::move(*frame));
  }
  void arrive() {
    if (random_.below(8) == 0 || arrived_ == script_.arriving.size()) nic_.write_back();
    if (arrived_ == script_.arriving.size() || random_.below(3) == 0) return;
    const Arriving& one = script_.arriving[arrived_];
    if (one.out_of_turn && !misbehaved_) {
      misbehaved_ = nic_.write_back_out_of_turn();
      std::array<std::byte, 4> word{};
      if (misbehaved_) {
        card_.write(kNowhere, word);
        card_.read(kNowhere, word);
      }
      return;
    }
    if (!nic_.can_receive(one.frame.size())) return nic_.write_back();
    nic_.receive(one.frame, one.bad);
    misbehaved_ = false;
    ++arrived_;
  }

  Card& card_;
  TestingNic nic_;
  const Script& script_;
  SplitMix64 random_;
  std::size_t arrived_ = 0, left_ = 0;
  bool misbehaved_ = false;
  std::uint32_t haste_;
  Outcome found_;
};

NicHabits random_habits(SplitMix64& random) {
  constexpr std::array<std::uint32_t, 6> kPieces{4, 60, 64, 128, 256, 512};
  NicHabits habits;
  habits.fetch = 1 + random.below(16);
  habits.piece = kPieces[random.below(kPieces.size())];
  habits.line = 1U << random.below(4);
  habits.shuffle = habits.piece % kLineBytes == 0 && random.below(2) == 0;
  return habits;
}

auto counted(const CardCounters& c) {
  return std::tuple(c.rx_frames, c.rx_damaged + c.rx_too_long, c.rx_refused, c.rx_delivered, c.rx_stopped, c.rx_waiting,
                    c.tx_frames, c.tx_bytes, c.tx_taken, c.tx_stopped, c.tx_waiting, c.wrong_writebacks, c.stray_reads,
                    c.stray_writes);
}

struct Kind {
  const char* nic;
  bool in_place;
  friend void PrintTo(const Kind& kind, std::ostream* out) {
    *out << kind.nic << (kind.in_place ? ", in place" : ", by the stream");
  }
};

class SimBypassRtl : public testing::TestWithParam<Kind> {};

TEST_P(SimBypassRtl, SameTrafficAsTheTwin_ExpectTheSame) {
  const bypass::Personality& nic = *bypass::find_personality(GetParam().nic);
  const bool in_place = GetParam().in_place;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SplitMix64 random(seed);
    const Script script = script_of(120, in_place, random);
    NicHabits habits = random_habits(random);
    habits.words = seed % 4 == 2;
    habits.shuffle = habits.shuffle && !habits.words;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", words " << habits.words << ", piece " << habits.piece);
    Judge judge;
    Twin twin(&judge);
    RtlCard rtl(&judge, {.seed = seed, .pauses = seed % 2 == 0 ? 200'000U : 0U, .trace = {}});
    std::vector<Outcome> found;
    for (Card* card : {static_cast<Card*>(&twin), static_cast<Card*>(&rtl)}) {
      ASSERT_TRUE(card->configure(setup_of(nic, in_place)));
      ASSERT_TRUE(card->start(0));
      found.push_back(Traffic(*card, nic, habits, seed, script).outcome());
      EXPECT_EQ(found.back().complaint, "");
      EXPECT_EQ(found.back().delivered, script.delivered);
      EXPECT_EQ(found.back().sent, script.sent);
      EXPECT_TRUE(holds_balance(found.back().counters));
      EXPECT_EQ(found.back().counters.wrong_writebacks, script.wrong);
    }
    EXPECT_EQ(counted(found[0].counters), counted(found[1].counters));
    EXPECT_EQ(found[0].counters.tx_writebacks, 0U);
    if (nic.tx_rs_interval == 0) {
      EXPECT_EQ(found[1].counters.tx_writebacks, 0U);
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Nics, SimBypassRtl,
                         testing::Values(Kind{"e1000e", false}, Kind{"e1000e", true}, Kind{"igb", false},
                                         Kind{"igb", true}, Kind{"ixgbe", false}, Kind{"ixgbe", true},
                                         Kind{"i40e", false}, Kind{"i40e", true}, Kind{"ice", false},
                                         Kind{"ice", true}));

TEST(SimBypassRtlWindow, AccessesOfEverySizeAndAlignment_ExpectMemory) {
  RtlCard card(nullptr, {.seed = 3, .pauses = 100'000, .trace = {}});
  constexpr std::uint32_t kBoundaryBytes = 4096;
  const std::uint32_t bytes = card.rx_entries() * kSlotBytes;
  SplitMix64 random(7);
  Bytes memory = random_bytes(bytes, random);
  for (std::uint32_t at = 0; at < bytes; at += kBoundaryBytes)
    card.write(kSlots + at, std::span(memory).subspan(at, kBoundaryBytes));
  for (int i = 0; i < 600; ++i) {
    const std::uint32_t at = random.below(bytes);
    const std::uint32_t most = random.below(3) == 0 ? kBoundaryBytes : 1U << random.below(8);
    const std::uint32_t count = std::min(1 + random.below(most), kBoundaryBytes - at % kBoundaryBytes);
    if (random.below(2) == 0) {
      const Bytes data = random_bytes(count, random);
      card.write(kSlots + at, data);
      std::copy(data.begin(), data.end(), memory.begin() + at);
    } else {
      Bytes data(count);
      card.read(kSlots + at, data);
      ASSERT_TRUE(std::equal(data.begin(), data.end(), memory.begin() + at)) << at << ", " << count;
    }
  }
}

TEST(SimBypassRtlStop, InTraffic_ExpectAllCountedAndTrafficAfterwards) {
  const bypass::Personality& e1000e = *bypass::find_personality("e1000e");
  Judge judge;
  RtlCard card(&judge, {.seed = 5, .pauses = 50'000, .trace = {}});
  SplitMix64 random(9);
  for (std::uint32_t round = 0; round < 40; ++round) {
    const bool in_place = round % 2 == 1;
    ASSERT_TRUE(card.configure(setup_of(e1000e, in_place)));
    ASSERT_TRUE(card.start(0));
    TestingNic nic = nic_at(card, e1000e, {}, round);
    nic.turn(8);
    for (std::uint32_t i = 0; i < 30; ++i) {
      const Bytes frame = random_bytes(random_size(random, 3000), random);
      if (nic.can_receive(frame.size())) nic.receive(frame);
      if (!in_place) (void)card.try_put({.queue = 0, .bytes = frame});
      nic.turn(random.below(2));
      if (random.below(4) == 0) (void)nic.transmit();
    }
    card.stop(0);
    const CardCounters counters = card.counters();
    ASSERT_TRUE(holds_balance(counters)) << round;
    EXPECT_EQ(counters.rx_waiting + counters.tx_waiting, 0U);
    EXPECT_FALSE(card.next_tail());
    EXPECT_FALSE(card.take());
    EXPECT_FALSE(card.try_put({.queue = 0, .bytes = random_bytes(60, random)}));
    EXPECT_EQ(nic.complaint(), "");
  }
  EXPECT_GT(card.counters().rx_stopped, 0U);
  EXPECT_GT(card.counters().tx_stopped, 0U);
  const Script script = script_of(40, false, random);
  ASSERT_TRUE(card.configure(setup_of(e1000e, false)));
  ASSERT_TRUE(card.start(0));
  const Outcome found = Traffic(card, e1000e, {}, 1, script).outcome();
  EXPECT_EQ(found.delivered, script.delivered);
  EXPECT_EQ(found.sent, script.sent);
  EXPECT_TRUE(holds_balance(found.counters));
}

TEST(SimBypassRtlSetup, Nonsense_ExpectTheFieldNamed) {
  RtlCard card;
  const bypass::Personality& nic = *bypass::find_personality("e1000e");
  const auto refused = [&](auto change) {
    CardSetup setup = setup_of(nic, false);
    change(setup);
    const Status status = card.configure(setup);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  const auto names = [](const std::string& text, const char* word) { return text.find(word) != std::string::npos; };
  EXPECT_EQ(card.start(0).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.nic = nullptr; }), "NIC"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.bar += 4096; }), "8 MiB"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.in_place = true; }), "in_place"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.queues.push_back(s.queues[0]); }), "queue pairs"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.queues[0].rx_entries = 128; }), "rx_entries"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.queues[0].first_slot = 8; }), "slots"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.doorbell.tx_credits = 16; }), "tx_credits"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.doorbell.rx_batch = 0; }), "rx_batch"));
  EXPECT_TRUE(names(refused([](CardSetup& s) { s.doorbell.patience = 1U << 16; }), "patience"));
  ASSERT_TRUE(card.configure(setup_of(nic, false)));
  ASSERT_TRUE(card.start(0));
  EXPECT_EQ(card.configure(setup_of(nic, false)).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(card.start(1).code(), StatusCode::kInvalidArgument);
}

TEST(SimBypassRtlDeathTest, FrameWithoutABeat_ExpectTheCoresOwnAssertion) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";  // a Verilated model has a thread
  RtlCore core({}, nullptr);
  EXPECT_DEATH(
      {
        ::dup2(STDERR_FILENO, STDOUT_FILENO);  // where Verilator's words go
        core.put_frame({});
        for (int i = 0; i < 8; ++i) core.cycle();
      },
      "a beat is not full");
}

}  // namespace
}  // namespace wherry::sim
