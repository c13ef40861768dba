// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/neighbour.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace wherry::sim {
namespace {

std::vector<std::byte> bytes(std::initializer_list<unsigned> values) {
  std::vector<std::byte> out;
  for (const unsigned value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

// RFC 826, over Ethernet.
const std::vector<std::byte> kWhoHas = bytes({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x52, 0x54, 0, 0x12, 0x34, 0x56,  //
                                              0x08, 0x06, 0,    1,    0x08, 0,    6,    4,    0, 1,                 //
                                              0x52, 0x54, 0,    0x12, 0x34, 0x56, 10,   0,    2, 15,                //
                                              0,    0,    0,    0,    0,    0,    10,   0,    2, 2});
const std::vector<std::byte> kIsAt = bytes({0x52, 0x54, 0, 0x12, 0x34, 0x56, 2,  0, 0, 0, 0, 1,  //
                                            0x08, 0x06, 0, 1,    0x08, 0,    6,  4, 0, 2,        //
                                            2,    0,    0, 0,    0,    1,    10, 0, 2, 2,        //
                                            0x52, 0x54, 0, 0x12, 0x34, 0x56, 10, 0, 2, 15});
// Frames by RFC 791 and 792, with checksums computed by hand.
const std::vector<std::byte> kPing =
    bytes({2,    0, 0,    0,    0, 1, 0x52, 0x54, 0,  0x12, 0x34, 0x56, 0x08, 0,                      //
           0x45, 0, 0,    28,   0, 1, 0,    0,    64, 1,    0x62, 0xD0, 10,   0, 2, 15, 10, 0, 2, 2,  //
           8,    0, 0xF7, 0xFC, 0, 1, 0,    2});
const std::vector<std::byte> kPong =
    bytes({0x52, 0x54, 0,    0x12, 0x34, 0x56, 2, 0, 0,  0, 0,    1,    0x08, 0,                      //
           0x45, 0,    0,    28,   0,    1,    0, 0, 64, 1, 0x62, 0xD0, 10,   0, 2, 2, 10, 0, 2, 15,  //
           0,    0,    0xFF, 0xFC, 0,    1,    0, 2});

TEST(SimQemuNeighbour, ArpRequestForItsAddress_ExpectItsMac) { EXPECT_EQ(Neighbour().answer(kWhoHas), kIsAt); }

TEST(SimQemuNeighbour, Ping_ExpectTheReply) { EXPECT_EQ(Neighbour().answer(kPing), kPong); }

TEST(SimQemuNeighbour, SomethingForOthers_ExpectSilence) {
  for (const std::vector<std::byte>& frame : {kWhoHas, kPing})
    for (std::size_t size = 0; size < frame.size(); ++size)
      EXPECT_EQ(Neighbour().answer(std::span(frame).first(size)), std::nullopt) << size;
  auto arp = kWhoHas, ping = kPing;
  arp[41] = ping[33] = std::byte{3};  // another address
  EXPECT_EQ(Neighbour().answer(arp), std::nullopt);
  EXPECT_EQ(Neighbour().answer(ping), std::nullopt);
  EXPECT_EQ(Neighbour().answer(kIsAt), std::nullopt);
  EXPECT_EQ(Neighbour().answer(kPong), std::nullopt);
}

}  // namespace
}  // namespace wherry::sim
