// SPDX-License-Identifier: Apache-2.0
// Compares the generated frame with bytes written by hand, which python/tests/test_kv_frame.py also contains.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "kv/generated/frame.hpp"
#include "kv/generated/registers.hpp"

namespace wherry::kv {
namespace {

std::array<std::byte, 64> from_hex(std::string text) {
  std::erase(text, ' ');
  std::array<std::byte, 64> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

// A replicate frame with a value of 5 bytes, from node 3 to node 6.
const std::array<std::byte, 64> kWritten = from_hex(
    "020000000006 020000000003 0800"
    "45 00 0037 0000 4000 40 11 26ae 0a000003 0a000006"
    "4b56 4b56 0023 0000"
    "43 95 a1b2 cc0d 01020304 fffefdfc 1122334455667788");

constexpr Headers expected() {
  Headers h;
  h.ethernet = {.destination = 0x020000000006, .source = 0x020000000003, .ethertype = kEthertypeIpv4};
  h.ipv4 = {.version_ihl = kIpVersionIhl,
            .total_length = kMinIpLength + 5,
            .flags_offset = kIpDontFragment,
            .ttl = kIpTtl,
            .protocol = kIpProtocolUdp,
            .checksum = 0x26ae,
            .source = 0x0a000003,
            .destination = 0x0a000006};
  h.udp = {.source_port = kUdpPort, .destination_port = kUdpPort, .length = kMinUdpLength + 5};
  h.kv = {.kind = static_cast<std::uint8_t>(Kind::replicate),
          .node = 3,
          .detail = 0x95,
          .candidate = 6,
          .epoch = 0xa1b2,
          .client = 0x0c0d,
          .request = 0x01020304,
          .version = 0xfffefdfc,
          .key = 0x1122334455667788};
  return h;
}

TEST(KvFrame, PackWritesTheBytesWrittenByHand) {
  std::array<std::byte, 64> bytes;
  bytes.fill(std::byte{0xee});
  expected().pack(bytes);
  EXPECT_EQ(bytes, kWritten);
}

TEST(KvFrame, UnpackReadsThem) { EXPECT_EQ(Headers::unpack(kWritten), expected()); }

TEST(KvFrame, PartsOfAByte) {
  std::array<std::byte, 1> byte{};
  NodeDetail{.way = 2, .place = 21}.pack(byte);
  EXPECT_EQ(byte[0], std::byte{0x95});
  ReplyDetail{.way = 3, .present = 1, .status = static_cast<std::uint8_t>(Status::stale_epoch)}.pack(byte);
  EXPECT_EQ(byte[0], std::byte{0xeb});
  EXPECT_EQ(ReplyDetail::unpack(byte).status, 11);
}

TEST(KvFrame, FieldsTooLargeAreCutAndSpoilNothingBesideThem) {
  std::array<std::byte, 1> byte{};
  NodeDetail{.way = 0, .place = 0xff}.pack(byte);
  EXPECT_EQ(byte[0], std::byte{0x3f});
}

TEST(KvFrame, WayHeaderInMemory) {
  const WayHeader way{.key = 0x0102030405060708, .version = 9, .present = 1, .length = 1024, .sum = 0xabcd};
  std::array<std::byte, 16> bytes{};
  way.pack(bytes);
  EXPECT_EQ(bytes[12], std::byte{0x84});
  EXPECT_EQ(bytes[13], std::byte{0x00});
  EXPECT_EQ(WayHeader::unpack(bytes), way);
  EXPECT_EQ(WayHeader::kBytes * kWays, 64U);
}

TEST(KvFrame, EveryKindAndStatusHasAName) {
  EXPECT_EQ(name_of(Kind::replicate), "replicate");
  EXPECT_EQ(name_of(Status::table_full), "table_full");
  EXPECT_EQ(name_of(static_cast<Kind>(0)), "?");
}

// CRC-32C, computed bit by bit from its definition.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t state = 0xffffffff;
  for (const char byte : bytes) {
    state ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ ((state & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return ~state;
}

TEST(KvHash, IsTheCrcOfTheKeysBytes) {
  ASSERT_EQ(crc32c("123456789"), 0xe3069283);  // the published check value
  std::uint64_t key = 1;
  for (int i = 0; i < 1000; ++i, key = key * 6364136223846793005 + 1442695040888963407) {
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(key >> shift);
    ASSERT_EQ(hash_of(key), crc32c(bytes)) << key;
  }
  EXPECT_EQ(hash_of(0), 0x8c28b28a);
  EXPECT_EQ(bucket_of(0x8c28b28a, 21), 0x08b28aU);
  EXPECT_EQ(bucket_of(0x8c28b28a, 32), 0x8c28b28aU);
  EXPECT_EQ(slot_of(0x8c28b28a), 0x8aU);
  EXPECT_EQ(first_way_of(0x8c28b28a), 2U);
}

struct Candidates {
  std::uint64_t key;
  unsigned bits;
  std::vector<std::uint32_t> buckets;
  std::vector<int> numbers;
};

// The example table of docs/reference/kv-frame.md, calculated by hand from that page.
TEST(KvHash, AKeysCandidatesAreThoseOfTheDocs) {
  const std::vector<Candidates> all{
      {0, 8, {0x8a}, {0}},
      {0, 9, {0x08a, 0x18a}, {0, 1}},
      {0, 10, {0x28a, 0x38a, 0x08a, 0x18a}, {2, 3, 0, 1}},
      {0,
       21,
       {0x08b28a, 0x08b38a, 0x08b08a, 0x08b18a, 0x00728a, 0x00738a, 0x00708a, 0x00718a},
       {2, 3, 0, 1, 6, 7, 4, 5}},
      {0x1122334455667788, 11, {0x37d, 0x27d, 0x17d, 0x07d, 0x77d, 0x67d, 0x57d, 0x47d}, {3, 2, 1, 0, 7, 6, 5, 4}},
      {0x12d, 12, {0x8f0, 0x9f0, 0xaf0, 0xbf0, 0xcf0, 0xdf0, 0xef0, 0xff0}, {0, 1, 2, 3, 4, 5, 6, 7}},
      {0x11,
       22,
       {0x1df6e6, 0x1df7e6, 0x1df4e6, 0x1df5e6, 0x1b16e6, 0x1b17e6, 0x1b14e6, 0x1b15e6},
       {2, 3, 0, 1, 6, 7, 4, 5}},
  };
  for (const Candidates& one : all) {
    const std::uint32_t hash = hash_of(one.key);
    ASSERT_EQ(candidates(one.bits), one.buckets.size());
    for (std::uint32_t i = 0; i < one.buckets.size(); ++i) {
      EXPECT_EQ(bucket_at_index(hash, i, one.bits), one.buckets[i]) << one.key << " " << one.bits << " " << i;
      EXPECT_EQ(candidate_of(hash, one.buckets[i], one.bits), one.numbers[i]);
      EXPECT_EQ(bucket_of_candidate(hash, static_cast<std::uint8_t>(one.numbers[i]), one.bits), one.buckets[i]);
    }
  }
}

TEST(KvHash, CandidatesDifferAndShareTheirSlot) {
  std::uint64_t key = 1;
  for (int i = 0; i < 2000; ++i, key = key * 6364136223846793005 + 1442695040888963407) {
    const std::uint32_t hash = hash_of(key);
    for (unsigned bits = 8; bits <= 32; ++bits) {
      std::set<std::uint32_t> buckets;
      std::set<unsigned> numbers;
      for (std::uint32_t index = 0; index < candidates(bits); ++index) {
        const std::uint32_t bucket = bucket_at_index(hash, index, bits);
        EXPECT_EQ(bucket % kSlots, slot_of(hash));
        EXPECT_EQ(bucket_of(bucket, bits), bucket);
        EXPECT_EQ(bucket_of_candidate(hash, candidate_of(hash, bucket, bits), bits), bucket);
        buckets.insert(bucket);
        numbers.insert(candidate_of(hash, bucket, bits));
      }
      ASSERT_EQ(buckets.size(), candidates(bits)) << key << " " << bits;
      ASSERT_EQ(numbers.size(), candidates(bits));
      ASSERT_EQ(bucket_at_index(hash, 0, bits), bucket_of(hash, bits));
    }
  }
}

TEST(KvRegisters, FieldsOfAWord) {
  using namespace registers;
  EXPECT_EQ(kStateLeftovers.set(0xffffffff, 0), 0xfffe001fU);
  EXPECT_EQ(kStateLeftovers.get(0x00002460), 0x123U);
  EXPECT_EQ(peer_ip_offset(7), 0x178U);
}

}  // namespace
}  // namespace wherry::kv
