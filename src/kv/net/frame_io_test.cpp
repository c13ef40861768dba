// SPDX-License-Identifier: Apache-2.0
// Compares frames with bytes written by hand, and checksums with sums made word by word as in RFC 1071.
#include "kv/net/frame_io.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kv/net/datagram.hpp"

namespace wherry::kv {
namespace {

std::vector<std::byte> from_hex(std::string text) {
  std::erase(text, ' ');
  std::vector<std::byte> bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

// From node 3 to node 6, with a value of 5 bytes. The IPv4 checksum is that of frame_test.cpp. The UDP checksum by
// hand: words 0a00 0003 0a00 0006 0011 0023 | 4b56 4b56 0023 | 4395 a1b2 0c0d 0102 0304 fffe fdfc 1122 3344 5566 7788 |
// 6865 6c6c 6f00 add up to 5f385. With the carry that is f38a, and its complement is 0c75.
const Endpoint kFrom{0x020000000003, 0x0a000003, kUdpPort};
const Endpoint kTo{0x020000000006, 0x0a000006, kUdpPort};
const std::string kHeadHex =
    "020000000006 020000000003 0800"
    "45 00 0037 0000 4000 40 11 26ae 0a000003 0a000006"
    "4b56 4b56 0023 ";
const std::string kTailHex = "43 95 a1b2 0c0d 01020304 fffefdfc 1122334455667788 68656c6c6f";

std::uint32_t words(ByteView bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    sum += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  return sum;
}
std::uint16_t complement(std::uint32_t sum) {
  while (sum > 0xffff) sum = sum % 0x10000 + sum / 0x10000;
  return static_cast<std::uint16_t>(0xffff - sum);
}
/// Computes the right UDP checksum of a frame, independent of its present checksum.
std::uint16_t udp_checksum(std::vector<std::byte> frame) {
  frame[40] = frame[41] = std::byte{0};
  const std::size_t length = load_be<2>(&frame[38]);
  std::uint32_t sum = words(ByteView(frame).subspan(26, 8)) + kIpProtocolUdp + static_cast<std::uint32_t>(length);
  sum = words(ByteView(frame).subspan(34, length), sum);
  return complement(sum);
}
void put(std::vector<std::byte>& frame, std::size_t at, std::uint16_t value) {
  frame[at] = static_cast<std::byte>(value >> 8);
  frame[at + 1] = static_cast<std::byte>(value);
}
/// Corrects the IPv4 checksum, like a device that has changed the IPv4 header.
void mend(std::vector<std::byte>& frame) {
  put(frame, 24, 0);
  put(frame, 24, complement(words(ByteView(frame).subspan(14, 20))));
}

std::vector<std::byte> frame_by_hand(const std::string& checksum = "0000") {
  return from_hex(kHeadHex + checksum + kTailHex);
}

Parsed parse(const std::vector<std::byte>& frame) {
  Received received;
  return parse(frame, kTo, &received);
}

TEST(KvFrameIo, FrameWrittenByHand_ExpectItsParts) {
  const auto frame = frame_by_hand();
  Received received;
  ASSERT_EQ(parse(frame, kTo, &received), Parsed::kOurs);
  EXPECT_EQ(received.from, kFrom);
  EXPECT_EQ(received.message.header.kind, 8);
  EXPECT_EQ(received.message.header.key, 0x1122334455667788U);
  EXPECT_TRUE(std::ranges::equal(received.message.value, from_hex("68656c6c6f")));
}

TEST(KvFrameIo, Build_ExpectTheBytesWrittenByHand) {
  const auto frame = frame_by_hand();
  Received received;
  ASSERT_EQ(parse(frame, kTo, &received), Parsed::kOurs);
  std::vector<std::byte> built(kHeaderBytes + 5, std::byte{0xee});
  ASSERT_EQ(build(built, kFrom, kTo, received.message, UdpChecksum::kNone), built.size());
  EXPECT_EQ(built, frame);
  ASSERT_EQ(build(built, kFrom, kTo, received.message), built.size());
  EXPECT_EQ(built, frame_by_hand("0c75"));
  EXPECT_EQ(parse(built), Parsed::kOurs);
}

TEST(KvFrameIo, EveryLength_ExpectRightChecksums) {
  std::vector<std::byte> value(1500);
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<std::byte>(i * i + 7);
  std::vector<std::byte> built;
  for (std::size_t length = 0; length <= value.size(); ++length) {
    built.assign(kHeaderBytes + length, std::byte{0});
    const Message message{.header = {.kind = 2, .key = length}, .value = ByteView(value).first(length)};
    ASSERT_EQ(build(built, kFrom, kTo, message), built.size());
    ASSERT_EQ(load_be<2>(&built[40]), udp_checksum(built)) << length;
    ASSERT_EQ(complement(words(ByteView(built).subspan(14, 20))), 0) << length;
    ASSERT_EQ(parse(built), Parsed::kOurs);
  }
}

TEST(KvFrameIo, ChecksumThatIsZero_ExpectAllOnes) {
  std::vector<std::byte> built(kHeaderBytes);
  Message message{.header = {.kind = 1}, .value = {}};
  ASSERT_EQ(build(built, kFrom, kTo, message), built.size());
  message.header.key = load_be<2>(&built[40]);  // adds what was missing
  ASSERT_EQ(build(built, kFrom, kTo, message), built.size());
  EXPECT_EQ(udp_checksum(built), 0);
  EXPECT_EQ(load_be<2>(&built[40]), 0xffff);
  EXPECT_EQ(parse(built), Parsed::kOurs);
}

TEST(KvFrameIo, BufferTooSmall_ExpectNothing) {
  std::vector<std::byte> small(kHeaderBytes - 1);
  EXPECT_EQ(build(small, kFrom, kTo, {}), 0U);
  EXPECT_EQ(pack_datagram({}, std::span(small).first(Kv::kBytes - 1)), 0U);
}

TEST(KvFrameIo, WhatIsNotKv_ExpectForeign) {
  struct Change {
    const char* what;
    std::size_t at;
    std::uint16_t value;
  };
  for (const Change& c : {Change{"another MAC address", 4, 0x0007},
                          {"VLAN tag", 12, 0x8100},
                          {"IPv6", 12, 0x86dd},
                          {"IP options", 14, 0x4600},
                          {"more fragments", 20, 0x2000},
                          {"last fragment", 20, 0x0001},
                          {"fragment that must not be", 20, 0x6000},
                          {"TCP", 22, 0x4006},
                          {"multicast address", 30, 0xe000},
                          {"another address", 32, 0x0007},
                          {"another port", 36, 0x4b57}}) {
    auto frame = frame_by_hand();
    put(frame, c.at, c.value);
    mend(frame);
    EXPECT_EQ(parse(frame), Parsed::kForeign) << c.what;
  }
  EXPECT_EQ(parse(std::vector<std::byte>()), Parsed::kForeign);
  auto cut = frame_by_hand();
  cut.resize(41);
  EXPECT_EQ(parse(cut), Parsed::kForeign);
}

TEST(KvFrameIo, FieldsThatAreIgnored_ExpectOurs) {
  auto frame = frame_by_hand();
  frame[15] = std::byte{0xb8};  // DSCP
  put(frame, 18, 0x1234);       // identification
  put(frame, 20, 0x8000);       // the reserved flag, and no "do not fragment"
  frame[22] = std::byte{1};     // TTL
  mend(frame);
  EXPECT_EQ(parse(frame), Parsed::kOurs);
}

TEST(KvFrameIo, WrongChecksums_ExpectBadChecksum) {
  for (std::size_t bit = 0; bit < 16; ++bit) {
    auto frame = frame_by_hand();
    put(frame, 24, static_cast<std::uint16_t>(load_be<2>(&frame[24]) ^ 1U << bit));
    EXPECT_EQ(parse(frame), Parsed::kBadChecksum);
  }
  auto right = frame_by_hand();
  put(right, 40, udp_checksum(right));
  ASSERT_EQ(parse(right), Parsed::kOurs);
  for (std::size_t at = 42; at < right.size(); ++at) {
    auto frame = right;
    frame[at] ^= std::byte{0x10};
    EXPECT_EQ(parse(frame), Parsed::kBadChecksum) << at;
  }
}

TEST(KvFrameIo, LengthsThatDisagree_ExpectBadLength) {
  auto longer = frame_by_hand();
  put(longer, 38, 0x0024);
  EXPECT_EQ(parse(longer), Parsed::kBadLength);
  auto beyond = frame_by_hand();  // both say so, but the bytes did not come
  put(beyond, 16, 0x0038);
  put(beyond, 38, 0x0024);
  mend(beyond);
  EXPECT_EQ(parse(beyond), Parsed::kBadLength);
  auto short_of_a_header = frame_by_hand();
  put(short_of_a_header, 16, 0x0031);
  put(short_of_a_header, 38, 0x001d);
  mend(short_of_a_header);
  EXPECT_EQ(parse(short_of_a_header), Parsed::kBadLength);
  auto cut = frame_by_hand();
  cut.pop_back();
  EXPECT_EQ(parse(cut), Parsed::kBadLength);
}

TEST(KvFrameIo, Padding_ExpectItIgnored) {
  auto frame = frame_by_hand();
  put(frame, 40, udp_checksum(frame));
  frame.resize(frame.size() + 9, std::byte{0xaa});
  Received received;
  ASSERT_EQ(parse(frame, kTo, &received), Parsed::kOurs);
  EXPECT_EQ(received.message.value.size(), 5U);
}

TEST(KvFrameIo, Datagram_ExpectHeaderAndValue) {
  const auto frame = frame_by_hand();
  const auto message = unpack_datagram(ByteView(frame).subspan(kKvOffset));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->header.request, 0x01020304U);
  EXPECT_EQ(message->value.size(), 5U);
  std::vector<std::byte> built(27);
  ASSERT_EQ(pack_datagram(*message, built), 27U);
  EXPECT_TRUE(std::ranges::equal(built, ByteView(frame).subspan(kKvOffset)));
  EXPECT_FALSE(unpack_datagram(ByteView(frame).subspan(kKvOffset, 21)));
}

}  // namespace
}  // namespace wherry::kv
