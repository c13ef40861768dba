// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/echo.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace wherry::sim {
namespace {

using Bytes = std::vector<std::byte>;

Bytes of(const std::vector<int>& values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

/// RFC 1071.
unsigned checksum(std::span<const std::byte> data) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < data.size(); i += 2)
    sum += std::to_integer<unsigned>(data[i]) << 8 | (i + 1 < data.size() ? std::to_integer<unsigned>(data[i + 1]) : 0);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return ~sum & 0xFFFF;
}

/// 42 bytes of headers, then payload up to 60 bytes.
Bytes packet(int protocol, const std::vector<int>& transport, int first_ip_byte = 0x45) {
  Bytes frame = of({1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16, 0x08, 0x00});
  const Bytes ip = of({first_ip_byte, 0, 0, 46, 0, 7, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2});
  frame.insert(frame.end(), ip.begin(), ip.end());
  const Bytes rest = of(transport);
  frame.insert(frame.end(), rest.begin(), rest.end());
  for (int i = 0; frame.size() < 60; ++i) frame.push_back(static_cast<std::byte>(i * 7 + 3));
  return frame;
}

TEST(SimBypassEcho, Udp_ExpectAddressesAndPortsSwapped) {
  Bytes frame = packet(17, {0x30, 0x39, 0x00, 0x07, 0, 26, 0xAB, 0xCD});
  const Bytes before = frame;
  echo(frame);
  EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + 12, of({11, 12, 13, 14, 15, 16, 1, 2, 3, 4, 5, 6}).begin()));
  EXPECT_TRUE(std::equal(frame.begin() + 26, frame.begin() + 38,
                         of({10, 0, 0, 2, 10, 0, 0, 1, 0x00, 0x07, 0x30, 0x39}).begin()));
  EXPECT_TRUE(std::equal(frame.begin() + 38, frame.end(), before.begin() + 38));  // the checksum holds
  EXPECT_TRUE(std::equal(frame.begin() + 12, frame.begin() + 26, before.begin() + 12));
}

TEST(SimBypassEcho, Ping_ExpectReplyWithRightChecksum) {
  for (int value = 0; value < 0x1'0000; value += 257) {  // carries included
    Bytes frame = packet(1, {8, 0, 0, 0, value >> 8, value & 0xFF, 0, 1});
    const unsigned right = checksum(std::span(frame).subspan(34));
    frame[36] = static_cast<std::byte>(right >> 8);
    frame[37] = static_cast<std::byte>(right);
    echo(frame);
    EXPECT_EQ(frame[34], std::byte{0});
    EXPECT_EQ(checksum(std::span(frame).subspan(34)), 0U) << value;
  }
}

TEST(SimBypassEcho, PingReplyAndTcp_ExpectNoOtherChange) {
  for (Bytes frame : {packet(1, {0, 0, 1, 2, 3, 4, 5, 6}), packet(6, {1, 2, 3, 4, 5, 6, 7, 8})}) {
    const Bytes before = frame;
    echo(frame);
    EXPECT_TRUE(std::equal(frame.begin() + 34, frame.end(), before.begin() + 34));
  }
}

TEST(SimBypassEcho, OtherThanIpv4WithoutOptions_ExpectMacsOnly) {
  for (Bytes frame : {packet(17, {1, 2, 3, 4, 5, 6, 7, 8}, 0x46), of(std::vector<int>(60, 7)),
                      of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0})}) {
    const Bytes before = frame;
    echo(frame);
    EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + 6, before.begin() + 6));
    EXPECT_TRUE(std::equal(frame.begin() + 12, frame.end(), before.begin() + 12));
  }
}

TEST(SimBypassEcho, Runt_ExpectUntouched) {
  Bytes frame = of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Bytes before = frame;
  echo(frame);
  EXPECT_EQ(frame, before);
}

struct Port final : StreamPort {
  std::deque<Frame> in, out;
  std::size_t room = 0;
  std::optional<Frame> take() override {
    if (in.empty()) return std::nullopt;
    Frame frame = in.front();
    in.pop_front();
    return frame;
  }
  bool try_put(const Frame& frame) override {
    if (room == 0) return false;
    --room;
    out.push_back(frame);
    return true;
  }
};

TEST(SimBypassEcho, StreamWithoutRoom_ExpectFramesWaitInOrder) {
  Port port;
  for (int i = 0; i < 3; ++i) port.in.push_back({.queue = 1, .bytes = of({i, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9})});
  StreamEcho stream(port);
  stream.turn();
  EXPECT_EQ(port.in.size(), 2U);  // one waits
  port.room = 2;
  stream.turn();
  ASSERT_EQ(port.out.size(), 2U);
  EXPECT_EQ(port.out[0].bytes[6], std::byte{0});
  EXPECT_EQ(port.out[1].bytes[6], std::byte{1});
  EXPECT_EQ(port.out[1].queue, 1);
  EXPECT_EQ(stream.clear(), 1U);
  EXPECT_EQ(stream.clear(), 0U);
}

// Each piece has the MACs, 0x88B6, number, byte count, and its bytes: here 130 in pieces of at most 70.
TEST(SimBypassEcho, FrameLongerThanTheNicSends_ExpectPieces) {
  Port port;
  port.room = 10;
  Bytes frame = of({1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16, 0x88, 0xB5});
  for (int i = 0; frame.size() < 130; ++i) frame.push_back(static_cast<std::byte>(i));
  port.in.push_back({.queue = 0, .bytes = frame});
  StreamEcho stream(port);
  stream.set_longest(70);
  stream.turn();
  Bytes whole;
  ASSERT_EQ(port.out.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const Bytes& piece = port.out[i].bytes;
    const int count = i == 2 ? 26 : 52;
    EXPECT_EQ(Bytes(piece.begin(), piece.begin() + 18),
              of({11, 12, 13, 14, 15, 16, 1, 2, 3, 4, 5, 6, 0x88, 0xB6, 0, i, 0, count}));
    EXPECT_EQ(piece.size(), i == 2 ? 60U : 70U);
    whole.insert(whole.end(), piece.begin() + 18, piece.begin() + 18 + count);
  }
  std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
  EXPECT_EQ(whole, frame);
}

TEST(SimBypassEcho, FrameLongerThanAllowedInPlace_ExpectRefused) {
  InPlaceEcho function;
  function.set_longest(2048);
  Bytes head(64);
  EXPECT_TRUE(function.forward(head, 2048));
  EXPECT_FALSE(function.forward(head, 2049));
}

}  // namespace
}  // namespace wherry::sim
