// SPDX-License-Identifier: Apache-2.0
// For tests of `wherry bypass up`: a machine with models of a NIC and a card, and a kernel with VFIO.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "bypass/nic/model_testing.hpp"
#include "bypass/process/bring_up.hpp"
#include "bypass/process/card_testing.hpp"
#include "pci/kernel_testing.hpp"

namespace wherry::bypass::testing_support {

using pci::testing_support::at;
using pci::testing_support::DeviceModel;
using pci::testing_support::FakeKernel;
using pci::testing_support::kCardWindow;
using pci::testing_support::kNicRegisters;
using pci::testing_support::Machine;

inline constexpr auto kNicName = "0000:03:00.0", kCardName = "0000:04:00.0";

/// Registers of the kernel's fake device, with the model's time.
class TimedRegisters final : public Registers {
 public:
  TimedRegisters(const pci::VfioDevice& device, Registers& model) : device_(device), model_(model) {}
  std::uint32_t read(std::uint32_t offset) override { return device_.read32(0, offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { device_.write32(0, offset, value); }
  void pause(std::chrono::microseconds time) override { model_.pause(time); }

 private:
  const pci::VfioDevice& device_;
  Registers& model_;
};

/// Adds a NIC with the registers of `model`, and the card. `engine`: bytes of its BAR 4.
template <typename Model>
void add_devices(FakeKernel& kernel, const char* driver, Model& model, std::uint64_t engine = 0) {
  DeviceModel nic{.name = kNicName, .group = 10, .kernel_driver = driver};
  nic.bars[0] = {.bytes = 0x8'0000,
                 .read = [&model](std::uint64_t offset) { return model.read(static_cast<std::uint32_t>(offset)); },
                 .write = [&model](std::uint64_t offset,
                                   std::uint32_t value) { model.write(static_cast<std::uint32_t>(offset), value); }};
  nic.config = pci::testing_support::ConfigBytes(256).express(0, 0x2810).text();
  DeviceModel card{.name = kCardName, .group = 11, .kernel_driver = ""};
  card.bars[0] = {.bytes = 0x1'0000, .read = {}, .write = {}};
  card.bars[2] = {.bytes = 16 << 20, .read = {}, .write = {}};
  card.bars[4] = {.bytes = engine, .read = {}, .write = {}};
  card.config = nic.config;
  kernel.add(nic);
  kernel.add(card);
}

/// A machine with an 82599 and a card, a kernel with VFIO, and access of both devices to the bus.
struct UpBench {
  Machine machine;
  std::unique_ptr<FakeKernel> kernel;
  TenGigabitModel nic{*find_personality("ixgbe")};
  CardModel card;
  std::atomic<bool> stop{false};
  UpOptions options;
  UpReport report;
  TemporaryDirectory run;
  bool tails_arrive = true;
  std::function<void()> on_pause = [] {};
  OpenEngine open_engine = &VfioCardEngine::open;

  /// `engine`: bytes of the card's BAR 4.
  explicit UpBench(std::uint64_t engine = 0) {
    machine.engine_bytes = engine;
    machine.build();
    run = *TemporaryDirectory::create("bypass");
    kernel = std::make_unique<FakeKernel>(machine.sysfs);
    add_devices(*kernel, "ixgbe", nic, engine);
    // DMA reaches mapped memory only if the device may be bus master.
    nic.bus.read = [this](std::uint64_t from, std::span<std::byte> into) {
      if (const auto memory = memory_at(kNicName, from, into.size()); !memory.empty())
        return std::ranges::copy(memory, into.begin()), true;
      return reaches_window(from, into.size()) && card.read_window(from - kCardWindow, into);
    };
    nic.bus.write = [this](std::uint64_t to, std::span<const std::byte> bytes) {
      if (const auto memory = memory_at(kNicName, to, bytes.size()); !memory.empty())
        return std::ranges::copy(bytes, memory.begin()), true;
      return reaches_window(to, bytes.size()) && card.write_window(to - kCardWindow, bytes);
    };
    card.post = [this](std::uint64_t to, std::uint32_t value) {
      if (!tails_arrive || !kernel->device(kCardName).bus_master) return;
      if (const auto memory = memory_at(kCardName, to, sizeof value); !memory.empty())
        std::memcpy(memory.data(), &value, sizeof value);
      else if (kernel->mappings().contains(kNicRegisters))
        nic.write(static_cast<std::uint32_t>(to - kNicRegisters), value);
    };
    options = {.nic = at(kNicName), .card = at(kCardName), .sysfs = machine.sysfs.text()};
  }
  bool reaches_window(std::uint64_t from, std::size_t bytes) {
    const auto place = kernel->mappings().find(kCardWindow);
    return kernel->device(kNicName).bus_master && place != kernel->mappings().end() && from >= kCardWindow &&
           from + bytes <= kCardWindow + place->second.bytes;
  }
  /// The process's memory at a bus address, as a device reaches it; empty if there is none.
  std::span<std::byte> memory_at(const char* device, std::uint64_t address, std::size_t bytes) {
    if (!kernel->device(device).bus_master) return {};
    auto place = kernel->mappings().upper_bound(address);
    if (place == kernel->mappings().begin()) return {};
    --place;
    const FakeKernel::Mapping& mapping = place->second;
    if (mapping.memory == nullptr || !mapping.device.empty() || address - place->first + bytes > mapping.bytes)
      return {};
    return {mapping.memory + (address - place->first), bytes};
  }
  UpParts parts() {
    return {
        .kernel = *kernel,
        .records = RecordStore(run.path().string()),
        .registers = [this](const pci::VfioDevice& device) { return std::make_unique<TimedRegisters>(device, nic); },
        .card =
            [this](const pci::VfioDevice& /*device*/) {
              return std::make_unique<ModelCardAccess>(card, [this](std::chrono::microseconds time) {
                nic.pause(time);
                on_pause();
              });
            },
        .engine = open_engine};
  }
  Result<std::unique_ptr<BringUp>> begin() {
    auto tree = pci::PciTree::read(machine.sysfs.text());
    EXPECT_TRUE(tree);
    tree_ = std::make_unique<pci::PciTree>(*std::move(tree));
    return BringUp::begin(parts(), *tree_, options, stop, report);
  }
  /// Checks that all is as before the test.
  void expect_given_back() {
    EXPECT_EQ(kernel->link_name(machine.sysfs.text() + "/bus/pci/devices/" + kNicName + "/driver"), "ixgbe");
    EXPECT_EQ(kernel->link_name(machine.sysfs.text() + "/bus/pci/devices/" + kCardName + "/driver"), "");
    EXPECT_EQ(kernel->open_files(), 0U);
    EXPECT_TRUE(kernel->mappings().empty());
    EXPECT_FALSE(kernel->device(kNicName).bus_master);
    EXPECT_FALSE(kernel->device(kCardName).bus_master);
    EXPECT_FALSE(nic.moves());
    EXPECT_FALSE(card.running());
    EXPECT_TRUE(RecordStore(run.path().string()).all().empty());
    for (const std::string& fault : nic.faults) ADD_FAILURE() << fault;
    for (const std::string& line : kernel->log) EXPECT_FALSE(line.starts_with("ERROR")) << line;
  }
  std::unique_ptr<pci::PciTree> tree_;
};

}  // namespace wherry::bypass::testing_support
