// SPDX-License-Identifier: Apache-2.0
// Tests nodes in mode static with fake cores in one thread. They call the roll over loopback TCP.
#include "kv/node/driver/static_roll.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "kv/control/line_connection.hpp"
#include "kv/node/driver/driver_client.hpp"
#include "kv/node/driver/testing.hpp"

namespace wherry::kv {
namespace {

using testing_support::kPatience;

struct StaticNode {
  StaticNode(const ClusterFile& cluster, std::uint32_t number, Cycles& now) : core(now, DriftingClock{}, 1000) {
    core.lane_bits = 6;
    ServedNode served;
    served.cluster = cluster;
    served.number = number;
    client = std::make_unique<DriverClient>(std::vector<HostPort>{}, driver_options(served), core);
    auto opened = StaticRoll::open(served);
    EXPECT_TRUE(opened) << opened.status().message();
    if (opened) roll = *std::move(opened);
  }
  void turn(Cycles now) {
    client->turn();
    if (roll && status) status = roll->turn(client->driver(), now);
  }
  [[nodiscard]] bool serves() const { return core.serving(); }

  FakeCore core;
  std::unique_ptr<DriverClient> client;
  std::optional<StaticRoll> roll;
  wherry::Status status;
};

class KvStaticRoll : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.name = "roll";
    cluster_.bucket_bits = 10;
    cluster_.lanes = 64;
    for (std::uint32_t node = 0; node < 3; ++node) {
      cluster_.nodes[node].configured = true;
      cluster_.nodes[node].endpoint = {0, 0x7f000001, testing_support::free_port()};
    }
  }
  void start(std::uint32_t node) { start(node, cluster_); }
  void start(std::uint32_t node, const ClusterFile& cluster) {
    nodes_[node].reset();  // it listens still
    nodes_[node] = std::make_unique<StaticNode>(cluster, node, now_);
  }
  bool until(const std::function<bool()>& done, std::chrono::milliseconds time = std::chrono::seconds(20)) {
    for (const Deadline deadline(time); !deadline.passed();) {
      now_ = boot_ns() / kCycleNs;
      if (done()) return true;
      for (auto& node : nodes_)
        if (node) node->turn(now_);
    }
    return false;
  }
  bool serve(NodeMask mask) {
    for (std::uint32_t node = 0; node < 3; ++node)
      if (has(mask, node) != (nodes_[node] && nodes_[node]->serves())) return false;
    return true;
  }
  /// A node's answer to a peer that introduces itself with this message.
  Answer ask(std::uint32_t node, const ToKeeper& message) {
    LineConnection lines(*connect_tcp({"127.0.0.1", cluster_.nodes[node].endpoint.port}, Deadline(kPatience)));
    EXPECT_TRUE(lines.send(encode(message)));
    Answer answer{.ok = true, .text = "none"};
    EXPECT_TRUE(until([&] {
      const auto line = lines.next();
      if (!line || !line->has_value()) return !line;
      answer = std::get<Answer>(*decode_from_keeper(**line));
      return true;
    }));
    return answer;
  }

  Cycles now_ = boot_ns() / kCycleNs;
  ClusterFile cluster_;
  std::array<std::unique_ptr<StaticNode>, 3> nodes_;
};

TEST_F(KvStaticRoll, NodesStartOneByOne_ExpectNoneToServeBeforeAllAreThere) {
  start(0);
  start(1);
  EXPECT_FALSE(until([&] { return nodes_[0]->serves() || nodes_[1]->serves(); }, std::chrono::milliseconds(300)));
  start(2);
  EXPECT_TRUE(until([&] { return serve(0b111); }));
}

TEST_F(KvStaticRoll, NodeStartsAgainAfterAllServed_ExpectItRefusedByBothAndTheOthersToGoOn) {
  for (std::uint32_t node = 0; node < 3; ++node) start(node);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  start(1);
  EXPECT_FALSE(until([&] { return nodes_[1]->serves(); }, std::chrono::milliseconds(1500)));
  EXPECT_TRUE(serve(0b101));
  Hello again{.cluster = "roll", .node = 1, .boot = 4711, .lanes = 64, .bucket_bits = 10};
  for (std::uint32_t node = 0; node < 3; ++node) again.nodes[node] = cluster_.nodes[node].endpoint;
  for (const std::uint32_t node : {0U, 2U}) {
    const Answer answer = ask(node, again);
    EXPECT_FALSE(answer.ok);
    EXPECT_NE(answer.text.find("node 1 was in this cluster before, and what it held is lost"), std::string::npos)
        << answer.text;
    EXPECT_NE(answer.text.find("use a keeper"), std::string::npos) << answer.text;
  }
  // All nodes have stopped, so the store is empty.
  for (auto& node : nodes_) node.reset();
  for (std::uint32_t node = 0; node < 3; ++node) start(node);
  EXPECT_TRUE(until([&] { return serve(0b111); }));
}

