// SPDX-License-Identifier: Apache-2.0
// Tests the agent's half of route without an agent: ranks send requests and write into its inboxes in any order.
#include "route/service/route_service.hpp"

#include <gtest/gtest.h>

#include "route/service/testing.hpp"

namespace wherry::route {
namespace {

TEST(AgentNames, RanksOfANode_ExpectTheirNumbers) {
  EXPECT_EQ(Topology({0, 1, 1, 1}).agent_name(0), "the agent of node 0 (rank 0)");
  EXPECT_EQ(Topology({0, 1, 1, 1}).agent_name(1), "the agent of node 1 (ranks 1 to 3)");
  EXPECT_EQ(Topology({0, 1, 0, 1}).agent_name(1), "the agent of node 1 (ranks 1, 3)");
  std::vector<std::uint32_t> in_turn;
  for (std::uint32_t rank = 0; rank < 20; ++rank) in_turn.push_back(rank % 2);
  EXPECT_EQ(Topology(in_turn).agent_name(0), "the agent of node 0 (ranks 0, 2, 4, 6, 8, 10, 12, 14 and 2 more)");
}

enum class End { kLeaves, kDies };

class BeforeConnect : public ::testing::TestWithParam<std::tuple<End, std::uint32_t>> {};

TEST_P(BeforeConnect, ARankWritesAndGoes_ExpectTheServiceToGoOn) {
  const auto [end, threads] = GetParam();
  RouteService service({.job = {.threads = threads}});
  constexpr RingShape kShape{4, 4096};
  const Topology topology({0, 0, 1});  // rank 1 never comes, and rank 2 is on another node
  testing::SilentPeer peer(0);
  for (std::uint64_t job = 1; job <= 2; ++job) {
    const AgentLayout layout{topology, 0, threads};
    Hop::Options options;
    options.mine = 0;
    options.lanes = 1;
    options.inbox = {layout.rank_inputs(), kShape};
    auto hop = Hop::create(options);
    ASSERT_TRUE(hop) << hop.status().message();

    JoinRequest join;
    join.job = job;
    join.node_of_rank = {0, 0, 1};
    join.shape = kShape;
    join.address = (*hop)->address();
    service.on_session_start(peer);
    const auto joined = service.on_request(peer, "join", encode(join));
    ASSERT_TRUE(joined) << joined.status().message();
    const auto agent = decode_addresses(*joined);
    ASSERT_TRUE(agent);
    ASSERT_EQ(agent->size(), threads);
    const Status connected = (*hop)->connect(0, agent->front(), layout.input_of_rank(0), true, "the agent");
    ASSERT_TRUE(connected) << connected.message();
    Router& router = (*hop)->router();
    router.set_table({0, 0, 0});
    for (const Rank to : {0U, 1U, 2U}) {
      ASSERT_TRUE(router.try_append(router.lane_of(to), Header::make(8, 20, to), [](std::byte*) {}));
    }
    router.flush(Flush::kExplicit);
    EXPECT_FALSE(service.poll());
    EXPECT_FALSE(service.drained());

    if (end == End::kLeaves) {
      Writer out;
      out.put(job);
      out.put(std::uint32_t{0});
      const auto left = service.on_request(peer, "leave", out.bytes());
      EXPECT_TRUE(left) << left.status().message();
    }
    service.on_session_end(peer);
    EXPECT_TRUE(service.drained());
    EXPECT_FALSE(service.poll());
  }
  session::MetricsWriter metrics;
  service.metrics(metrics);
  EXPECT_NE(metrics.text().find("wherry_route_buffer_bytes 0"), std::string::npos) << metrics.text();
}

TEST(Joins, RanksDescribeTheNodesDifferently_ExpectTheSecondRefused) {
  constexpr RingShape kShape{4, 4096};
  using Map = std::vector<std::uint32_t>;
  // The second rank's local rank does not exist on this node, or belongs to another rank.
  for (const auto& [first, rank, second] :
       {std::tuple{Map{0, 1, 1, 1}, 3U, Map{1, 1, 1, 0}}, std::tuple{Map{0, 0, 1}, 2U, Map{1, 1, 0}},
        std::tuple{Map{0, 0, 1}, 1U, Map{0, 0, 0}}}) {
    RouteService service({.job = {.threads = 1}});
    for (const Rank joining : {0U, rank}) {
      const Map& map = joining == 0 ? first : second;
      Hop::Options options;
      options.mine = joining;
      options.lanes = 1;
      options.inbox = {AgentLayout{Topology(first), 0, 1}.rank_inputs(), kShape};
      const auto hop = Hop::create(options);
      ASSERT_TRUE(hop) << hop.status().message();
      JoinRequest join;
      join.job = 1;
      join.rank = joining;
      join.node_of_rank = map;
      join.shape = kShape;
      join.address = (*hop)->address();
      testing::SilentPeer peer(joining);
      service.on_session_start(peer);
      const Status joined = service.on_request(peer, "join", encode(join)).status();
      EXPECT_EQ(joined.code(), joining == 0 ? StatusCode::kOk : StatusCode::kFailedPrecondition) << joined.message();
    }
  }
}

TEST(Joins, TheFirstOneFails_ExpectNothingKeptAndTheJobFreeForAnotherShape) {
  RouteService service({.job = {.threads = 1}});
  testing::SilentPeer peer(0);
  service.on_session_start(peer);
  const Topology topology({0, 0});
  for (const auto& [inputs, shape, expected] :
       {std::tuple{7U, RingShape{4, 4096}, StatusCode::kProtocol},
        std::tuple{AgentLayout{topology, 0, 1}.rank_inputs(), RingShape{8, 8192}, StatusCode::kOk}}) {
    Hop::Options options;
    options.mine = 0;
    options.lanes = 1;
    options.inbox = {inputs, shape};
    const auto hop = Hop::create(options);
    ASSERT_TRUE(hop) << hop.status().message();
    JoinRequest join;
    join.job = 1;
    join.node_of_rank = {0, 0};
    join.shape = shape;
    join.address = (*hop)->address();
    const Status joined = service.on_request(peer, "join", encode(join)).status();
    EXPECT_EQ(joined.code(), expected) << joined.message();
    session::MetricsWriter metrics;
    service.metrics(metrics);
    const bool holds_nothing = metrics.text().find("wherry_route_buffer_bytes 0") != std::string::npos;
    EXPECT_EQ(holds_nothing, expected != StatusCode::kOk) << metrics.text();
    EXPECT_EQ(service.drained(), expected != StatusCode::kOk);
  }
  service.on_session_end(peer);
  EXPECT_TRUE(service.drained());
}

INSTANTIATE_TEST_SUITE_P(Ends, BeforeConnect,
                         ::testing::Combine(::testing::Values(End::kLeaves, End::kDies), ::testing::Values(1U, 3U)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param) == End::kLeaves ? "Leaves" : "Dies") + "With" +
                                  std::to_string(std::get<1>(tested.param)) + "Threads";
                         });

}  // namespace
}  // namespace wherry::route
