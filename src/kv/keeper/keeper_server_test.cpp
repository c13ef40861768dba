// SPDX-License-Identifier: Apache-2.0
// Tests the servers over loopback TCP: nodes with fake cores in one thread, and a keeper that stops and restarts.
#include "kv/keeper/keeper_server.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.hpp"
#include "base/temporary_directory.hpp"
#include "kv/control/line_connection.hpp"
#include "kv/node/driver/driver_client.hpp"
#include "kv/node/driver/testing.hpp"

namespace wherry::kv {
namespace {

/// Asks as an operator's program does.
Result<Answer> ask_keeper(const HostPort& keeper, const Command& command, const Deadline& deadline) {
  auto socket = connect_tcp(keeper, deadline);
  if (!socket)
    return wherry::Status(StatusCode::kUnavailable, "no keeper at " + keeper.to_string() + "; is it running?");
  LineConnection lines(*std::move(socket));
  if (auto s = lines.send(encode(ToKeeper(command))); !s) return s;
  for (;;) {
    const auto line = lines.next();
    if (!line) return line.status();
    if (line->has_value()) {
      const auto message = decode_from_keeper(**line);
      if (!message) return message.status();
      if (const auto* answer = std::get_if<Answer>(&*message)) return *answer;
      return wherry::Status(StatusCode::kProtocol, "the keeper answered something else");
    }
    if (deadline.passed())
      return wherry::Status(StatusCode::kDeadlineExceeded, "no answer from the keeper at " + keeper.to_string());
    pollfd p{lines.fd(), POLLIN, 0};
    ::poll(&p, 1, deadline.left_ms(1000));
  }
}

using testing_support::kPatience;

struct LoopbackNode {
  LoopbackNode(std::uint32_t number, std::uint16_t port, Cycles& now) : LoopbackNode(options(number), port, now) {}
  LoopbackNode(const DriverOptions& o, std::uint16_t port, Cycles& now)
      : LoopbackNode(o, std::vector<std::uint16_t>{port}, now) {}
  LoopbackNode(const DriverOptions& o, const std::vector<std::uint16_t>& ports, Cycles& now)
      : core(now, DriftingClock{}, 1000) {
    std::vector<HostPort> keepers;
    for (const std::uint16_t port : ports) keepers.push_back({"127.0.0.1", port});
    client = std::make_unique<DriverClient>(keepers, o, core);
  }
  static DriverOptions options(std::uint32_t number) {
    DriverOptions o;
    o.cluster = "loopback";
    o.node = number;
    o.bucket_bits = 10;
    o.lanes = 64;
    o.busy_interval = kMillisecond;
    o.idle_interval = 10 * kMillisecond;
    for (std::uint32_t node = 0; node < 3; ++node)
      o.nodes[node] = {0, 0x7f000001, static_cast<std::uint16_t>(19300 + node)};
    return o;
  }
  FakeCore core;
  std::unique_ptr<DriverClient> client;
};

class Loopback : public testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::create("kv-keeper");
    ASSERT_TRUE(directory);
    directory_ = *std::move(directory);
    start_keeper(testing_support::free_port());  // it comes back there
    for (std::uint32_t node = 0; node < 3; ++node) start_node(node);
  }
  static KeeperOptions keeper_options() {
    KeeperOptions o;
    o.cluster = "loopback";
    o.bucket_bits = 10;
    o.lanes = 64;
    o.ping_interval = 20 * kMillisecond;
    o.lease = 100 * kMillisecond;
    for (std::uint32_t node = 0; node < 3; ++node) o.nodes[node] = {true, "n", {0, 0x7f000001, 19286}};
    for (std::uint32_t node = 0; node < 3; ++node)
      o.nodes[node].endpoint.port = static_cast<std::uint16_t>(19300 + node);
    return o;
  }
  void start_keeper(std::uint16_t port) {
    auto store = open_file_store(directory_.file("keeper.json"));
    ASSERT_TRUE(store) << store.status().message();
    auto server = KeeperServer::start({"127.0.0.1", port}, keeper_options(), *std::move(store));
    ASSERT_TRUE(server) << server.status().message();
    keeper_ = *std::move(server);
    port_ = keeper_->port();
  }
  void start_node(std::uint32_t node) { nodes_[node] = std::make_unique<LoopbackNode>(node, port_, now_); }
  bool until(const std::function<bool()>& done) {
    const Deadline deadline(kPatience);
    while (!deadline.passed()) {
      now_ = KeeperServer::now();
      if (done()) return true;
      if (keeper_) keeper_->turn(1);
      for (auto& node : nodes_) {
        if (node) node->client->turn();
      }
    }
    return false;
  }
  bool serve(NodeMask mask) {
    for (std::uint32_t node = 0; node < 3; ++node) {
      if (has(mask, node) && !(nodes_[node] && nodes_[node]->core.serving())) return false;
    }
    return keeper_ && keeper_->keeper().configuration().serving == mask;
  }
  static std::ptrdiff_t nodes_there(KeeperServer& keeper) {
    const auto status = nlohmann::json::parse(keeper.keeper().status(KeeperServer::now()));
    return std::ranges::count_if(status["nodes"],
                                 [](const auto& node) { return node["connected"].template get<bool>(); });
  }
  Answer command(const Command& command) {
    Result<Answer> answer = wherry::Status(StatusCode::kInternal, "");
    std::atomic<bool> done = false;
    std::thread asker([&] {
      answer = ask_keeper({"127.0.0.1", port_}, command, Deadline(kPatience));
      done = true;
    });
    EXPECT_TRUE(until([&] { return done.load(); }));
    asker.join();
    EXPECT_TRUE(answer) << answer.status().message();
    return answer ? *answer : Answer{};
  }

