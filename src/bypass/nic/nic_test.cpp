// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "bypass/descriptor.hpp"
#include "bypass/nic/model_testing.hpp"
#include "bypass/nic/nic.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;
using testing_support::GigabitModel;
using testing_support::RegisterModel;
using testing_support::TenGigabitModel;

std::unique_ptr<RegisterModel> make_model(const Personality& nic) {
  if (nic.name == "ixgbe" || nic.name == "x550") return std::make_unique<TenGigabitModel>(nic);
  return std::make_unique<GigabitModel>(nic);
}

/// Memory at a bus address, for rings and frames.
struct Memory {
  static constexpr std::uint64_t kBase = 0x38'0000'0000;
  std::vector<std::byte> bytes = std::vector<std::byte>(0x20000);
  bool reads = true, writes = true;

  void attach(RegisterModel& model) {
    model.bus.read = [this](std::uint64_t from, std::span<std::byte> into) {
      if (!reads || from < kBase || from - kBase + into.size() > bytes.size()) return false;
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from - kBase), into.size(), into.begin());
      return true;
    };
    model.bus.write = [this](std::uint64_t to, std::span<const std::byte> from) {
      if (!writes || to < kBase || to - kBase + from.size() > bytes.size()) return false;
      std::ranges::copy(from, bytes.begin() + static_cast<std::ptrdiff_t>(to - kBase));
      return true;
    };
  }
  Descriptor descriptor(std::size_t offset) const {
    return load(std::span(bytes).subspan(offset).first<kDescriptorBytes>());
  }
  void put(std::size_t offset, const Descriptor& descriptor) {
    store(descriptor, std::span(bytes).subspan(offset).first<kDescriptorBytes>());
  }
};

class NicTest : public ::testing::TestWithParam<const char*> {
 protected:
  NicTest() : personality(*find_personality(GetParam())), model(make_model(personality)) {
    memory.attach(*model);
    auto made = make_nic(personality, *model, {});
    EXPECT_TRUE(made);
    if (made) nic = *std::move(made);
  }
  NicSetup setup() const {
    return {.rings = {.rx = Memory::kBase, .tx = Memory::kBase + 0x1000, .rx_entries = 256, .tx_entries = 512}};
  }
  void expect_no_faults() const {
    for (const std::string& fault : model->faults) ADD_FAILURE() << fault;
  }

  const Personality& personality;
  std::unique_ptr<RegisterModel> model;
  Memory memory;
  std::unique_ptr<Nic> nic;
};

