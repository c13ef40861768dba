// SPDX-License-Identifier: Apache-2.0
// Tests the bookkeeping of granted lanes, and clients' sessions over loopback TCP while a keeper restarts.
#include "kv/client/lane_session.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <list>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/temporary_directory.hpp"
#include "base/testing.hpp"
#include "kv/client/udp_store_testing.hpp"
#include "kv/keeper/keeper_server.hpp"
#include "kv/net/veth_testing.hpp"
#include "kv/node/driver/driver_client.hpp"
#include "kv/node/driver/testing.hpp"
#include "wherry/kv.hpp"

namespace {
std::atomic<std::int64_t> slept_s{0};
}

/// Replaces the C library's clock to simulate a machine that slept. CLOCK_MONOTONIC stops during sleep.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_BOOTTIME) time->tv_sec += slept_s;
  return result;
}

namespace wherry::kv {
namespace {

TEST(KvLaneGrants, SeveralHolders_ExpectRangesThatDoNotOverlap) {
  LaneGrants grants(16, 64, 100, 0);
  std::vector<bool> used(64);
  for (std::uint64_t holder = 1; holder <= 6; ++holder) {
    const auto grant = grants.grant(holder, 8, holder, 0);
    ASSERT_TRUE(grant);
    EXPECT_GE(grant->first, 16U);
    for (std::uint32_t lane = grant->first; lane < grant->first + 8; ++lane) {
      EXPECT_FALSE(used[lane]);
      used[lane] = true;
    }
  }
  EXPECT_FALSE(grants.grant(7, 1, 7, 0));
  EXPECT_EQ(grants.granted(), 48U);
  grants.release(3, false, 50);
  EXPECT_FALSE(grants.grant(7, 1, 7, 149)) << "within the time in which its client may come back";
  EXPECT_TRUE(grants.grant(7, 8, 7, 150));
  EXPECT_FALSE(grants.grant(8, 1, 8, 150));
  grants.release(5, true, 150);
  EXPECT_TRUE(grants.grant(8, 8, 8, 150)) << "it said that it needs them no more";
}

TEST(KvLaneGrants, ConnectionMadeAnew_ExpectTheSameLanesWithinTheTime) {
  LaneGrants grants(0, 64, 100, 0);
  const auto mine = grants.grant(1, 4, 77, 0);
  ASSERT_TRUE(mine);
  ASSERT_TRUE(grants.reclaim(2, 77, mine->first, 4, mine->number, 10))
      << "the keeper has not noticed yet that the first one ended";
  grants.release(1, false, 20);
  EXPECT_TRUE(grants.grant(3, 60, 78, 1000));
  EXPECT_FALSE(grants.grant(4, 1, 79, 1000)) << "the second one lives";
  grants.release(2, false, 1000);
  EXPECT_TRUE(grants.grant(4, 4, 79, 1100));
  EXPECT_FALSE(grants.reclaim(5, 77, mine->first, 4, mine->number, 1100)) << "they are another client's";
}

TEST(KvLaneGrants, NewKeeper_ExpectOldSessionsBackAndNothingNewBeforeTheTimeIsOver) {
  LaneGrants grants(0, 64, 100, 500);
  EXPECT_FALSE(grants.grant(1, 4, 1, 499));
  ASSERT_TRUE(grants.reclaim(2, 77, 8, 4, 5, 450));
  EXPECT_FALSE(grants.reclaim(3, 78, 10, 4, 5, 450)) << "overlaps";
  for (std::uint64_t holder = 10; holder < 25; ++holder) {
    const auto grant = grants.grant(holder, 4, holder, 500);
    ASSERT_TRUE(grant);
    EXPECT_NE(grant->first, 8U);
  }
  EXPECT_FALSE(grants.grant(30, 4, 30, 500));
  EXPECT_FALSE(grants.reclaim(31, 79, 60, 4, 5, 600)) << "too late: whatever this keeper does not know of has lapsed";
}

TEST(KvLaneGrants, FewLanesEachBetweenManyThatWent_ExpectRoomForManyAgain) {
  LaneGrants grants(1024, 4096, 100, 0);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto many = grants.grant(1000 + i, 63, 1000 + i, i);
    ASSERT_TRUE(many);
    ASSERT_TRUE(grants.grant(1 + i, 1, 1 + i, i)) << "stays";
    grants.release(1000 + i, i % 2 == 0, i);
  }
  EXPECT_TRUE(grants.grant(2000, 64, 2000, 1000));
  EXPECT_EQ(grants.granted(), 124U);
}

/// Whatever the order of grants and releases: the peaks of small and of large grants fit together in all lanes.
TEST(KvLaneGrants, ClientsThatComeAndGoAtRandom_ExpectManyGrantedWhileThePeaksLeaveRoom) {
  std::mt19937 random(7);
  LaneGrants grants(0, 3072, 100, 0);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> there;
  std::uint32_t few = 0, many = 0;
  for (std::uint64_t holder = 1; holder < 20'000; ++holder) {
    if (!there.empty() && random() % 2 == 0) {
      const std::size_t i = random() % there.size();
      grants.release(there[i].first, true, holder);
      (there[i].second == 1 ? few : many) -= 1;
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    const std::uint32_t count = random() % 2 == 0 ? 1 : 64;
    if (count == 1 ? few == 512 : many == 40) continue;  // 512 + 40 * 64 = 3072
    ASSERT_TRUE(grants.grant(holder, count, holder, holder)) << count << " with " << few << " and " << many;
    (count == 1 ? few : many) += 1;
    there.emplace_back(holder, count);
  }
  while (many < 40) {
    const std::uint64_t holder = 100'000 + many++;
    ASSERT_TRUE(grants.grant(holder, 64, holder, 20'000)) << many;
  }
}

TEST(KvLaneGrants, NewKeeperTwoClientsOfTheSameLanes_ExpectTheOneThatWasGrantedThemLater) {
  LaneGrants grants(0, 64, 100, 500, 1000);
  ASSERT_TRUE(grants.reclaim(1, 77, 8, 4, 20, 10));
  ASSERT_TRUE(grants.reclaim(2, 78, 10, 4, 21, 11));
  EXPECT_EQ(grants.take_ousted(), std::vector<std::uint64_t>{1});
  EXPECT_TRUE(grants.take_ousted().empty());
  EXPECT_FALSE(grants.reclaim(3, 77, 8, 4, 20, 12)) << "older, whoever comes first";
  EXPECT_FALSE(grants.reclaim(4, 79, 10, 4, 0, 12)) << "one that does not say";
  EXPECT_EQ(grants.granted(), 4U);
  EXPECT_GE(grants.grant(5, 4, 80, 500)->number, 1000U);
}

/// One node with a fake core, a keeper, and clients' sessions, all in one thread.
class KvLaneSession : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::create("kv-lanes");
    ASSERT_TRUE(directory);
    directory_ = *std::move(directory);
    start_keeper(testing_support::free_port());  // it comes back there
    start_node();
  }
  void start_node() { start_node({port_}); }
  void start_node(const std::vector<std::uint16_t>& ports) {
    DriverOptions o;
    o.cluster = "lanes";
    o.bucket_bits = 10;
    o.lanes = 64;
    o.busy_interval = kMillisecond;
    o.idle_interval = 10 * kMillisecond;
    o.nodes[0] = {0, 0x7f000001, node_port_};
    std::vector<HostPort> keepers;
    for (const std::uint16_t port : ports) keepers.push_back({"127.0.0.1", port});
    node_ = std::make_unique<DriverClient>(keepers, o, core_);
  }
  void start_keeper(std::uint16_t port) { start_keeper(*listen_tcp({"127.0.0.1", port}), "keeper.json"); }
  void start_keeper(Fd listener, const std::string& file) {
    KeeperOptions o;
    o.cluster = "lanes";
    o.bucket_bits = 10;
    o.lanes = 64;
    o.static_lanes = 16;
    o.lane_ttl = lane_ttl_;
    o.ping_interval = 20 * kMillisecond;
    o.lease = 100 * kMillisecond;
    o.nodes[0] = {true, "n", {0, 0x7f000001, node_port_}};
    auto store = open_file_store(directory_.file(file));
    ASSERT_TRUE(store) << store.status().message();
    auto server = KeeperServer::start(std::move(listener), o, *std::move(store));
    ASSERT_TRUE(server) << server.status().message();
    keeper_ = *std::move(server);
    port_ = keeper_->port();
  }
  LaneSession& session(std::uint32_t lanes, const std::string& cluster = "lanes") {
    sessions_.emplace_back(std::vector<HostPort>{{"127.0.0.1", port_}}, cluster, lanes, ++numbers_);
    return sessions_.back();
  }
  bool until(const std::function<bool()>& done, std::chrono::milliseconds time = std::chrono::seconds(20)) {
    for (const Deadline deadline(time); !deadline.passed();) {
      now_ = KeeperServer::now();
      if (done()) return true;
      if (keeper_) keeper_->turn(1);
      node_->turn();
      for (LaneSession& one : sessions_)
        if (one.next_time() <= now_) one.turn(now_);
    }
    return false;
  }
  bool held(const LaneSession& one) {
    return until([&] { return one.held(now_) && one.confirmed(); });
  }

  TemporaryDirectory directory_;
  Cycles now_ = 0;
  FakeCore core_{now_, DriftingClock{}, 1000};
  std::unique_ptr<KeeperServer> keeper_;
  std::uint16_t port_ = 0;
  std::uint16_t node_port_ = 19286;
  Cycles lane_ttl_ = 400 * kMillisecond;
  std::unique_ptr<DriverClient> node_;
  std::list<LaneSession> sessions_;
  std::list<LaneSession> asleep_;  ///< those get no turn
  std::uint64_t numbers_ = 100;
};

TEST_F(KvLaneSession, TwoClients_ExpectLanesOfTheirOwnAndTheNodes) {
  LaneSession& a = session(8);
  LaneSession& b = session(8, "");
  ASSERT_TRUE(held(a) && held(b));
  EXPECT_GE(a.first_lane(), 16);
  EXPECT_GE(b.first_lane(), 16);
  EXPECT_GE(std::abs(a.first_lane() - b.first_lane()), 8);
  EXPECT_EQ(a.nodes()[0].port, 19286);
  EXPECT_EQ(a.nodes()[1].port, 0);
}

TEST_F(KvLaneSession, ClientGoes_ExpectItsLanesGrantedAgainOnlyWhenItSaysSoOrAfterAWhile) {
  LaneSession& a = session(48);
  ASSERT_TRUE(held(a));
  LaneSession& b = session(1);
  ASSERT_TRUE(until([&] { return !b.refusal().empty(); }));
  EXPECT_NE(b.refusal().find("48 of 48 are granted to 1 clients"), std::string::npos) << b.refusal();
  EXPECT_TRUE(b.exhausted());
  sessions_.pop_front();  // as if it was killed
  const Cycles gone = KeeperServer::now();
  ASSERT_TRUE(held(b));
  EXPECT_GE(KeeperServer::now(), gone + 400 * kMillisecond);
  LaneSession& c = session(48);
  ASSERT_TRUE(until([&] { return !c.refusal().empty(); }));
  b.close();
  sessions_.pop_front();
  ASSERT_TRUE(held(c));
}

TEST_F(KvLaneSession, KeeperStartsAgain_ExpectTheSameLanesAndNewClientsToWait) {
  LaneSession& a = session(8);
  ASSERT_TRUE(held(a));
  const std::uint16_t first = a.first_lane();
  keeper_.reset();
  ASSERT_TRUE(until([&] { return !a.confirmed(); }));
  EXPECT_TRUE(a.held(now_)) << "for half of the time that the keeper allows";
  start_keeper(port_);
  const Cycles started = KeeperServer::now();
  LaneSession& b = session(8);
  ASSERT_TRUE(held(a));
  EXPECT_EQ(a.first_lane(), first);
  ASSERT_TRUE(held(b));
  EXPECT_GE(KeeperServer::now(), started + 390 * kMillisecond);
  EXPECT_GE(std::abs(b.first_lane() - first), 8);
}

/// A network namespace in which only the loopback address reaches a keeper.
class Inside : public VethSpaces {
 public:
  bool make(std::string* why) {
    const bool made = make_spaces(1, why) && run("ip link set lo up", why);
    leave();
    return made;
  }
  void visit(const std::function<void()>& what) const {
    enter(0);
    what();
    leave();
  }
};

TEST_F(KvLaneSession, MadeInANetworkNamespaceThatTheThreadHasLeft_ExpectItToFindTheKeeperAgain) {
  Inside inside;
  std::string why;
  if (!inside.make(&why)) GTEST_SKIP() << why;
  keeper_.reset();
  inside.visit([&] {
    start_keeper(testing_support::free_port());  // it comes back there
    start_node();
    ASSERT_TRUE(held(session(8)));
  });
  LaneSession& a = sessions_.front();
  const std::uint16_t first = a.first_lane();
  const auto outside = [&](const std::function<bool()>& done) {
    for (const Deadline deadline(std::chrono::seconds(20)); !deadline.passed();) {
      now_ = KeeperServer::now();
      if (done()) return true;
      inside.visit([&] {
        if (keeper_) keeper_->turn(1);
        node_->turn();
      });
      if (a.next_time() <= now_) a.turn(now_);
    }
    return false;
  };
  keeper_.reset();
  ASSERT_TRUE(outside([&] { return !a.confirmed(); }));
  inside.visit([&] { start_keeper(port_); });
  EXPECT_TRUE(outside([&] { return a.held(now_) && a.confirmed(); })) << a.refusal();
  EXPECT_EQ(a.first_lane(), first);
}

TEST_F(KvLaneSession, KeeperGone_ExpectTheLanesToBeNoLongerHeld) {
  LaneSession& a = session(8);
  ASSERT_TRUE(held(a));
  keeper_.reset();
  ASSERT_TRUE(until([&] { return !a.held(now_); }));
  // Wait until the keeper is back. By then another client may have the lanes, so the session asks for any lanes.
  start_keeper(port_);
  ASSERT_TRUE(held(a));
}

/// A keeper as after SIGSTOP: the kernel accepts connections and acknowledges data, but the keeper never
/// answers.
TEST_F(KvLaneSession, ElectedKeeperHangs_ExpectLanesOfTheNextOneAndNeverThoseOfTwoClientsAtOnce) {
  keeper_.reset();
  std::filesystem::remove(directory_.file("keeper.json"));
  start_keeper(testing_support::free_port());  // it comes back there
  const std::uint16_t hung_port = port_;
  Fd next = *listen_tcp({"127.0.0.1", 0});
  const std::uint16_t next_port = *local_port(next);
  start_node({hung_port, next_port});
  const auto client = [&]() -> LaneSession& {
    sessions_.emplace_back(std::vector<HostPort>{{"127.0.0.1", hung_port}, {"127.0.0.1", next_port}}, "lanes", 48,
                           ++numbers_);
    return sessions_.back();
  };
  LaneSession& a = client();
  ASSERT_TRUE(held(a));
  ASSERT_TRUE(until([&] { return std::filesystem::exists(directory_.file("keeper.json")); }));  // lanes need no node
  const std::unique_ptr<KeeperServer> hung = std::move(keeper_);                                // gets no turn
  std::filesystem::copy_file(directory_.file("keeper.json"), directory_.file("next.json"));
  start_keeper(std::move(next), "next.json");
  LaneSession& b = client();
  bool both = false;
  const auto either = [&](const LaneSession& one) {
    both = both || (a.held(now_) && b.held(now_));
    return one.held(now_) && one.confirmed();
  };
  ASSERT_TRUE(until([&] { return either(a) || either(b); })) << "all lanes are those of one client";
  EXPECT_FALSE(both);
  (a.held(now_) ? a : b).close();
  sessions_.erase(std::ranges::find_if(sessions_, [&](const LaneSession& one) { return one.held(now_); }));
  ASSERT_TRUE(held(sessions_.back())) << sessions_.back().refusal();
}

TEST_F(KvLaneSession, NoTurnForLong_ExpectTheSameLanesAndTheKeeperAskedAgain) {
  LaneSession& a = session(8);
  ASSERT_TRUE(held(a));
  const std::uint16_t first = a.first_lane();
  asleep_.splice(asleep_.end(), sessions_, sessions_.begin());
  const Cycles begin = KeeperServer::now();
  ASSERT_TRUE(until([&] { return now_ > begin + 500 * kMillisecond; }));
  a.turn(now_);
  EXPECT_TRUE(a.held(now_)) << "its connection lives";
  EXPECT_FALSE(a.held(now_ + 200 * kMillisecond)) << "unless the keeper does not answer";
  sessions_.splice(sessions_.end(), asleep_);
  ASSERT_TRUE(until([&] { return a.held(now_ + 150 * kMillisecond); }));
  EXPECT_EQ(a.first_lane(), first);
}

/// A keeper starts again. One client slept; meanwhile another client was granted its lanes.
TEST_F(KvLaneSession, KeeperStartsAgainAndAClientOfLongAgoComesFirst_ExpectLanesBackAtTheirHolders) {
  LaneSession& stale = session(48);
  ASSERT_TRUE(held(stale));
  keeper_.reset();
  ASSERT_TRUE(until([&] { return !stale.held(now_); }));
  asleep_.splice(asleep_.end(), sessions_, sessions_.begin());
  start_keeper(port_);
  LaneSession& holder = session(48);
  ASSERT_TRUE(held(holder));
  const std::uint16_t first = holder.first_lane();
  ASSERT_EQ(first, stale.first_lane()) << "there are no others";
  keeper_.reset();
  ASSERT_TRUE(until([&] { return !holder.confirmed(); }));
  asleep_.splice(asleep_.end(), sessions_, sessions_.begin());
  sessions_.splice(sessions_.end(), asleep_, asleep_.begin());  // the one of long ago is there first
  start_keeper(port_);
  ASSERT_TRUE(until([&] { return !stale.refusal().empty() || stale.confirmed(); }));
  EXPECT_FALSE(stale.held(now_));
  sessions_.splice(sessions_.end(), asleep_);
  ASSERT_TRUE(until([&] { return holder.confirmed() || !holder.held(now_); }));
  // If the machine pauses for more than half of the limit, the client itself has given up the lanes.
  if (holder.held(now_)) {
    EXPECT_EQ(holder.first_lane(), first);
    EXPECT_FALSE(stale.held(now_));
  }
}

TEST_F(KvLaneSession, MandateOver_ExpectClientsTurnedAway) {
  LaneSession& a = session(8);
  ASSERT_TRUE(held(a));
  keeper_->keeper().set_mandate(KeeperServer::now());
  ASSERT_TRUE(until([&] { return !a.confirmed(); }));
  ASSERT_TRUE(until([&] { return !a.held(now_); }));
  keeper_->keeper().set_mandate(~Cycles{0});
  ASSERT_TRUE(held(a));
}

TEST_F(KvLaneSession, WrongCluster_ExpectBothNamesInTheRefusal) {
  LaneSession& a = session(8, "other");
  ASSERT_TRUE(until([&] { return !a.refusal().empty(); }));
  EXPECT_NE(a.refusal().find("'lanes', not 'other'"), std::string::npos) << a.refusal();
  LaneSession& b = session(49);
  ASSERT_TRUE(until([&] { return !b.refusal().empty(); }));
  EXPECT_NE(b.refusal().find("grants 48 in all"), std::string::npos) << b.refusal();
}

TEST_F(KvLaneSession, MachineSleepsForLongerThanLanesLast_ExpectTheClientToWriteNothingThroughThem) {
  testing::UdpStore store(1, {}, 1);
  keeper_.reset();
  std::filesystem::remove(directory_.file("keeper.json"));
  node_port_ = parse_host_port(store.names.front())->port;
  lane_ttl_ = 3600'000 * kMillisecond;
  start_keeper(testing_support::free_port());  // it comes back there
  start_node();
  const ClientOptions options{.keepers = {fmt::format("127.0.0.1:{}", port_)}, .lanes = 1};
  auto connecting = std::async(std::launch::async, [&] { return Client::connect(options); });
  ASSERT_TRUE(until([&] { return connecting.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  auto client = connecting.get();
  ASSERT_TRUE(client) << client.status().message();
  keeper_.reset();
  const std::byte value{1};
  EXPECT_EQ(client->put(1, {&value, 1}, std::chrono::seconds(20)).outcome, Outcome::kOk) << "for half an hour";
  slept_s += 3600;
  EXPECT_EQ(client->put(1, {&value, 1}, std::chrono::seconds(1)).outcome, Outcome::kNoAnswer);
  slept_s = 0;
}

/// A store behind sockets, a keeper that grants the store's 48 lanes, and clients that use all of them.
class KvGrantedLanes : public KvLaneSession {
 protected:
  void SetUp() override {
    node_port_ = parse_host_port(store_.names.front())->port;
    KvLaneSession::SetUp();
  }
  [[nodiscard]] Result<Client> connect() const {
    return Client::connect(
        {.keepers = {fmt::format("127.0.0.1:{}", port_)}, .lanes = 48, .connect_timeout = std::chrono::minutes(1)});
  }
  static constexpr std::chrono::minutes kPatience{2};
  testing::UdpStore store_{1, {}, 1};
};

TEST_F(KvGrantedLanes, ChildOfForkEnds_ExpectItsCallsRefusedAndTheParentToKeepItsLanes) {
  auto connecting = std::async(std::launch::async, [&] { return connect(); });
  ASSERT_TRUE(
      until([&] { return connecting.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }, kPatience));
  auto client = connecting.get();
  ASSERT_TRUE(client) << client.status().message();
  const std::byte value{1};
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool good = client->put(1, {&value, 1}).outcome == Outcome::kForked;
    good &= client->post_put(1, {&value, 1}, 8) == StatusCode::kFailedPrecondition;
    {
      const Client destroyed = *std::move(client);
    }
    _exit(good ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
  int turns = 0;  // in which the keeper would hear that the lanes are free
  ASSERT_TRUE(until([&] { return ++turns == 20; }));
  LaneSession& other = session(1);
  ASSERT_TRUE(until([&] { return !other.refusal().empty() || other.held(now_); }, kPatience));
  EXPECT_NE(other.refusal().find("48 of 48 are granted to 1 clients"), std::string::npos) << other.refusal();
  auto writing = std::async(std::launch::async, [&] { return client->put(1, {&value, 1}, std::chrono::minutes(1)); });
  ASSERT_TRUE(until([&] { return writing.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }, kPatience));
  EXPECT_EQ(writing.get().outcome, Outcome::kOk);
}

/// A keeper hangs and dies. Before the client notices, the next keeper grants its lanes to another client and, after
/// that client has gone, to the first one again.
TEST_F(KvGrantedLanes, OthersHadTheLanesMeanwhile_ExpectWritesToGoOn) {
  keeper_.reset();
  std::filesystem::remove(directory_.file("keeper.json"));
  lane_ttl_ = 2000 * kMillisecond;  // half of it is the time for the first client's next steps
  start_keeper(testing_support::free_port());
  const std::uint16_t hung_port = port_;
  Fd listener = *listen_tcp({"127.0.0.1", 0});
  const std::uint16_t next_port = *local_port(listener);
  start_node({hung_port, next_port});
  const auto keeper_at = [](std::uint16_t port) { return fmt::format("127.0.0.1:{}", port); };
  const auto connected = [&](std::vector<std::string> keepers) {
    const ClientOptions options{.keepers = std::move(keepers), .lanes = 48, .connect_timeout = kPatience};
    auto connecting = std::async(std::launch::async, [&] { return Client::connect(options); });
    EXPECT_TRUE(
        until([&] { return connecting.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }, kPatience));
    return connecting.get();
  };
  auto first = connected({keeper_at(hung_port), keeper_at(next_port)});
  ASSERT_TRUE(first) << first.status().message();
  const std::byte value{1};
  // One write through each lane.
  const auto write_all = [&](Client& client) {
    for (std::uint64_t i = 0; i < 48; ++i) ASSERT_EQ(client.post_put(i, {&value, 1}, i, kPatience), StatusCode::kOk);
    std::array<Completion, 48> ended;
    for (std::size_t count = 0; count < 48; count += client.poll(ended)) ASSERT_TRUE(client.wait(kPatience));
  };
  write_all(*first);
  ASSERT_TRUE(until([&] { return std::filesystem::exists(directory_.file("keeper.json")); }));
  std::unique_ptr<KeeperServer> hung = std::move(keeper_);  // gets no turn
  std::filesystem::copy_file(directory_.file("keeper.json"), directory_.file("next.json"));
  start_keeper(std::move(listener), "next.json");
  {
    auto second = connected({keeper_at(next_port)});
    ASSERT_TRUE(second) << second.status().message();
    write_all(*second);
  }
  (void)first->put(1, {&value, 1}, std::chrono::milliseconds(500));  // fails through its old lanes, unless time passes
  hung.reset();
  auto writing = std::async(std::launch::async, [&] {
    for (int i = 0; i < 1000; ++i) {
      if (first->put(1, {&value, 1}, std::chrono::milliseconds(200)).outcome == Outcome::kOk) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  });
  ASSERT_TRUE(
      until([&] { return writing.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }, 2 * kPatience));
  EXPECT_TRUE(writing.get());
}

TEST_F(KvGrantedLanes, ParentIsKilledAndItsChildLives_ExpectTheLanesGrantedAgain) {
  std::array<int, 2> connected{}, over{};
  ASSERT_EQ(::pipe(connected.data()), 0);
  ASSERT_EQ(::pipe(over.data()), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const auto client = connect();
    char byte = client ? 1 : 0;
    if (client && fork() == 0) {
      ::close(over[1]);
      _exit(static_cast<int>(::read(over[0], &byte, 1)));  // until the test is over
    }
    (void)!::write(connected[1], &byte, 1);
    for (;;) ::pause();
  }
  const Fd told(connected[0]), held_open(over[1]), others_end(over[0]);
  ::close(connected[1]);
  char good = 0;
  EXPECT_TRUE(until(
      [&] {
        pollfd ready{told.get(), POLLIN, 0};
        return ::poll(&ready, 1, 0) == 1 && ::read(told.get(), &good, 1) == 1;
      },
      kPatience));
  EXPECT_EQ(good, 1);
  kill(parent, SIGKILL);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  LaneSession& next = session(48);
  EXPECT_TRUE(until([&] { return next.held(now_); }, kPatience));
}

/// No call waits for lanes that can never be granted; a call that did so would wait for an hour here.
TEST_F(KvLaneSession, WhatCanNeverBeGranted_ExpectConnectToSaySoAtOnce) {
  const auto code = [&](const std::string& cluster, std::uint32_t lanes) {
    const std::string file = directory_.file("cluster.toml");
    ClientOptions options{
        .keepers = {fmt::format("127.0.0.1:{}", port_)}, .lanes = lanes, .connect_timeout = std::chrono::hours(1)};
    if (!cluster.empty()) {
      std::ofstream(file) << fmt::format(
          "[cluster]\nname = \"{}\"\nkeeper = \"127.0.0.1:{}\"\n[[node]]\nudp = "
          "\"127.0.0.1:19286\"\n",
          cluster, port_);
      options.cluster = file;
    }
    auto connected = std::async(std::launch::async, [&] { return Client::connect(options).status().code(); });
    (void)until([&] { return connected.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    return connected.get();
  };
  EXPECT_EQ(code("", 49), StatusCode::kResourceExhausted);
  EXPECT_EQ(code("other", 8), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wherry::kv
