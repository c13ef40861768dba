// SPDX-License-Identifier: Apache-2.0
#include "kv/process/receive.hpp"
#include "kv/process/allowed.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/clock.hpp"
#include "base/patiently.hpp"
#include "kv/generated/registers.hpp"
#include "kv/udp_port.hpp"

namespace wherry::kv {
namespace {

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
    client.poll([&](const Endpoint&, const Message& m) { status = static_cast<Status>(m.header.detail & 0x1f); });
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
  for (const Deadline deadline(std::chrono::seconds(5)); got < 2 && !deadline.passed();)
    got += receive_all(port, node, everybody(), [] { return Cycles{1}; });
  ASSERT_EQ(got, 2U);
  port.flush();
  pollfd answered{client.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&answered, 1, 5000), 1);
  std::vector<Status> said;
  client.poll([&](const Endpoint&, const Message& m) { said.push_back(static_cast<Status>(m.header.detail & 0x1f)); });
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
    for (const Deadline deadline(std::chrono::seconds(20)); !deadline.passed();)
      if (receive_all(*port, node, allowed, [] { return Cycles{1}; }) != 0) break;
    port->flush();
  };
  asked(others, 1);
  EXPECT_EQ(node.counters().dropped, 1U);
  EXPECT_EQ(node.counters().frames_kv, 1U);
  asked(everybody(), 2);
  EXPECT_EQ(node.counters().dropped, 1U);
  std::vector<std::uint32_t> answers;
  for (const Deadline deadline(std::chrono::seconds(20)); answers.empty() && !deadline.passed();)
    client->poll([&](const Endpoint&, const Message& m) { answers.push_back(m.header.request); });
  EXPECT_EQ(answers, std::vector<std::uint32_t>{2}) << "of the first there was none";
}

/// A node or keeper that was started again may find its predecessor's port in use.
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

TEST(KvAllowed, ByDefault_ExpectLoopbackMembersAndTheirSubnetsHere) {
  ClusterFile cluster;
  cluster.nodes[0] = {.configured = true, .name = {}, .endpoint = {0, 0x0a000001, 1}, .control = {}, .xdp = {}};
  cluster.nodes[3] = {.configured = true, .name = {}, .endpoint = {0, 0x0a000102, 1}, .control = {}, .xdp = {}};
  Subnets here = allowed_sources(cluster, {*Subnet::parse("10.0.0.9/24"), *Subnet::parse("192.168.0.1/16")});
  EXPECT_TRUE(here.has(0x7f000001));
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
}

}  // namespace
}  // namespace wherry::kv