  Cycles now_ = KeeperServer::now();
  TemporaryDirectory directory_;
  std::unique_ptr<KeeperServer> keeper_;
  std::uint16_t port_ = 0;
  std::array<std::unique_ptr<LoopbackNode>, 3> nodes_;
};

/// A keeper as after SIGSTOP: the kernel accepts connections and acknowledges data, but the keeper never
/// answers.
TEST_F(Loopback, ElectedKeeperHangs_ExpectNodesToGoToTheNextOneAndToStayMembers) {
  Fd next = *listen_tcp({"127.0.0.1", 0});
  for (std::uint32_t node = 0; node < 3; ++node) {
    DriverOptions o = LoopbackNode::options(node);
    o.keeper_silence = (200 + 300 * node) * kMillisecond;  // they arrive one after the other
    nodes_[node] = std::make_unique<LoopbackNode>(o, std::vector<std::uint16_t>{port_, *local_port(next)}, now_);
  }
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  const std::uint64_t epoch = keeper_->keeper().configuration().epoch;
  const std::unique_ptr<KeeperServer> hung = std::move(keeper_);  // gets no turn
  hung->keeper().set_mandate(KeeperServer::now());
  std::filesystem::copy_file(directory_.file("keeper.json"), directory_.file("next.json"));
  KeeperOptions o = keeper_options();
  o.find_time = 5000 * kMillisecond;
  auto server = KeeperServer::start(std::move(next), o, *open_file_store(directory_.file("next.json")));
  ASSERT_TRUE(server) << server.status().message();
  keeper_ = *std::move(server);
  const auto all_there = [&] { return nodes_there(*keeper_) == 3 && serve(0b111); };
  ASSERT_TRUE(until(all_there));
  EXPECT_EQ(keeper_->keeper().configuration().epoch, epoch) << "a node that had not arrived yet was removed";
  // The keeper continues. The nodes that it still knew receive no message that has an effect.
  for (int i = 0; i < 50; ++i) {
    hung->turn(0);
    ASSERT_TRUE(until([] { return true; }));
  }
  ASSERT_TRUE(until(all_there));
  EXPECT_EQ(keeper_->keeper().configuration().epoch, epoch);
}

