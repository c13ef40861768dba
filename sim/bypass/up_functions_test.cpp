// SPDX-License-Identifier: Apache-2.0
// Tests `wherry bypass up --function`, the host's program with its pre-flight, with the Verilated card and its
// functions. A model of an 82599's registers (src/bypass/nic/model_testing.hpp) moves the frames, and a fake kernel
// with VFIO connects the parts. The expected frames on the wire were written by hand from the RFCs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string_view>

#include "bypass/nic/model_testing.hpp"
#include "bypass/process/bring_up.hpp"
#include "pci/kernel_testing.hpp"
#include "sim/bypass/frames_testing.hpp"
#include "sim/bypass/functions_card_testing.hpp"
#include "sim/hex_testing.hpp"

namespace wherry::sim {
namespace {

using bypass::BringUp;
using bypass::FilterRule;
using bypass::Function;
using bypass::testing_support::TenGigabitModel;
using pci::testing_support::at;
using pci::testing_support::DeviceModel;
using pci::testing_support::FakeKernel;
using pci::testing_support::kCardWindow;
using pci::testing_support::kNicRegisters;
using testing_support::bytes_of;
using testing_support::datagram;
using testing_support::kIsAt;
using testing_support::kPing;
using testing_support::kPong;
using testing_support::kWhoHas;
using testing_support::reflected;
using Bytes = std::vector<std::byte>;

constexpr auto kNicName = "0000:03:00.0", kCardName = "0000:04:00.0";
constexpr std::uint64_t kCyclesPerMicrosecond = 250;
constexpr std::uint64_t kLongestPause = 1000;     ///< cycles that the clock runs in one
constexpr std::uint64_t kLongestAnswer = 10'000;  ///< cycles; a frame takes some hundreds here

/// A machine with both: a kernel with VFIO, and the NIC and the card on its bus.
struct Bench {
  pci::testing_support::Machine machine;
  std::unique_ptr<FakeKernel> kernel;
  TenGigabitModel nic{*bypass::find_personality("ixgbe")};
  FunctionsCard card;
  std::atomic<bool> stop{false};
  bypass::UpOptions options;
  bypass::UpReport report;
  TemporaryDirectory run = *TemporaryDirectory::create("bypass");
  std::vector<Bytes> sent;
  std::unique_ptr<pci::PciTree> tree;
  std::unique_ptr<BringUp> up;

