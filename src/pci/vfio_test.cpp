// SPDX-License-Identifier: Apache-2.0
#include "pci/vfio.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "pci/binding.hpp"
#include "pci/kernel_testing.hpp"

namespace wherry::pci {
namespace {

using testing_support::at;
using testing_support::DeviceModel;
using testing_support::FakeKernel;
using testing_support::kCardWindow;
using testing_support::kNicRegisters;
using testing_support::Machine;

constexpr auto kNicName = "0000:03:00.0", kCardName = "0000:04:00.0";

struct Bench {
  Machine machine;
  std::unique_ptr<FakeKernel> kernel;
  std::uint32_t scratch = 0;

  explicit Bench(int nic_group = 10, int card_group = 11) {
    machine.nic_group = nic_group;
    machine.card_group = card_group;
    machine.build();
    kernel = std::make_unique<FakeKernel>(machine.sysfs);
    DeviceModel nic{.name = kNicName, .group = nic_group, .kernel_driver = "ixgbe"};
    nic.bars[0] = {
        .bytes = 0x8'0000,
        .read = [this](std::uint64_t offset) { return offset == 8 ? scratch : static_cast<std::uint32_t>(offset); },
        .write =
            [this](std::uint64_t offset, std::uint32_t value) {
              if (offset == 8) scratch = value;
            }};
    nic.config = machine_config(0x2810);
    DeviceModel card{.name = kCardName, .group = card_group, .kernel_driver = ""};
    card.bars[0].bytes = 0x1'0000;
    card.bars[2].bytes = 16 << 20;
    card.config = machine_config(0x2810);
    kernel->add(nic);
    kernel->add(card);
  }
  static std::string machine_config(std::uint32_t control) {
    return testing_support::ConfigBytes(256).express(0, control).text();
  }
  [[nodiscard]] Binding binding() const { return {*kernel, machine.sysfs.text()}; }
  void bind() const {
    for (const char* name : {kNicName, kCardName}) ASSERT_TRUE(binding().take(binding().describe(at(name))));
  }
  Result<Vfio> open() const {
    const std::array devices{at(kNicName), at(kCardName)};
    const std::array groups{machine.nic_group, machine.card_group};
    return Vfio::open(*kernel, devices, groups);
  }
  void expect_nothing_held() const {
    EXPECT_EQ(kernel->open_files(), 0U);
    EXPECT_EQ(kernel->mapped_regions(), 0U);
    EXPECT_TRUE(kernel->mappings().empty());
    EXPECT_FALSE(kernel->device(kNicName).bus_master);
    EXPECT_FALSE(kernel->device(kCardName).bus_master);
    for (const std::string& line : kernel->log) EXPECT_FALSE(line.starts_with("ERROR")) << line;
  }
};

TEST(Binding, TakeAndGiveBack_ExpectTheDriverOfBefore) {
  Bench bench;
  const Binding binding = bench.binding();
  const Lent nic = binding.describe(at(kNicName)), card = binding.describe(at(kCardName));
  EXPECT_EQ(nic.driver, "ixgbe");
  EXPECT_EQ(card.driver, "");
  ASSERT_TRUE(binding.take(nic));
  ASSERT_TRUE(binding.take(card));
  EXPECT_EQ(binding.driver_of(at(kNicName)), "vfio-pci");
  ASSERT_TRUE(binding.give_back(card));
  ASSERT_TRUE(binding.give_back(nic));
  EXPECT_EQ(binding.driver_of(at(kNicName)), "ixgbe");
  EXPECT_EQ(binding.driver_of(at(kCardName)), "");
  EXPECT_TRUE(binding.give_back(nic));  // and again
  EXPECT_EQ(bench.kernel->log, (std::vector<std::string>{"unbind 0000:03:00.0 ixgbe", "bind 0000:03:00.0 vfio-pci",
                                                         "bind 0000:04:00.0 vfio-pci", "unbind 0000:04:00.0 vfio-pci",
                                                         "unbind 0000:03:00.0 vfio-pci", "bind 0000:03:00.0 ixgbe"}));
}

TEST(Binding, TakeWithoutVfio_ExpectRemedyAndDriverBack) {
  Bench bench;
  bench.kernel->modules.clear();
  const Status taken = bench.binding().take(bench.binding().describe(at(kNicName)));
  EXPECT_EQ(taken.code(), StatusCode::kNotFound);
  EXPECT_NE(taken.message().find("modprobe vfio-pci"), std::string::npos);
  EXPECT_EQ(bench.binding().driver_of(at(kNicName)), "ixgbe");
}

TEST(Binding, TakeWithoutRoot_ExpectPermissionDenied) {
  Bench bench;
  bench.kernel->is_root = false;
  const Status taken = bench.binding().take(bench.binding().describe(at(kNicName)));
  EXPECT_EQ(taken.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(taken.message().find("root"), std::string::npos);
}

TEST(Binding, TakeWhatWasBoundToVfio_ExpectItToStay) {
  Bench bench;
  bench.machine.sysfs.bind(kCardName, "vfio-pci");
  const Lent card = bench.binding().describe(at(kCardName));
  EXPECT_EQ(card.driver, "vfio-pci");
  ASSERT_TRUE(bench.binding().take(card));
  ASSERT_TRUE(bench.binding().give_back(card));
  EXPECT_EQ(bench.binding().driver_of(at(kCardName)), "vfio-pci");
}

TEST(Binding, FailAtAnyCall_ExpectTheDriverBack) {
  for (int n = 0;; ++n) {
    Bench bench;
    const Lent nic = bench.binding().describe(at(kNicName));
    bench.kernel->fail_at = n;
    if (bench.binding().take(nic)) {
      EXPECT_GE(n, 3);
      break;
    }
    EXPECT_EQ(bench.binding().driver_of(at(kNicName)), "ixgbe") << "call " << n;
  }
}

TEST(Vfio, OpenTwoGroups_ExpectDevicesWithMemoryOnAndMasteringOff) {
  Bench bench;
  bench.bind();
  bench.kernel->device(kNicName).bus_master = true;
  {
    auto vfio = bench.open();
    ASSERT_TRUE(vfio) << vfio.status().message();
    EXPECT_TRUE(bench.kernel->device(kNicName).memory_enabled);
    EXPECT_FALSE(bench.kernel->device(kNicName).bus_master);
    EXPECT_EQ(vfio->device(0).bytes(0), 0x8'0000U);
    EXPECT_EQ(vfio->device(1).bytes(2), 16U << 20);
    EXPECT_EQ(vfio->device(0).read32(0, 0x100), 0x100U);
    vfio->device(0).write32(0, 8, 77);
    EXPECT_EQ(vfio->device(0).read32(0, 8), 77U);
    EXPECT_EQ(vfio->device(0).read32(0, 0x8'0000), ~0U);
    EXPECT_EQ(vfio->device(0).read32(5, 0), ~0U);
    EXPECT_EQ(vfio->iova_ranges().size(), 2U);
  }
  bench.expect_nothing_held();
}

TEST(Vfio, OpenOneGroup_ExpectBothDevices) {
  Bench bench(7, 7);
  bench.bind();
  {
    auto vfio = bench.open();
    ASSERT_TRUE(vfio) << vfio.status().message();
    EXPECT_EQ(vfio->device(1).at(), at(kCardName));
  }
  bench.expect_nothing_held();
}

TEST(Vfio, MapBarsAtTheirBusAddresses_ExpectBothReachable) {
  Bench bench;
  bench.bind();
  {
    auto vfio = bench.open();
    ASSERT_TRUE(vfio);
    ASSERT_TRUE(vfio->map_bar(1, 2, kCardWindow));
    ASSERT_TRUE(vfio->map_bar(0, 0, kNicRegisters));
    const auto& mappings = bench.kernel->mappings();
    ASSERT_EQ(mappings.size(), 2U);
    EXPECT_EQ(mappings.at(kCardWindow).device, kCardName);
    EXPECT_EQ(mappings.at(kCardWindow).bar, 2U);
    EXPECT_EQ(mappings.at(kNicRegisters).device, kNicName);
  }
  bench.expect_nothing_held();
}

TEST(Vfio, MapReservedAddress_ExpectItNamed) {
  Bench bench;
  bench.bind();
  auto vfio = bench.open();
  ASSERT_TRUE(vfio);
  const Status mapped = vfio->map_bar(1, 2, 0xFE00'0000);  // 16 MiB from here hold the interrupts' addresses
  EXPECT_EQ(mapped.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(mapped.message().find("BAR 2 of 0000:04:00.0"), std::string::npos) << mapped.message();
  EXPECT_NE(mapped.message().find("0xfe000000"), std::string::npos) << mapped.message();
  EXPECT_TRUE(bench.kernel->mappings().empty());
}

TEST(Vfio, MapTwiceAtOnePlace_ExpectAnError) {
  Bench bench;
  bench.bind();
  auto vfio = bench.open();
  ASSERT_TRUE(vfio);
  ASSERT_TRUE(vfio->map_bar(1, 2, kCardWindow));
  EXPECT_EQ(vfio->map_bar(0, 0, kCardWindow + 0x10'0000).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(vfio->map_bar(0, 3, 0x1000'0000).code(), StatusCode::kUnsupported);
}

TEST(Vfio, MapMemoryForMessages_ExpectRoomBesideTheBars) {
  Bench bench;
  bench.bind();
  auto vfio = bench.open();
  ASSERT_TRUE(vfio);
  ASSERT_TRUE(vfio->map_bar(0, 0, 0x10'0000));
  const auto iova = vfio->free_iova(0x1'0000, 0x10'0000);
  ASSERT_TRUE(iova);
  EXPECT_EQ(*iova, 0x18'0000U);
  const auto memory = vfio->map_memory(0x1'0000, *iova);
  ASSERT_TRUE(memory);
  (*memory)[5] = std::byte{9};
  EXPECT_EQ(bench.kernel->mappings().at(*iova).memory[5], std::byte{9});
  EXPECT_FALSE(vfio->free_iova(std::size_t{1} << 60, 0));
}

TEST(Vfio, ForbidRelaxedOrdering_ExpectOnlyThatBitCleared) {
  Bench bench;
  bench.bind();
  auto vfio = bench.open();
  ASSERT_TRUE(vfio);
  ASSERT_TRUE(vfio->device(0).forbid_relaxed_ordering());
  EXPECT_EQ(*vfio->device(0).read_config16(0x48), 0x2800);
}

TEST(Vfio, SwitchMasteringOn_ExpectItOffAtTheEnd) {
  Bench bench;
  bench.bind();
  {
    auto vfio = bench.open();
    ASSERT_TRUE(vfio);
    ASSERT_TRUE(vfio->device(0).set_bus_master(true));
    EXPECT_TRUE(bench.kernel->device(kNicName).bus_master);
    ASSERT_TRUE(vfio->device(0).reset());
  }
  bench.expect_nothing_held();
}

TEST(Vfio, OpenGroupWithOthers_ExpectFailedPrecondition) {
  Bench bench;
  bench.machine.sysfs.add(
      {.path = "pci0000:00/0000:00:02.0/0000:07:00.0", .vendor = 1, .device = 1, .group = 11, .driver = "nvme"});
  bench.kernel->add({.name = "0000:07:00.0", .group = 11, .kernel_driver = "nvme"});
  bench.bind();
  const auto vfio = bench.open();
  ASSERT_FALSE(vfio);
  EXPECT_EQ(vfio.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(vfio.status().message().find("group 11"), std::string::npos);
  bench.expect_nothing_held();
}

TEST(Vfio, OpenWhatIsMissing_ExpectTheRemedy) {
  {
    Bench bench;  // not bound
    const auto vfio = bench.open();
    ASSERT_FALSE(vfio);
    EXPECT_NE(vfio.status().message().find("/dev/vfio/10"), std::string::npos);
  }
  {
    Bench bench;
    bench.bind();
    bench.kernel->has_type1 = false;
    EXPECT_NE(bench.open().status().message().find("vfio_iommu_type1"), std::string::npos);
    bench.expect_nothing_held();
  }
  {
    Bench bench;
    bench.bind();
    bench.kernel->held.insert(11);
    const auto vfio = bench.open();
    EXPECT_EQ(vfio.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(vfio.status().message().find("another process"), std::string::npos);
    bench.expect_nothing_held();
  }
  {
    Bench bench;
    bench.bind();
    bench.kernel->is_root = false;
    EXPECT_EQ(bench.open().status().code(), StatusCode::kPermissionDenied);
    bench.expect_nothing_held();
  }
}

TEST(Vfio, ReadInfoOfAnOldKernel_ExpectNoRanges) {
  Bench bench;
  bench.bind();
  bench.kernel->ranges.clear();
  auto vfio = bench.open();
  ASSERT_TRUE(vfio);
  EXPECT_TRUE(vfio->iova_ranges().empty());
  EXPECT_TRUE(vfio->map_bar(1, 2, kCardWindow));
}

TEST(Vfio, FailAtAnyCall_ExpectNothingHeld) {
  Bench bench;
  bench.bind();
  for (int n = 0;; ++n) {
    SCOPED_TRACE(n);
    bench.kernel->calls = 0;
    bench.kernel->fail_at = n;
    bool done = false;
    {
      auto vfio = bench.open();
      done = vfio.ok() && vfio->map_bar(1, 2, kCardWindow) && vfio->map_bar(0, 0, kNicRegisters) &&
             vfio->device(0).forbid_relaxed_ordering() && vfio->device(0).set_bus_master(true) &&
             vfio->device(0).reset();
    }
    bench.expect_nothing_held();
    if (bench.kernel->calls <= n) {
      EXPECT_TRUE(done);
      EXPECT_GT(n, 20);
      break;
    }
  }
}

}  // namespace
}  // namespace wherry::pci
