// SPDX-License-Identifier: Apache-2.0
#include "kv/net/udp_port.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstring>
#include <random>

namespace wherry::kv {
namespace {

constexpr Endpoint kAny{.ip = INADDR_LOOPBACK};

struct Got {
  Endpoint from;
  Kv header;
  Bytes value;
};

std::vector<Got> drain(UdpPort& port, std::size_t count) {
  std::vector<Got> got;
  while (got.size() < count) {
    pollfd ready{.fd = port.fd(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 1000) == 0) break;
    port.poll([&](const Endpoint& from, const Message& m) {
      got.push_back({.from = from, .header = m.header, .value = Bytes(m.value.begin(), m.value.end())});
    });
  }
  return got;
}

Kv header_of(std::uint32_t number) {
  return {.kind = static_cast<std::uint8_t>(Kind::write),
          .node = 5,
          .detail = 0xa5,
          .epoch = 0x1234,
          .client = 77,
          .request = number,
          .version = ~number,
          .key = 0x0102030405060708U * number};
}

class UdpPortTest : public testing::TestWithParam<bool> {
 protected:
  UdpPort open() { return *UdpPort::open(kAny, {.segments = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Segments, UdpPortTest, testing::Bool());

TEST_P(UdpPortTest, MessagesOfAllSizes_ExpectEachOnceAndWhole) {
  UdpPort a = open(), b = open(), c = open();
  std::mt19937 random(7);
  std::vector<Bytes> values;
  for (std::uint32_t i = 0; i < 600; ++i) {
    // Runs of datagrams with one size, and single ones, to two addresses.
    const std::size_t size = i < 200 ? 64 : i < 300 ? 1024 : i < 400 ? 0 : random() % 1025;
    Bytes value(size);
    for (std::byte& byte : value) byte = static_cast<std::byte>(random());
    (i % 10 < 7 ? a : b).send(c.local(), {.header = header_of(i), .value = value});
    values.push_back(value);
    if (i % 100 == 99) {
      a.flush();
      b.flush();
    }
  }
  std::vector<bool> seen(values.size());
  for (const Got& got : drain(c, values.size())) {
    const std::uint32_t i = got.header.request;
    ASSERT_LT(i, values.size());
    EXPECT_FALSE(seen[i]);
    seen[i] = true;
    EXPECT_EQ(got.header, header_of(i));
    EXPECT_EQ(got.value, values[i]);
    EXPECT_EQ(got.from, (i % 10 < 7 ? a : b).local());
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
  EXPECT_EQ(c.counters().received, values.size());
  EXPECT_EQ(a.counters().sent + b.counters().sent, values.size());
  EXPECT_EQ(a.counters().send_failed, 0);
}

/// Takes the packets waiting at a socket. Returns how many of our datagrams each contains.
std::vector<std::size_t> packets_at(UdpPort& port) {
  std::vector<std::size_t> packets;
  std::vector<std::byte> bytes(65536);
  for (;;) {
    const ssize_t count = recv(port.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count <= 0) return packets;
    packets.push_back(static_cast<std::size_t>(count) / Kv::kBytes);
  }
}

TEST_P(UdpPortTest, MessagesToThreeInTurn_ExpectOnePacketForEach) {
  UdpPort from = open();
  std::array to{open(), open(), open()};
  for (std::uint32_t i = 0; i < 30; ++i) from.send(to[i % 3].local(), {.header = header_of(i), .value = {}});
  from.flush();
  EXPECT_EQ(from.counters().sent, 30U);
  const std::vector<std::size_t> one{10}, ten(10, 1);
  for (UdpPort& port : to) EXPECT_EQ(packets_at(port), GetParam() ? one : ten);
}

TEST_P(UdpPortTest, SizesThatChangeToTwoInTurn_ExpectEachToGetThemInOrder) {
  UdpPort from = open();
  std::array to{open(), open()};
  std::mt19937 random(11);
  std::array<std::vector<std::uint32_t>, 2> sent;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::size_t which = random() % to.size();
    const Bytes value(random() % 2 == 0 ? 64 : 100);
    from.send(to[which].local(), {.header = header_of(i), .value = value});
    sent[which].push_back(i);
  }
  from.flush();
  for (std::size_t which = 0; which < to.size(); ++which) {
    std::vector<std::uint32_t> arrived;
    for (const Got& got : drain(to[which], sent[which].size())) {
      EXPECT_TRUE(got.header == header_of(got.header.request));
      arrived.push_back(got.header.request);
    }
    EXPECT_EQ(arrived, sent[which]);
  }
}

TEST_P(UdpPortTest, MoreThanABatch_ExpectSentWithoutFlush) {
  UdpPort a = open(), b = open();
  for (std::uint32_t i = 0; i < 17; ++i) {
    const Bytes value(i);  // no two alike, so that each is a packet of its own
    a.send(b.local(), {.header = header_of(i), .value = value});
  }
  EXPECT_EQ(drain(b, 16).size(), 16);
  a.flush();
  EXPECT_EQ(drain(b, 1).size(), 1);
}

TEST_P(UdpPortTest, ShortLongAndEmptyDatagrams_ExpectShortCountedAndDropped) {
  UdpPort port = open();
  const Fd raw(socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port.local().port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Bytes bytes(60000);
  for (const std::size_t size : {0U, 1U, 21U, 1047U, 60000U, 22U, 1046U})
    ASSERT_EQ(sendto(raw.get(), bytes.data(), size, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(size));
  const auto got = drain(port, 4);
  ASSERT_EQ(got.size(), 4);
  EXPECT_EQ(got[0].value.size(), 1025) << "too long is for the node to answer";
  EXPECT_EQ(got[1].value.size(), 60000 - 22);
  EXPECT_EQ(got[2].value.size(), 0);
  EXPECT_EQ(got[3].value.size(), 1024);
  EXPECT_EQ(port.counters().bad_length, 3);
  EXPECT_EQ(port.counters().received, 4);
}

TEST_P(UdpPortTest, SendMoreThanAPacketHolds_ExpectItCountedAndTheOthersSent) {
  UdpPort a = open(), b = open();
  const Bytes longer(65536);
  a.send(b.local(), {.header = header_of(1), .value = ByteView(longer).first(100)});
  a.send(b.local(), {.header = header_of(1), .value = ByteView(longer).first(kLongestValue)});
  for (const std::size_t size : {std::size_t{65536}, kLongestValue + 1})
    a.send(b.local(), {.header = header_of(2), .value = ByteView(longer).first(size)});
  a.send(b.local(), {.header = header_of(3), .value = ByteView(longer).first(100)});
  EXPECT_EQ(a.flush(), 3U);
  EXPECT_EQ(a.counters().send_failed, 2U);
  const auto got = drain(b, 3);
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[1].value.size(), kLongestValue);
}

TEST_P(UdpPortTest, NobodyThere_ExpectNoError) {
  UdpPort a = open();
  Endpoint gone;
  {
    UdpPort b = open();
    gone = b.local();
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    a.send(gone, {.header = header_of(i), .value = {}});
    a.flush();
  }
  UdpPort c = open();
  a.send(c.local(), {.header = header_of(9), .value = {}});
  a.send(c.local(), {.header = header_of(10), .value = {}});
  EXPECT_EQ(a.flush(), 2U);
  EXPECT_EQ(a.flush(), 0U) << "nothing is left";
  EXPECT_EQ(drain(c, 2).size(), 2);
}

TEST(UdpPort, AddressTaken_ExpectItNamed) {
  const auto first = UdpPort::open(kAny);
  ASSERT_TRUE(first);
  const auto second = UdpPort::open(first->local());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_NE(second.status().message().find("127.0.0.1:" + std::to_string(first->local().port)), std::string::npos);
}

}  // namespace
}  // namespace wherry::kv
