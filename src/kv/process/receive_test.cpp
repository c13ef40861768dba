// SPDX-License-Identifier: Apache-2.0
#include "kv/process/receive.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/clock.hpp"
#include "base/patiently.hpp"
#include "kv/control/allowed.hpp"
#include "kv/generated/registers.hpp"
#include "kv/net/udp_port.hpp"
#include "kv/sim/random.hpp"

namespace wherry::kv {
namespace {

using testing_support::kPatience;

constexpr Endpoint kAny{.ip = INADDR_LOOPBACK};

Subnets& everybody() {
  static Subnets all = [] {
    Subnets one;
    one.add({});
    return one;
  }();
  return all;
}

TEST(KvReceive, ReadArrivesWhileTheProcessStandsStill_ExpectTheClockReadAfterIt) {
  using namespace registers;
  UdpPort port = *UdpPort::open(kAny), client = *UdpPort::open(kAny);
  Node node({}, port);
  node.write(kBucketBitsOffset, 8);
  node.write(kControlOffset, kControlEnable.mask());
  node.write(kMembersOffset, kMembersAll.set(kMembersServing.set(0, 1), 1));
  node.write(kEpochOffset, 1);
  node.write(lease_offset(0), 1000);
  node.write(lease_offset(1), 0);

  Cycles time = 500;
  const auto status_at = [&](Cycles now) {
    time = now;
    client.send(port.local(), {.header = {.kind = static_cast<std::uint8_t>(Kind::read), .request = 1, .key = 7}});
    client.flush();
    pollfd ready{port.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 1000), 1);
    EXPECT_EQ(receive_all(port, node, everybody(),
                          [&] {
                            std::byte byte{};
                            EXPECT_EQ(::recv(port.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1) << "it is still there";
                            return time;
                          }),
              1U);
    port.flush();
    pollfd answered{client.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&answered, 1, 1000), 1);
    Status status = Status::ok;
    client.poll([&](const Endpoint&, const Message& m) { status = status_of(m.header); });
    return status;
  };
  EXPECT_EQ(status_at(500), Status::no_such_key);
  EXPECT_EQ(status_at(2000), Status::not_serving);
}

TEST(KvReceive, WriteOfTooLongAValue_ExpectAnsweredAndNothingWritten) {
  using namespace registers;
  UdpPort port = *UdpPort::open(kAny), client = *UdpPort::open(kAny);
  Node node({}, port);
  node.write(kBucketBitsOffset, 8);
  node.write(kControlOffset, kControlEnable.mask());
  const Bytes value(kMaxValueBytes + 1);
  for (const Kind kind : {Kind::write, Kind::replicate})  // a node is not answered
    client.send(port.local(), {.header = {.kind = static_cast<std::uint8_t>(kind), .key = 7}, .value = value});
  client.flush();
  std::size_t got = 0;
  for (const Deadline deadline(kPatience); got < 2 && !deadline.passed();)
    got += receive_all(port, node, everybody(), [] { return Cycles{1}; });
  ASSERT_EQ(got, 2U);
  port.flush();
  pollfd answered{client.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&answered, 1, 5000), 1);
  std::vector<Status> said;
  client.poll([&](const Endpoint&, const Message& m) { said.push_back(status_of(m.header)); });
  EXPECT_EQ(said, std::vector{Status::too_long});
}

TEST(KvReceive, PortDroppedSome_ExpectEachInItsRegisterOnce) {
  using namespace registers;
  UdpPort port = *UdpPort::open(kAny);
  Node node({}, port);
  PortCounters dropped{.bad_length = 2, .bad_checksum = 3}, counted;
  count_drops(node, dropped, counted);
  count_drops(node, dropped, counted);
  EXPECT_EQ(node.read(kDroppedLengthOffset), 2U);
  EXPECT_EQ(node.read(kDroppedChecksumOffset), 3U);
  ++dropped.bad_checksum;
  count_drops(node, dropped, counted);
  EXPECT_EQ(node.read(kDroppedLengthOffset), 2U);
  EXPECT_EQ(node.read(kDroppedChecksumOffset), 4U);
}

