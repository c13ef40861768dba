// SPDX-License-Identifier: Apache-2.0
// Tests ranks that leave, and agents whose ranks have left. Messages in flight must arrive. A message that can never
// arrive must fail the job of the remaining ranks. The test acts as the ranks, mapped or bridged.
#include <gtest/gtest.h>
#include <sched.h>
#include <spdlog/spdlog.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>

#include "base/testing.hpp"
#include "route/internal.hpp"
#include "route/service/route_service.hpp"
#include "route/service/testing.hpp"

namespace wherry::route {
namespace {

using testing_support::turn_until;

constexpr RingShape kShape{4, 4096};
constexpr std::uint32_t kHandler = 20;

/// A rank as its agent sees it.
struct Member {
  explicit Member(Rank rank) : session(rank) {}
  testing::SilentPeer session;
  std::unique_ptr<Hop> hop;
  std::uint64_t handled = 0;
  std::string aborted;  ///< why the job has failed
  StatusCode code = StatusCode::kOk;
  Rank cause = JobFailure::kNobody;

  /// Sends a message to `to`. False: there is no room.
  [[nodiscard]] bool try_send(Rank to) const {
    Router& router = hop->router();
    if (!router.try_append(router.lane_of(to), Header::make(1000, kHandler, to), [](std::byte*) {})) return false;
    router.flush(Flush::kExplicit);
    return true;
  }
  void read() {
    hop->progress();
    hop->router().each_input([&](Input& input) {
      const RingReader::Part part = input.ring.peek();
      ASSERT_FALSE(part.malformed);
      for (const std::byte* at = part.from; at != part.to; at += Header::load(at).stride()) {
        const Header header = Header::load(at);
        if (header.handler() == kHandler) ++handled;
        if (header.handler() == kPackHandler)
          handled += (header.size() - sizeof(Header)) / packed_stride(Header::load(at + sizeof(Header)).size());
        if (header.handler() == kAbortHandler) {
          const auto failure = decode_failure(ByteView(at + 8, header.size()));
          ASSERT_TRUE(failure);
          aborted = failure->why.message();
          code = failure->why.code();
          cause = failure->cause;
        }
      }
      input.ring.advance(static_cast<std::size_t>(part.to - part.from));
      input.waiting = part.from != part.to;
    });
  }
};

/// A job with an agent for each node, in one process. Nodes reach each other only over the network.
class TestJob {
 public:
  static constexpr std::uint64_t kId = 77;
  TestJob(std::vector<std::uint32_t> node_of_rank, bool mapped, std::uint32_t threads, RingShape shape = kShape,
          std::chrono::milliseconds patience = Hop::kPatience, bool connected = true)
      : topology_(node_of_rank) {
    const bool network = !mapped || topology_.nodes() > 1;
    RouteOptions options;
    options.job.threads = threads;
    options.job.network.listen = "lo";
    options.job.patience = patience;
    for (std::uint32_t node = 0; node < topology_.nodes(); ++node)
      agents.push_back(std::make_unique<RouteService>(options));
    addresses.resize(topology_.nodes());
    for (Rank rank = 0; rank < topology_.ranks(); ++rank) {
      const std::uint32_t node = topology_.node_of(rank), local = topology_.local_rank(rank);
      const AgentLayout layout{topology_, node, threads};
      Member& member = *ranks.emplace_back(std::make_unique<Member>(rank));
      Hop::Options mine;
      mine.mine = rank;
      mine.lanes = 1;
      mine.inbox = {layout.rank_inputs(), shape};
      mine.network = !mapped;
      mine.transport = Transport::kTcp;
      mine.stream.listen = "lo";
      auto hop = Hop::create(mine);
      if (!hop) throw std::runtime_error(hop.status().message());
      member.hop = *std::move(hop);

      JoinRequest join;
      join.job = kId;
      join.rank = rank;
      join.node_of_rank = node_of_rank;
      join.shape = shape;
      join.memory_between_nodes = false;
      join.network = network;
      join.transport = Transport::kTcp;
      join.address = member.hop->address();
      if (!mapped) join.address.host = "another machine";
      agents[node]->on_session_start(member.session);
      const Bytes answer = ask(rank, "join", encode(join));
      addresses[node] = must(decode_addresses(answer));
      must(member.hop->connect(0, addresses[node][layout.thread_of(local)], layout.input_of_rank(local), mapped,
                               "agent"));
      for (std::uint32_t i = 0; i < threads && !mapped; ++i)
        must(member.hop->expect(i, addresses[node][i], layout.lane_to_rank(local), "agent"));
      member.hop->router().set_table(std::vector<std::uint32_t>(topology_.ranks(), 0));
    }
    for (std::uint32_t node = 0; connected && node < topology_.nodes(); ++node)
      (void)ask(topology_.on_node(node).front(), "connect", encode(ConnectRequest{kId, addresses}));
  }