INSTANTIATE_TEST_SUITE_P(Families, NicTest, ::testing::Values("e1000e", "igb", "i210", "igc", "ixgbe", "x550"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(NicTest, Reset_ExpectSilenceAndAddress) {
  ASSERT_TRUE(nic->reset());
  EXPECT_EQ(model->resets, 1);
  EXPECT_FALSE(model->moves());
  EXPECT_EQ(text_of(nic->mac()), "52:54:00:12:34:56");
  expect_no_faults();
}

class E1000eTest : public NicTest {};

INSTANTIATE_TEST_SUITE_P(Families, E1000eTest, ::testing::Values("e1000e"));

TEST_P(E1000eTest, Start_AfterADriverThatWantsEveryWriteBack_ExpectItForgotten) {
  constexpr std::uint32_t kVectors = 0xE4;
  ASSERT_TRUE(nic->reset());
  model->write(kVectors, 0x8000'0A98);  // QEMU's 82574 keeps it over a reset
  ASSERT_TRUE(nic->start(setup()));
  EXPECT_EQ(model->value(kVectors), 0U);
  expect_no_faults();
}

TEST_P(NicTest, Start_ExpectRingsAsHandedOver) {
  ASSERT_TRUE(nic->reset());
  const Status started = nic->start(setup());
  ASSERT_TRUE(started) << started.message();
  model->pause(1ms);
  const std::uint32_t rx = personality.rx_ring_offset, tx = personality.tx_ring_offset;
  EXPECT_EQ(model->value(rx + 0x00), 0x0000'0000U);
  EXPECT_EQ(model->value(rx + 0x04), 0x38U);
  EXPECT_EQ(model->value(rx + 0x08), 256U * 16);
  EXPECT_EQ(model->value(tx + 0x00), 0x0000'1000U);
  EXPECT_EQ(model->value(tx + 0x08), 512U * 16);
  EXPECT_EQ(model->value(rx + 0x18), 0U);
  EXPECT_EQ(model->value(tx + 0x18), 0U);
  EXPECT_TRUE(model->rx_runs());
  EXPECT_TRUE(model->tx_runs());
  expect_no_faults();
  EXPECT_TRUE(nic->link().up);
}

TEST_P(NicTest, StartSeveralPairs_ExpectEachRingAndFlowsSpreadEvenly) {
  ASSERT_TRUE(nic->reset());
  NicSetup several = setup();
  several.pairs = personality.name == "e1000e" ? 1 : std::min<std::uint32_t>(16, personality.queues);
  several.ring_stride = 0x2'0000;
  const Status started = nic->start(several);
  ASSERT_TRUE(started) << started.message();
  model->pause(1ms);
  EXPECT_TRUE(model->only_pairs_run(several.pairs));
  for (std::uint32_t pair = 0; pair < several.pairs; ++pair) {
    const std::uint32_t rx = personality.rx_ring_offset + personality.rx_ring_stride * pair,
                        tx = personality.tx_ring_offset + personality.tx_ring_stride * pair;
    EXPECT_EQ(model->value(rx), 0x2'0000U * pair);
    EXPECT_EQ(model->value(rx + 4), 0x38U);
    EXPECT_EQ(model->value(tx), 0x2'0000U * pair + 0x1000);
    EXPECT_EQ(model->value(rx + 8), 256U * 16);
    EXPECT_EQ(model->value(tx + 8), 512U * 16);
  }
  expect_no_faults();
  if (several.pairs == 1) return;
  // RETA: each pair has its share of the 128 entries.
  std::map<std::uint32_t, std::uint32_t> shares;
  for (std::uint32_t entry = 0; entry < 128; ++entry)
    ++shares[model->value(0x5C00 + entry / 4 * 4) >> (entry % 4 * 8) & 0xFF];
  EXPECT_EQ(shares.size(), several.pairs);
  for (const auto& [pair, share] : shares) {
    EXPECT_LT(pair, several.pairs);
    EXPECT_EQ(share, 128 / several.pairs) << pair;
  }
  // MRQC: the mode, and hashes over IPv4 and IPv6, with TCP and UDP.
  const bool ten = personality.mbits_max > 2500;
  EXPECT_EQ(model->value(0x5818), (ten ? 1U : 2U) | 0x00F3'0000);
}

TEST_P(NicTest, StartMorePairsThanTheNicHas_ExpectInvalidArgument) {
  ASSERT_TRUE(nic->reset());
  NicSetup several = setup();
  several.ring_stride = 0x2'0000;
  for (const std::uint32_t pairs : {0U, personality.name == "e1000e" ? 2U : 17U}) {
    several.pairs = pairs;
    EXPECT_EQ(nic->start(several).code(), StatusCode::kInvalidArgument) << pairs;
  }
  several.pairs = 2;
  several.ring_stride = 64;  // rings that are not aligned
  EXPECT_EQ(nic->start(several).code(), StatusCode::kInvalidArgument);
  expect_no_faults();
}

TEST_P(NicTest, StartWithoutPromiscuity_ExpectOnlyItsAddress) {
  ASSERT_TRUE(nic->reset());
  ASSERT_TRUE(nic->start(setup()));
  EXPECT_NE(model->value(0x5404) & 1U << 31, 0U);
  for (std::uint32_t i = 1; i < 16; ++i) EXPECT_EQ(model->value(0x5404 + 8 * i) & 1U << 31, 0U) << i;
}

TEST_P(NicTest, StartWithRelaxedOrderingAsAfterReset_ExpectItOff) {
  ASSERT_TRUE(nic->reset());
  ASSERT_TRUE(nic->start(setup()));
  if (personality.name == "e1000e") return;  // has no such bits of its own; PCI Express Device Control does it
  const bool ten = personality.mbits_max > 2500;
  EXPECT_EQ(model->value(ten ? 0x2200 : personality.rx_ring_offset + 0x14) & 0xA200, 0U);
  EXPECT_EQ(model->value(ten ? 0x600C : personality.tx_ring_offset + 0x14) & 0x2A00, 0U);
}

TEST_P(NicTest, StartWithRepeatedReadsAsAfterReset_ExpectThemOff) {
  const bool ten_gigabit = personality.name == "ixgbe" || personality.name == "x550";
  const std::uint32_t control = ten_gigabit ? 0x1'1000 : 0x5B00;  // GCR
  ASSERT_TRUE(nic->reset());
  if (personality.name != "e1000e") {
    ASSERT_NE(model->value(control) & 1U << 16, 0U);
  }
  ASSERT_TRUE(nic->start(setup()));
  EXPECT_EQ(model->value(control) & 1U << 16, 0U);
  expect_no_faults();
}

TEST_P(NicTest, MoveFrameInLoopback_ExpectItBack) {
  ASSERT_TRUE(nic->reset());
  NicSetup looped = setup();
  looped.loopback = true;
  model->cable = false;  // without a link partner, too
  const Status started = nic->start(looped);
  ASSERT_TRUE(started) << started.message();
  for (std::size_t i = 0; i < 1514; ++i) memory.bytes[0x4000 + i] = static_cast<std::byte>(i * 7);
  memory.put(0, make_rx(Memory::kBase + 0x8000));
  memory.put(0x1000,
             make_tx(personality,
                     {.address = Memory::kBase + 0x4000, .bytes = 1514, .total = 1514, .end = true, .report = true}));
  (void)nic->progress();
  nic->write_rx_tail(1);
  nic->write_tx_tail(1);
  model->pause(1ms);
  ASSERT_TRUE(rx_done(personality, memory.descriptor(0)));
  EXPECT_TRUE(tx_done(personality, memory.descriptor(0x1000)));
  EXPECT_EQ(read_rx(personality, memory.descriptor(0)).bytes, 1514U);
  EXPECT_TRUE(
      std::equal(memory.bytes.begin() + 0x4000, memory.bytes.begin() + 0x4000 + 1514, memory.bytes.begin() + 0x8000));
  const Progress progress = nic->progress();
  EXPECT_EQ(progress.rx_head, 1U);
  EXPECT_EQ(progress.tx_head, 1U);
  EXPECT_EQ(progress.sent, 1U);
  EXPECT_EQ(progress.received, 1U);
  expect_no_faults();
}

TEST_P(NicTest, StopAndStartAgain_ExpectTheSame) {
  ASSERT_TRUE(nic->reset());
  ASSERT_TRUE(nic->start(setup()));
  model->pause(1ms);
  nic->write_rx_tail(255);
  ASSERT_TRUE(nic->stop());
  EXPECT_FALSE(model->moves());
  EXPECT_EQ(model->value(personality.rx_ring_offset + 0x08), 0U);
  EXPECT_EQ(model->value(0x18) & 1U << 28, 0U) << "firmware still believes in a driver";
  ASSERT_TRUE(nic->start(setup()));
  model->pause(1ms);
  EXPECT_TRUE(model->rx_runs());
  expect_no_faults();
}

TEST_P(NicTest, ResetNicThatAnotherDriverLeftRunning_ExpectSilence) {
  ASSERT_TRUE(nic->reset());
  ASSERT_TRUE(nic->start(setup()));
  model->pause(1ms);
  ASSERT_TRUE(nic->reset());
  EXPECT_FALSE(model->moves());
  EXPECT_GE(model->resets, 2);
  expect_no_faults();
}

TEST_P(NicTest, StartWithWhatDoesNotFit_ExpectInvalidArgumentAndNothingWritten) {
  ASSERT_TRUE(nic->reset());
  model->writes.clear();
  std::vector<NicSetup> wrong(8, setup());
  wrong[0].rings.rx += 64;
  wrong[1].rings.tx += 1;
  wrong[2].rings.rx_entries = 8;
  wrong[3].rings.tx_entries = 1U << 20;
  wrong[4].rings.rx_entries = 257;
  wrong[5].slot_bytes = 2000;
  wrong[6].frame_bytes = 20'000;
  wrong[7].frame_bytes = 0;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const Status started = nic->start(wrong[i]);
    EXPECT_EQ(started.code(), StatusCode::kInvalidArgument) << i;
    EXPECT_FALSE(started.message().empty());
  }
  EXPECT_TRUE(model->writes.empty());
}

TEST_P(NicTest, RemoveNic_ExpectUnavailable) {
  ASSERT_TRUE(nic->reset());
  model->removed = true;
  EXPECT_EQ(nic->start(setup()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(nic->stop().code(), StatusCode::kUnavailable);
  EXPECT_EQ(nic->reset().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(nic->link().up);
}

TEST_P(NicTest, ResetThatDoesNotEnd_ExpectUnavailable) {
  model->stuck_reset = true;
  const Status reset = nic->reset();
  EXPECT_EQ(reset.code(), StatusCode::kUnavailable);
  EXPECT_NE(reset.message().find("reset"), std::string::npos);
}

TEST_P(NicTest, RequestsThatDoNotEnd_ExpectAResetAllTheSame) {
  model->stuck_master = true;
  ASSERT_TRUE(nic->reset());
  // 82599 5.2.5.3.2 asks for two then.
  EXPECT_EQ(model->resets, personality.mbits_max > 2500 ? 2 : 1);
}

TEST_P(NicTest, StartJumboFrames_ExpectLongOnesAllowed) {
  ASSERT_TRUE(nic->reset());
  NicSetup jumbo = setup();
  jumbo.frame_bytes = 9018;
  ASSERT_TRUE(nic->start(jumbo));
  if (personality.mbits_max > 2500) {
    EXPECT_EQ(model->value(0x4268) >> 16, 9018U);
    EXPECT_NE(model->value(0x4240) & 4, 0U);
  } else {
    EXPECT_NE(model->value(0x100) & 1U << 5, 0U);
  }
  expect_no_faults();
}

TEST(GigabitNic, StartWithPhyOff_ExpectItsLinkAfterAWhile) {
  for (const char* name : {"e1000e", "igb", "i210"}) {
    GigabitModel model(*find_personality(name));
    auto nic = make_nic(*find_personality(name), model, {});
    ASSERT_TRUE(nic);
    model.phy_off = true;
    ASSERT_TRUE((*nic)->reset());
    ASSERT_TRUE((*nic)->start({.rings = {.rx = 0x1000, .tx = 0x2000, .rx_entries = 64, .tx_entries = 64}}));
    EXPECT_FALSE((*nic)->link().up);
    model.pause(3s);
    EXPECT_TRUE((*nic)->link().up) << name;
    EXPECT_EQ(model.phy_control & 0x1000, 0x1000);  // auto-negotiation
    for (const std::string& fault : model.faults) ADD_FAILURE() << name << ": " << fault;
  }
}

TEST(GigabitNic, ResetWhileFirmwareHasThePhy_ExpectItInTheEnd) {
  GigabitModel model(*find_personality("e1000e"));
  model.firmware_has_phy = true;
  auto nic = make_nic(*find_personality("e1000e"), model, {});
  ASSERT_TRUE((*nic)->reset());
  EXPECT_GE(model.now_us, 20'000U);
}

TEST(IgbNic, QueueThatDoesNotStop_ExpectUnavailable) {
  class Stuck final : public Registers {
   public:
    explicit Stuck(Registers& inner) : inner_(inner) {}
    std::uint32_t read(std::uint32_t offset) override {
      return inner_.read(offset) | (offset == 0xC028 ? 1U << 25 : 0);
    }
    void write(std::uint32_t offset, std::uint32_t value) override { inner_.write(offset, value); }
    void pause(std::chrono::microseconds time) override { inner_.pause(time); }

   private:
    Registers& inner_;
  };
  GigabitModel model(*find_personality("igb"));
  Stuck stuck(model);
  auto nic = make_nic(*find_personality("igb"), stuck, {});
  ASSERT_TRUE((*nic)->reset());
  const Status started = (*nic)->start({.rings = {.rx = 0x1000, .tx = 0x2000, .rx_entries = 64, .tx_entries = 64}});
  EXPECT_EQ(started.code(), StatusCode::kUnavailable);
  EXPECT_NE(started.message().find("receive queue does not stop"), std::string::npos);
}

TEST(TenGigabitNic, QueueThatDoesNotStart_ExpectUnavailable) {
  TenGigabitModel model(*find_personality("ixgbe"));
  auto nic = make_nic(*find_personality("ixgbe"), model, {});
  ASSERT_TRUE((*nic)->reset());
  model.stuck_queue = true;
  const Status started = (*nic)->start({.rings = {.rx = 0x1000, .tx = 0x2000, .rx_entries = 64, .tx_entries = 64}});
  EXPECT_EQ(started.code(), StatusCode::kUnavailable);
  EXPECT_NE(started.message().find("transmit queue does not start"), std::string::npos);
}

TEST(Nics, MakeWhatIsDrivenAsVf_ExpectTheRemedy) {
  GigabitModel model(*find_personality("igb"));
  for (const char* name : {"i40e", "ice"}) {
    const auto nic = make_nic(*find_personality(name), model, {});
    ASSERT_FALSE(nic);
    EXPECT_EQ(nic.status().code(), StatusCode::kUnsupported);
    EXPECT_NE(nic.status().message().find("sriov_numvfs"), std::string::npos);
  }
}

TEST(Nics, AskCanDrive_ExpectWhatMakeSays) {
  GigabitModel model(*find_personality("igb"));
  for (const Personality& personality : kPersonalities)
    EXPECT_EQ(can_drive(personality), make_nic(personality, model, {}).ok()) << personality.name;
}

}  // namespace
}  // namespace wherry::bypass
