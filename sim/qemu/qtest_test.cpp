// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/qtest.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace wherry::sim {
namespace {

/// The test acts as QEMU.
class SimQemuQtest : public ::testing::Test {
 protected:
  void say(const std::string& text) { ASSERT_EQ(::write(qemu.get(), text.data(), text.size()), ssize_t(text.size())); }
  std::string heard() {
    std::array<char, 4096> text{};
    const ssize_t count = ::recv(qemu.get(), text.data(), text.size(), MSG_DONTWAIT);
    return {text.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  }
  std::pair<Fd, Fd> ends = *socket_pair();
  Fd qemu = std::move(ends.second);
  Qtest client{std::move(ends.first)};
};

TEST_F(SimQemuQtest, PostedWrites_ExpectLinesAndAnswersReapedLater) {
  client.post_write32(0xFEB0'2818, 63);
  client.post_write16(0xE010'0004, 6);
  client.post_out32(0xCF8, 0x8000'0060);
  ASSERT_TRUE(client.turn());
  EXPECT_EQ(heard(), "writel 0xfeb02818 0x3f\nwritew 0xe0100004 0x6\noutl 0xcf8 0x80000060\n");
  EXPECT_EQ(client.unanswered(), 3U);
  say("OK\nO");
  ASSERT_TRUE(client.turn());
  EXPECT_EQ(client.unanswered(), 2U);
  say("K\nOK\n");
  ASSERT_TRUE(client.turn());
  EXPECT_EQ(client.unanswered(), 0U);
}

TEST_F(SimQemuQtest, ReadBehindWrites_ExpectItsValueOnce) {
  client.post_write32(0x10, 1);
  client.ask_read32(0x8);
  ASSERT_TRUE(client.turn());
  say("OK\nIRQ raise 3\nOK 0x00000000fedcba98\n");
  ASSERT_TRUE(client.turn());
  EXPECT_EQ(client.take_value(), 0xFEDC'BA98U);
  EXPECT_EQ(client.take_value(), std::nullopt);
}

TEST_F(SimQemuQtest, Refusals_ExpectItsWords) {
  for (const std::string line : {"FAIL Unknown command 'writel'\n", "ERR invalid\n", "OK\n", "OK 0xzz\n", "OK 0x\n"}) {
    std::pair<Fd, Fd> pair = *socket_pair();
    Qtest other{std::move(pair.first)};
    other.ask_read32(0);
    ASSERT_TRUE(other.turn());
    ASSERT_EQ(::write(pair.second.get(), line.data(), line.size()), ssize_t(line.size()));
    const Status status = other.turn();
    EXPECT_EQ(status.code(), StatusCode::kProtocol) << line;
    EXPECT_NE(status.message().find(line.substr(0, line.size() - 1)), std::string::npos);
  }
}

TEST_F(SimQemuQtest, AnswerToNothing_ExpectProtocolError) {
  say("OK\n");
  EXPECT_EQ(client.turn().code(), StatusCode::kProtocol);
}

TEST_F(SimQemuQtest, QemuGone_ExpectUnavailable) {
  qemu.reset();
  EXPECT_EQ(client.turn().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wherry::sim