  Bytes ask(Rank rank, std::string_view method, const Bytes& payload) {
    return must(agent_of(rank).on_request(ranks[rank]->session, method, payload));
  }
  [[nodiscard]] RouteService& agent_of(Rank rank) { return *agents[topology_.node_of(rank)]; }
  /// Acts like a rank whose Runtime was destroyed: it no longer reads.
  void leave(Rank rank) {
    ranks[rank]->hop->presence().leave();
    Writer out;
    out.put(kId);
    out.put(std::uint32_t{0});
    (void)ask(rank, "leave", std::move(out).take());
    ranks[rank]->hop.reset();
    agent_of(rank).on_session_end(ranks[rank]->session);
  }
  /// Acts like a rank whose process was killed.
  void die(Rank rank) {
    agent_of(rank).on_session_end(ranks[rank]->session);
    ranks[rank]->hop.reset();
  }
  /// Runs one turn of all agents, and of the ranks in `reading`.
  void turn(const std::vector<Rank>& reading) {
    for (auto& agent : agents) agent->poll();
    for (const Rank rank : reading) ranks[rank]->read();
    sched_yield();
  }

  std::vector<std::unique_ptr<RouteService>> agents;
  std::vector<std::unique_ptr<Member>> ranks;
  std::vector<std::vector<Address>> addresses;  ///< the agents', by node

