// SPDX-License-Identifier: Apache-2.0
// Compares the program's decisions, run by the kernel, with those of frame_io.
#include "kv/net/xdp_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

#include "kv/net/frame_io.hpp"
#include "kv/net/veth_testing.hpp"
#include "kv/net/xdp_socket.hpp"

namespace wherry::kv {
namespace {

// All its bytes differ and have the highest bit set, so a wrong byte order or sign extension would be detected.
constexpr Endpoint kSelf{.mac = 0x82b3c4d5e6f7, .ip = 0xf0e1d2c3, .port = 0xfedc};
constexpr Endpoint kPeer{.mac = 0x020000000002, .ip = 0x0a000002, .port = 4242};

Bytes frame_of(std::size_t value_size) {
  const Bytes value(value_size, std::byte{0x5a});
  Bytes frame(kHeaderBytes + value_size);
  EXPECT_EQ(build(frame, kPeer, kSelf, {.header = {.kind = 1}, .value = value}), frame.size());
  return frame;
}

class XdpProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    network_ = VethPair::make(&why);
    if (!network_) GTEST_SKIP() << why;
    network_->enter(0);
    auto loaded = XdpProgram::load(kSelf, 1);
    if (!loaded && loaded.status().code() == StatusCode::kPermissionDenied) GTEST_SKIP() << loaded.status().message();
    ASSERT_TRUE(loaded) << loaded.status().message();
    program_ = *std::move(loaded);
  }

  std::optional<VethPair> network_;
  std::optional<XdpProgram> program_;
};

TEST_F(XdpProgramTest, NobodyListens_ExpectAllPassed) { EXPECT_EQ(*program_->try_out(frame_of(64)), XDP_PASS); }

TEST_F(XdpProgramTest, RandomChangesOfHeaders_ExpectTakenWhatFrameIoCallsOurs) {
  auto socket = XdpSocket::open(64);
  ASSERT_TRUE(socket) << socket.status().message();
  // The interface does not matter, because the trial sends no frames to it.
  ASSERT_TRUE(socket->bind(find_interface(VethPair::kInterface)->index, 0, false));
  ASSERT_TRUE(program_->deliver(0, socket->fd()));

  std::mt19937 random(3);
  std::array<int, 2> seen{};
  for (int i = 0; i < 20000; ++i) {
    Bytes frame = frame_of(random() % 3 == 0 ? 0 : random() % 1025);
    if (random() % 20 == 0) frame.resize(14 + random() % 50);
    for (auto changes = random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % std::min<std::size_t>(frame.size(), 46);
      frame[at] = random() % 2 == 0 ? static_cast<std::byte>(random()) : frame[at] ^ std::byte(1 << random() % 8);
    }
    Received received;
    const bool ours = parse(frame, kSelf, &received) != Parsed::kForeign;
    const auto decided = program_->try_out(frame);
    ASSERT_TRUE(decided) << decided.status().message();
    ASSERT_EQ(*decided, ours ? XDP_REDIRECT : XDP_PASS) << "round " << i;
    ++seen[ours ? 1 : 0];
  }
  EXPECT_GT(seen[0], 1000);
  EXPECT_GT(seen[1], 1000);
}

TEST_F(XdpProgramTest, NoSuchInterface_ExpectError) {
  EXPECT_FALSE(program_->attach(0x7fffffff, XdpProgram::Mode::generic));
}

}  // namespace
}  // namespace wherry::kv
