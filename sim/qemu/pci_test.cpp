// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/pci.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace wherry::sim {
namespace {

/// The configuration space of a tree as firmware finds it, with BARs and bridges that react to writes.
class Tree final : public ConfigSpace {
 public:
  struct Node {
    std::map<std::uint32_t, std::uint32_t> registers;
    std::map<std::uint32_t, std::uint32_t> writable;  ///< by register; of others nothing
  };

  Node& add(PciAddress at, std::uint16_t vendor, std::uint16_t device, std::uint32_t header = 0) {
    Node& node = nodes_[key(at)];
    node.registers[0x00] = vendor | std::uint32_t{device} << 16;
    node.registers[0x0C] = header << 16;
    node.writable[0x04] = 0x7;
    if ((header & 0x7F) == 1)
      for (const std::uint32_t reg : {0x18U, 0x20U, 0x24U}) node.writable[reg] = 0xFFFF'FFFF;
    return node;
  }
  static void bar(Node& node, std::uint32_t number, std::uint64_t bytes, std::uint32_t type) {
    const std::uint64_t mask = ~(bytes - 1);
    node.registers[0x10 + 4 * number] = type;
    node.writable[0x10 + 4 * number] = static_cast<std::uint32_t>(mask) & ~0xFU;
    if (type & 4) node.writable[0x14 + 4 * number] = static_cast<std::uint32_t>(mask >> 32);
  }
  std::uint32_t& at(PciAddress where, std::uint32_t reg) { return nodes_.at(key(where)).registers[reg]; }

  /// Whether a function is on bus 0, or behind bridges whose bus numbers lead to it.
  bool reachable(PciAddress where) {
    if (where.bus == 0) return true;
    return std::any_of(nodes_.begin(), nodes_.end(), [&](auto& entry) {
      const std::uint32_t numbers = entry.second.registers[0x18];
      return (entry.second.registers[0x0C] >> 16 & 0x7F) == 1 && (numbers >> 8 & 0xFF) == where.bus;
    });
  }
  Result<std::uint32_t> read32(PciAddress where, std::uint32_t reg) override {
    const auto found = nodes_.find(key(where));
    if (found == nodes_.end() || !reachable(where)) return 0xFFFF'FFFFU;
    return found->second.registers[reg];
  }
  Status write32(PciAddress where, std::uint32_t reg, std::uint32_t value) override {
    Node& node = nodes_.at(key(where));
    node.registers[reg] = (node.registers[reg] & ~node.writable[reg]) | (value & node.writable[reg]);
    return {};
  }
  Status write16(PciAddress where, std::uint32_t reg, std::uint16_t value) override {
    last_write16 = {where, reg, value};
    return {};
  }
  std::tuple<PciAddress, std::uint32_t, std::uint16_t> last_write16;