TEST_F(Loopback, NodeStopsAndReturns_ExpectRemovedThenServing) {
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  EXPECT_EQ(keeper_->keeper().configuration().epoch, 1U);
  nodes_[1].reset();
  ASSERT_TRUE(until([&] { return serve(0b101); }));
  start_node(1);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  EXPECT_EQ(nodes_[1]->core.fetched, 1024U);
  EXPECT_TRUE(nodes_[1]->core.lanes);
  ASSERT_TRUE(
      until([&] { return !keeper_->keeper().failovers().empty() && keeper_->keeper().failovers()[0].confirmed; }));
}

/// Checks all values that must be equal for all members.
TEST_F(Loopback, NodeWithAnotherClusterFile_ExpectTurnedAwayWithBothValues) {
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  nodes_[1].reset();
  ASSERT_TRUE(until([&] { return serve(0b101); }));
  const auto refused = [&](const std::function<void(DriverOptions&)>& change) {
    DriverOptions o = LoopbackNode::options(1);
    change(o);
    nodes_[1] = std::make_unique<LoopbackNode>(o, port_, now_);
    Driver& driver = nodes_[1]->client->driver();
    EXPECT_TRUE(until([&] { return !driver.refusal().empty(); }));
    const auto status = nlohmann::json::parse(keeper_->keeper().status(KeeperServer::now()));
    EXPECT_EQ(status["nodes"][1]["state"], "refused");
    EXPECT_EQ(status["nodes"][1]["refusal"], driver.refusal());
    EXPECT_EQ(keeper_->keeper().configuration().members, 0b101) << "nor is it a member";
    return driver.refusal();
  };
  EXPECT_EQ(
      refused([](DriverOptions& o) { o.bucket_bits = 8; }),
      "node 1's cluster file has bucket_bits = 8, the cluster's 10: give it the keeper's file, and start it again");
  EXPECT_NE(refused([](DriverOptions& o) { o.lanes = 32; }).find("lanes = 32, the cluster's 64"), std::string::npos);
  EXPECT_NE(refused([](DriverOptions& o) { o.cluster = "other"; }).find("'loopback', not 'other'"), std::string::npos);
  EXPECT_NE(refused([](DriverOptions& o) { o.accept = true; }).find("policy = \"accept\", the cluster's \"store\""),
            std::string::npos);
  // Changes the node's own address, or the address that it has for another node.
  EXPECT_NE(refused([](DriverOptions& o) {
              o.nodes[1].port = 19311;
            }).find("node 1 at 127.0.0.1:19311, the cluster's at 127.0.0.1:19301"),
            std::string::npos);
  EXPECT_NE(refused([](DriverOptions& o) {
              o.nodes[2].ip = 0x7f000002;
            }).find("node 2 at 127.0.0.2:19302, the cluster's at 127.0.0.1:19302"),
            std::string::npos);
  EXPECT_NE(refused([](DriverOptions& o) {
              o.nodes[3] = {0, 0x7f000001, 19303};
            }).find("node 3 at 127.0.0.1:19303, the cluster's absent"),
            std::string::npos);
  start_node(1);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
}

/// A store that hangs, like an etcd that does not answer. It must not stop the granting of leases.
class StandingStore final : public ConfigurationStore {
 public:
  explicit StandingStore(std::atomic<bool>& stands) : stands_(stands) {}
  Result<std::optional<Configuration>> load() override { return std::optional<Configuration>(); }
  wherry::Status store(const Configuration&) override {
    while (stands_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  }

 private:
  std::atomic<bool>& stands_;
};

TEST_F(Loopback, StoreStandsStill_ExpectLeasesGrantedMeanwhile) {
  std::atomic<bool> stands = false;
  keeper_.reset();
  auto server = KeeperServer::start({"127.0.0.1", port_}, keeper_options(), std::make_unique<StandingStore>(stands));
  ASSERT_TRUE(server) << server.status().message();
  keeper_ = *std::move(server);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  stands = true;
  EXPECT_TRUE(command({Op::move, 2, 0, 9}).ok);
  const std::uint64_t epoch = keeper_->keeper().configuration().epoch;
  const Cycles before = keeper_->keeper().lease_end(0);
  ASSERT_TRUE(until([&] { return keeper_->keeper().lease_end(0) > before + 500 * kMillisecond; }));
  EXPECT_TRUE(serve(0b111));
  EXPECT_EQ(keeper_->keeper().configuration().epoch, epoch) << "nobody hears of what is not kept";
  stands = false;
  ASSERT_TRUE(until([&] { return keeper_->keeper().configuration().leaders[9] == 2; }));
}

TEST_F(Loopback, KeeperStartsAgain_ExpectTheSameEpochAndThenHigherOnes) {
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  const auto second = open_file_store(directory_.file("keeper.json"));
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition) << "two keepers on one file";
  keeper_.reset();
  ASSERT_TRUE(until([&] { return !nodes_[0]->core.serving(); })) << "without a keeper leases run out";
  start_keeper(port_);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  EXPECT_EQ(keeper_->keeper().configuration().epoch, 1U);
  nodes_[2].reset();
  ASSERT_TRUE(until([&] { return serve(0b011); }));
  EXPECT_EQ(keeper_->keeper().configuration().epoch, 2U);
}

