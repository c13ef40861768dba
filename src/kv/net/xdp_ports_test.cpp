// SPDX-License-Identifier: Apache-2.0
// Three hosts, as network namespaces that are cabled to each other without a switch.
#include "kv/net/xdp_ports.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/clock.hpp"
#include "kv/net/veth_testing.hpp"

namespace wherry::kv {
namespace {

using testing_support::kPatience;
using namespace std::chrono_literals;

template <typename Done>
bool soon(Done&& done) {
  const Deadline deadline(kPatience);
  while (!done())
    if (deadline.passed()) return false;
  return true;
}

Message message_of(std::uint32_t number) {
  return {.header = {.kind = static_cast<std::uint8_t>(Kind::ping), .request = number}, .value = {}};
}

class XdpPortsTest : public testing::Test {
 protected:
  static constexpr std::uint16_t kPort = 19286;

  void SetUp() override {
    std::string why;
    network_ = VethTriangle::make(&why);
    if (!network_) GTEST_SKIP() << why;
    const auto program = XdpProgram::load({}, 1);
    const auto socket = XdpSocket::open(64);
    for (const wherry::Status& status : {program.status(), socket.status()})
      if (status.code() == StatusCode::kPermissionDenied || status.code() == StatusCode::kUnsupported)
        GTEST_SKIP() << status.message();
  }
  void TearDown() override {
    if (network_) network_->leave();
  }
  static Endpoint at(int i) { return VethTriangle::at(i, kPort); }

  Result<XdpPorts> try_open(int i, std::uint16_t port, const char* second = "veth1") {
    network_->enter(i);
    const std::vector<XdpPort::Options> each{{.interface = "veth0", .frames = 64}, {.interface = second, .frames = 64}};
    return XdpPorts::open(VethTriangle::at(i, port), each);
  }
  XdpPorts open(int i) {
    auto ports = try_open(i, kPort);
    EXPECT_TRUE(ports) << ports.status().message();
    return *std::move(ports);
  }
  /// Returns whether host `i` knows the neighbours `who`, asked in its namespace.
  bool finds(XdpPorts& ports, int i, std::initializer_list<int> who) {
    for (const int one : who)
      if (!ports.keep_neighbour(at(one).ip)) return false;
    return soon([&] {
      network_->enter(i);
      return ports.refresh(now_ns());
    });
  }
  /// Returns whether `who` gets a message with this number from `from`.
  static bool arrives(XdpPorts& who, std::uint32_t number, int from, Endpoint* source = nullptr) {
    bool got = false;
    return soon([&] {
      who.poll([&](const Endpoint& sender, const Message& message) {
        EXPECT_EQ(sender.ip, at(from).ip);
        EXPECT_EQ(sender.port, kPort);
        got = got || message.header.request == number;
        if (source != nullptr) *source = sender;
      });
      return got;
    });
  }
  static void send(XdpPorts& from, const Endpoint& to, std::uint32_t number) {
    const std::uint64_t failed = from.counters().send_failed;
    from.send(to, message_of(number));
    EXPECT_EQ(from.flush(), from.counters().send_failed == failed ? 1U : 0U);
  }

  std::optional<VethTriangle> network_;
};

TEST_F(XdpPortsTest, EachToEach_ExpectFoundThroughItsInterface) {
  std::vector<XdpPorts> all;
  for (int i = 0; i < 3; ++i) all.push_back(open(i));
  EXPECT_EQ(all[0].describe(), "veth0 queue 0, native, copy; veth1 queue 0, native, copy");
  EXPECT_EQ(all[0].local(), at(0));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(finds(all[i], i, {(i + 1) % 3, (i + 2) % 3}));
  std::uint32_t number = 0;
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      send(all[from], at(to), ++number);
      EXPECT_TRUE(arrives(all[to], number, from)) << from << " to " << to;
    }
  }
  for (const XdpPorts& ports : all) {
    EXPECT_EQ(ports.counters().sent, 2U);
    EXPECT_EQ(ports.counters().received, 2U);
    EXPECT_EQ(ports.counters().send_failed, 0U);
    EXPECT_EQ(ports.lost(), 0U);
  }
}

TEST_F(XdpPortsTest, Answer_ExpectItGoesWhereTheQuestionCameFrom) {
  XdpPorts node = open(0), one = open(1), other = open(2);
  for (XdpPorts* const asks : {&one, &other}) {
    const int number = asks == &one ? 1 : 2;
    ASSERT_TRUE(finds(*asks, number, {0}));
    send(*asks, at(0), 7);
    Endpoint source;
    ASSERT_TRUE(arrives(node, 7, number, &source));
    send(node, source, 8);  // whom nobody had asked it to keep
    EXPECT_TRUE(arrives(*asks, 8, 0));
  }
  EXPECT_EQ(node.counters().no_neighbour, 0U);
}

