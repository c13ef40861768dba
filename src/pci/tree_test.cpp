// SPDX-License-Identifier: Apache-2.0
#include "pci/tree.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "pci/tree_testing.hpp"

namespace wherry::pci {
namespace {

using testing_support::at;
using testing_support::Machine;
using testing_support::SysfsTree;

TEST(BusAddress, ParseForms_ExpectTheSameAddress) {
  EXPECT_EQ(at("0000:03:00.0"), at("03:00.0"));
  EXPECT_EQ(at("0000:03:1f.7").text(), "0000:03:1f.7");
  EXPECT_EQ(at("10000:e1:00.0").text(), "10000:e1:00.0");
  EXPECT_LT(at("02:00.0"), at("02:00.1"));
}

TEST(BusAddress, ParseWhatIsNone_ExpectFormsInError) {
  for (const std::string text :
       {"", "0", "03:00", "03:00.8", "03:20.0", "3:00.0", "0000:03:00.0 ", "000:03:00.0", "0000:0000:03:00.0",
        "0000:0g:00.0", "../../etc", "123456789:00:00.0", "-1:00.0", "0000:+3:00.0"}) {
    const auto parsed = parse_bus_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(parsed.status().message().find("0000:03:00.0"), std::string::npos);
  }
}

TEST(PciTree, ReadMachine_ExpectFunctionsWithTheirPorts) {
  Machine machine;
  machine.build();
  const auto tree = PciTree::read(machine.sysfs.text());
  ASSERT_TRUE(tree) << tree.status().message();
  ASSERT_EQ(tree->functions().size(), 7U);
  const PciFunction* nic = tree->find(at("03:00.0"));
  ASSERT_NE(nic, nullptr);
  EXPECT_EQ(nic->vendor, 0x8086);
  EXPECT_EQ(nic->device, 0x10FB);
  EXPECT_EQ(nic->driver, "ixgbe");
  EXPECT_EQ(nic->group, 10);
  EXPECT_EQ(nic->host_bridge, "pci0000:00");
  EXPECT_EQ(nic->ports, (std::vector{at("00:01.0"), at("01:00.0"), at("02:00.0")}));
  EXPECT_EQ(nic->bars[0].on_bus, testing_support::kNicRegisters);
  EXPECT_EQ(nic->bars[0].bytes, 0x8'0000U);
  const PciFunction* card = tree->find(at("04:00.0"));
  ASSERT_NE(card, nullptr);
  EXPECT_TRUE(card->bars[2].wide && card->bars[2].prefetchable && card->bars[2].assigned);
  EXPECT_EQ(card->bars[2].bytes, 16U << 20);
  EXPECT_EQ(card->driver, "");
  EXPECT_TRUE(tree->find(at("01:00.0"))->is_bridge());
  EXPECT_EQ(tree->members(10).size(), 1U);
  EXPECT_EQ(tree->reserved(10).size(), 1U);
  EXPECT_TRUE(tree->has_iommu());
  EXPECT_EQ(tree->find(at("05:00.0")), nullptr);
}

TEST(PciTree, ReadMachineWithTranslatedAddresses_ExpectThoseOfTheBus) {
  // Some host bridges shift addresses: the kernel shows the CPU's address; the register holds the bus address.
  Machine machine;
  machine.build();
  machine.sysfs.write("devices/" + machine.nic_path + "/resource",
                      testing_support::resource_line(0x20'E000'0000, 0x8'0000, testing_support::kMemory32));
  const auto tree = PciTree::read(machine.sysfs.text());
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->find(at("03:00.0"))->bars[0].address, 0x20'E000'0000U);
  EXPECT_EQ(tree->find(at("03:00.0"))->bars[0].on_bus, 0xE000'0000U);
}

TEST(PciTree, ReadMachineWithoutPci_ExpectNotFound) {
  SysfsTree sysfs;
  std::filesystem::remove_all(sysfs.root() / "bus");
  const auto tree = PciTree::read(sysfs.text());
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.status().code(), StatusCode::kNotFound);
}

TEST(PciTree, ReadFunctionThatVanishes_ExpectTheOthers) {
  Machine machine;
  machine.build();
  std::filesystem::remove_all(machine.sysfs.root() / "devices" / machine.nic_path);
  const auto tree = PciTree::read(machine.sysfs.text());
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->find(at("03:00.0")), nullptr);
  EXPECT_NE(tree->find(at("04:00.0")), nullptr);
}

TEST(PciTree, ReadGarbage_ExpectNoneOfIt) {
  Machine machine;
  machine.build();
  machine.sysfs.write("devices/" + machine.nic_path + "/resource", "no resource\n\n0x10 0x5 0x200\nzz zz zz\n");
  machine.sysfs.write("devices/" + machine.nic_path + "/class", "class");
  machine.sysfs.write("devices/" + machine.nic_path + "/config", "");
  machine.sysfs.reserve(10, "garbage\n0x5 0x1 msi\n0x10\n0x1000 0x1fff reserved\n0x2000 0x2fff direct-relaxable\n");
  const auto tree = PciTree::read(machine.sysfs.text());
  ASSERT_TRUE(tree);
  const PciFunction* nic = tree->find(at("03:00.0"));
  ASSERT_NE(nic, nullptr);
  for (const Bar& bar : nic->bars) EXPECT_EQ(bar.bytes, 0U);
  ASSERT_EQ(tree->reserved(10).size(), 1U);
  EXPECT_EQ(tree->reserved(10)[0].last, 0x1FFFU);
}

TEST(PciTree, ReadUnassignedBar_ExpectItNotAssigned) {
  // Without room, pci_assign_resource() leaves a resource at 0, with its size, and marks it IORESOURCE_UNSET.
  const auto bars = parse_resources("0x0000000000000000 0x00000000007fffff 0x000000002014220c\n");
  EXPECT_EQ(bars[0].bytes, 8U << 20);
  EXPECT_FALSE(bars[0].assigned);
}

}  // namespace
}  // namespace wherry::pci