TEST_F(Loopback, AllNodesRestart_ExpectItSaysSoAndStartsOverWhenTold) {
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  for (std::uint32_t node = 0; node < 3; ++node) start_node(node);
  ASSERT_TRUE(until([&] { return keeper_->keeper().phase() == Keeper::Phase::lost; }));
  const auto status = nlohmann::json::parse(command({}).text);
  EXPECT_EQ(status["phase"], "lost");
  EXPECT_NE(status["waits_for"].get<std::string>().find("start_over"), std::string::npos);
  Answer answer;
  ASSERT_TRUE(until([&] {
    answer = keeper_->keeper().command({Op::start_over, 0, 0, 0}, KeeperServer::now());
    return answer.ok;
  })) << answer.text;
  ASSERT_TRUE(until([&] { return keeper_->keeper().configuration().epoch > 4000 && serve(0b111); }));
}

TEST_F(Loopback, OperatorsCommands_ExpectDoneOrRefused) {
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  EXPECT_TRUE(command({Op::move, 2, 0, 9}).ok);
  ASSERT_TRUE(until([&] { return keeper_->keeper().configuration().leaders[9] == 2; }));
  EXPECT_TRUE(command({Op::remove, 2, 0, 0}).ok);
  ASSERT_TRUE(until([&] { return serve(0b011); }));
  EXPECT_FALSE(command({Op::move, 2, 0, 9}).ok);
  EXPECT_FALSE(command({Op::start_over, 0, 0, 0}).ok);
  EXPECT_TRUE(command({Op::admit, 2, 0, 0}).ok);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  EXPECT_TRUE(command({Op::stop, 0, 0, 0}).ok);
  ASSERT_TRUE(
      until([&] { return !nodes_[0]->core.serving() && !nodes_[1]->core.serving() && !nodes_[2]->core.serving(); }));
  const auto status = nlohmann::json::parse(command({}).text);
  EXPECT_EQ(status["phase"], "halted");
  EXPECT_EQ(status["nodes"].size(), 3U);
  EXPECT_TRUE(command({Op::resume, 0, 0, 0}).ok);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
}