 private:
  template <typename Value>
  static Value must(Result<Value> result) {
    if (!result) throw std::runtime_error(result.status().message());
    return *std::move(result);
  }
  static void must(const Status& status) {
    if (!status) throw std::runtime_error(status.message());
  }
  Topology topology_;
};

class Departures : public ::testing::TestWithParam<std::tuple<bool, std::uint32_t>> {
 protected:
  TestJob job(const std::vector<std::uint32_t>& node_of_rank) {
    return {node_of_rank, std::get<0>(GetParam()), std::get<1>(GetParam())};
  }
};

TEST(JobsOfOthers, ASessionOutsideTheJob_ExpectItsRequestsRefusedAndTheJobToGoOn) {
  TestJob all({0, 0}, true, 1);
  testing::SilentPeer stranger(9);
  all.agents[0]->on_session_start(stranger);
  Writer leave, abort;
  leave.put(TestJob::kId);
  leave.put(std::uint32_t{0});
  abort.put(TestJob::kId);
  abort.put_bytes(encode(JobFailure{{StatusCode::kInternal, "nonsense"}, 0}));
  const Bytes connect = encode(ConnectRequest{TestJob::kId, {{all.ranks[0]->hop->address()}}});
  for (const auto& [method, payload] :
       {std::pair("leave", ByteView(leave.bytes())), std::pair("abort", ByteView(abort.bytes())),
        std::pair("connect", ByteView(connect))}) {
    const auto answer = all.agents[0]->on_request(stranger, method, payload);
    EXPECT_EQ(answer.status().code(), StatusCode::kNotFound) << method << ": " << answer.status().message();
  }
  all.agents[0]->on_session_end(stranger);
  EXPECT_TRUE(turn_until([&] {
    (void)all.ranks[0]->try_send(1);
    all.turn({0, 1});
    return all.ranks[1]->handled != 0;
  }));
  EXPECT_TRUE(all.ranks[1]->aborted.empty());
}

TEST(JobsOfOthers, ARankFailsTheJob_ExpectCodeReasonAndCauseAtEveryRank) {
  TestJob all({0, 0, 0}, true, 1);
  Writer abort;
  abort.put(TestJob::kId);
  abort.put_bytes(encode(JobFailure{{StatusCode::kFailedPrecondition, "ranks 0 and 2 differ"}, 2}));
  (void)all.ask(1, "abort", abort.bytes());
  EXPECT_TRUE(turn_until([&] {
    all.turn({0, 1, 2});
    return !all.ranks[0]->aborted.empty() && !all.ranks[2]->aborted.empty();
  }));
  for (const Rank rank : {0U, 2U}) {
    EXPECT_EQ(all.ranks[rank]->aborted, "ranks 0 and 2 differ");
    EXPECT_EQ(all.ranks[rank]->code, StatusCode::kFailedPrecondition);
    EXPECT_EQ(all.ranks[rank]->cause, 2U);
  }
}

TEST(JobsOfOthers, AReasonLongerThanABuffer_ExpectItsBeginningAtEveryRank) {
  TestJob all({0, 0}, true, 1, {2, 256});
  std::string why = "ranks 0 and 1 differ: ";
  while (why.size() < 1000) why += "\u00fc\u00f6 ";
  Writer abort;
  abort.put(TestJob::kId);
  abort.put_bytes(encode(JobFailure{{StatusCode::kFailedPrecondition, why}, 1}));
  (void)all.ask(1, "abort", abort.bytes());
  EXPECT_TRUE(turn_until([&] {
    all.turn({0, 1});
    return !all.ranks[0]->aborted.empty() && !all.ranks[1]->aborted.empty();
  }));
  for (const Rank rank : {0U, 1U}) {
    const std::string& said = all.ranks[rank]->aborted;
    EXPECT_EQ(said, why.substr(0, said.size()));
    EXPECT_GT(said.size(), 200U) << "what fits a buffer of 256 bytes";
    EXPECT_LE(said.size(), 240U);
    EXPECT_NE(static_cast<unsigned char>(why[said.size()]) & 0xc0, 0x80) << "half a character: " << said;
    EXPECT_EQ(all.ranks[rank]->code, StatusCode::kFailedPrecondition);
  }
}

TEST(JobsOfOthers, ARankWithSmallerBuffersThanTheJob_ExpectItRefused) {
  RouteService service;
  testing::SilentPeer peer(0);
  Hop::Options mine;
  mine.mine = 0;
  mine.lanes = 1;
  mine.inbox = {1, {2, 256}};
  auto hop = Hop::create(mine);
  ASSERT_TRUE(hop) << hop.status().message();
  JoinRequest join;
  join.job = TestJob::kId;
  join.node_of_rank = {0};
  join.shape = kShape;  // of the buffers that others would fill
  join.address = (*hop)->address();
  service.on_session_start(peer);
  const auto joined = service.on_request(peer, "join", encode(join));
  EXPECT_EQ(joined.status().code(), StatusCode::kProtocol) << joined.status().message();
}

TEST(JobsOfOthers, ARankDies_ExpectUnavailableAndItsNumber) {
  TestJob all({0, 0, 0}, true, 1);
  all.die(1);
  EXPECT_TRUE(turn_until([&] {
    all.turn({0, 2});
    return !all.ranks[0]->aborted.empty() && !all.ranks[2]->aborted.empty();
  }));
  EXPECT_EQ(all.ranks[2]->code, StatusCode::kUnavailable);
  EXPECT_EQ(all.ranks[2]->cause, 1U);
}

class DeparturesOfNodes : public Departures {};

TEST_P(Departures, ARankLeavesAndAnotherSendsToIt_ExpectThoseThatRemainToLearnThat) {
  TestJob all = job({0, 0, 0});
  ASSERT_TRUE(turn_until([&] {  // both ways are open
    (void)all.ranks[0]->try_send(1);
    all.turn({0, 1, 2});
    return all.ranks[1]->handled != 0;
  }));
  all.leave(1);
  ASSERT_TRUE(turn_until([&] {
    (void)all.ranks[0]->try_send(1);
    all.turn({0, 2});
    return !all.ranks[0]->aborted.empty() && !all.ranks[2]->aborted.empty();
  })) << "messages for rank 1 are lost, and nobody is told";
  EXPECT_NE(all.ranks[0]->aborted.find("rank 1, which has left"), std::string::npos) << all.ranks[0]->aborted;
  EXPECT_EQ(all.ranks[2]->aborted, all.ranks[0]->aborted);
}

TEST_P(Departures, ALaneIsFullWhenARankDies_ExpectItsReaderToLearnThatOnceItReads) {
  TestJob all = job({0, 0, 0});
  std::uint64_t sent = 0, refused = 0;
  ASSERT_TRUE(turn_until([&] {  // the way is open
    (void)all.ranks[1]->try_send(0);
    all.turn({0, 1, 2});
    return all.ranks[0]->handled != 0;
  }));
  ASSERT_TRUE(turn_until([&] {  // until nothing has gone on for a while
    const bool went = all.ranks[1]->try_send(0);
    sent += went ? 1 : 0;
    refused = went ? 0 : refused + 1;
    all.turn({1, 2});
    return refused > 2000;
  }));
  all.die(2);
  for (int round = 0; round < 2000; ++round) all.turn({});
  EXPECT_TRUE(all.ranks[0]->aborted.empty());
  EXPECT_TRUE(turn_until([&] {
    all.turn({0});
    return !all.ranks[0]->aborted.empty();
  }));
  EXPECT_NE(all.ranks[0]->aborted.find("rank 2"), std::string::npos) << all.ranks[0]->aborted;
  EXPECT_NE(sent, 0u);
}

TEST_P(DeparturesOfNodes, TheLastRankOfANodeLeaves_ExpectItsMessagesToReachASlowNode) {
  TestJob all = job({0, 1});
  ASSERT_TRUE(turn_until([&] {
    (void)all.ranks[0]->try_send(1);
    all.turn({0, 1});
    return all.ranks[1]->handled != 0;
  }));
  const std::uint64_t before = all.ranks[1]->handled;
  std::uint64_t sent = 0, refused = 0;
  ASSERT_TRUE(turn_until([&] {  // the other agent does not run: until everything before it is full
    const bool went = all.ranks[0]->try_send(1);
    sent += went ? 1 : 0;
    refused = went ? 0 : refused + 1;
    all.ranks[0]->hop->progress();
    all.agents[0]->poll();
    return refused > 2000;
  }));
  all.leave(0);
  for (int round = 0; round < 1000; ++round) all.agents[0]->poll();
  EXPECT_FALSE(all.agents[0]->drained()) << "the agent has ended the job, with what rank 0 sent";
  EXPECT_TRUE(turn_until([&] {
    all.turn({1});
    return all.agents[0]->drained();
  }));
  EXPECT_TRUE(turn_until([&] {
    all.turn({1});
    return all.ranks[1]->handled >= before + sent;
  })) << all.ranks[1]->handled - before
      << " of " << sent;
}

TEST(JobsOfOthers, MessagesOfTheLastRankNotTakenInTime_ExpectAWarningThatNamesTheReader) {
  TestJob all({0, 1, 1}, true, 1, kShape, std::chrono::milliseconds(100));
  for (int refused = 0; refused < 2000;) {  // in a row: everything before the other agent, which does not run, is full
    refused = all.ranks[0]->try_send(1) ? 0 : refused + 1;
    all.ranks[0]->hop->progress();
    all.agents[0]->poll();
  }
  ::testing::internal::CaptureStdout();
  all.leave(0);
  const bool ended = turn_until([&] {
    all.agents[0]->poll();
    return all.agents[0]->drained();
  });
  spdlog::default_logger()->flush();
  const std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(ended);
  EXPECT_NE(log.find("the agent of node 0 (rank 0) ends its part of a job and drops messages: the agent of node 1 "
                     "(ranks 1 to 2) did not take them"),
            std::string::npos)
      << log;
}

TEST(JobsOfOthers, ConnectAgainAfterOneThatFailedHalfWay_ExpectARefusalAndTheAgentToGoOn) {
  TestJob all({0, 1, 2}, true, 1, kShape, Hop::kPatience, false);
  RouteService& agent = *all.agents[0];
  const auto connect = [&](const std::vector<std::vector<Address>>& addresses) {
    return agent.on_request(all.ranks[0]->session, "connect", encode(ConnectRequest{TestJob::kId, addresses})).status();
  };
  auto bad = all.addresses;
  bad[2].push_back(bad[2].front());  // when node 1 is connected
  EXPECT_NE(connect(bad).message().find("the agent of node 2 (rank 2) has 2 routing threads"), std::string::npos);
  EXPECT_NE(connect(all.addresses).message().find("connect comes once"), std::string::npos);
  session::MetricsWriter metrics;
  agent.metrics(metrics);
  for (int round = 0; round < 100; ++round) agent.poll();
  all.leave(0);
  EXPECT_TRUE(turn_until([&] {
    agent.poll();
    return agent.drained();
  }));
}

TEST_P(DeparturesOfNodes, TheLastRankOfANodeLeavesAndAnotherNodeSendsToIt_ExpectThatToFailTheJob) {
  TestJob all = job({0, 1, 0});
  ASSERT_TRUE(turn_until([&] {
    (void)all.ranks[0]->try_send(1);
    all.turn({0, 1, 2});
    return all.ranks[1]->handled != 0;
  }));
  all.leave(1);
  ASSERT_TRUE(turn_until([&] {
    all.turn({0, 2});
    return all.agents[1]->drained();
  }));
  ASSERT_TRUE(turn_until([&] {
    (void)all.ranks[0]->try_send(1);
    all.turn({0, 2});
    return !all.ranks[0]->aborted.empty() && !all.ranks[2]->aborted.empty();
  })) << "messages for rank 1 are lost, and nobody is told";
  EXPECT_NE(all.ranks[0]->aborted.find("rank 1, which has left"), std::string::npos) << all.ranks[0]->aborted;
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<bool, std::uint32_t>>& tested) {
  return std::string(std::get<0>(tested.param) ? "Mapped" : "OverTheNetwork") +
         std::to_string(std::get<1>(tested.param)) + "Threads";
}
INSTANTIATE_TEST_SUITE_P(Ranks, Departures, ::testing::Combine(::testing::Bool(), ::testing::Values(1U, 3U)), name_of);
/// Agents reach each other over the network, and share memory with their ranks.
INSTANTIATE_TEST_SUITE_P(Agents, DeparturesOfNodes,
                         ::testing::Combine(::testing::Values(true), ::testing::Values(1U, 3U)), name_of);

}  // namespace
}  // namespace wherry::route
