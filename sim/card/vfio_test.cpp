// SPDX-License-Identifier: Apache-2.0
// The driver behind VFIO: a kernel that keeps VFIO's rules has the simulated card as its device. Its calls carry
// register and doorbell accesses to simulated PCIe. The memory that VFIO maps belongs to the simulated host.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "pci/binding.hpp"
#include "pci/kernel_testing.hpp"
#include "pci/vfio_function.hpp"
#include "sim/card/testing.hpp"

namespace wherry::sim::card {
namespace {

using namespace testing_support;
using pci::testing_support::at;
using pci::testing_support::DeviceModel;
using pci::testing_support::FakeKernel;
using pci::testing_support::Machine;

constexpr auto kCardName = "0000:04:00.0";
constexpr std::size_t kCommand = 4;
constexpr char kBusMaster = 4;

TEST(SimCardVfio, MoveBothWays_ExpectEveryByteAndAMessage) {
  Rig rig({});
  Machine machine;
  machine.build();
  FakeKernel kernel(machine.sysfs);
  DeviceModel card{.name = kCardName, .group = machine.card_group, .kernel_driver = ""};
  // Copies the bus-master bit from configuration space to the simulated function before each access.
  const auto follow = [&] {
    const bool on = (kernel.device(kCardName).config[kCommand] & kBusMaster) != 0;
    if (on != rig.card.port().bus_master()) static_cast<void>(rig.device.set_bus_master(on));
  };
  for (const unsigned bar : {driver::kRegisterBar, driver::kBellBar}) {
    card.bars[bar] = {.bytes = 4096,
                      .read = [&, bar](std::uint64_t offset) { return follow(), rig.device.read32(bar, offset); },
                      .write = [&, bar](std::uint64_t offset,
                                        std::uint32_t value) { follow(), rig.device.write32(bar, offset, value); }};
  }
  card.config = pci::testing_support::ConfigBytes(256).express(0, 0x2810).text();
  card.most_vectors = driver::kRings;
  card.on_reset = [&] { EXPECT_TRUE(rig.device.reset().ok()); };
  kernel.add(card);
  kernel.maps_bars = false;  // stores into a mapping reach no simulation
  kernel.on_map = [&](std::uint64_t iova, std::span<std::byte> memory) { rig.fabric.memory().back(iova, memory); };
  const pci::Binding binding(kernel, machine.sysfs.text());
  ASSERT_TRUE(binding.take(binding.describe(at(kCardName))).ok());
  // FakeKernel's memory has arbitrary addresses; at the simulated host it consists of whole pages.
  auto function = pci::VfioFunction::open(kernel, at(kCardName), machine.card_group, driver::kBellBar);
  ASSERT_TRUE(function) << function.status().to_string();
  auto engine = driver::Engine::open(**function);
  ASSERT_TRUE(engine) << engine.status().to_string();
  const auto memory = (*function)->allocate(16384);
  ASSERT_TRUE(memory) << memory.status().to_string();
  // As in the kernel behind VFIO, a vector's messages increment its eventfd.
  ASSERT_EQ(kernel.device(kCardName).vectors.size(), driver::kRings);
  ASSERT_TRUE(rig.device.set_vectors(kernel.device(kCardName).vectors).ok());
  const std::vector<std::byte> data = random_bytes(5000, 3);
  std::memcpy(memory->bytes.data() + 1, data.data(), data.size());
  for (const Bell bell : {Bell::kTail, Bell::kDescriptor}) {
    Ring &out = (*engine)->ring(Direction::kToCard, 0), &in = (*engine)->ring(Direction::kToHost, 3);
    ASSERT_TRUE(out.post({.host = memory->iova + 1, .card = 70, .bytes = 5000, .cookie = 9, .interrupt = true}).ok());
    out.ring_bell(bell);
    follow();
    rig.device.pause(50us);
    ASSERT_TRUE(out.wait(1s, true));
    std::array<Done, 2> done;
    ASSERT_EQ(out.poll(done), 1U);
    EXPECT_EQ(done[0].cookie, 9U);
    EXPECT_EQ(done[0].error, driver::Error::kNone);
    ASSERT_TRUE(in.post({.host = memory->iova + 8003, .card = 70, .bytes = 5000}).ok());
    in.ring_bell(bell);
    rig.device.pause(50us);
    ASSERT_EQ(in.poll(done), 1U);
    EXPECT_EQ(done[0].error, driver::Error::kNone);
    EXPECT_EQ(std::memcmp(memory->bytes.data() + 8003, data.data(), data.size()), 0);
    std::memset(memory->bytes.data() + 8003, 0, data.size());
  }
  ASSERT_TRUE((*engine)->reset().ok());
  EXPECT_TRUE((*engine)->alive());
  engine->reset();
  EXPECT_FALSE(kernel.device(kCardName).bus_master);
}

}  // namespace
}  // namespace wherry::sim::card
