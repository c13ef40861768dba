// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/ddr4.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "sim/memory/axi_memory.hpp"
#include "sim/memory/ddr4_rules.hpp"
#include "sim/memory/traffic.hpp"

namespace wherry::sim::memory {
namespace {

/// Two managers whose bursts, directions and addresses change every thousand cycles.
std::vector<Ddr4Issued> random_trace(const Ddr4Controller& controller, const Ddr4Timing& timing, std::uint64_t seed,
                                     unsigned phases) {
  Ddr4 ddr4(controller, timing);
  std::vector<Ddr4Issued> trace;
  ddr4.record(&trace);
  Content content;
  AxiMemory memory(ddr4, content, 2);
  SplitMix64 random(seed);
  for (unsigned phase = 0; phase < phases; ++phase) {
    const auto load = [&random] {
      constexpr std::array<std::uint32_t, 5> kBeats{1, 2, 8, 16, 64};
      return Load{.reads = random.below(3) != 0,
                  .writes = random.below(2) != 0,
                  .beats = kBeats[random.below(5)],
                  .random = random.below(3) != 0,
                  .outstanding = 1 + random.below(16),
                  .region = std::uint64_t{1} << (16 + random.below(10)),
                  .streams = 1 + random.below(2) * random.below(4),
                  .stride = (1 << 20) + random.below(8) * 8192,
                  .seed = random()};
    };
    std::array<TrafficManager, 2> managers{TrafficManager(load()), TrafficManager(load())};
    for (unsigned cycle = 0; cycle < 4'000; ++cycle) {
      if (cycle == 1'000)
        for (TrafficManager& manager : managers) manager.stop();
      if (cycle > 1'000 && managers[0].quiet() && managers[1].quiet()) break;
      const std::array<AxiRequest, 2> requests{managers[0].request(), managers[1].request()};
      const AxiAnswer a = memory.answer(0), b = memory.answer(1);
      memory.step(requests);
      managers[0].step(a);
      managers[1].step(b);
    }
    EXPECT_TRUE(managers[0].quiet() && managers[1].quiet()) << "phase " << phase << ": not answered";
  }
  EXPECT_EQ(memory.violation(), "");
  return trace;
}

Ddr4Controller with_map(AddressMap map) {
  Ddr4Controller controller = kCardController;
  controller.map = map;
  return controller;
}

TEST(Ddr4, RandomLoads_ExpectEveryJedecIntervalKept) {
  std::map<std::string, std::uint64_t> tight;
  const auto expect_kept = [&tight](const Ddr4Controller& controller, std::uint64_t seed) {
    const std::vector<Ddr4Issued> trace = random_trace(controller, kDdr4_2400, seed, 40);
    const Ddr4Judgement judgement = judge(trace);
    EXPECT_GT(trace.size(), 10'000U);
    EXPECT_EQ(judgement.first, "");
    for (const auto& [rule, times] : judgement.tight) tight[rule] += times;
  };
  expect_kept(kCardController, 1);
  expect_kept(with_map(AddressMap::kRowBankColumn), 2);
  expect_kept(with_map(AddressMap::kBankGroupInterleaved), 3);
  expect_kept(kLitedramController, 4);
  // Commands go in one clock of four, so some intervals are never met exactly, but most are.
  EXPECT_GE(tight.size(), 4U);
}

/// In each case one interval of the model is a few clocks short, and the judge must name that rule.
TEST(Ddr4, ModelWithAShortInterval_ExpectTheRuleIsNamed) {
  struct Fault {
    const char* rule;
    std::function<void(Ddr4Timing&)> shorten;
  };
  const std::array faults{
      Fault{"tRCD", [](Ddr4Timing& t) { t.rcd -= 4; }},
      Fault{"tRAS", [](Ddr4Timing& t) { t.ras -= 8; }},
      Fault{"tRC", [](Ddr4Timing& t) { t.rc -= 8, t.ras -= 8; }},
      Fault{"tRRD_L", [](Ddr4Timing& t) { t.rrd_l = 2; }},
      Fault{"tRP", [](Ddr4Timing& t) { t.rp -= 4; }},
      Fault{"tRTP", [](Ddr4Timing& t) { t.rtp = 0; }},
      Fault{"tWR", [](Ddr4Timing& t) { t.wr -= 8; }},
      Fault{"tCCD_L", [](Ddr4Timing& t) { t.ccd_l = 4; }},
      Fault{"tWTR_L", [](Ddr4Timing& t) { t.wtr_l = 3; }},
      Fault{"tWTR_S", [](Ddr4Timing& t) { t.wtr_s = 0, t.wtr_l = 0; }},
      Fault{"RD to WR", [](Ddr4Timing& t) { t.rtw = 4; }},
      Fault{"tFAW", [](Ddr4Timing& t) { t.faw = 16; }},
      Fault{"tRFC1", [](Ddr4Timing& t) { t.rfc -= 40; }},
      Fault{"tREFI", [](Ddr4Timing& t) { t.refi *= 12; }},
  };
  for (const Fault& fault : faults) {
    Ddr4Timing timing;
    fault.shorten(timing);
    const Ddr4Judgement judgement = judge(random_trace(kCardController, timing, 5, 30));
    EXPECT_TRUE(judgement.broken.contains(fault.rule)) << fault.rule << ": " << judgement.first;
  }
}

/// The shortest intervals of commands that go in every clock; the model's four-clock cycles never reach them.
TEST(Ddr4, TraceByHand_ExpectJudgedToTheClock) {
  const auto rules = [](Clock second_act, Clock second_read) {
    const std::array trace{Ddr4Issued{0, Ddr4Command::kActivate, 0, 7},
                           Ddr4Issued{second_act, Ddr4Command::kActivate, 4, 9},
                           Ddr4Issued{30, Ddr4Command::kRead, 0, 7}, Ddr4Issued{second_read, Ddr4Command::kRead, 4, 9}};
    std::string broken;
    for (const auto& [rule, times] : judge(trace).broken) broken += rule + ";";
    return broken;
  };
  EXPECT_EQ(rules(4, 34), "");
  EXPECT_EQ(rules(3, 34), "tRRD_S;");
  EXPECT_EQ(rules(4, 33), "data bus;tCCD_S;");
  EXPECT_EQ(rules(19, 34), "tRCD;");
  EXPECT_EQ(rules(4, 30), "command bus;data bus;tCCD_S;");
}

TEST(Ddr4, EachAddressMap_ExpectAPlaceOfItsOwnForEachAddress) {
  for (const AddressMap map :
       {AddressMap::kRowBankColumn, AddressMap::kRowColumnBank, AddressMap::kBankGroupInterleaved}) {
    std::set<std::uint64_t> places;
    for (std::uint64_t address = 0; address < (1 << 20); address += 64) {
      const Place place = place_of(map, address);
      EXPECT_LT(place.bank, kBanks);
      EXPECT_LT(place.column, kColumns);
      places.insert((std::uint64_t{place.row} * kBanks + place.bank) * kColumns + place.column);
    }
    EXPECT_EQ(places.size(), (1U << 20) / 64);
    EXPECT_EQ(place_of(map, kDdr4Bytes - 64).row, kRows - 1);
  }
}

/// Clocks by hand: ACT in clock 2 of the cycle in which the bank looks; the read in the next clock 0 after 16 clocks.
TEST(Ddr4, FirstReadOfARow_ExpectJedecsClocks) {
  Ddr4 ddr4;
  std::vector<Ddr4Issued> trace;
  ddr4.record(&trace);
  ASSERT_TRUE(ddr4.offer({0, 0, false, 0}));
  Cycle ready = 0;
  for (unsigned i = 0; i < 20; ++i) {
    ddr4.cycle();
    if (!ddr4.done().empty()) ready = ddr4.done().front().ready;
  }
  ASSERT_EQ(trace.size(), 2U);
  EXPECT_EQ(trace[0].command, Ddr4Command::kActivate);
  EXPECT_EQ(trace[0].at, 2U * 4 + 2);
  EXPECT_EQ(trace[1].command, Ddr4Command::kRead);
  EXPECT_EQ(trace[1].at, 28U);  // 10 + 16 = 26, and then clock 0 of a cycle
  EXPECT_EQ(ready, 7U + 12);
}

double read_rate(const Ddr4Controller& controller, const Load& load, bool beside_core, const Ddr4Timing& timing) {
  Ddr4 ddr4(controller, timing);
  Content content;
  AxiMemory memory(ddr4, content, 2);
  Cell cell{"", load, {}};
  if (beside_core) cell.second = Load{.reads = true, .beats = 1, .random = true, .outstanding = 1, .base = 4 << 20};
  const Rates rates = measure(memory, cell, ddr4.cycle_ps());
  return load.reads ? rates.read_gbs : rates.write_gbs;
}

struct Choice {
  const char* name;
  Ddr4Controller controller;
  Ddr4Timing timing;
};
const std::array kChoices{Choice{"litedram", kLitedramController, kLitedramTiming},
                          Choice{"card", kCardController, kDdr4_2400}};

/// research/probe.md section 4: a second reader costs writes more than reads, because the bus turns round for it.
TEST(Ddr4, SoftCoreBesideAStream_ExpectWritesSufferMore) {
  for (const Choice& choice : kChoices) {
    const auto kept = [&choice](const Load& load) {
      return read_rate(choice.controller, load, true, choice.timing) /
             read_rate(choice.controller, load, false, choice.timing);
    };
    const double reads = kept({.reads = true}), writes = kept({.writes = true});
    EXPECT_LT(writes, reads) << choice.name;
    EXPECT_GT(reads, 0.9) << choice.name;
    if (choice.controller.one_bank_a_port) {
      EXPECT_LT(writes, 0.6) << choice.name;
    }
  }
}

/// From the same section: four channels that take turns in one bank.
TEST(Ddr4, TurnsOf4KiB_ExpectTheyKeepWhat512BLose) {
  for (const Choice& choice : kChoices)
    for (const bool reads : {true, false}) {
      const auto rate = [&](std::uint32_t beats, std::uint32_t streams) {
        const Load load{.reads = reads, .writes = !reads, .beats = beats, .streams = streams};
        return read_rate(choice.controller, load, false, choice.timing);
      };
      const double one = rate(64, 1), long_turns = rate(64, 4), short_turns = rate(8, 4);
      EXPECT_GT(long_turns, 0.84 * one) << choice.name << (reads ? " reads" : " writes");
      EXPECT_LT(short_turns, 0.7 * one) << choice.name << (reads ? " reads" : " writes");
      if (choice.controller.one_bank_a_port && !reads) {
        EXPECT_GT(long_turns, 2.5 * short_turns);
      }
    }
}

/// AMD PG313, "Single-Thread Linear Read": a map that changes the bank group every 64 bytes reaches 95 % of the bus,
/// and one that stays in a bank 54 %. AMD's controller is not ours, so only the ratio is compared.
TEST(Ddr4, LinearReadInOneBank_ExpectTheBankGroupPenalty) {
  const Load load{.reads = true, .beats = 64};
  const double simple = read_rate(with_map(AddressMap::kRowBankColumn), load, false, kDdr4_2400),
               interleaved = read_rate(with_map(AddressMap::kBankGroupInterleaved), load, false, kDdr4_2400);
  EXPECT_NEAR(interleaved / 19.2, 0.95, 0.03);
  EXPECT_LT(simple, 0.6 * interleaved);
}

}  // namespace
}  // namespace wherry::sim::memory
