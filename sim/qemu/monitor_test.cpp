// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/monitor.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace wherry::sim {
namespace {

class SimQemuMonitor : public ::testing::Test {
 protected:
  void say(const std::string& text) { ASSERT_EQ(::write(qemu.get(), text.data(), text.size()), ssize_t(text.size())); }
  std::string heard() {
    std::array<char, 4096> text{};
    const ssize_t count = ::recv(qemu.get(), text.data(), text.size(), MSG_DONTWAIT);
    return {text.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  }
  void begin() {
    say(R"({"QMP": {"version": {}, "capabilities": []}})"
        "\r\n");
    ASSERT_TRUE(monitor.turn());
    EXPECT_EQ(heard(), "{\"execute\":\"qmp_capabilities\"}\n");
    say("{\"return\": {}}\r\n");
    ASSERT_TRUE(monitor.turn());
    EXPECT_FALSE(monitor.take_answer());
  }
  std::pair<Fd, Fd> ends = *socket_pair();
  Fd qemu = std::move(ends.second);
  Monitor monitor{std::move(ends.first)};
};

TEST_F(SimQemuMonitor, Command_ExpectItsAnswerAndEventsKept) {
  begin();
  monitor.post("device_del", {{"id", "nic"}});
  ASSERT_TRUE(monitor.turn());
  EXPECT_EQ(heard(), R"({"arguments":{"id":"nic"},"execute":"device_del"})"
                     "\n");
  EXPECT_FALSE(monitor.take_answer());
  say(R"({"timestamp": {}, "event": "DEVICE_DELETED", "data": {"device": "nic", "path": "x"}})"
      "\r\n{\"return\": {}}\r\n");
  ASSERT_TRUE(monitor.turn());
  const auto answer = monitor.take_answer();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->ok());
  EXPECT_FALSE(monitor.take_event("DEVICE_DELETED", "card"));
  EXPECT_TRUE(monitor.take_event("DEVICE_DELETED", "nic"));
  EXPECT_FALSE(monitor.take_event("DEVICE_DELETED", "nic"));
}

TEST_F(SimQemuMonitor, CommandBeforeTheGreeting_ExpectItsOwnAnswer) {
  monitor.post("set_link", {{"name", "nic"}, {"up", false}});
  say(R"({"QMP": {}})"
      "\n{\"return\": {}}\n");
  ASSERT_TRUE(monitor.turn());
  EXPECT_FALSE(monitor.take_answer());
  say("{\"return\": {}}\n");
  ASSERT_TRUE(monitor.turn());
  EXPECT_TRUE(monitor.take_answer());
}

TEST_F(SimQemuMonitor, Refused_ExpectQemusWords) {
  begin();
  monitor.post("device_del", {{"id", "none"}});
  say(R"({"error": {"class": "DeviceNotFound", "desc": "Device 'none' not found"}})"
      "\r\n");
  ASSERT_TRUE(monitor.turn());
  const auto answer = monitor.take_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(answer->message(), "QEMU refuses device_del: Device 'none' not found");
}

TEST_F(SimQemuMonitor, NoJson_ExpectProtocolError) {
  say("hello\n");
  EXPECT_EQ(monitor.turn().code(), StatusCode::kProtocol);
}

TEST_F(SimQemuMonitor, AnswerToNothing_ExpectProtocolError) {
  begin();
  say("{\"return\": {}}\n");
  EXPECT_EQ(monitor.turn().code(), StatusCode::kProtocol);
}

}  // namespace
}  // namespace wherry::sim
