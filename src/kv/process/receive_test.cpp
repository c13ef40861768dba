// SPDX-License-Identifier: Apache-2.0
#include "kv/process/receive.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/clock.hpp"
#include "kv/generated/registers.hpp"
#include "kv/udp_port.hpp"

namespace wherry::kv {
namespace {

constexpr Endpoint kAny{.ip = INADDR_LOOPBACK};

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
    EXPECT_EQ(receive_all(port, node,
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
    got += receive_all(port, node, [] { return Cycles{1}; });
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

}  // namespace
}  // namespace wherry::kv
