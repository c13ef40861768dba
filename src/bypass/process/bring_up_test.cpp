// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/bring_up.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bypass/nic/pf_model_testing.hpp"
#include "bypass/process/bring_up_testing.hpp"

namespace wherry::bypass {
namespace {

using pci::testing_support::at;
using pci::testing_support::FakeKernel;
using pci::testing_support::kCardWindow;
using pci::testing_support::kNicRegisters;
using pci::testing_support::Machine;
using testing_support::add_devices;
using testing_support::CardModel;
using testing_support::kCardName;
using testing_support::kNicName;
using testing_support::ModelCardAccess;
using testing_support::PfModel;
using testing_support::TimedRegisters;
using Bench = testing_support::UpBench;
namespace reg = registers;

TEST(BringUp, BeginAndEnd_ExpectCardDrivingTheNicAndThenTheKernel) {
  Bench bench;
  {
    auto up = bench.begin();
    ASSERT_TRUE(up) << up.status().message();
    EXPECT_TRUE(bench.card.running());
    EXPECT_TRUE(bench.nic.rx_runs());
    EXPECT_TRUE(bench.report.moved);
    EXPECT_EQ(bench.report.preflight.there, 4U);
    // The rings are in the card's window; the tails are the NIC's registers.
    EXPECT_EQ(bench.nic.value(0x1000), static_cast<std::uint32_t>(kCardWindow));
    EXPECT_EQ(bench.nic.value(0x1004), static_cast<std::uint32_t>(kCardWindow >> 32));
    EXPECT_EQ(bench.nic.value(0x6000), static_cast<std::uint32_t>(kCardWindow + 0x1'0000));
    EXPECT_EQ(bench.nic.value(0x1008), 256U * 16);
    EXPECT_EQ(bench.nic.value(0x6008), 512U * 16);
    EXPECT_EQ(bench.nic.value(0x1018), 255U);
    EXPECT_EQ(bench.card.value(reg::kBaseLowOffset), static_cast<std::uint32_t>(kCardWindow));
    EXPECT_EQ(bench.card.value(reg::kBaseHighOffset), 0x38U);
    EXPECT_EQ(bench.card.value(reg::rx_tail_low_offset(0)), kNicRegisters + 0x1018);
    EXPECT_EQ(bench.card.value(reg::tx_tail_low_offset(0)), kNicRegisters + 0x6018);
    EXPECT_EQ(bench.card.value(reg::kDescriptorsOffset), 1U << 4);  // igb, ixgbe: the frame's length at bit 46
    EXPECT_EQ(bench.card.value(reg::kMaxFrameOffset), 1514U);
    EXPECT_EQ(bench.kernel->device(kNicName).config[0x48] & 0x10, 0) << "relaxed ordering";
    const auto records = RecordStore(bench.run.path().string()).all();
    ASSERT_EQ(records.size(), 1U);
    EXPECT_TRUE(RecordStore::alive(records[0]));
    const Status ended = (*up)->end();
    EXPECT_TRUE(ended) << ended.message();
  }
  bench.expect_given_back();
}

TEST(BringUp, SeveralPairs_ExpectEachAtItsRingsAndTails) {
  Bench bench;
  bench.card.pairs = 4;
  bench.options.pairs = 4;
  {
    auto up = bench.begin();
    ASSERT_TRUE(up) << up.status().message();
    EXPECT_TRUE(bench.nic.only_pairs_run(4));
    for (std::uint32_t pair = 0; pair < 4; ++pair) {
      EXPECT_TRUE(bench.card.running(pair)) << pair;
      EXPECT_EQ(bench.nic.value(0x1000 + 0x40 * pair), static_cast<std::uint32_t>(kCardWindow + 0x2'0000 * pair));
      EXPECT_EQ(bench.nic.value(0x6000 + 0x40 * pair),
                static_cast<std::uint32_t>(kCardWindow + 0x2'0000 * pair + 0x1'0000));
      EXPECT_EQ(bench.nic.value(0x1018 + 0x40 * pair), 255U);
      EXPECT_EQ(bench.card.value(reg::tx_tail_low_offset(pair)), kNicRegisters + 0x6018 + 0x40 * pair);
    }
    EXPECT_TRUE((*up)->end());
  }
  for (std::uint32_t pair = 0; pair < 4; ++pair) EXPECT_FALSE(bench.card.running(pair)) << pair;
  bench.expect_given_back();
}

/// A machine whose NIC is a virtual function of an E810, and a card of 8 queue pairs.
struct VirtualBench {
  Machine machine;
  std::unique_ptr<FakeKernel> kernel;
  PfModel pf;
  CardModel card;
  std::atomic<bool> stop{false};
  UpOptions options;
  UpReport report;
  TemporaryDirectory run;

  VirtualBench() {
    machine.nic_device = 0x1889;
    machine.nic_driver = "iavf";
    machine.build();
    run = *TemporaryDirectory::create("bypass");
    kernel = std::make_unique<FakeKernel>(machine.sysfs);
    add_devices(*kernel, "iavf", pf);
    kernel->on_map = [this](std::uint64_t address, std::span<std::byte> memory) {
      pf.address = address;
      pf.memory = memory;
    };
    card.pairs = 8;
    card.post = [this](std::uint64_t to, std::uint32_t value) {
      if (kernel->device(kCardName).bus_master) pf.write(static_cast<std::uint32_t>(to - kNicRegisters), value);
    };
    options = {.nic = at(kNicName), .card = at(kCardName), .sysfs = machine.sysfs.text()};
  }
  Result<std::unique_ptr<BringUp>> begin() {
    auto tree = pci::PciTree::read(machine.sysfs.text());
    EXPECT_TRUE(tree);
    tree_ = std::make_unique<pci::PciTree>(*std::move(tree));
    UpParts parts{
        .kernel = *kernel,
        .records = RecordStore(run.path().string()),
        .registers = [this](const pci::VfioDevice& device) { return std::make_unique<TimedRegisters>(device, pf); },
        .card =
            [this](const pci::VfioDevice& /*device*/) {
              return std::make_unique<ModelCardAccess>(card,
                                                       [this](std::chrono::microseconds time) { pf.pause(time); });
            }};
    return BringUp::begin(std::move(parts), *tree_, options, stop, report);
  }
  void expect_given_back() {
    EXPECT_EQ(kernel->link_name(machine.sysfs.text() + "/bus/pci/devices/" + kNicName + "/driver"), "iavf");
    EXPECT_EQ(kernel->open_files(), 0U);
    EXPECT_TRUE(kernel->mappings().empty());
    EXPECT_FALSE(pf.moves());
    EXPECT_FALSE(card.running());
    EXPECT_TRUE(RecordStore(run.path().string()).all().empty());
    for (const std::string& fault : pf.faults) ADD_FAILURE() << fault;
    for (const std::string& refusal : pf.refusals) ADD_FAILURE() << "refused: " << refusal;
  }
  std::unique_ptr<pci::PciTree> tree_;
};

TEST(BringUp, VirtualFunctionWithSeveralPairs_ExpectEachAtItsRingsAndTails) {
  VirtualBench bench;
  bench.pf.available = 8;  // of which 4 are granted before it asks
  bench.options.pairs = 8;
  {
    auto up = bench.begin();
    ASSERT_TRUE(up) << up.status().message();
    ASSERT_EQ(bench.pf.queues.size(), 8U);
    for (std::uint32_t pair = 0; pair < 8; ++pair) {
      const PfModel::Queue& queue = bench.pf.queues[pair];
      EXPECT_TRUE(queue.rx_on && queue.tx_on) << pair;
      EXPECT_EQ(queue.rx_ring, kCardWindow + 0x2'0000 * pair);
      EXPECT_EQ(queue.tx_ring, kCardWindow + 0x2'0000 * pair + 0x1'0000);
      EXPECT_EQ(bench.pf.values[0x2000 + 4 * pair], 255U) << pair;
      EXPECT_TRUE(bench.card.running(pair)) << pair;
      EXPECT_EQ(bench.card.value(reg::tx_tail_low_offset(pair)), kNicRegisters + 4 * pair);
    }
    EXPECT_TRUE((*up)->end());
  }
  bench.expect_given_back();
}

TEST(BringUp, VirtualFunctionWithFewerPairsThanAsked_ExpectThePfsNumberAndEverythingGivenBack) {
  VirtualBench bench;
  bench.options.pairs = 8;
  const auto up = bench.begin();
  ASSERT_FALSE(up);
  EXPECT_EQ(up.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(up.status().message().find("grants this virtual function 4"), std::string::npos) << up.status().message();
  bench.expect_given_back();
}

TEST(BringUp, VirtualFunctionThatItsPfResets_ExpectEverythingGivenBack) {
  for (const std::uint32_t operation : {6U, 24U, 8U}) {
    VirtualBench bench;
    bench.options.pairs = 4;
    bench.pf.reset_at = operation;
    EXPECT_FALSE(bench.begin());
    bench.expect_given_back();
  }
  VirtualBench bench;  // while the card drives it
  bench.options.pairs = 4;
  {
    auto up = bench.begin();
    ASSERT_TRUE(up) << up.status().message();
    bench.pf.reset_function();
    const Status ended = (*up)->end();
    EXPECT_TRUE(ended) << ended.message();
  }
  bench.expect_given_back();
}

TEST(BringUp, AFunction_ExpectItOnWhileTheCardDrivesTheNic) {
  Bench bench;
  bench.card.has_functions = true;
  bench.options.function = FunctionSetup{.function = Function::kEcho, .ip = 0x0A000002};
  std::vector<std::uint32_t> receive;  // as the card begins to run
  const auto post = bench.card.post;
  bench.card.post = [&](std::uint64_t to, std::uint32_t value) {
    receive.push_back(bench.card.value(0x8010));
    post(to, value);
  };
  {
    auto up = bench.begin();
    ASSERT_TRUE(up) << up.status().message();
    EXPECT_EQ(receive, std::vector<std::uint32_t>{0});
    EXPECT_EQ(bench.card.value(0x8010), 1U);
    EXPECT_EQ(bench.card.value(0x8028), 0x0A000002U);
    const MacAddress mac = (*up)->nic().mac();
    EXPECT_EQ(bench.card.value(0x8024), std::uint32_t{mac[0]} << 8 | mac[1]);
    EXPECT_TRUE((*up)->end());
  }
  EXPECT_EQ(bench.card.value(0x8010), 0U) << "a function goes on";
  bench.expect_given_back();
}

TEST(BringUp, NoFunctionAsked_ExpectTheirRegistersAsTheyAre) {
  Bench bench;
  bench.card.has_functions = true;
  bench.card.set(0x8010, 1);
  {
    auto up = bench.begin();
    ASSERT_TRUE(up) << up.status().message();
    EXPECT_TRUE((*up)->end());
  }
  EXPECT_EQ(bench.card.value(0x8010), 1U);
  bench.expect_given_back();
}

TEST(BringUp, AFunctionThatTheCardHasNot_ExpectEverythingGivenBack) {
  for (const bool without_functions : {true, false}) {
    Bench bench;
    bench.card.has_functions = !without_functions;
    bench.card.stuck = 0x8010;  // it does not take what it is told
    bench.options.function = FunctionSetup{.function = Function::kReflect};
    const auto up = bench.begin();
    ASSERT_FALSE(up);
    EXPECT_EQ(up.status().code(), without_functions ? StatusCode::kNotFound : StatusCode::kUnavailable);
    bench.expect_given_back();
  }
}

TEST(BringUp, AFunctionWithoutItsAddress_ExpectNothingTaken) {
  Bench bench;
  bench.options.function = FunctionSetup{.function = Function::kEcho};
  const auto up = bench.begin();
  ASSERT_FALSE(up);
  EXPECT_EQ(up.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(bench.kernel->log.empty()) << "something was taken";
}

TEST(BringUp, MorePairsThanTheCardHas_ExpectInvalidArgumentAndEverythingGivenBack) {
  Bench bench;
  bench.options.pairs = 2;
  auto up = bench.begin();
  ASSERT_FALSE(up);
  EXPECT_EQ(up.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(up.status().message(), "2 queue pairs: want 1 to 1, which the card has");
  bench.expect_given_back();
}

TEST(BringUp, BeginTwice_ExpectTheProcessNamed) {
  Bench bench;
  auto up = bench.begin();
  ASSERT_TRUE(up);
  UpReport second;
  const auto again = BringUp::begin(bench.parts(), *bench.tree_, bench.options, bench.stop, second);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.status().code(), StatusCode::kAlreadyExists);
  EXPECT_NE(again.status().message().find(std::to_string(getpid())), std::string::npos);
  EXPECT_TRUE(bench.card.running()) << "the second took what the first has";
  up->reset();
  bench.expect_given_back();
}

TEST(BringUp, FailAtAnyCall_ExpectEverythingGivenBack) {
  Bench bench;  // one machine: each attempt must find it as it was
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
      if (up) {
        EXPECT_TRUE((*up)->end());
      }
    }
    SCOPED_TRACE(n);
    bench.expect_given_back();
  }
}

TEST(BringUp, StopAtAnyMoment_ExpectEverythingGivenBack) {
  // SIGINT and SIGTERM set `stop`; the process checks it between steps.
  Bench bench;
  for (int moment = 0; moment < 12; ++moment) {
    int pauses = 0;
    bench.on_pause = [&] { bench.stop = ++pauses > moment; };
    bench.stop = moment == 0;
    {
      auto up = bench.begin();
      if (!up) {
        EXPECT_EQ(up.status().code(), StatusCode::kCancelled) << up.status().message();
      }
    }
    SCOPED_TRACE(moment);
    bench.expect_given_back();
  }
}

TEST(BringUp, AcsRedirect_ExpectRefusalOrDetour) {
  Bench bench;
  bench.machine.sysfs.write("devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/config",
                            pci::testing_support::ConfigBytes()
                                .bridge(0xE000'0000, 0xE0FF'FFFF, kCardWindow, kCardWindow + 0xFFF'FFFF)
                                .express(6)
                                .acs(0x5F, 0x1D)
                                .text());
  auto up = bench.begin();
  ASSERT_FALSE(up);
  EXPECT_EQ(bench.report.finding.cause, Cause::kAcsRedirect);
  EXPECT_TRUE(bench.kernel->log.empty()) << "something was taken";
  ASSERT_EQ(bench.report.notes.size(), 1U);
  EXPECT_NE(bench.report.notes[0].find("the host's memory"), std::string::npos);
  bench.options.allow_detour = true;
  bench.report = {};
  up = bench.begin();
  ASSERT_TRUE(up) << up.status().message();
  EXPECT_FALSE(bench.report.notes.empty());
  up->reset();
  bench.expect_given_back();
}

TEST(BringUp, ReadsThatVanish_ExpectRefusal) {
  Bench bench;
  bench.nic.bus.read = [](std::uint64_t, std::span<std::byte>) { return false; };
  EXPECT_FALSE(bench.begin());
  EXPECT_EQ(bench.report.finding.cause, Cause::kReadsDead);
  bench.expect_given_back();
}

TEST(BringUp, TailsThatVanish_ExpectRefusal) {
  Bench bench;
  bench.tails_arrive = false;
  EXPECT_FALSE(bench.begin());
  EXPECT_EQ(bench.report.finding.cause, Cause::kTailsDead);
  bench.expect_given_back();
}

TEST(BringUp, ReservedAddressThatOnlyVfioKnows_ExpectRefusal) {
  Bench bench;
  bench.kernel->ranges = {{0, 0xFEDF'FFFF}};
  EXPECT_FALSE(bench.begin());
  EXPECT_EQ(bench.report.finding.cause, Cause::kReservedAddress);
  bench.expect_given_back();
}

TEST(BringUp, CardThatIsNone_ExpectItsId) {
  for (const bool old : {false, true}) {
    Bench bench;
    if (old)
      bench.card.version = 9U << 16;
    else
      bench.card.id = 0x12345678;
    const auto up = bench.begin();
    ASSERT_FALSE(up);
    EXPECT_NE(up.status().message().find(old ? "9" : "0x12345678"), std::string::npos) << up.status().message();
    bench.expect_given_back();
  }
}

TEST(BringUp, NicRemovedWhileUp_ExpectAnErrorAndTheRest) {
  Bench bench;
  auto up = bench.begin();
  ASSERT_TRUE(up);
  bench.nic.removed = true;
  const Status ended = (*up)->end();
  EXPECT_EQ(ended.code(), StatusCode::kUnavailable);
  EXPECT_FALSE(bench.card.running());
  EXPECT_EQ(bench.kernel->open_files(), 0U);
}

TEST(BringUp, ProbeWithMove_ExpectVerdictAndNothingKept) {
  Bench bench;
  auto tree = pci::PciTree::read(bench.machine.sysfs.text());
  ASSERT_TRUE(tree);
  const Status done = BringUp::probe(bench.parts(), *tree, bench.options, bench.stop, bench.report);
  EXPECT_TRUE(done) << done.message();
  EXPECT_TRUE(bench.report.moved);
  EXPECT_EQ(bench.report.finding.cause, Cause::kNone);
  bench.expect_given_back();
}

TEST(BringUp, BeginAfterAKilledProcess_ExpectItsLoansMended) {
  Bench bench;
  const RecordStore store(bench.run.path().string());
  // A process that has ended: its number and start time no longer match.
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(store.write({.pid = child,
                           .started = 1,
                           .nic = at(kNicName),
                           .card = at(kCardName),
                           .lent = {{at(kNicName), "ixgbe"}, {at(kCardName), ""}}}));
  const pci::Binding binding(*bench.kernel, bench.machine.sysfs.text());
  ASSERT_TRUE(binding.take({at(kNicName), "ixgbe"}));
  ASSERT_TRUE(binding.take({at(kCardName), ""}));
  bench.card.set(reg::queue_control_offset(0), 1);  // it left the core running, whose slots are nobody's then
  auto up = bench.begin();
  ASSERT_TRUE(up) << up.status().message();
  EXPECT_TRUE(bench.report.moved);
  ASSERT_FALSE(bench.report.notes.empty());
  EXPECT_NE(bench.report.notes[0].find("0000:03:00.0"), std::string::npos);
  EXPECT_NE(bench.report.notes[0].find("ixgbe"), std::string::npos);
  up->reset();
  bench.expect_given_back();  // the driver of before the killed process, not vfio-pci
}

}  // namespace
}  // namespace wherry::bypass
