// SPDX-License-Identifier: Apache-2.0
// Tests `wherry bypass up --rings host`: the host's program, with the Verilated card of core, functions and DMA engine,
// on a machine whose switch sends peer-to-peer traffic to the root complex. The engine's driver is behind VFIO's calls
// on a fake kernel, and a model of an 82599's registers moves the frames. All copies and tails are the RTL's.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bypass/nic/model_testing.hpp"
#include "bypass/process/bring_up.hpp"
#include "pci/kernel_testing.hpp"
#include "sim/bypass/frames_testing.hpp"
#include "sim/bypass/node_card_testing.hpp"

namespace wherry::sim {
namespace {

using bypass::BringUp;
using bypass::CardEngine;
using bypass::Function;
using bypass::Mover;
using bypass::testing_support::TenGigabitModel;
using pci::testing_support::at;
using pci::testing_support::DeviceModel;
using pci::testing_support::FakeKernel;
using pci::testing_support::kCardWindow;
using testing_support::Bytes;
using testing_support::kIsAt;
using testing_support::kPing;
using testing_support::kPong;
using testing_support::kWhoHas;
using testing_support::reflected;

constexpr auto kNicName = "0000:03:00.0", kCardName = "0000:04:00.0";
constexpr std::uint64_t kCyclesPerMicrosecond = 250;
constexpr std::uint64_t kLongestPause = 1000;  ///< cycles that the clock runs in one
constexpr std::uint64_t kCyclesPerPoll = 25;   ///< the host asks the engine about every 100 ns
constexpr int kMostTurns = 2000;               ///< for one answer, which takes some 100

struct Bench {
  pci::testing_support::Machine machine;
  std::unique_ptr<FakeKernel> kernel;
  TenGigabitModel nic{*bypass::find_personality("ixgbe")};
  std::unique_ptr<NodeCard> card;
  std::atomic<bool> stop{false};
  bypass::UpOptions options;
  bypass::UpReport report;
  TemporaryDirectory run = *TemporaryDirectory::create("bypass");
  std::vector<Bytes> sent;
  std::unique_ptr<pci::PciTree> tree;
  std::unique_ptr<BringUp> up;

