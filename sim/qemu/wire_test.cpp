// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/wire.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace wherry::sim {
namespace {

using Bytes = std::vector<std::byte>;

class SimQemuWire : public ::testing::Test {
 protected:
  void say(const std::vector<int>& values) {
    for (const int value : values) {
      const auto byte = static_cast<std::byte>(value);
      ASSERT_EQ(::write(qemu.get(), &byte, 1), 1);
    }
    ASSERT_TRUE(wire.turn());
  }
  std::pair<Fd, Fd> ends = *socket_pair();
  Fd qemu = std::move(ends.second);
  Wire wire{std::move(ends.first)};
};

TEST_F(SimQemuWire, Frame_ExpectLengthHighestByteFirst) {
  const Bytes frame(300, std::byte{0x5A});
  wire.send(frame);
  ASSERT_TRUE(wire.turn());
  std::array<std::byte, 1000> heard{};
  ASSERT_EQ(::recv(qemu.get(), heard.data(), heard.size(), MSG_DONTWAIT), 304);
  EXPECT_EQ(heard[2], std::byte{1});
  EXPECT_EQ(heard[3], std::byte{44});
  EXPECT_EQ(heard[4], std::byte{0x5A});
}

TEST_F(SimQemuWire, FramesInPieces_ExpectThemWhole) {
  say({0, 0, 0});
  EXPECT_FALSE(*wire.take());
  say({3, 7, 8});
  EXPECT_FALSE(*wire.take());
  say({9, 0, 0, 0, 1, 5, 0});
  EXPECT_EQ(**wire.take(), (Bytes{std::byte{7}, std::byte{8}, std::byte{9}}));
  EXPECT_EQ(**wire.take(), Bytes{std::byte{5}});
  EXPECT_FALSE(*wire.take());
}

TEST_F(SimQemuWire, ImpossibleLengths_ExpectProtocolError) {
  say({0, 0, 0, 0});
  EXPECT_EQ(wire.take().status().code(), StatusCode::kProtocol);
  std::pair<Fd, Fd> pair = *socket_pair();
  Wire other{std::move(pair.first)};
  const std::array<std::uint8_t, 4> much{1, 0, 0, 0};
  ASSERT_EQ(::write(pair.second.get(), much.data(), 4), 4);
  ASSERT_TRUE(other.turn());
  EXPECT_EQ(other.take().status().code(), StatusCode::kProtocol);
}

}  // namespace
}  // namespace wherry::sim
