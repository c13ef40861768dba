// SPDX-License-Identifier: Apache-2.0
// Two hosts, as network namespaces on a veth pair. One thread: a socket stays in the namespace that made it.
#include "kv/net/xdp_port.hpp"
#include "base/testing.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/clock.hpp"
#include "kv/net/udp_port.hpp"
#include "kv/net/veth_testing.hpp"

namespace wherry::kv {
namespace {

using namespace std::chrono_literals;
using testing_support::kPatience;
using Attach = XdpPort::Attach;

constexpr std::uint16_t kNodePort = 19286, kPeerPort = 4243;

Kv header_of(std::uint32_t number) {
  return {.kind = static_cast<std::uint8_t>(Kind::write),
          .node = 5,
          .detail = 0xa5,
          .epoch = 0x1234,
          .client = 77,
          .request = number,
          .version = ~number,
          .key = 0x0102030405060708U * number};
}

Bytes value_of(std::uint32_t number, std::size_t size) {
  Bytes value(size);
  for (std::size_t i = 0; i < size; ++i) value[i] = static_cast<std::byte>(i * 7 + number);
  return value;
}

/// Returns whether `done` became true within some seconds.
template <typename Done>
bool soon(Done&& done) {
  const Deadline deadline(kPatience);
  while (!done())
    if (deadline.passed()) return false;
  return true;
}

sockaddr_in address_of(std::uint32_t ip, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(ip);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

class XdpPortTest : public testing::TestWithParam<Attach> {
 protected:
  void SetUp() override {
    std::string why;
    network_ = VethPair::make(&why);
    if (!network_) GTEST_SKIP() << why;
    // A container may permit namespaces but neither BPF nor AF_XDP.
    const auto program = XdpProgram::load({}, 1);
    const auto socket = XdpSocket::open(64);
    for (const wherry::Status& status : {program.status(), socket.status()})
      if (status.code() == StatusCode::kPermissionDenied || status.code() == StatusCode::kUnsupported)
        GTEST_SKIP() << status.message();
    node_ = network_->at(0, kNodePort);
    peer_ = network_->at(1, kPeerPort);
  }
  void TearDown() override {
    if (network_) network_->leave();
  }

  /// Opens a port at one of the ends.
  template <typename Open>
  auto on(int end, Open&& open) {
    network_->enter(end);
    return open();
  }
  Result<XdpPort> try_open(int end, Attach attach) {
    return on(end, [&] {
      return XdpPort::open(end == 0 ? node_ : peer_,
                           {.interface = VethPair::kInterface, .attach = attach, .frames = 1024});
    });
  }
  XdpPort open(int end) {
    auto port = try_open(end, GetParam());
    EXPECT_TRUE(port) << port.status().message();
    return *std::move(port);
  }
  /// Opens an ordinary socket at the peer's end. The kernel computes its checksums, as a wire requires.
  UdpPort ordinary() {
    return on(1, [&] {
      EXPECT_TRUE(leave_checksums_to_device(VethPair::kInterface, false));
      return *UdpPort::open({.ip = peer_.ip, .port = peer_.port});
    });
  }
  std::string shell(int end, const std::string& command) {
    return on(end, [&] {
      std::string said;
      EXPECT_TRUE(VethPair::run(command, &said)) << said;
      return said;
    });
  }
  /// Sends whole frames unchanged from the peer's end.
  void send_raw(const std::vector<Bytes>& frames) {
    const Fd raw = on(1, [] { return Fd(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))); });
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = find_interface(VethPair::kInterface)->index;
    for (const Bytes& frame : frames)
      ASSERT_EQ(sendto(raw.get(), frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
                static_cast<ssize_t>(frame.size()));
  }
  Bytes frame_of(std::uint32_t number, std::size_t size) const {
    const Bytes value = value_of(number, size);
    Bytes frame(kHeaderBytes + size);
    EXPECT_EQ(build(frame, peer_, node_, {.header = header_of(number), .value = value}), frame.size());
    return frame;
  }

  /// Sends `count` messages of all sizes from one port to the other, in bursts. The other port answers each.
  template <Port From, Port To>
  void exchange(From& from, const Endpoint& from_at, To& to, const Endpoint& to_at, std::uint32_t count,
                std::uint32_t burst) {
    std::mt19937 random(11);
    std::vector<std::size_t> sizes(count);
    for (std::uint32_t i = 0; i < count; ++i)  // later in runs of a size, which sockets make super-packets of
      sizes[i] = i < 1025 ? i : i % 16 != 0 ? sizes[i - 1] : random() % 1025;
    std::uint32_t asked = 0, answered = 0;
    std::vector<bool> seen(count);
    const auto serve = [&](const Endpoint& source, const Message& m) {
      EXPECT_EQ(source.ip, from_at.ip);
      EXPECT_EQ(source.port, from_at.port);
      to.send(source, m);
    };
    const auto check = [&](const Endpoint& source, const Message& m) {
      EXPECT_EQ(source.ip, to_at.ip);
      const std::uint32_t i = m.header.request;
      ASSERT_LT(i, count);
      EXPECT_FALSE(seen[i]);
      seen[i] = true;
      ++answered;
      EXPECT_EQ(m.header, header_of(i));
      EXPECT_TRUE(std::ranges::equal(m.value, value_of(i, sizes[i]))) << i;
    };
    while (asked < count) {
      for (const std::uint32_t end = std::min(count, asked + burst); asked < end; ++asked) {
        const Bytes value = value_of(asked, sizes[asked]);
        from.send(to_at, {.header = header_of(asked), .value = value});
      }
      from.flush();
      EXPECT_TRUE(soon([&] {
        to.poll(serve);
        to.flush();
        from.poll(check);
        return answered == asked;
      })) << answered
          << " of " << asked;
      if (answered != asked) return;
    }
    EXPECT_EQ(from.counters().received, count);
    EXPECT_EQ(from.counters().sent, count);
    EXPECT_EQ(from.counters().send_failed, 0U);
    EXPECT_EQ(to.counters().received, count);
    EXPECT_EQ(to.counters().sent, count);
    EXPECT_EQ(to.counters().send_failed, 0U);
  }

  std::optional<VethPair> network_;
  Endpoint node_, peer_;
};

INSTANTIATE_TEST_SUITE_P(Modes, XdpPortTest, testing::Values(Attach::native, Attach::generic),
                         [](const auto& mode) { return mode.param == Attach::native ? "Native" : "Generic"; });

TEST_P(XdpPortTest, TwoOfThem_ExpectAllSizesWholeThereAndBack) {
  XdpPort node = open(0), peer = open(1);
  EXPECT_EQ(node.native(), GetParam() == Attach::native) << node.describe();
  EXPECT_FALSE(node.zero_copy()) << "no veth can";
  EXPECT_EQ(node.local(), node_);
  exchange(peer, peer_, node, node_, 3000, 1);
  EXPECT_EQ(node.lost() + peer.lost(), 0U);
}

TEST_P(XdpPortTest, WithoutChecksum_ExpectNoneInTheFrameAndItWhole) {
  network_->enter(0);
  auto sender =
      XdpPort::open(network_->at(0, kNodePort),
                    {.interface = VethPair::kInterface, .attach = GetParam(), .checksum = UdpChecksum::kNone});
  ASSERT_TRUE(sender) << sender.status().message();
  network_->enter(1);
  auto receiver = XdpPort::open(network_->at(1, kPeerPort), {.interface = VethPair::kInterface, .attach = GetParam()});
  ASSERT_TRUE(receiver) << receiver.status().message();
  const Bytes value = value_of(1, 1000);
  sender->send(receiver->local(), {.header = header_of(1), .value = value});
  sender->flush();
  Bytes got;
  EXPECT_TRUE(soon([&] {
    receiver->poll([&](const Endpoint&, const Message& m) {
      // The checksum is directly before the kv header, and the header is directly before the value.
      const std::byte* const checksum = m.value.data() - Kv::kBytes - 2;
      EXPECT_EQ(checksum[0], std::byte{0});
      EXPECT_EQ(checksum[1], std::byte{0});
      got.assign(m.value.begin(), m.value.end());
    });
    return !got.empty();
  }));
  EXPECT_EQ(got, value);
}

TEST_P(XdpPortTest, Bursts_ExpectNoneLost) {
  XdpPort node = open(0), peer = open(1);
  exchange(peer, peer_, node, node_, 20000, 1000);
  EXPECT_EQ(node.lost() + peer.lost(), 0U);
  EXPECT_EQ(node.counters().foreign, 0U);
}

TEST_P(XdpPortTest, OrdinarySocketAsks_ExpectEachAnswered) {
  XdpPort node = open(0);
  UdpPort peer = ordinary();
  exchange(peer, peer_, node, node_, 3000, 1);
  EXPECT_EQ(node.counters().bad_checksum, 0U);
}

TEST_P(XdpPortTest, OrdinarySocketAsksInBursts_ExpectEachAnswered) {
  XdpPort node = open(0);
  UdpPort peer = ordinary();
  exchange(peer, peer_, node, node_, 20000, 100);
}

TEST_P(XdpPortTest, AsksOrdinarySocket_ExpectMacFoundAndEachAnswered) {
  XdpPort node = open(0);
  UdpPort peer = ordinary();
  network_->enter(0);
  Endpoint to = peer_;
  to.mac = 0;
  node.send(to, {.header = header_of(0), .value = {}});
  EXPECT_EQ(node.counters().no_neighbour, 1U);
  ASSERT_TRUE(soon([&] { return node.add_neighbour(to.ip).ok(); }));
  EXPECT_EQ(*resolve_mac(VethPair::kInterface, to.ip), peer_.mac);
  EXPECT_EQ(resolve_mac(VethPair::kInterface, to.ip + 9, 20ms).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(resolve_mac(VethPair::kInterface, 0x08080808).status().code(), StatusCode::kUnavailable) << "no route";
  std::size_t got = 0;
  for (std::uint32_t i = 0; i < 100; ++i) node.send(to, {.header = header_of(i), .value = {}});
  node.flush();
  EXPECT_TRUE(soon([&] { return (got += peer.poll([](const Endpoint&, const Message&) {})) == 100; })) << got;
}

TEST_P(XdpPortTest, NeighbourKept_ExpectFoundWithoutWaitingAndItsNewMacSeen) {
  XdpPort node = open(0);
  UdpPort peer = ordinary();
  network_->enter(0);
  EXPECT_TRUE(node.refresh(1)) << "nobody is kept";
  ASSERT_TRUE(node.keep_neighbour(peer_.ip));
  ASSERT_TRUE(node.keep_neighbour(peer_.ip));
  EXPECT_TRUE(soon([&] { return node.refresh(now_ns()); }));
  Endpoint to = peer_;
  to.mac = 0;
  node.send(to, {.header = header_of(0), .value = {}});
  EXPECT_EQ(node.counters().no_neighbour, 0U);
  ASSERT_TRUE(node.keep_neighbour(peer_.ip + 9));
  EXPECT_FALSE(node.refresh(now_ns())) << "nobody is there";
  EXPECT_EQ(*find_address(VethPair::kInterface), node_.ip);
  EXPECT_EQ(find_address("nonesuch").status().code(), StatusCode::kNotFound);

  shell(1, "ip link set dev veth0 address 02:00:00:00:12:34");
  shell(0, "ip neigh flush dev veth0");
  network_->enter(0);
  Endpoint seen;
  std::uint64_t now = now_ns();
  EXPECT_TRUE(soon([&] {  // a time that runs faster: it is looked for every two seconds
    network_->enter(0);
    node.refresh(now += 1'000'000'000);
    node.send(to, {.header = header_of(1), .value = {}});
    node.flush();
    return peer.poll([&](const Endpoint& from, const Message&) { seen = from; }) != 0;
  }));
  EXPECT_EQ(seen.ip, node_.ip);
}

TEST_P(XdpPortTest, NobodyPolls_ExpectLossCountedAndRecovery) {
  XdpPort node = open(0), peer = open(1);
  for (std::uint32_t i = 0; i < 5000; ++i) peer.send(node_, {.header = header_of(i), .value = {}});
  peer.flush();
  EXPECT_EQ(peer.counters().sent, 5000U);
  EXPECT_TRUE(soon([&] { return node.lost() == 5000 - 1024; })) << node.lost();
  std::size_t got = 0;
  EXPECT_TRUE(soon([&] { return (got += node.poll([](const Endpoint&, const Message&) {})) == 1024; })) << got;
  for (std::uint32_t i = 0; i < 500; ++i) peer.send(node_, {.header = header_of(i), .value = {}});
  peer.flush();
  got = 0;
  EXPECT_TRUE(soon([&] { return (got += node.poll([](const Endpoint&, const Message&) {})) == 500; })) << got;
}

TEST_P(XdpPortTest, BadFrames_ExpectCountedAndDropped) {
  XdpPort node = open(0);
  std::vector<Bytes> frames(6, frame_of(1, 100));
  frames[0][80] ^= std::byte{1};                                         // a bit of the value
  frames[1][kIpv4Offset + 8] ^= std::byte{1};                            // TTL, without its checksum
  frames[2].resize(frames[2].size() - 1);                                // less than IPv4 says
  frames[3][kUdpOffset + 5] = std::byte{7};                              // a UDP length of its own
  frames[4][kUdpOffset + 6] = frames[4][kUdpOffset + 7] = std::byte{0};  // no UDP checksum: good
  send_raw(frames);
  std::size_t got = 0;
  EXPECT_TRUE(soon([&] { return (got += node.poll([](const Endpoint&, const Message&) {})) == 2; }));
  EXPECT_EQ(node.counters().bad_checksum, 2U);
  EXPECT_EQ(node.counters().partial_checksum, 0U);
  EXPECT_EQ(node.counters().bad_length, 2U);
}

TEST_P(XdpPortTest, ChecksumLeftToDevice_ExpectCountedAsThat) {
  XdpPort node = open(0);
  const UdpPort peer = ordinary();
  network_->enter(1);
  ASSERT_TRUE(leave_checksums_to_device(VethPair::kInterface, true));
  const Bytes bytes(Kv::kBytes);
  const sockaddr_in to = address_of(node_.ip, node_.port);
  ASSERT_EQ(sendto(peer.fd(), bytes.data(), bytes.size(), 0, generic(to), sizeof to),
            static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(soon([&] {
    EXPECT_EQ(node.poll([](const Endpoint&, const Message&) {}), 0U);
    return node.counters().bad_checksum == 1;
  }));
  EXPECT_EQ(node.counters().partial_checksum, 1U);
}

/// Checks which packets reach a kernel socket at the node's own port.
class XdpPortForeignTest : public XdpPortTest {
 protected:
  Fd datagrams(int end, std::uint16_t port) {
    return on(end, [&] {
      Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const sockaddr_in at = address_of(end == 0 ? node_.ip : peer_.ip, port);
      EXPECT_EQ(bind(socket.get(), generic(at), sizeof at), 0);
      return socket;
    });
  }
  static ssize_t receive(const Fd& socket) {
    pollfd ready{.fd = socket.get(), .events = POLLIN, .revents = 0};
    Bytes bytes(9000);
    return ::poll(&ready, 1, 5000) == 1 ? recv(socket.get(), bytes.data(), bytes.size(), 0) : -1;
  }
  static void send(const Fd& socket, const Endpoint& at, std::uint16_t port, std::size_t bytes) {
    const Bytes data(bytes);
    const sockaddr_in to = address_of(at.ip, port);
    EXPECT_EQ(sendto(socket.get(), data.data(), bytes, 0, generic(to), sizeof to), static_cast<ssize_t>(bytes));
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, XdpPortForeignTest, testing::Values(Attach::native, Attach::generic),
                         [](const auto& mode) { return mode.param == Attach::native ? "Native" : "Generic"; });

TEST_P(XdpPortForeignTest, Ping_ExpectEcho) {
  const XdpPort node = open(0);
  const Fd raw = on(1, [] { return Fd(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)); });
  Bytes ping(64);
  ping[0] = std::byte{ICMP_ECHO};
  ping[2] = std::byte{0xf7}, ping[3] = std::byte{0xff};  // the checksum of just that
  const sockaddr_in to = address_of(node_.ip, 0);
  ASSERT_EQ(sendto(raw.get(), ping.data(), ping.size(), 0, generic(to), sizeof to), 64);
  EXPECT_EQ(receive(raw), 84);
}

TEST_P(XdpPortForeignTest, Tcp_ExpectItAll) {
  const XdpPort node = open(0);
  const sockaddr_in at = address_of(node_.ip, node_.port);  // the number is TCP's, too
  const Fd listener = on(0, [] { return Fd(socket(AF_INET, SOCK_STREAM, 0)); });
  ASSERT_EQ(bind(listener.get(), generic(at), sizeof at), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  const Fd client = on(1, [] { return Fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)); });
  connect(client.get(), generic(at), sizeof at);
  pollfd ready{.fd = listener.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, 5000), 1);
  const Fd server(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
  Bytes chunk(20000), in;
  std::size_t sent = 0;
  EXPECT_TRUE(soon([&] {
    if (sent < 1'000'000) sent += std::max<ssize_t>(0, ::send(client.get(), chunk.data(), chunk.size(), 0));
    Bytes got(65536);
    const ssize_t size = recv(server.get(), got.data(), got.size(), 0);
    in.resize(in.size() + std::max<ssize_t>(0, size));
    return sent >= 1'000'000 && in.size() == sent;
  })) << in.size()
      << " of " << sent;
}

TEST_P(XdpPortForeignTest, OtherPortFragmentsOptions_ExpectTheKernelToHaveThem) {
  XdpPort node = open(0);
  const Fd other = datagrams(0, 5000), same = datagrams(0, node_.port), peer = datagrams(1, 5001);
  ASSERT_TRUE(leave_checksums_to_device(VethPair::kInterface, false));
  send(peer, node_, 5000, 100);
  EXPECT_EQ(receive(other), 100);

  send(peer, node_, node_.port, 3000);  // three fragments
  EXPECT_EQ(receive(same), 3000);

  const std::array<unsigned char, 4> options{IPOPT_NOOP, IPOPT_NOOP, IPOPT_NOOP, IPOPT_EOL};
  ASSERT_EQ(setsockopt(peer.get(), IPPROTO_IP, IP_OPTIONS, options.data(), options.size()), 0);
  send(peer, node_, node_.port, 50);
  EXPECT_EQ(receive(same), 50);
  EXPECT_EQ(node.poll([](const Endpoint&, const Message&) {}), 0U);
  EXPECT_EQ(node.counters().bad_length + node.counters().bad_checksum, 0U);
}

TEST_P(XdpPortForeignTest, VlanTagOrOtherMac_ExpectTheKernelToHaveThem) {
  XdpPort node = open(0);
  const Fd kernel = on(0, [] { return Fd(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))); });
  Bytes tagged = frame_of(1, 300), broadcast = frame_of(1, 301);
  const Bytes tag{std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{7}};
  tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
  std::fill_n(broadcast.begin(), 6, std::byte{0xff});
  send_raw({frame_of(1, 299), tagged, broadcast});
  std::vector<ssize_t> sizes;  // a packet socket does not show the tag, and may show frames of the kernel's own
  while (sizes.empty() || sizes.back() != kHeaderBytes + 301) {
    const ssize_t size = receive(kernel);
    ASSERT_GE(size, 0);
    if (size > 300) sizes.push_back(size);
  }
  EXPECT_EQ(sizes, (std::vector<ssize_t>{kHeaderBytes + 300, kHeaderBytes + 301}));
  EXPECT_EQ(node.poll([](const Endpoint&, const Message& m) { EXPECT_EQ(m.value.size(), 299U); }), 1U);
}

/// Lists the programs attached to an end, as `ip` shows them.
class XdpPortLifeTest : public XdpPortTest {
 protected:
  bool has_program(int end) { return shell(end, "ip link show dev veth0").find("xdp") != std::string::npos; }
};
INSTANTIATE_TEST_SUITE_P(Modes, XdpPortLifeTest, testing::Values(Attach::native, Attach::generic),
                         [](const auto& mode) { return mode.param == Attach::native ? "Native" : "Generic"; });

TEST_P(XdpPortLifeTest, Closed_ExpectInterfaceAsBefore) {
  const std::string before = shell(0, "ip -d link show dev veth0");
  for (int i = 0; i < 3; ++i) {
    const XdpPort node = open(0);
    EXPECT_TRUE(has_program(0));
  }
  EXPECT_TRUE(soon([&] { return shell(0, "ip -d link show dev veth0") == before; })) << before;
}

TEST_P(XdpPortLifeTest, ProcessKilled_ExpectProgramGone) {
  const pid_t child = fork();
  if (child == 0) {
    const auto port = try_open(0, GetParam());
    if (port) pause();
    _exit(1);
  }
  ASSERT_TRUE(soon([&] { return has_program(0); }));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(soon([&] { return !has_program(0); }));
  XdpPort node = open(0), peer = open(1);
  exchange(peer, peer_, node, node_, 10, 1);
}

TEST_P(XdpPortLifeTest, TakenQueueMissingOrNoAddress_ExpectErrorsThatSaySo) {
  const XdpPort node = open(0);
  const auto second = try_open(0, GetParam());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists) << second.status().message();
  EXPECT_NE(second.status().message().find("veth0"), std::string::npos);
  network_->enter(1);
  EXPECT_FALSE(XdpPort::open(peer_, {.interface = VethPair::kInterface, .queue = 5, .attach = GetParam()}));
  EXPECT_FALSE(has_program(1));
  EXPECT_FALSE(XdpPort::open(peer_, {.interface = "nonesuch"}));
  EXPECT_FALSE(XdpPort::open({.ip = peer_.ip}, {.interface = VethPair::kInterface}));
  EXPECT_FALSE(XdpPort::open(peer_, {.interface = VethPair::kInterface, .frames = 1000}));
}

TEST_P(XdpPortLifeTest, Automatic_ExpectNativeWhereItCanBe) {
  EXPECT_TRUE(try_open(0, Attach::automatic)->native()) << "veth";
  network_->enter(0);
  const auto loopback = XdpPort::open({.ip = INADDR_LOOPBACK, .port = 9000}, {.interface = "lo"});
  ASSERT_TRUE(loopback) << loopback.status().message();
  EXPECT_FALSE(loopback->native());
  EXPECT_EQ(loopback->describe(), "lo queue 0, generic, copy");
}

}  // namespace
}  // namespace wherry::kv
