// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/network.hpp"

#include <gtest/gtest.h>

#include <string>

namespace wherry::kv::sim {
namespace {

Endpoint endpoint_of(std::uint32_t index) { return {.mac = 0x0200 + index, .ip = 0x0a000000U + index, .port = 7}; }

ByteView bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Records its input.
struct Listener final : Receiver {
  void receive(Cycles now, const Packet& packet) override {
    log.emplace_back(reinterpret_cast<const char*>(packet.bytes.data()), packet.bytes.size());
    times.push_back(now);
    from = packet.from;
  }
  void wake(Cycles now, std::uint64_t tag) override {
    log.push_back("wake " + std::to_string(tag));
    times.push_back(now);
  }
  std::vector<std::string> log;
  std::vector<Cycles> times;
  Endpoint from;
};

using Log = std::vector<std::string>;

class KvNetwork : public testing::Test {
 protected:
  KvNetwork() { network.set_links({.latency = 100, .jitter = 0}); }
  void send(std::string_view text, std::uint32_t to = 1) { network.send(0, endpoint_of(to), bytes_of(text)); }
  void run() {
    while (network.step()) {
    }
  }

  Network network{1};
  std::array<Listener, 3> at;
  std::array<Port, 3> port{network.attach(endpoint_of(0), at[0]), network.attach(endpoint_of(1), at[1]),
                           network.attach(endpoint_of(2), at[2])};
};

TEST_F(KvNetwork, Datagram_ArrivesOnceAfterTheLatency) {
  send("hello");
  run();
  EXPECT_EQ(at[1].log, Log{"hello"});
  EXPECT_EQ(at[1].times, std::vector<Cycles>{100});
  EXPECT_EQ(at[1].from, endpoint_of(0));
  EXPECT_TRUE(at[2].log.empty());
}

TEST_F(KvNetwork, Frame_ArrivesWhereItsMacAddressIs) {
  const std::string frame("\0\0\0\0\2\2 anything", 15);
  network.send_frame(0, bytes_of(frame));
  network.send_frame(0, bytes_of("\1\1\1\1\1\1 nobody"));
  network.send_frame(0, bytes_of("short"));
  run();
  EXPECT_EQ(at[2].log, Log{frame});
  EXPECT_EQ(network.count(Fate::kUnroutable), 2);
}

TEST_F(KvNetwork, UnknownAddressOrTooLong_IsCounted) {
  send("lost", 9);
  send(std::string(kMaxFrame + 1, 'x'));
  send(std::string(kMaxFrame, 'x'));
  run();
  EXPECT_EQ(network.count(Fate::kUnroutable), 2);
  EXPECT_EQ(at[1].log.size(), 1);
}

TEST_F(KvNetwork, Jitter_KeepsTheOrderOfALink) {
  network.set_links({.latency = 10, .jitter = 1000});
  Log sent;
  for (int i = 0; i < 50; ++i) send(sent.emplace_back(std::to_string(i)));
  run();
  EXPECT_EQ(at[1].log, sent);
}

TEST_F(KvNetwork, LateFrames_AreOvertaken) {
  network.set_links({.late = 300'000});
  Log sent;
  for (int i = 0; i < 50; ++i) send(sent.emplace_back(std::to_string(i)));
  run();
  EXPECT_NE(at[1].log, sent);
  EXPECT_TRUE(std::is_permutation(at[1].log.begin(), at[1].log.end(), sent.begin(), sent.end()));
}

TEST_F(KvNetwork, LossAndDuplication_HappenAsOftenAsAsked) {
  network.set_links({.loss = 100'000, .duplicate = 50'000});
  for (int i = 0; i < 10000; ++i) send("x");
  run();
  EXPECT_NEAR(static_cast<double>(network.count(Fate::kLost)), 1050, 150);
  EXPECT_NEAR(static_cast<double>(at[1].log.size()), 9450, 200);
  EXPECT_EQ(network.count(Fate::kDelivered), at[1].log.size());
}

TEST_F(KvNetwork, LinkOfItsOwn_IsOneDirection) {
  network.set_link(port[0], port[1], {.loss = kAlways});
  send("there");
  network.send(1, endpoint_of(0), bytes_of("back"));
  run();
  EXPECT_TRUE(at[1].log.empty());
  EXPECT_EQ(at[0].log, Log{"back"});
}

TEST_F(KvNetwork, Split_CutsBothWaysUntilHealed) {
  send("before");
  network.split({port[0], port[2]});
  send("cut");
  network.send(1, endpoint_of(0), bytes_of("cut"));
  send("same side", 2);
  network.heal();
  send("after");
  run();
  EXPECT_EQ(at[1].log, (Log{"before", "after"}));
  EXPECT_EQ(at[2].log, Log{"same side"});
  EXPECT_EQ(network.count(Fate::kCut), 2);
}

TEST_F(KvNetwork, Pause_HoldsPacketsAndWakesUntilResumed) {
  network.wake_at(50, port[1], 5);
  send("held");
  network.pause(port[1]);
  network.run_until(1000);
  EXPECT_TRUE(at[1].log.empty());
  network.resume(port[1]);
  run();
  EXPECT_EQ(at[1].log, (Log{"wake 5", "held"}));
  EXPECT_EQ(at[1].times, (std::vector<Cycles>{1000, 1000}));
}

TEST_F(KvNetwork, Kill_DropsPacketsAndForgetsWakes) {
  network.wake_at(50, port[1], 1);
  send("dead");
  network.kill(port[1]);
  network.run_until(200);
  Listener reborn;
  network.wake_at(500, port[1], 2);
  network.revive(port[1], reborn);
  send("alive");
  run();
  EXPECT_TRUE(at[1].log.empty());
  EXPECT_EQ(reborn.log, (Log{"alive", "wake 2"}));
  EXPECT_EQ(network.count(Fate::kDead), 1);
}

TEST_F(KvNetwork, KillWhilePaused_ForgetsWhatWaited) {
  network.pause(port[1]);
  network.wake_at(10, port[1], 1);
  send("waits");
  network.run_until(200);
  network.kill(port[1]);
  run();
  EXPECT_TRUE(at[1].log.empty());
  EXPECT_EQ(network.count(Fate::kDead), 1);
}

TEST_F(KvNetwork, EventsOfOneTime_HappenInTheOrderOfTheirMaking) {
  network.wake_at(100, port[1], 1);
  send("packet");
  network.call_at(100, [&](Cycles now) {
    at[1].log.emplace_back("call");
    network.wake_at(now - 50, port[1], 3);  // past: at once
  });
  network.wake_at(100, port[1], 2);
  run();
  EXPECT_EQ(at[1].log, (Log{"wake 1", "packet", "call", "wake 2", "wake 3"}));
  EXPECT_EQ(network.now(), 100);
}

TEST_F(KvNetwork, RunUntil_LeavesLaterEvents) {
  network.wake_at(100, port[1], 1);
  network.wake_at(101, port[1], 2);
  network.run_until(100);
  EXPECT_EQ(at[1].log, Log{"wake 1"});
  EXPECT_EQ(network.now(), 100);
}

}  // namespace
}  // namespace wherry::kv::sim