TEST_F(Loopback, Rubbish_ExpectAnsweredAndClosed) {
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  for (const std::string& text : {std::string("hello\n"), std::string(200'000, 'x'),
                                  std::string("{\"type\":\"entered\",\"boot\":1,\"epoch\":1}\n")}) {
    auto socket = connect_tcp({"127.0.0.1", port_}, Deadline(kPatience));
    ASSERT_TRUE(socket);
    (void)::send(socket->get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    std::array<char, 4096> reply;
    ASSERT_TRUE(until([&] {
      const ssize_t n = ::recv(socket->get(), reply.data(), reply.size(), MSG_DONTWAIT);
      return n == 0 || (n < 0 && errno != EAGAIN);
    }));
  }
  EXPECT_TRUE(serve(0b111));
}

constexpr std::string_view kStatus =
    "{\"type\":\"command\",\"op\":\"status\",\"node\":0,\"first_slot\":0,\"last_slot\":0}\n";

bool ended(const Fd& socket) {
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t n = ::recv(socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (n <= 0) return n == 0 || errno != EAGAIN;
  }
}

TEST_F(Loopback, ManyAskForTheStatusAndStay_ExpectTheOldestEndedAndANodeServedAgain) {
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  std::vector<Fd> idle;
  for (int i = 0; i < 300; ++i) {
    auto socket = connect_tcp({"127.0.0.1", port_}, Deadline(kPatience));
    ASSERT_TRUE(socket);
    ASSERT_EQ(::send(socket->get(), kStatus.data(), kStatus.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(kStatus.size()));
    idle.push_back(*std::move(socket));
    char one = 0;
    ASSERT_TRUE(until([&] { return ::recv(idle.back().get(), &one, 1, MSG_DONTWAIT) == 1; })) << i;
  }
  EXPECT_LE(std::ranges::count_if(idle, [](const Fd& socket) { return !ended(socket); }), 40);
  nodes_[1].reset();
  ASSERT_TRUE(until([&] { return serve(0b101); }));
  start_node(1);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  // All these connections end by themselves.
  ASSERT_TRUE(until([&] { return std::ranges::all_of(idle, ended); }));
  EXPECT_TRUE(serve(0b111));
}

TEST_F(Loopback, NoDescriptorsLeft_ExpectStrangersEndedThenPatience) {
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  auto first = connect_tcp({"127.0.0.1", port_}, Deadline(kPatience));
  auto second = connect_tcp({"127.0.0.1", port_}, Deadline(kPatience));
  ASSERT_TRUE(first && second);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{static_cast<rlim_t>(second->get()) + 1, before.rlim_max};  // all below are in use
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  int turns = 0;
  for (const Deadline deadline(std::chrono::milliseconds(500)); !deadline.passed(); ++turns) keeper_->turn(1000);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  // There is one ping every 20 ms. A slow machine makes fewer turns; if one connection woke the thread again and again,
  // there would be thousands.
  EXPECT_LT(turns, 200);
  for (const Fd* socket : {&*first, &*second})
    EXPECT_EQ(::send(socket->get(), kStatus.data(), kStatus.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(kStatus.size()));
  char one = 0;
  EXPECT_TRUE(until([&] { return ::recv(second->get(), &one, 1, MSG_DONTWAIT) == 1; })) << "once there are some again";
}

/// If the node itself must carry the connection's frames, nothing can arrive while it waits.
TEST(DriverClient, KeeperWhoseHostDoesNotAnswer_ExpectTurnsThatDoNotWaitForIt) {
  auto listener = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener);
  const std::uint16_t port = *local_port(*listener);
  ASSERT_EQ(::listen(listener->get(), 0), 0);  // room for one, which nobody accepts: the kernel drops the others' SYN
  std::vector<Fd> queue;
  for (auto first = connect_tcp({"127.0.0.1", port}, Deadline(std::chrono::seconds(1))); first && queue.size() < 8;
       first = connect_tcp({"127.0.0.1", port}, Deadline(std::chrono::milliseconds(20))))
    queue.push_back(*std::move(first));
  ASSERT_LT(queue.size(), 8U);

  Cycles now = kMillisecond;
  std::uint64_t shortest = ~std::uint64_t{0};
  for (int i = 0; i < 5; ++i) {  // others may take the processor for a while, but not each time
    LoopbackNode node(0, port, now);
    const std::uint64_t start = now_ns();
    node.client->turn();
    shortest = std::min(shortest, now_ns() - start);
    EXPECT_FALSE(node.client->connected());
  }
  EXPECT_LT(shortest, 50'000'000U);

  LoopbackNode node(0, port, now);
  node.client->turn();
  const Fd gone = Fd(::accept(listener->get(), nullptr, nullptr));
  const Deadline deadline(kPatience);
  while (!node.client->connected() && !deadline.passed()) node.client->turn(5);
  EXPECT_TRUE(node.client->connected());
}

}  // namespace
}  // namespace wherry::kv
