// SPDX-License-Identifier: Apache-2.0
// Tests the client over real sockets, in C++ and in C.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "base/testing.hpp"
#include "kv/client/udp_store_testing.hpp"
#include "wherry/kv.hpp"

/// Defined in c_api_test.c. Returns 0, or the number of the line that failed.
extern "C" int kv_c_api_test(const char* const* nodes, std::size_t count, const char* nobody);

namespace wherry::kv {
namespace {

using namespace std::chrono_literals;
using testing::UdpStore;
using testing_support::kPatience;

std::vector<std::byte> bytes(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

Client connected(const UdpStore& store, ClientOptions options = {}) {
  options.nodes = store.names;
  if (!options.first_lane) options.first_lane = 0;
  auto client = Client::connect(options);
  EXPECT_TRUE(client) << client.status().to_string();
  return *std::move(client);
}

TEST(KvClient, EveryCall_DoesWhatItSays) {
  UdpStore store(3, {}, 1);
  Client client = connected(store);
  EXPECT_EQ(client.get(1).outcome, Outcome::kNoSuchKey);
  EXPECT_EQ(client.get(1).status().code(), StatusCode::kNotFound);
  const Reply put = client.put(1, bytes("one"));
  EXPECT_EQ(put.outcome, Outcome::kOk);
  Reply got = client.get(1);
  EXPECT_EQ(got.value, bytes("one"));
  EXPECT_EQ(got.version, put.version);
  EXPECT_EQ(client.put_if(1, 0, bytes("x")).outcome, Outcome::kVersionMismatch);
  const Reply wrong = client.put_if(1, put.version + 5, bytes("x"));
  EXPECT_EQ(wrong.outcome, Outcome::kVersionMismatch);
  EXPECT_EQ(wrong.version, put.version);
  EXPECT_NE(wrong.status().message().find("another"), std::string::npos);
  const Reply changed = client.put_if(1, put.version, bytes("two"));
  EXPECT_EQ(changed.outcome, Outcome::kOk);
  EXPECT_EQ(client.remove_if(1, put.version).outcome, Outcome::kVersionMismatch);
  EXPECT_EQ(client.remove_if(1, changed.version).outcome, Outcome::kOk);
  EXPECT_EQ(client.remove(1).outcome, Outcome::kNoSuchKey);
  EXPECT_EQ(client.put_if(1, 0, {}).outcome, Outcome::kOk);
  got = client.get(1);
  EXPECT_EQ(got.outcome, Outcome::kOk);
  EXPECT_TRUE(got.value.empty());
  EXPECT_EQ(client.put(2, std::vector<std::byte>(1025)).outcome, Outcome::kTooLong);
  EXPECT_EQ(client.put(2, std::vector<std::byte>(1024, std::byte{7})).outcome, Outcome::kOk);
  EXPECT_EQ(client.get(2).value, std::vector<std::byte>(1024, std::byte{7}));
}

TEST(KvClient, ChildOfFork_ExpectItsCallsRefusedAndTheParentToGoOn) {
  UdpStore store(3, {}, 1);
  Client client = connected(store);
  ASSERT_EQ(client.put(1, bytes("one")).outcome, Outcome::kOk);
  ASSERT_EQ(client.post_get(1, 7), StatusCode::kOk);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::vector<Completion> out(10);
    bool good = client.put(1, bytes("two")).outcome == Outcome::kForked;
    good &= client.get(1).status().code() == StatusCode::kFailedPrecondition;
    good &= client.post_put(1, bytes("two"), 8) == StatusCode::kFailedPrecondition;
    good &= !client.wait(kPatience) && client.poll(out) == 0 && client.in_flight() == 0;
    client.flush();
    {
      const Client destroyed = std::move(client);
    }
    _exit(good ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
  ASSERT_TRUE(client.wait(kPatience));
  std::vector<Completion> out(10);
  ASSERT_EQ(client.poll(out), 1U);
  EXPECT_EQ(out[0].tag, 7U);
  EXPECT_EQ(client.get(1).value, bytes("one"));
  EXPECT_EQ(client.put(1, bytes("three")).outcome, Outcome::kOk);
}

TEST(KvClient, ManyPosted_AllComeBackWithTheirTags) {
  UdpStore store(3, {}, 1);
  Client client = connected(store, {.reads = ReadFrom::kRoundRobin});
  std::vector<Completion> out(100);
  std::vector<int> seen(2000);
  std::uint64_t next = 0, ended = 0;
  while (ended < 1000) {  // writes, as many at once as there are lanes
    while (next < 1000 && client.post_put(next, bytes(std::to_string(next)), next) == StatusCode::kOk) ++next;
    ASSERT_TRUE(client.wait(kPatience));
    const std::size_t n = client.poll(out);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(out[i].outcome, Outcome::kOk);
      ++seen[out[i].tag];
    }
    ended += n;
  }
  for (std::uint64_t key = 0; key < 1000; ++key)
    ASSERT_EQ(client.post_get(key, 1000 + key, 10s), StatusCode::kOk) << key;
  EXPECT_EQ(client.in_flight(), 1000);
  EXPECT_EQ(client.get(5).value, bytes("5"));  // a blocking call in between
  while (ended < 2000) {
    ASSERT_TRUE(client.wait(kPatience));
    const std::size_t n = client.poll(out);
    for (std::size_t i = 0; i < n; ++i) {
      ++seen[out[i].tag];
      EXPECT_EQ(std::vector(out[i].value.begin(), out[i].value.end()), bytes(std::to_string(out[i].tag - 1000)));
    }
    ended += n;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 2000);
  EXPECT_EQ(client.in_flight(), 0);
  EXPECT_EQ(client.poll(out), 0);
}

TEST(KvClient, NothingPolled_WouldBlockAndBlockingCallsGoOn) {
  UdpStore store(1, {}, 1);
  Client client = connected(store, {.operations = 8});
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(client.post_get(i, i), StatusCode::kOk);
  EXPECT_EQ(client.post_get(9, 9), StatusCode::kWouldBlock);
  EXPECT_EQ(client.put(1, bytes("x")).outcome, Outcome::kOk);
  std::vector<Completion> out(8);
  std::size_t count = 0;
  while (count < 8) {
    ASSERT_TRUE(client.wait(kPatience));
    count += client.poll(out);
  }
}

TEST(KvClient, AllPolledAtOnce_AsManyCanBePostedAndValuesStay) {
  UdpStore store(1, {}, 1);
  Client client = connected(store, {.operations = 8});
  EXPECT_EQ(client.put(1, bytes("value")).outcome, Outcome::kOk);
  std::array<Completion, 8> out;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(client.post_get(1, i), StatusCode::kOk);
    std::size_t count = 0;
    while (count < 8) {
      std::this_thread::sleep_for(1ms);
      ASSERT_TRUE(client.wait(kPatience));
      count += client.poll(std::span(out).subspan(count));
    }
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(client.post_get(2, i), StatusCode::kOk);
    EXPECT_EQ(client.post_get(2, 8), StatusCode::kWouldBlock);
    ASSERT_TRUE(client.wait(kPatience));
    EXPECT_EQ(std::vector(out[7].value.begin(), out[7].value.end()), bytes("value"));
    for (count = 0; count < 8;) {
      ASSERT_TRUE(client.wait(kPatience));
      count += client.poll(out);
    }
  }
}

TEST(KvClient, BadNetwork_CountersAreExact) {
  UdpStore store(3, {.loss = 0.1, .repeat = 0.1, .late = 0.1, .garbage = true}, 5);
  Client client = connected(store, {.first_lane = 50, .lanes = 2, .seed = 3});
  constexpr std::uint64_t kRounds = 200;
  std::uint64_t value = 0;
  std::uint32_t version = 0;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    if (i == 100) store.with([](testing::ReferenceStore& s) { ++s.epoch, ++s.shift; });
    ++value;
    const Reply put = client.put_if(9, version, std::as_bytes(std::span(&value, 1)), 20s);
    ASSERT_EQ(put.outcome, Outcome::kOk) << i << ": " << put.status().to_string();
    version = put.version;
    const Reply got = client.get(9, 20s);
    ASSERT_EQ(got.outcome, Outcome::kOk);
    ASSERT_EQ(got.version, version);
    std::uint64_t found = 0;
    std::memcpy(&found, got.value.data(), sizeof found);
    ASSERT_EQ(found, value);
  }
  EXPECT_EQ(store.with([](testing::ReferenceStore& s) { return s.executed; }), kRounds);
  EXPECT_GT(client.statistics().timeouts, 0);
}

TEST(KvClient, NodeDies_ReadsGoOnAndWritesEndUnknown) {
  UdpStore store(2, {}, 1);
  Client client = connected(store);
  std::uint64_t key = 0;
  while (store.with([&](testing::ReferenceStore& s) { return s.leader_of(key); }) != 0) ++key;
  ASSERT_EQ(client.put(key, bytes("x")).outcome, Outcome::kOk);
  store.dead = 1;
  EXPECT_EQ(client.get(key).value, bytes("x"));
  const Reply put = client.put(key, bytes("y"), 100ms);
  EXPECT_EQ(put.outcome, Outcome::kUnknown);
  EXPECT_EQ(put.status().code(), StatusCode::kDeadlineExceeded);
  store.dead = 3;
  EXPECT_EQ(client.get(key, 50ms).outcome, Outcome::kNoAnswer);
  store.dead = 0;
  EXPECT_EQ(client.put(key, bytes("z")).outcome, Outcome::kOk);
}

TEST(KvClient, TwoClientsOnOneLane_NothingAcknowledgedIsLostAndBothAreTold) {
  UdpStore store(3, {}, 1);
  std::array<Client, 2> clients{connected(store, {.lanes = 1}), connected(store, {.lanes = 1})};
  std::vector<std::uint64_t> acknowledged;
  std::array<int, 2> told{};
  for (std::uint64_t i = 0; i < 20; ++i) {
    for (std::size_t who = 0; who < 2; ++who) {
      const std::uint64_t key = (who + 1) * 1000 + i;
      const Reply put = clients[who].put(key, bytes(std::to_string(key)));
      if (put.outcome == Outcome::kOk) acknowledged.push_back(key);
      if (put.outcome != Outcome::kLaneTaken) continue;
      ++told[who];
      EXPECT_EQ(put.status().code(), StatusCode::kCancelled);
      EXPECT_NE(put.status().message().find("another client"), std::string::npos);
    }
  }
  EXPECT_GT(told[0], 0);
  EXPECT_GT(told[1], 0);
  Client reader = connected(store, {.lanes = 0});
  for (const std::uint64_t key : acknowledged) EXPECT_EQ(reader.get(key).value, bytes(std::to_string(key)));
}

TEST(KvClient, SpinAndRestart_SameLanesGoOn) {
  UdpStore store(1, {}, 1);
  for (int i = 0; i < 3; ++i) {
    Client client = connected(store, {.lanes = 1, .waiting = Waiting::kSpin});
    EXPECT_EQ(client.put(1, bytes("x")).outcome, Outcome::kOk);
    const Client moved = std::move(client);
    EXPECT_EQ(moved.in_flight(), 0);
  }
}

TEST(KvClient, WrongOptions_NamedInTheMessage) {
  const auto why = [](ClientOptions options) {
    auto client = Client::connect(options);
    EXPECT_FALSE(client);
    return client.status().to_string();
  };
  EXPECT_NE(why({}).find("nodes: none given"), std::string::npos);
  EXPECT_NE(why({.nodes = {"127.0.0.1:x"}}).find("port"), std::string::npos);
  EXPECT_NE(why({.nodes = {"127.0.0.1:0"}}).find("port 0"), std::string::npos);
  EXPECT_NE(why({.nodes = {"127.0.0.1:5", "127.0.0.1:5"}}).find("twice"), std::string::npos);
  EXPECT_NE(why({.nodes = std::vector<std::string>(9, "127.0.0.1")}).find("at most 8"), std::string::npos);
  EXPECT_NE(why({.nodes = {"127.0.0.1"}, .first_lane = 8191, .lanes = 2}).find("is 8191"), std::string::npos);
  EXPECT_NE(why({.nodes = {"127.0.0.1"}}).find("name the cluster file or the keepers"), std::string::npos);
  EXPECT_NE(why({.cluster = "/nowhere.toml"}).find("/nowhere.toml"), std::string::npos);
  EXPECT_NE(why({.keepers = {"127.0.0.1"}}).find("host:port"), std::string::npos);
  EXPECT_NE(why({.nodes = {"127.0.0.1"}, .operations = 3}).find("power of two"), std::string::npos);
  UdpStore store(1, {}, 1);
  EXPECT_NE(why({.nodes = store.names, .first_lane = 5000}).find("5000"), std::string::npos);
  store.dead = 1;
  EXPECT_NE(why({.nodes = store.names, .first_lane = 0, .connect_timeout = 50ms}).find("no serving node"),
            std::string::npos);
}

TEST(KvClient, FromC_SameAnswers) {
  UdpStore store(3, {.loss = 0.02, .repeat = 0.02, .late = 0.02}, 2);
  std::vector<const char*> nodes;
  for (const std::string& name : store.names) nodes.push_back(name.c_str());
  UdpStore silent(1, {}, 2);
  silent.dead = 1;
  EXPECT_EQ(kv_c_api_test(nodes.data(), nodes.size(), silent.names[0].c_str()), 0);
}

}  // namespace
}  // namespace wherry::kv