TEST(KvReceive, SourceNotAllowed_ExpectNoAnswerAndItIsCounted) {
  auto port = UdpPort::open(kAny);
  auto client = UdpPort::open(kAny);
  ASSERT_TRUE(port && client);
  Node node({.lane_bits = 4}, *port);
  node.write(registers::kControlOffset, registers::kControlEnable.mask());
  Subnets others;
  others.add(*Subnet::parse("10.0.0.0/8"));
  const auto asked = [&](Subnets& allowed, std::uint32_t tag) {
    client->send(port->local(), {{.kind = static_cast<std::uint8_t>(Kind::ping), .request = tag}, {}});
    client->flush();
    for (const Deadline deadline(kPatience); !deadline.passed();)
      if (receive_all(*port, node, allowed, [] { return Cycles{1}; }) != 0) break;
    port->flush();
  };
  asked(others, 1);
  EXPECT_EQ(node.counters().dropped, 1U);
  EXPECT_EQ(node.read(registers::kDroppedSourceOffset), 1U);
  EXPECT_EQ(node.counters().frames_kv, 1U);
  asked(everybody(), 2);
  EXPECT_EQ(node.counters().dropped, 1U);
  std::vector<std::uint32_t> answers;
  for (const Deadline deadline(kPatience); answers.empty() && !deadline.passed();)
    client->poll([&](const Endpoint&, const Message& m) { answers.push_back(m.header.request); });
  EXPECT_EQ(answers, std::vector<std::uint32_t>{2}) << "of the first there was none";
}

/// A restarted node or keeper may find that its predecessor still uses the port.
TEST(Patiently, PredecessorGoes_ExpectOpenedThen) {
  std::optional<UdpPort> predecessor = *UdpPort::open(kAny);
  const Endpoint at = predecessor->local();
  EXPECT_EQ(UdpPort::open(at).status().code(), StatusCode::kAlreadyExists);
  int tries = 0;
  const auto port = patiently([&] {
    if (++tries == 3) predecessor.reset();
    return UdpPort::open(at);
  });
  EXPECT_TRUE(port) << port.status().message();
  EXPECT_EQ(tries, 3);
  EXPECT_FALSE(patiently([&] { return UdpPort::open(at); })) << "not for ever";
}

TEST(KvAllowed, Subnets_ExpectAddressesAndMasks) {
  EXPECT_EQ(Subnet::parse("10.1.2.3"), (Subnet{0x0a010203, 0xffffffff}));
  EXPECT_EQ(Subnet::parse("10.1.2.3/24"), (Subnet{0x0a010200, 0xffffff00}));
  EXPECT_EQ(Subnet::parse("0.0.0.0/0"), (Subnet{0, 0}));
  for (const char* wrong : {"", "/", "10.0.0", "10.0.0.1/33", "10.0.0.1/", "10.0.0.1/-1", "10.0.0.1/8x", "localhost"})
    EXPECT_FALSE(Subnet::parse(wrong)) << wrong;
}

/// The expected results equal those of Python's ipaddress.collapse_addresses().
TEST(KvAllowed, Merged_ExpectTheFewestSubnetsWithTheSameAddresses) {
  const auto merge = [](std::initializer_list<const char*> texts) {
    std::vector<Subnet> all;
    for (const char* text : texts) all.push_back(*Subnet::parse(text));
    return merged(all);
  };
  const auto subnets = [](std::initializer_list<const char*> texts) {
    std::vector<Subnet> all;
    for (const char* text : texts) all.push_back(*Subnet::parse(text));
    return all;
  };
  EXPECT_EQ(merge({}), subnets({}));
  EXPECT_EQ(merge({"10.0.0.3", "10.0.0.1", "10.0.0.2"}), subnets({"10.0.0.1", "10.0.0.2/31"}));
  EXPECT_EQ(merge({"10.0.0.1", "10.0.0.2"}), subnets({"10.0.0.1", "10.0.0.2"})) << "neighbours, but no halves of one";
  EXPECT_EQ(merge({"10.0.0.7", "10.0.0.0/24", "10.0.0.0/25", "10.0.0.7"}), subnets({"10.0.0.0/24"}));
  EXPECT_EQ(merge({"10.0.3.0/24", "10.0.2.0/24", "10.0.0.0/23"}), subnets({"10.0.0.0/22"}));
  EXPECT_EQ(merge({"128.0.0.0/1", "0.0.0.0/1"}), subnets({"0.0.0.0/0"}));
  EXPECT_EQ(merge({"255.255.255.255", "0.0.0.0", "255.255.255.254"}), subnets({"0.0.0.0", "255.255.255.254/31"}));
  EXPECT_EQ(merge({"0.0.0.0/0", "10.0.0.0/8"}), subnets({"0.0.0.0/0"}));
}