TEST_F(KvStaticRoll, NodeStartsAgainBeforeAllWereThere_ExpectThemToServe) {
  start(0);
  start(1);
  EXPECT_FALSE(until([&] { return nodes_[0]->serves(); }, std::chrono::milliseconds(200)));
  start(0);
  EXPECT_FALSE(until([&] { return nodes_[0]->serves(); }, std::chrono::milliseconds(200)));
  start(2);
  EXPECT_TRUE(until([&] { return serve(0b111); }));
}

TEST_F(KvStaticRoll, ClusterFilesDiffer_ExpectNobodyToServeAndBothValuesNamed) {
  const auto told = [&](const std::function<void(ClusterFile&)>& change) {
    for (auto& node : nodes_) node.reset();
    ClusterFile changed = cluster_;
    change(changed);
    start(0);
    start(1);
    start(2, changed);
    EXPECT_FALSE(until([&] { return !serve(0); }, std::chrono::milliseconds(400)));
    ServedNode served;
    served.cluster = changed;
    served.number = 2;
    const DriverOptions o = driver_options(served);
    const Answer answer = ask(0, Hello{.cluster = o.cluster,
                                       .node = 2,
                                       .boot = 1,
                                       .lanes = o.lanes,
                                       .bucket_bits = o.bucket_bits,
                                       .nodes = o.nodes,
                                       .accept = o.accept});
    EXPECT_FALSE(answer.ok);
    return answer.text;
  };
  EXPECT_EQ(told([](ClusterFile& c) { c.name = "other"; }), "this is node 0 of cluster 'roll', not 'other'");
  EXPECT_NE(told([](ClusterFile& c) { c.bucket_bits = 9; }).find("bucket_bits = 9, the cluster's 10"),
            std::string::npos);
  EXPECT_NE(told([](ClusterFile& c) { c.lanes = 32; }).find("lanes = 32, the cluster's 64"), std::string::npos);
  EXPECT_NE(told([](ClusterFile& c) { c.policy = AckPolicy::accept; }).find("policy = \"accept\""), std::string::npos);
  EXPECT_NE(told([](ClusterFile& c) { c.nodes[1].endpoint.ip++; }).find("node 1 at 127.0.0.2"), std::string::npos);
}

TEST_F(KvStaticRoll, CoreFailsAfterItServed_ExpectItNeverToServeAgainAndTheProcessToEnd) {
  for (std::uint32_t node = 0; node < 3; ++node) start(node);
  ASSERT_TRUE(until([&] { return serve(0b111); }));
  nodes_[2]->core.fault = true;
  ASSERT_TRUE(until([&] { return !nodes_[2]->status; }));
  EXPECT_NE(nodes_[2]->status.message().find("its core failed"), std::string::npos);
  EXPECT_FALSE(until([&] { return nodes_[2]->serves(); }, std::chrono::milliseconds(300)));
}

TEST_F(KvStaticRoll, ClusterOfOne_ExpectItToServeAlone) {
  cluster_.nodes[1].configured = cluster_.nodes[2].configured = false;
  start(0);
  EXPECT_TRUE(until([&] { return serve(0b001); }));
}

TEST_F(KvStaticRoll, Rubbish_ExpectAnsweredAndTheNodesToServe) {
  start(0);
  start(1);
  EXPECT_FALSE(ask(0, Command{}).ok);
  EXPECT_FALSE(ask(0, Hello{.cluster = "roll", .node = 7, .boot = 1}).ok);
  std::vector<Fd> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(*connect_tcp({"127.0.0.1", cluster_.nodes[0].endpoint.port}, Deadline(kPatience)));
    (void)until([] { return false; }, std::chrono::milliseconds(6));
  }
  start(2);
  EXPECT_TRUE(until([&] { return serve(0b111); }));
}

}  // namespace
}  // namespace wherry::kv