  explicit Bench(const bypass::FunctionSetup& function) {
    machine.build();
    kernel = std::make_unique<FakeKernel>(machine.sysfs);
    DeviceModel nic_device{.name = kNicName, .group = 10, .kernel_driver = "ixgbe"};
    nic_device.bars[0] = {.bytes = 0x8'0000, .read = {}, .write = {}};
    nic_device.config = pci::testing_support::ConfigBytes(256).express(0, 0x2810).text();
    DeviceModel card_device{.name = kCardName, .group = 11, .kernel_driver = ""};
    card_device.bars[0] = {.bytes = 0x1'0000, .read = {}, .write = {}};
    card_device.bars[2] = {.bytes = 16 << 20, .read = {}, .write = {}};
    card_device.config = nic_device.config;
    kernel->add(nic_device);
    kernel->add(card_device);
    nic.bus.read = [this](std::uint64_t from, std::span<std::byte> into) {
      if (!reaches_window(from, into.size())) return false;
      card.read(static_cast<std::uint32_t>(from - kCardWindow), into);
      return true;
    };
    nic.bus.write = [this](std::uint64_t to, std::span<const std::byte> bytes) {
      if (!reaches_window(to, bytes.size())) return false;
      card.write(static_cast<std::uint32_t>(to - kCardWindow), bytes);
      return true;
    };
    nic.on_wire = [this](const Bytes& frame) { sent.push_back(frame); };
    options.nic = at(kNicName);
    options.card = at(kCardName);
    options.sysfs = machine.sysfs.text();
    options.function = function;
  }
  /// A DMA reaches mapped memory if the device may be bus master.
  bool reaches_window(std::uint64_t from, std::size_t bytes) {
    const auto place = kernel->mappings().find(kCardWindow);
    return kernel->device(kNicName).bus_master && place != kernel->mappings().end() && from >= kCardWindow &&
           from + bytes <= kCardWindow + place->second.bytes;
  }
  void turn(std::uint64_t cycles) {
    for (; cycles > 0; --cycles) {
      card.tick();
      while (const auto tail = card.next_tail())
        if (kernel->device(kCardName).bus_master && kernel->mappings().contains(kNicRegisters))
          nic.write(static_cast<std::uint32_t>(tail->address - kNicRegisters), tail->value);
    }
  }
  void pause(std::chrono::microseconds time) {
    nic.pause(time);
    turn(std::min(kLongestPause, static_cast<std::uint64_t>(time.count()) * kCyclesPerMicrosecond));
  }

  struct NicAccess final : bypass::Registers {
    explicit NicAccess(Bench& owner) : bench(owner) {}
    std::uint32_t read(std::uint32_t offset) override { return bench.nic.read(offset); }
    void write(std::uint32_t offset, std::uint32_t value) override { bench.nic.write(offset, value); }
    void pause(std::chrono::microseconds time) override { bench.pause(time); }
    Bench& bench;
  };
  struct CardAccess final : bypass::CardAccess {
    explicit CardAccess(Bench& owner) : bench(owner) {}
    std::uint32_t read(std::uint32_t offset) override { return bench.card.read_register(offset); }
    void write(std::uint32_t offset, std::uint32_t value) override { bench.card.write_register(offset, value); }
    Status read_window(std::uint32_t offset, std::span<std::byte> into) override {
      bench.card.read(offset, into);
      return {};
    }
    Status write_window(std::uint32_t offset, std::span<const std::byte> from) override {
      bench.card.write(offset, from);
      return {};
    }
    void pause(std::chrono::microseconds time) override { bench.pause(time); }
    Bench& bench;
  };

  void begin() {
    auto read = pci::PciTree::read(machine.sysfs.text());
    ASSERT_TRUE(read);
    tree = std::make_unique<pci::PciTree>(*std::move(read));
    bypass::UpParts parts{
        .kernel = *kernel,
        .records = bypass::RecordStore(run.path().string()),
        .registers = [this](const pci::VfioDevice& /*device*/) { return std::make_unique<NicAccess>(*this); },
        .card = [this](const pci::VfioDevice& /*device*/) { return std::make_unique<CardAccess>(*this); }};
    auto begun = BringUp::begin(std::move(parts), *tree, options, stop, report);
    ASSERT_TRUE(begun) << begun.status().message();
    up = *std::move(begun);
    EXPECT_TRUE(report.moved);
    EXPECT_EQ(report.preflight.there, 4U) << "the card's slots are memory, before";
    EXPECT_TRUE(sent.empty());
  }
  void end() {
    const Status ended = up->end();
    EXPECT_TRUE(ended) << ended.message();
    up.reset();
    EXPECT_FALSE(nic.moves());
    EXPECT_TRUE(kernel->mappings().empty());
    for (const std::string& fault : nic.faults) ADD_FAILURE() << fault;
    for (const std::string& line : kernel->log) EXPECT_FALSE(line.starts_with("ERROR")) << line;
  }
  /// The frames that the card has sent when their number reaches `count`, or at the time limit.
  std::vector<Bytes> answers(std::size_t count) {
    for (std::uint64_t cycles = 0; sent.size() < count && cycles < kLongestAnswer; ++cycles) turn(1);
    return std::exchange(sent, {});
  }
  /// The answer to a frame: no frame, or one.
  std::vector<Bytes> answer(const Bytes& frame, bool expected = true) {
    nic.arrive(frame);
    return answers(expected ? 1 : 2);
  }
  std::map<std::string, std::uint64_t> counters() {
    CardAccess access(*this);
    const auto functions = bypass::Functions::open(access);
    EXPECT_TRUE(functions) << functions.status().message();
    const auto all = functions->counters();
    return {all.begin(), all.end()};
  }
};

FilterRule rule(std::string_view text) {
  auto found = bypass::parse_filter_rule(text);
  EXPECT_TRUE(found) << text;
  return *found;
}

class UpFunctions : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ways, UpFunctions, testing::Bool(),
                         [](const auto& each) { return each.param ? "in_place" : "stream"; });

TEST_P(UpFunctions, Echo_ExpectArpAndPingAnsweredAndNothingElse) {
  Bench bench({.function = Function::kEcho, .ip = 0x0A5A0002});
  bench.options.in_place = GetParam();
  ASSERT_NO_FATAL_FAILURE(bench.begin());
  EXPECT_EQ(bench.answer(kWhoHas), std::vector<Bytes>{kIsAt});
  EXPECT_EQ(bench.answer(kPing), std::vector<Bytes>{kPong});
  Bytes another = kPing;
  another[33] = std::byte{3};  // another address, and so a wrong sum
  EXPECT_TRUE(bench.answer(another, false).empty());
  EXPECT_TRUE(bench.answer(datagram(9), false).empty());
  EXPECT_EQ(bench.answer(kPing), std::vector<Bytes>{kPong});
  const auto counted = bench.counters();
  EXPECT_EQ(counted.at("echo_arp"), 1U);
  EXPECT_EQ(counted.at("echo_icmp"), 2U);
  EXPECT_EQ(counted.at("echo_other"), 2U);
  bench.end();
  bench.nic.arrive(kPing);
  EXPECT_TRUE(bench.answers(1).empty()) << "the card goes on";
}

TEST_P(UpFunctions, Filter_ExpectFramesByTheirRules) {
  Bench bench({.function = Function::kFilter, .rules = {rule("drop:udp:53"), rule("pass:ip")}});
  bench.options.in_place = GetParam();
  ASSERT_NO_FATAL_FAILURE(bench.begin());
  EXPECT_EQ(bench.answer(datagram(52)), std::vector<Bytes>{reflected(datagram(52))});
  EXPECT_TRUE(bench.answer(datagram(53), false).empty());
  EXPECT_EQ(bench.answer(kPing), std::vector<Bytes>{reflected(kPing)});
  EXPECT_TRUE(bench.answer(kWhoHas, false).empty());
  const auto counted = bench.counters();
  EXPECT_EQ(counted.at("filter_hits[0]"), 1U);
  EXPECT_EQ(counted.at("filter_hits[1]"), 2U);
  EXPECT_EQ(counted.at("filter_missed"), 1U);
  bench.end();
}

TEST_P(UpFunctions, Reflect_ExpectFramesOfManySizesBack) {
  Bench bench({.function = Function::kReflect});
  bench.options.in_place = GetParam();
  ASSERT_NO_FATAL_FAILURE(bench.begin());
  EXPECT_EQ(bench.nic.value(0x1008), 64U * 16) << "RDLEN: the core has 64 descriptors";
  for (unsigned i = 0; i < 300; ++i) {
    Bytes frame(60 + 3 * i, static_cast<std::byte>(i));
    std::copy_n(kPing.begin(), 12, frame.begin());
    ASSERT_EQ(bench.answer(frame), std::vector<Bytes>{reflected(frame)}) << i;
  }
  bench.end();
}

TEST(UpFunctionsStream, Generator_ExpectItsFramesAndWhatTheWireDidToThemCounted) {
  constexpr std::uint32_t kFrames = 20;
  bypass::FunctionSetup setup{.function = Function::kGenerator};
  setup.generator = {.to = {0x02, 0, 0, 0, 0, 9}, .bytes = 100, .count = kFrames};
  Bench bench(setup);
  ASSERT_NO_FATAL_FAILURE(bench.begin());
  std::vector<Bytes> frames = bench.answers(kFrames);
  ASSERT_EQ(frames.size(), kFrames);
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    EXPECT_EQ(frames[i].size(), 100U);
    EXPECT_TRUE(std::ranges::equal(bytes_of("020000000009 525400123456 88b5"), std::span(frames[i]).first(14)));
    EXPECT_EQ(std::to_integer<std::uint32_t>(frames[i][47]), i) << "its number";
  }
  // One frame is lost, one is damaged, and one has another receiver.
  frames.erase(frames.begin() + 5);
  frames[9][80] ^= std::byte{1};
  frames.push_back(kPing);
  for (const Bytes& frame : frames) {
    bench.nic.arrive(frame);
    bench.turn(100);
  }
  const auto counted = bench.counters();
  EXPECT_EQ(counted.at("generated"), kFrames);
  EXPECT_EQ(counted.at("checked") + counted.at("check_foreign"), kFrames);
  EXPECT_EQ(counted.at("check_foreign"), 1U);
  EXPECT_EQ(counted.at("check_skipped"), 1U);
  EXPECT_EQ(counted.at("check_late"), 0U);
  EXPECT_EQ(counted.at("check_wrong"), 1U);
  EXPECT_GT(counted.at("latency_sum"), 0U);
  bench.end();
}

}  // namespace
}  // namespace wherry::sim