TEST_F(XdpPortsTest, NobodyThereOrAMacOfTheFile_ExpectCountedAndNothingSent) {
  XdpPorts node = open(0);
  send(node, at(1), 1);
  send(node, {.mac = 0x02'00'00'00'00'01, .ip = at(1).ip, .port = kPort}, 2);
  send(node, {.mac = std::uint64_t{3} << 48 | 1, .ip = at(1).ip, .port = kPort}, 3);  // no such interface
  EXPECT_EQ(node.counters().no_neighbour, 3U);
  EXPECT_EQ(node.counters().send_failed, 3U);
  EXPECT_EQ(node.counters().sent, 0U);
  ASSERT_TRUE(node.keep_neighbour(at(5).ip));
  network_->enter(0);
  EXPECT_FALSE(node.refresh(now_ns())) << "there is no route";
}

TEST_F(XdpPortsTest, BothHaveSomething_ExpectATurnEachAndNeverTwoInOne) {
  XdpPorts node = open(0), one = open(1), other = open(2);
  ASSERT_TRUE(finds(one, 1, {0}));
  ASSERT_TRUE(finds(other, 2, {0}));
  for (std::uint32_t i = 0; i < 10; ++i) {
    one.send(at(0), message_of(i));
    other.send(at(0), message_of(i));
  }
  EXPECT_EQ(one.flush(), 10U);
  EXPECT_EQ(other.flush(), 10U);
  pollfd ready{.fd = node.fd(), .events = POLLIN, .revents = 0};
  std::uint32_t taken = 0;
  std::uint32_t before = 0;
  EXPECT_TRUE(soon([&] {
    EXPECT_TRUE(taken == 20 || ::poll(&ready, 1, 5000) == 1) << "for whoever sleeps";
    std::uint32_t from = 0;
    const std::size_t count = node.poll([&](const Endpoint& source, const Message&) {
      EXPECT_TRUE(from == 0 || from == source.ip) << "taken before the clock was read, and after";
      from = source.ip;
    });
    if (count != 0) {
      EXPECT_NE(from, before) << "its turn was over";
      before = from;
    }
    return (taken += static_cast<std::uint32_t>(count)) == 20;
  })) << taken;
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
}

TEST_F(XdpPortsTest, CablesSwapped_ExpectLearntFromFramesAndFromTheKernel) {
  XdpPorts node = open(0), one = open(1);
  ASSERT_TRUE(finds(node, 0, {1}));
  ASSERT_TRUE(finds(one, 1, {0}));
  send(node, at(1), 1);
  ASSERT_TRUE(arrives(one, 1, 0));
  // From now on two of the hosts reach each other only through the third. One frame is enough to detect this.
  std::string said;
  network_->enter(2);
  ASSERT_TRUE(
      VethSpaces::run("ip link add bridge type bridge && ip addr flush dev veth0 && ip addr flush dev veth1 && "
                      "ip link set veth0 master bridge && ip link set veth1 master bridge && "
                      "ip link set bridge up",
                      &said))
      << said;
  network_->enter(0);
  ASSERT_TRUE(VethSpaces::run("ip route replace 10.77.0.2/32 dev veth1", &said)) << said;
  network_->enter(1);
  ASSERT_TRUE(VethSpaces::run("ip route replace 10.77.0.1/32 dev veth1", &said)) << said;
  std::uint64_t now = now_ns();
  Endpoint source;
  EXPECT_TRUE(soon([&] {  // a time that runs faster: it is looked for every two seconds
    network_->enter(0);
    node.refresh(now += 1'000'000'000);
    send(node, at(1), 3);
    return arrives(one, 3, 0, &source) && source.mac >> 48 == 2;
  })) << "through the third";
  network_->enter(0);
  ASSERT_TRUE(VethSpaces::run("ip link set veth0 down", &said)) << said;
  send(one, at(0), 4);  // `one` has not asked again: it heard
  EXPECT_TRUE(arrives(node, 4, 1, &source));
  EXPECT_EQ(source.mac >> 48, 2U);
}

TEST_F(XdpPortsTest, OneOfThemMissing_ExpectItNamed) {
  const auto missing = try_open(0, kPort, "nonesuch");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.status().message().find("nonesuch"), std::string::npos);
  EXPECT_FALSE(XdpPorts::open(at(0), {}));
  EXPECT_FALSE(try_open(0, 0)) << "no port";
  const XdpPorts node = open(0);  // the first one's program went with it
}

}  // namespace
}  // namespace wherry::kv