 private:
  static std::tuple<int, int, int> key(PciAddress at) { return {at.bus, at.device, at.function}; }
  std::map<std::tuple<int, int, int>, Node> nodes_;
};

constexpr PciMemory kMemory{.next = 0xC000'0000, .end = 0xE000'0000};

class SimQemuPci : public ::testing::Test {
 protected:
  /// Root port, switch with two ports, a NIC and a card.
  void SetUp() override {
    tree.add({0, 0, 0}, 0x8086, 0x29C0);
    tree.add({0, 1, 0}, 0x1B36, 0x000C, 1);
    tree.add({1, 0, 0}, 0x104C, 0x8232, 1);
    tree.add({2, 0, 0}, 0x104C, 0x8233, 1);
    tree.add({2, 1, 0}, 0x104C, 0x8233, 1);
    Tree::Node& nic = tree.add({3, 0, 0}, 0x8086, 0x10D3);
    Tree::bar(nic, 0, 1 << 17, 0);
    Tree::bar(nic, 2, 32, 1);  // I/O
    Tree::bar(nic, 3, 1 << 14, 4);
    Tree::Node& card = tree.add({4, 0, 0}, 0x10EE, 0x9038);
    Tree::bar(card, 2, 1 << 23, 0);
  }
  const PciFunction& find(std::uint16_t vendor, std::uint16_t device) {
    return *std::find_if(functions.begin(), functions.end(),
                         [=](const PciFunction& one) { return one.vendor == vendor && one.device == device; });
  }
  void enumerate_tree() {
    auto found = enumerate(tree, kMemory);
    ASSERT_TRUE(found);
    functions = *found;
  }
  Tree tree;
  std::vector<PciFunction> functions;
};

TEST_F(SimQemuPci, Tree_ExpectBusesNumberedAndParentsKnown) {
  enumerate_tree();
  ASSERT_EQ(functions.size(), 7U);
  EXPECT_EQ(tree.at({0, 1, 0}, 0x18), 0x04'01'00U);
  EXPECT_EQ(tree.at({1, 0, 0}, 0x18), 0x04'02'01U);
  EXPECT_EQ(tree.at({2, 0, 0}, 0x18), 0x03'03'02U);
  EXPECT_EQ(tree.at({2, 1, 0}, 0x18), 0x04'04'02U);
  EXPECT_EQ(find(0x8086, 0x10D3).parent, (PciAddress{2, 0, 0}));
  EXPECT_EQ(find(0x10EE, 0x9038).parent, (PciAddress{2, 1, 0}));
}

TEST_F(SimQemuPci, Bars_ExpectAlignedApartAndInsideTheWindows) {
  enumerate_tree();
  const PciBar& card = find(0x10EE, 0x9038).bars[2];
  EXPECT_EQ(card.bytes, 1U << 23);
  EXPECT_EQ(card.address % card.bytes, 0U);
  EXPECT_EQ(tree.at({4, 0, 0}, 0x18), card.address);
  const auto& nic = find(0x8086, 0x10D3).bars;
  EXPECT_EQ(nic[0].bytes, 1U << 17);
  EXPECT_EQ(nic[2].bytes, 0U);  // I/O is left alone
  EXPECT_TRUE(nic[3].wide);
  EXPECT_GE(nic[3].address, nic[0].address + nic[0].bytes);
  const auto inside = [this](PciAddress bridge, const PciBar& bar) {
    const std::uint32_t window = tree.at(bridge, 0x20);
    const std::uint64_t base = std::uint64_t{window & 0xFFF0} << 16, limit = (window & 0xFFF0'0000) | 0xF'FFFF;
    return base <= bar.address && bar.address + bar.bytes - 1 <= limit;
  };
  for (const PciAddress bridge : {PciAddress{0, 1, 0}, PciAddress{1, 0, 0}, PciAddress{2, 1, 0}})
    EXPECT_TRUE(inside(bridge, card));
  for (const PciAddress bridge : {PciAddress{0, 1, 0}, PciAddress{1, 0, 0}, PciAddress{2, 0, 0}})
    EXPECT_TRUE(inside(bridge, nic[3]));
  EXPECT_FALSE(inside({2, 0, 0}, card));
}

TEST_F(SimQemuPci, NothingBehindABridge_ExpectItsWindowClosed) {
  tree.add({0, 2, 0}, 0x1B36, 0x000C, 1);
  enumerate_tree();
  EXPECT_EQ(tree.at({0, 2, 0}, 0x20), 0xFFF0U);
}

TEST_F(SimQemuPci, SeveralFunctions_ExpectAllOfThem) {
  tree.add({0, 3, 0}, 0x8086, 1, 0x80);
  tree.add({0, 3, 2}, 0x8086, 2);
  tree.add({0, 4, 0}, 0x8086, 3);
  tree.add({0, 4, 1}, 0x8086, 4);  // not said to be there
  enumerate_tree();
  EXPECT_EQ(functions.size(), 10U);
}

TEST_F(SimQemuPci, TooLittleMemory_ExpectResourceExhausted) {
  EXPECT_EQ(enumerate(tree, {.next = 0xC000'0000, .end = 0xC040'0000}).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(SimQemuPci, FunctionThatCameBackEmpty_ExpectTheSameBars) {
  enumerate_tree();
  const PciFunction nic = find(0x8086, 0x10D3);
  for (const std::uint32_t reg : {0x10U, 0x1CU, 0x20U}) tree.at(nic.at, reg) = reg == 0x1C ? 4 : 0;
  ASSERT_TRUE(restore_bars(tree, nic));
  EXPECT_EQ(tree.at(nic.at, 0x10), nic.bars[0].address);
  EXPECT_EQ(tree.at(nic.at, 0x1C), nic.bars[3].address | 4);
  EXPECT_EQ(tree.last_write16, std::tuple(nic.at, 0x04U, std::uint16_t{6}));
}

TEST_F(SimQemuPci, SlotPower_ExpectItInTheExpressCapability) {
  enumerate_tree();
  const PciAddress port{2, 0, 0};
  tree.at(port, 0x34) = 0x40;
  tree.at(port, 0x40) = 0x0000'6005;  // MSI, and the next one at 0x60
  tree.at(port, 0x60) = 0x0162'0010;
  ASSERT_TRUE(set_slot_power(tree, port, false));
  EXPECT_EQ(tree.last_write16, std::tuple(port, 0x78U, std::uint16_t{0x0700}));  // power off, indicator off
  ASSERT_TRUE(set_slot_power(tree, port, true));
  EXPECT_EQ(tree.last_write16, std::tuple(port, 0x78U, std::uint16_t{0x0100}));
}

TEST_F(SimQemuPci, PortWithoutExpressCapability_ExpectNotFound) {
  enumerate_tree();
  const PciAddress port{2, 0, 0};
  tree.at(port, 0x34) = 0x40;
  tree.at(port, 0x40) = 0x0000'4005;  // a list that goes round
  EXPECT_EQ(set_slot_power(tree, port, false).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace wherry::sim