TEST(KvAllowed, RandomSubnets_ExpectMergedOnesWithTheSameAddressesAndNoTwoThatMeet) {
  sim::Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Subnet> all;
    Subnets before, after;
    for (std::uint32_t count = random.below(12); count > 0; --count) {
      const std::uint32_t mask = ~std::uint32_t{0} << random.below(9);
      all.push_back({.ip = (0x0a000000 + random.below(256)) & mask, .mask = mask});
      before.add(all.back());
    }
    const std::vector<Subnet> fewer = merged(all);
    for (const Subnet& subnet : fewer) after.add(subnet);
    for (std::uint32_t ip = 0x09ffff80; ip < 0x0a000180; ++ip) ASSERT_EQ(before.has(ip), after.has(ip)) << round;
    for (std::size_t i = 0; i < fewer.size(); ++i)
      for (std::size_t j = 0; j < fewer.size(); ++j) {
        if (i == j) continue;
        ASSERT_FALSE(fewer[i].has(fewer[j].ip)) << round;
        const bool halves = fewer[i].mask == fewer[j].mask && (fewer[i].ip ^ fewer[j].ip) == (~fewer[i].mask + 1);
        ASSERT_FALSE(halves) << round;
      }
  }
}

TEST(KvAllowed, ByDefault_ExpectMembersAndTheirSubnetsHere) {
  ClusterFile cluster;
  cluster.nodes[0] = {.configured = true, .name = {}, .endpoint = {0, 0x0a000001, 1}, .control = {}, .xdp = {}};
  cluster.nodes[3] = {.configured = true, .name = {}, .endpoint = {0, 0x0a000102, 1}, .control = {}, .xdp = {}};
  Subnets here = allowed_sources(cluster, {*Subnet::parse("10.0.0.9/24"), *Subnet::parse("192.168.0.1/16")});
  EXPECT_FALSE(here.has(0x7f000001)) << "no member is there, and the network can forge it";
  EXPECT_TRUE(here.has(0x0a000055)) << "beside node 0";
  EXPECT_TRUE(here.has(0x0a000102)) << "node 3";
  EXPECT_FALSE(here.has(0x0a000155)) << "beside node 3, where this machine is not";
  EXPECT_FALSE(here.has(0xc0a80001)) << "an interface without a member";
  Subnets nowhere = allowed_sources(cluster, {});
  EXPECT_TRUE(nowhere.has(0x0a000155));
  EXPECT_FALSE(nowhere.has(0x0a000255));
  cluster.clients = {*Subnet::parse("172.16.0.0/12")};
  Subnets named = allowed_sources(cluster, {*Subnet::parse("10.0.0.9/24")});
  EXPECT_TRUE(named.has(0xac100001));
  EXPECT_TRUE(named.has(0x0a000001)) << "members always";
  EXPECT_FALSE(named.has(0x0a000055));
  EXPECT_FALSE(named.has(0x7f000001));
  cluster.clients.clear();
  cluster.nodes[5] = {.configured = true, .name = {}, .endpoint = {0, 0x7f000001, 1}, .control = {}, .xdp = {}};
  EXPECT_TRUE(allowed_sources(cluster, {}).has(0x7f000002)) << "a member is on the loopback";
}

}  // namespace
}  // namespace wherry::kv