  explicit Bench(const bypass::FunctionSetup& function, std::uint64_t seed = 0, std::uint32_t pauses = 0) {
    machine.engine_bytes = bypass::VfioCardEngine::kBarBytes;
    machine.card_acs = 0x1D;  // it redirects requests: no way from NIC to card
    machine.build();
    kernel = std::make_unique<FakeKernel>(machine.sysfs);
    card = std::make_unique<NodeCard>(memory_of(kCardName), seed, pauses);
    DeviceModel nic_device{.name = kNicName, .group = 10, .kernel_driver = "ixgbe"};
    nic_device.bars[0] = {.bytes = 0x8'0000, .read = {}, .write = {}};
    nic_device.config = pci::testing_support::ConfigBytes(256).express(0, 0x2810).text();
    DeviceModel card_device{.name = kCardName, .group = 11, .kernel_driver = ""};
    card_device.bars[0] = {.bytes = 0x1'0000, .read = {}, .write = {}};
    card_device.bars[2] = {.bytes = 16 << 20, .read = {}, .write = {}};
    card_device.bars[4] = {.bytes = bypass::VfioCardEngine::kBarBytes,
                           .read =
                               [this](std::uint64_t offset) {
                                 return card->read32(NodeCard::kEngine + static_cast<std::uint32_t>(offset));
                               },
                           .write =
                               [this](std::uint64_t offset, std::uint32_t value) {
                                 card->write32(NodeCard::kEngine + static_cast<std::uint32_t>(offset), value);
                               },
                           .maps = false};
    card_device.config = nic_device.config;
    kernel->add(nic_device);
    kernel->add(card_device);
    const HostMemory of_nic = memory_of(kNicName);
    nic.bus.read = of_nic.read;
    nic.bus.write = of_nic.write;
    nic.on_wire = [this](const Bytes& frame) { sent.push_back(frame); };
    options.nic = at(kNicName);
    options.card = at(kCardName);
    options.sysfs = machine.sysfs.text();
    options.function = function;
  }

  /// The process's memory as a device reaches it: mapped for DMA, and only as bus master.
  std::span<std::byte> memory_at(const char* device, std::uint64_t address, std::size_t bytes) {
    auto place = kernel->mappings().upper_bound(address);
    if (!kernel->device(device).bus_master || place == kernel->mappings().begin()) return {};
    --place;
    const FakeKernel::Mapping& mapping = place->second;
    if (!mapping.device.empty() || address - place->first + bytes > mapping.bytes) return {};
    return {mapping.memory + (address - place->first), bytes};
  }
  HostMemory memory_of(const char* device) {
    return {.read =
                [this, device](std::uint64_t from, std::span<std::byte> into) {
                  const auto memory = memory_at(device, from, into.size());
                  std::ranges::copy(memory, into.begin());
                  return !memory.empty();
                },
            .write =
                [this, device](std::uint64_t to, std::span<const std::byte> bytes) {
                  const auto memory = memory_at(device, to, bytes.size());
                  if (!memory.empty()) std::ranges::copy(bytes, memory.begin());
                  return !memory.empty();
                }};
  }
  void turn(std::uint64_t cycles) {
    for (; cycles > 0; --cycles) card->tick();
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
    std::uint32_t read(std::uint32_t offset) override { return bench.card->read32(NodeCard::kRegisters + offset); }
    void write(std::uint32_t offset, std::uint32_t value) override {
      bench.card->write32(NodeCard::kRegisters + offset, value);
    }
    Status read_window(std::uint32_t offset, std::span<std::byte> into) override {
      bench.card->read(NodeCard::kWindow + offset, into);
      return {};
    }
    Status write_window(std::uint32_t offset, std::span<const std::byte> from) override {
      bench.card->write(NodeCard::kWindow + offset, from);
      return {};
    }
    void pause(std::chrono::microseconds time) override { bench.pause(time); }
    Bench& bench;
  };
  /// The real engine through VFIO. Only the stores into the mapped window are replaced, because the fake kernel's
  /// mapping is memory. Like the processor, it writes 8 bytes at a time.
  struct Engine final : CardEngine {
    Engine(Bench& owner, std::unique_ptr<CardEngine> real) : bench(owner), engine(std::move(real)) {}
    bool try_post(Way way, std::uint32_t offset, std::uint32_t bytes) override {
      return engine->try_post(way, offset, bytes);
    }
    void ring(Way way) override { engine->ring(way); }
    Result<std::size_t> poll(Way way) override {
      bench.turn(kCyclesPerPoll);
      return engine->poll(way);
    }
    void write_line(std::uint32_t offset, std::span<const std::byte> bytes) override {
      for (; !bytes.empty(); bytes = bytes.subspan(8), offset += 8)
        bench.card->post(NodeCard::kWindow + offset, bytes.first(8));
    }
    Status stop() override { return engine->stop(); }
    Bench& bench;
    std::unique_ptr<CardEngine> engine;
  };

  Result<std::unique_ptr<BringUp>> start() {
    auto read = pci::PciTree::read(machine.sysfs.text());
    EXPECT_TRUE(read);
    tree = std::make_unique<pci::PciTree>(*std::move(read));
    bypass::UpParts parts{
        .kernel = *kernel,
        .records = bypass::RecordStore(run.path().string()),
        .registers = [this](const pci::VfioDevice& /*device*/) { return std::make_unique<NicAccess>(*this); },
        .card = [this](const pci::VfioDevice& /*device*/) { return std::make_unique<CardAccess>(*this); },
        .engine = [this](pci::Vfio& vfio, std::size_t device,
                         std::uint64_t mirror) -> Result<std::unique_ptr<CardEngine>> {
          auto opened = bypass::VfioCardEngine::open(vfio, device, mirror);
          if (!opened) return std::move(opened).status();
          return std::unique_ptr<CardEngine>(std::make_unique<Engine>(*this, *std::move(opened)));
        }};
    return BringUp::begin(std::move(parts), *tree, options, stop, report);
  }
  void begin() {
    auto begun = start();
    ASSERT_TRUE(begun) << begun.status().message();
    up = *std::move(begun);
    EXPECT_TRUE(report.in_host);
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
  /// The host's loop, until the card has sent `count` frames or a limit is reached.
  std::vector<Bytes> answers(std::size_t count, int most = kMostTurns) {
    for (int i = 0; sent.size() < count && i < most; ++i) {
      const auto turned = up->turn();
      EXPECT_TRUE(turned) << turned.status().message();
      if (!turned) break;
    }
    return std::exchange(sent, {});
  }
  std::vector<Bytes> answer(const Bytes& frame) {
    nic.arrive(frame);
    return answers(1);
  }
};

class UpHost : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ways, UpHost, testing::Bool(),
                         [](const auto& each) { return each.param ? "in_place" : "stream"; });

TEST_P(UpHost, Echo_ExpectArpAndPingAnswered) {
  Bench bench({.function = Function::kEcho, .ip = 0x0A5A0002});
  bench.options.in_place = GetParam();
  ASSERT_NO_FATAL_FAILURE(bench.begin());
  EXPECT_EQ(bench.answer(kWhoHas), std::vector<Bytes>{kIsAt});
  EXPECT_EQ(bench.answer(kPing), std::vector<Bytes>{kPong});
  const bypass::HostRingsCounters counted = *bench.up->host_counters();
  EXPECT_EQ(counted.received, 2U);
  bench.end();
  bench.nic.arrive(kPing);
  bench.turn(1000);
  EXPECT_TRUE(bench.sent.empty()) << "the card goes on";
}

TEST_P(UpHost, Reflect_ExpectFramesOfManySizesBack) {
  for (const std::uint32_t pauses : {0U, 300'000U}) {
    Bench bench({.function = Function::kReflect}, 7, pauses);
    bench.options.in_place = GetParam();
    ASSERT_NO_FATAL_FAILURE(bench.begin());
    for (unsigned i = 0; i < 150; ++i) {  // the core has 64 slots
      Bytes frame(60 + 9 * i);
      for (std::size_t at = 0; at < frame.size(); ++at) frame[at] = static_cast<std::byte>(at * 7 + i);
      std::copy_n(kPing.begin(), 12, frame.begin());
      ASSERT_EQ(bench.answer(frame), std::vector<Bytes>{reflected(frame)}) << i;
    }
    bench.end();
  }
}

TEST_P(UpHost, FramesTogether_ExpectEachOnceInOrder) {
  Bench bench({.function = Function::kReflect}, 3, 100'000);
  bench.options.in_place = GetParam();
  ASSERT_NO_FATAL_FAILURE(bench.begin());
  for (unsigned round = 0; round < 8; ++round) {
    std::vector<Bytes> wanted;
    for (unsigned i = 0; i < 20; ++i) {
      Bytes frame(60 + (round * 71 + i * 37) % 1400, static_cast<std::byte>(round * 20 + i));
      std::copy_n(kPing.begin(), 12, frame.begin());
      bench.nic.arrive(frame);
      wanted.push_back(reflected(frame));
    }
    ASSERT_EQ(bench.answers(wanted.size(), 20 * kMostTurns), wanted) << round;
  }
  bench.end();
}

TEST(UpHostAgain, ProcessThatWasKilled_ExpectTheNextOneWorks) {
  Bench bench({.function = Function::kReflect});
  ASSERT_NO_FATAL_FAILURE(bench.begin());
  for (int i = 0; i < 5; ++i) bench.nic.arrive(kPing);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bench.up->turn());
  // The kernel switches bus mastering off and removes the mappings; the card's registers stay as they are.
  bench.kernel->device(kCardName).bus_master = bench.kernel->device(kNicName).bus_master = false;
  bench.turn(2000);
  static_cast<void>(bench.up->end());
  bench.up.reset();
  bench.sent.clear();
  bench.nic.faults.clear();
  ASSERT_NO_FATAL_FAILURE(bench.begin());
  EXPECT_EQ(bench.answer(kPing), std::vector<Bytes>{reflected(kPing)});
  bench.end();
}

}  // namespace
}  // namespace wherry::sim
