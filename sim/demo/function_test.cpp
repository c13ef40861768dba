// SPDX-License-Identifier: Apache-2.0
// Answers to ARP and ping, compared with frames written by hand from the RFCs.
#include "sim/demo/function.hpp"

#include <gtest/gtest.h>

#include "sim/hex_testing.hpp"

namespace wherry::sim {
namespace {

using testing_support::bytes_of;

constexpr kv::Endpoint kSelf{.mac = 0x02574b560101, .ip = 0x0a5a0002, .port = 19286};

const auto kWhoHas = bytes_of(
    "ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a5a0001 000000000000 0a5a0002 "
    "000000000000000000000000000000000000");
const auto kIsAt = bytes_of(
    "020000000001 02574b560101 0806 0001 0800 06 04 0002 02574b560101 0a5a0002 020000000001 0a5a0001 "
    "000000000000000000000000000000000000");
// From 10.90.0.1 to 10.90.0.2, time to live 64; identifier 7, sequence 1, eight bytes of data.
const auto kPing = bytes_of(
    "02574b560101 020000000001 0800 4500 0024 0000 4000 40 01 2623 0a5a0001 0a5a0002 "
    "08 00 e7e3 0007 0001 0102030405060708 00000000000000000000");
const auto kPong = bytes_of(
    "020000000001 02574b560101 0800 4500 0024 0000 4000 40 01 2623 0a5a0002 0a5a0001 "
    "00 00 efe3 0007 0001 0102030405060708 00000000000000000000");

std::vector<std::byte> with(std::vector<std::byte> frame, std::size_t at, unsigned value) {
  frame[at] = static_cast<std::byte>(value);
  return frame;
}

TEST(DemoFunction, WhoHas_ExpectIsAt) { EXPECT_EQ(answer(kWhoHas, kSelf), kIsAt); }

TEST(DemoFunction, EchoRequest_ExpectReply) { EXPECT_EQ(answer(kPing, kSelf), kPong); }

TEST(DemoFunction, OtherFrames_ExpectNothing) {
  EXPECT_EQ(answer(with(kWhoHas, 41, 3), kSelf), std::nullopt) << "another address";
  EXPECT_EQ(answer(with(kWhoHas, 21, 2), kSelf), std::nullopt) << "an answer";
  EXPECT_EQ(answer(with(kPing, 33, 3), kSelf), std::nullopt) << "another address";
  EXPECT_EQ(answer(with(kPing, 34, 0), kSelf), std::nullopt) << "a reply";
  EXPECT_EQ(answer(with(kPing, 20, 0x20), kSelf), std::nullopt) << "a fragment";
  EXPECT_EQ(answer(with(kPing, 23, 6), kSelf), std::nullopt) << "TCP";
  EXPECT_EQ(answer(with(kPing, 14, 0x46), kSelf), std::nullopt) << "options";
}

TEST(DemoFunction, CutFrames_ExpectNothing) {
  for (std::size_t size = 0; size < 42; ++size) {
    EXPECT_EQ(answer(std::span(kWhoHas).first(size), kSelf), std::nullopt);
    EXPECT_EQ(answer(std::span(kPing).first(size), kSelf), std::nullopt);
  }
}

}  // namespace
}  // namespace wherry::sim
