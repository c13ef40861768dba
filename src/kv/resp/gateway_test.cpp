// SPDX-License-Identifier: Apache-2.0
// Tests the gateway on a network that loses, repeats and delays messages, with clients on sockets.
#include "kv/resp/gateway.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "base/testing.hpp"
#include "kv/client/udp_store_testing.hpp"
#include "kv/resp/stored_text.hpp"

namespace wherry::kv::resp {
namespace {

using namespace std::chrono_literals;
using kv::testing::UdpStore;
using testing_support::kPatience;

Client connected(const UdpStore& store, std::uint16_t first_lane) {
  auto client = Client::connect(
      {.nodes = store.names, .first_lane = first_lane, .lanes = 16, .operations = 64, .deadline = kPatience});
  EXPECT_TRUE(client) << client.status().to_string();
  return *std::move(client);
}

class Running {
 public:
  explicit Running(const UdpStore& store, GatewayOptions options = {}, std::uint16_t first_lane = 0)
      : gateway_(opened(store, std::move(options), first_lane)),
        thread_([this] { EXPECT_TRUE(gateway_.run(stop_)); }) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] HostPort at() const { return {"127.0.0.1", gateway_.port()}; }

 private:
  static Gateway opened(const UdpStore& store, GatewayOptions options, std::uint16_t first_lane) {
    options.listen = {"127.0.0.1", 0};
    auto gateway = Gateway::open(connected(store, first_lane), std::move(options));
    EXPECT_TRUE(gateway) << gateway.status().to_string();
    return *std::move(gateway);
  }
  Gateway gateway_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// A client that knows only the bytes of answers.
class Peer {
 public:
  explicit Peer(const Running& gateway) : socket_(*connect_tcp(gateway.at(), Deadline(kPatience))) {
    ::fcntl(socket_.get(), F_SETFL, 0);  // calls wait
  }
  void send(const std::string& bytes) const {
    ASSERT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void end() const { ::shutdown(socket_.get(), SHUT_WR); }
  /// Receives `count` bytes, or all bytes until the gateway closes.
  [[nodiscard]] std::string receive(std::size_t count = std::string::npos) const {
    std::string all;
    char byte = 0;
    while (all.size() < count && ::recv(socket_.get(), &byte, 1, 0) == 1) all += byte;
    return all;
  }
  [[nodiscard]] std::string ask(const std::string& request, const std::string& expected) const {
    send(request);
    return receive(expected.size());
  }

 private:
  Fd socket_;
};

#define EXPECT_SAYS(peer, request, expected) EXPECT_EQ((peer).ask(request, expected), expected)

TEST(RespGateway, AWholePipeline_IsAnsweredInOrder_AlsoAfterTheLastByte) {
  UdpStore store(3, {}, 1);
  const Running gateway(store);
  const Peer peer(gateway);
  peer.send("SET a 1\r\nINCR a\r\nGET a\r\nAPPEND a xy\r\nGET a\r\nDEL a b\r\nGET a\r\nPING\r\nQUIT\r\nPING\r\n");
  EXPECT_EQ(peer.receive(), "+OK\r\n:2\r\n$1\r\n2\r\n:3\r\n$3\r\n2xy\r\n:1\r\n$-1\r\n+PONG\r\n+OK\r\n");
  const Peer half(gateway);
  half.send("SET b 5\r\nGET b\r\n");
  half.end();
  EXPECT_EQ(half.receive(), "+OK\r\n$1\r\n5\r\n");
}

TEST(RespGateway, CountersOfManyClients_MissNoStep_WhateverTheNetworkDoes) {
  constexpr int kClients = 8, kSteps = 50;
  UdpStore store(3, {.loss = 0.05, .repeat = 0.05, .late = 0.05, .garbage = true}, 2);
  const Running gateway(store), second(store, {}, 100);
  std::vector<std::thread> threads;
  std::vector<std::set<std::string>> seen(kClients);
  for (int n = 0; n < kClients; ++n) {
    threads.emplace_back([&, n] {
      const Peer peer(n % 2 == 0 ? gateway : second);
      for (int i = 0; i < kSteps; ++i) {
        peer.send("INCR counter\r\n");
        std::string answer;
        while (!answer.ends_with("\r\n")) answer += peer.receive(1);
        EXPECT_TRUE(answer.starts_with(':')) << answer;
        seen[static_cast<std::size_t>(n)].insert(answer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& some : seen) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kClients) * kSteps) << "each saw a value of its own";
  EXPECT_SAYS(Peer(gateway), "GET counter\r\n", "$3\r\n400\r\n");
}

TEST(RespGateway, WhatOthersHaveAtANumber_IsNeverReplaced) {
  UdpStore store(3, {}, 3);
  const Running gateway(store);
  Client other = connected(store, 200);
  const KeyNumbers numbers;
  ASSERT_EQ(other.put(numbers.of("mine"), as_bytes_of(stored_text("theirs", "kept"))).outcome, Outcome::kOk);
  ASSERT_EQ(other.put(numbers.of("plain"), as_bytes_of("kept")).outcome, Outcome::kOk);
  const Peer peer(gateway);
  for (const char* const command :
       {"SET mine 1", "GET mine", "DEL mine", "SET mine 1 NX", "INCR mine", "APPEND mine x"})
    EXPECT_SAYS(peer, std::string(command) + "\r\n",
                "-COLLISION 'mine' has the same number as another key that is stored: rename it\r\n");
  for (const char* const command : {"SET plain 1", "GET plain", "GETDEL plain"})
    EXPECT_SAYS(peer, std::string(command) + "\r\n",
                "-WRONGTYPE another program has written the value of this key, not this gateway\r\n");
  EXPECT_EQ(as_text(other.get(numbers.of("plain")).value), "kept");
  EXPECT_EQ(as_text(other.get(numbers.of("mine")).value), stored_text("theirs", "kept"));
}

TEST(RespGateway, TextsAsLongAsTheStoreTakes) {
  UdpStore store(1, {}, 4);
  const Running gateway(store);
  const Peer peer(gateway);
  const auto set = [](const std::string& text) {
    return "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  const std::string most(kRoomBytes - 1, 'x');
  EXPECT_SAYS(peer, set(most), "+OK\r\n");
  EXPECT_SAYS(peer, "GET k\r\n", "$1019\r\n" + most + "\r\n");
  EXPECT_SAYS(peer, set(most + "x"), "-ERR key and value have 1021 bytes together; this store takes 1020\r\n");
  EXPECT_SAYS(peer, set(std::string(200'000, 'y')),
              "-ERR key and value have 200001 bytes together; this store takes 1020\r\n");
  EXPECT_SAYS(peer, "APPEND k y\r\n", "-ERR key and value have 1021 bytes together; this store takes 1020\r\n");
  EXPECT_SAYS(peer, "STRLEN k\r\n", ":1019\r\n");
  peer.send("*1\r\n$999999\r\n");
  EXPECT_EQ(peer.receive(), "-ERR Protocol error: invalid bulk length\r\n");
}

TEST(RespGateway, APeerThatReadsNothing_IsNotServedForEver) {
  UdpStore store(1, {}, 5);
  const Running gateway(store);
  const Peer lazy(gateway), other(gateway);
  std::string all;
  const std::string echo = "*2\r\n$4\r\nECHO\r\n$60000\r\n" + std::string(60'000, 'z') + "\r\n";
  for (int i = 0; i < 200; ++i) all += echo;  // 12 MB of answers
  std::thread sender([&] { lazy.send(all); });
  EXPECT_SAYS(other, "SET k v\r\n", "+OK\r\n");
  std::string answers = lazy.receive(200 * 60'010);
  sender.join();
  EXPECT_EQ(std::ranges::count(answers, 'z'), 200 * 60'000);
  EXPECT_SAYS(lazy, "GET k\r\n", "$1\r\nv\r\n");
}

TEST(RespGateway, APassword_IsAskedForFirst) {
  UdpStore store(1, {}, 6);
  const Running gateway(store, {.listen = {}, .password = "open sesame"});
  const Peer peer(gateway);
  EXPECT_SAYS(peer, "GET k\r\n", "-NOAUTH Authentication required.\r\n");
  EXPECT_SAYS(peer, "AUTH wrong\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  EXPECT_SAYS(peer, "*2\r\n$4\r\nAUTH\r\n$11\r\nopen sesame\r\n", "+OK\r\n");
  EXPECT_SAYS(peer, "GET k\r\n", "$-1\r\n");
  const Peer third(gateway);
  third.send("*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$11\r\nopen sesame\r\n");
  EXPECT_EQ(third.receive(4), "%7\r\n");
}

TEST(RespGateway, ARequestOfABrowser_IsNotTakenForCommands) {
  UdpStore store(1, {}, 9);
  const Running gateway(store);
  const Peer page(gateway);
  page.send("POST / HTTP/1.1\r\nHost: localhost:6379\r\n\r\nSET k evil\r\n");
  EXPECT_EQ(page.receive(), "");
  const Peer other(gateway);
  other.send("GET / HTTP/1.1\r\nHost: localhost:6379\r\n\r\nSET k evil\r\n");
  EXPECT_EQ(other.receive(), "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_SAYS(Peer(gateway), "GET k\r\n", "$-1\r\n");
}

TEST(RespGateway, OneClientTooMany_IsToldSo) {
  UdpStore store(1, {}, 7);
  const Running gateway(store, {.listen = {}, .clients = 1});
  const Peer first(gateway);
  EXPECT_SAYS(first, "PING\r\n", "+PONG\r\n");
  EXPECT_EQ(Peer(gateway).receive(), "-ERR max number of clients reached\r\n");
}

TEST(RespGateway, AtAnAddressForOthers_WantsAPassword) {
  UdpStore store(1, {}, 8);
  const auto refused = Gateway::open(connected(store, 0), {.listen = {"0.0.0.0", 0}});
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Gateway::open(connected(store, 0), {.listen = {"0.0.0.0", 0}, .password = "p"}).ok());
}

}  // namespace
}  // namespace wherry::kv::resp
