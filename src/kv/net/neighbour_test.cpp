// SPDX-License-Identifier: Apache-2.0
#include "kv/net/neighbour.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "kv/net/neighbour_table.hpp"
#include "kv/net/veth_testing.hpp"

namespace wherry::kv {
namespace {

using testing_support::kPatience;

constexpr std::uint32_t ip(unsigned a, unsigned b, unsigned c, unsigned d) { return a << 24 | b << 16 | c << 8 | d; }

constexpr std::string_view kArp =
    "IP address       HW type     Flags       HW address            Mask     Device\n"
    "10.0.0.2         0x1         0x2         52:54:00:ab:cd:ef     *        eth0\n"
    "10.0.0.2         0x1         0x2         52:54:00:00:00:01     *        eth1\n"
    "10.0.0.3         0x1         0x0         00:00:00:00:00:00     *        eth0\n"
    "10.0.0.4         0x1         0x6         02:00:00:00:00:04     *        eth0\n";

TEST(ArpTable, Entries_ExpectThatOfTheInterfaceIfComplete) {
  EXPECT_EQ(mac_in_arp_table(kArp, "eth0", ip(10, 0, 0, 2)), 0x525400abcdefU);
  EXPECT_EQ(mac_in_arp_table(kArp, "eth1", ip(10, 0, 0, 2)), 0x525400000001U);
  EXPECT_EQ(mac_in_arp_table(kArp, "eth0", ip(10, 0, 0, 3)), std::nullopt) << "asked for, not answered yet";
  EXPECT_EQ(mac_in_arp_table(kArp, "eth0", ip(10, 0, 0, 4)), 0x020000000004U) << "a permanent one";
  EXPECT_EQ(mac_in_arp_table(kArp, "eth0", ip(10, 0, 0, 5)), std::nullopt);
  EXPECT_EQ(mac_in_arp_table("", "eth0", ip(10, 0, 0, 2)), std::nullopt);
}

constexpr std::string_view kRoutes =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    "eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    "eth0\t0001A8C0\t0900000A\t0003\t0\t0\t20\t00FFFFFF\t0\t0\t0\n"
    "eth0\t0001A8C0\t0800000A\t0003\t0\t0\t10\t00FFFFFF\t0\t0\t0\n"
    "eth1\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";

TEST(RouteTable, Routes_ExpectTheMostSpecificOfTheInterface) {
  EXPECT_EQ(next_hop_in_route_table(kRoutes, "eth0", ip(10, 0, 0, 7)), ip(10, 0, 0, 7)) << "on the link";
  EXPECT_EQ(next_hop_in_route_table(kRoutes, "eth0", ip(8, 8, 8, 8)), ip(10, 0, 0, 1)) << "the default gateway";
  EXPECT_EQ(next_hop_in_route_table(kRoutes, "eth0", ip(192, 168, 1, 5)), ip(10, 0, 0, 8)) << "the lower metric";
  EXPECT_EQ(next_hop_in_route_table(kRoutes, "eth1", ip(192, 168, 2, 5)), ip(192, 168, 2, 5));
  EXPECT_EQ(next_hop_in_route_table(kRoutes, "eth1", ip(8, 8, 8, 8)), std::nullopt);
  EXPECT_EQ(next_hop_in_route_table("", "eth0", ip(10, 0, 0, 7)), std::nullopt);
}

TEST(NeighbourTable, ItsThreadHasLeftTheNetwork_ExpectNeighboursToBeFoundAllTheSame) {
  std::string why;
  const auto network = VethPair::make(&why);
  if (!network) GTEST_SKIP() << why;
  network->enter(0);
  NeighbourTable table({VethPair::kInterface});
  network->leave();
  ASSERT_TRUE(table.keep(VethPair::kIps[1]));
  for (const Deadline patience(kPatience); !table.refresh(now_ns()) && !patience.passed();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(table.find(VethPair::kIps[1]).mac, network->at(1, 1).mac);
}

TEST(FindInterface, NamesOfNone_ExpectThemNamed) {
  for (const std::string name : {"", "no-such-one", "much-longer-than-any-can-be"}) {
    const auto found = find_interface(name);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.status().code(), StatusCode::kNotFound);
    EXPECT_NE(found.status().message().find(name), std::string::npos);
  }
  EXPECT_TRUE(find_interface("lo"));
}

}  // namespace
}  // namespace wherry::kv
