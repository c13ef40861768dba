// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/wire.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/temporary_directory.hpp"
#include "kv/net/datagram.hpp"
#include "kv/sim/pcap.hpp"

namespace wherry::kv::sim {
namespace {

const Endpoint kNode{.mac = 0x020000000006, .ip = 0x0a000006, .port = 0x4b56};
const Endpoint kCard{.mac = 0x020000000003, .ip = 0x0a000003, .port = 0x4b56};

/// Records messages and frames in their order of arrival.
struct Software final : MessageSink {
  void on_message(Cycles, const Endpoint& whose, const Message& message) override {
    from = whose;
    header = message.header;
    value.assign(message.value.begin(), message.value.end());
    ++count;
  }
  void on_wake(Cycles, std::uint64_t) override {}
  Endpoint from;
  Kv header;
  Bytes value;
  int count = 0;
};
struct Hardware final : FrameSink {
  void on_frame(Cycles, ByteView whole) override { frame.assign(whole.begin(), whole.end()); }
  void on_wake(Cycles, std::uint64_t) override {}
  Bytes frame;
};

Message message_of(ByteView value) {
  return {{.kind = 8, .node = 3, .detail = 0x95, .epoch = 0xa1b2, .client = 1, .request = 2, .version = 3, .key = 4},
          value};
}

class KvWire : public testing::Test {
 protected:
  KvWire() {
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<std::byte>(i);
  }
  void run() {
    while (network.step()) {
    }
  }
  Network network{1};
  Software software;
  Hardware hardware;
  MessagePort node{network, kNode, software};
  FramePort card{network, kCard, hardware};
  std::array<std::byte, kMaxValueBytes> value{};
};

TEST_F(KvWire, MessageToHardware_IsTheFrameOfTheSpecification) {
  node.send({.ip = kCard.ip, .port = kCard.port}, message_of(ByteView(value).first(5)));
  run();
  ASSERT_EQ(hardware.frame.size(), kHeaderBytes + 5);
  const Headers headers = Headers::unpack(ByteView(hardware.frame).first<kHeaderBytes>());
  EXPECT_EQ(headers.kv, message_of({}).header);
  EXPECT_EQ(headers.ethernet, (Ethernet{.destination = kCard.mac, .source = kNode.mac, .ethertype = kEthertypeIpv4}));
  EXPECT_EQ(headers.ipv4.total_length, kMinIpLength + 5);
  EXPECT_EQ(headers.ipv4.checksum, 0x26ae);  // as in frame_test.cpp, which has the addresses the other way around
  EXPECT_EQ(headers.udp.length, kMinUdpLength + 5);
  EXPECT_TRUE(std::equal(value.begin(), value.begin() + 5, hardware.frame.begin() + kHeaderBytes));
}

TEST_F(KvWire, FrameToSoftware_IsTheMessageAgain) {
  for (const std::size_t size : {0, 1, 1024}) {
    node.send(kCard, message_of(ByteView(value).first(size)));
    run();
    // Sent back unchanged, with only the addresses swapped, so checksums stay right.
    Bytes back = hardware.frame;
    std::swap_ranges(back.begin(), back.begin() + 6, back.begin() + 6);
    std::swap_ranges(back.begin() + 26, back.begin() + 30, back.begin() + 30);
    std::swap_ranges(back.begin() + 34, back.begin() + 36, back.begin() + 36);
    back.resize(std::max<std::size_t>(back.size(), 80));  // padding is ignored
    card.send(back);
    run();
    EXPECT_EQ(software.from, kCard);
    EXPECT_EQ(software.header, message_of({}).header);
    EXPECT_EQ(software.value, Bytes(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  EXPECT_EQ(software.count, 3);
}

TEST_F(KvWire, FrameThatAKernelWouldDrop_DoesNotReachSoftware) {
  const auto arrives = [&](ByteView frame) {
    const int before = software.count;
    node.receive(0, {.from = kCard, .to = kNode, .form = Form::kFrame, .bytes = frame});
    return software.count != before;
  };
  FrameBuffer buffer;
  Datagram datagram;
  const ByteView packed = ByteView(datagram).first(pack_datagram(message_of({}), datagram));
  const ByteView right = frame_of(kCard, kNode, packed, buffer);
  ASSERT_TRUE(arrives(right));
  // Every byte of the Ethernet, IPv4 and UDP headers except those that neither side checks: the source addresses (a
  // changed IPv4 one is found by the checksum), the UDP checksum and the source port.
  for (std::size_t at = 0; at < kKvOffset; ++at) {
    if ((at >= 6 && at < 12) || at == 34 || at == 35 || at >= 40) continue;
    Bytes wrong(right.begin(), right.end());
    wrong[at] ^= std::byte{0x41};
    EXPECT_FALSE(arrives(wrong)) << at;
  }
  for (std::size_t size = 0; size < right.size(); ++size) EXPECT_FALSE(arrives(right.first(size))) << size;
}

TEST_F(KvWire, ValueTooLong_IsNotSent) {
  const Bytes longer(kMaxValueBytes + 1);
  node.send(kCard, message_of(longer));
  EXPECT_EQ(network.count(Fate::kSent), 0);
}

TEST_F(KvWire, Pcap_HoldsTheFramesAndTheirTimes) {
  const auto folder = TemporaryDirectory::create("wire");
  ASSERT_TRUE(folder);
  const std::string path = folder->file("trace.pcap");
  {
    auto pcap = Pcap::create(path);
    ASSERT_TRUE(pcap);
    network.set_tap(pcap->get());
    network.set_links({.latency = 250'000'001, .jitter = 0});  // 1 s and 4 ns
    node.send(kCard, message_of(ByteView(value).first(9)));
    run();
    card.send(hardware.frame);
    run();
  }
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string frame(reinterpret_cast<const char*>(hardware.frame.data()), hardware.frame.size());
  ASSERT_EQ(bytes.size(), 24 + 2 * (16 + frame.size()));
  std::array<std::uint32_t, 10> words;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  EXPECT_EQ(words, (std::array<std::uint32_t, 10>{0xa1b23c4d, 0x00040002, 0, 0, 65535, 1, 1, 4, 73, 73}));
  EXPECT_EQ(bytes.substr(40, frame.size()), frame);
  EXPECT_EQ(bytes.substr(24 + 2 * 16 + frame.size()), frame);
}

TEST(KvPcap, PathThatCannotBe_SaysWhy) {
  const auto pcap = Pcap::create("/nonexistent/trace.pcap");
  ASSERT_FALSE(pcap);
  EXPECT_NE(pcap.status().to_string().find("/nonexistent/trace.pcap: No such file"), std::string::npos);
}

}  // namespace
}  // namespace wherry::kv::sim
