// SPDX-License-Identifier: Apache-2.0
// Tests a session that uses no service, against an agent. Every service's client half is built on such a session.
#include "session/connection.hpp"

#include <cstring>

#include "agent/process_testing.hpp"
#include "agent/testing.hpp"

namespace wherry {
namespace {

using session::Connection;
using testing_support::AgentProcess;
using testing_support::eventually;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;

std::unique_ptr<Connection> open(SessionOptions options) {
  options.max_tickets = 1;  // it posts none
  auto session = Connection::open(options);
  EXPECT_TRUE(session) << session.status().message();
  return session ? *std::move(session) : nullptr;
}

class Connections : public testing::TestWithParam<Transport> {};

TEST_P(Connections, AskMoveForItsStatus_ExpectAnswer) {
  ThreadAgent agent;
  SessionOptions options = agent.options();
  options.transport = GetParam();
  const auto session = open(options);
  ASSERT_TRUE(session);
  EXPECT_NE(session->id(), 0U);
  EXPECT_EQ(session->info().agent_pid, getpid());
  EXPECT_EQ(session->info().session_file, agent.session_file());
  EXPECT_EQ(session->info().heap == Verdict::kOneSided, GetParam() == Transport::kShm);
  EXPECT_EQ(static_cast<bool>(session->mailbox()), GetParam() == Transport::kShm);
  EXPECT_EQ(session->context().transport(), GetParam());
  for (int i = 0; i < 3; ++i) {
    const auto answer = session->request("move", "status", {});
    ASSERT_TRUE(answer) << answer.status().message();
  }
  EXPECT_TRUE(session->health());
}

TEST_P(Connections, AskAServiceThatTheAgentLacks_ExpectItsNameAndTheSessionToGoOn) {
  ThreadAgent agent;
  SessionOptions options = agent.options();
  options.transport = GetParam();
  const auto session = open(options);
  ASSERT_TRUE(session);
  const auto answer = session->request("teleport", "status", {});
  EXPECT_EQ(answer.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(answer.status().message().find("no service 'teleport'"), std::string::npos) << answer.status().message();
  EXPECT_TRUE(session->health());
  EXPECT_TRUE(session->request("move", "status", {}));
}

/// Over TCP, the session's own thread makes progress at the same time.
TEST_P(Connections, FabricUsedUnderItsLock_ExpectMemoryRegisteredAndMessagesSent) {
  ThreadAgent agent;
  SessionOptions options = agent.options();
  options.transport = GetParam();
  const auto session = open(options);
  ASSERT_TRUE(session);
  const std::uint64_t ping = session->id();
  fabric::Completion sent;
  for (int i = 0; i < 200; ++i) {
    const auto lock = session->lock_fabric();
    auto region = session->context().allocate(4096);
    ASSERT_TRUE(region) << region.status().message();
    ASSERT_TRUE(session->endpoint().send(session::kPingMessage, std::as_bytes(std::span(&ping, 1)), sent));
  }
  EXPECT_TRUE(eventually([&] {
    const auto lock = session->lock_fabric();
    session->worker().progress();
    return sent.pending() == 0;
  }));
  EXPECT_EQ(sent.error(), nullptr);
  EXPECT_TRUE(session->request("move", "status", {}));
}

INSTANTIATE_TEST_SUITE_P(OverTransports, Connections, testing::Values(Transport::kShm, Transport::kTcp),
                         [](const auto& which) { return std::string(to_string(which.param)); });

TEST(ConnectionRequests, OneTimesOut_ExpectLaterAnswersToBelongToTheirRequests) {
  AgentProcess agent;
  const auto session = open(agent.options());
  ASSERT_TRUE(session);
  agent.child().stop();
  session->request_patience = 20ms;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(session->request("teleport", "status", {}).status().code(), StatusCode::kDeadlineExceeded);
  agent.child().kill(SIGCONT);
  session->request_patience = 30s;
  const auto answer = session->request("move", "status", {});
  EXPECT_TRUE(answer) << answer.status().message();
  EXPECT_EQ(session->request("teleport", "status", {}).status().code(), StatusCode::kUnsupported);
  EXPECT_TRUE(session->request("move", "status", {}));
  EXPECT_TRUE(session->health());
}

/// The request is larger than the connection can buffer while the other end does not read.
TEST(ConnectionRequests, LargeOneTimesOutHalfSent_ExpectTheSessionToGoOn) {
  AgentProcess agent;
  const auto session = open(agent.options());
  ASSERT_TRUE(session);
  agent.child().stop();
  session->request_patience = 20ms;
  const Bytes large(1'000'000);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(session->request("teleport", "status", large).status().code(), StatusCode::kDeadlineExceeded);
  agent.child().kill(SIGCONT);
  session->request_patience = 30s;
  const auto answer = session->request("move", "status", {});
  EXPECT_TRUE(answer) << answer.status().message();
}

TEST(ConnectionHealth, AgentShutsDown_ExpectWhatItSaid) {
  ThreadAgent agent;
  const auto session = open(agent.options());
  ASSERT_TRUE(session);
  EXPECT_TRUE(session->health());
  agent.stop();
  EXPECT_TRUE(eventually([&] { return !session->health(); }));
  EXPECT_EQ(session->health().code(), StatusCode::kUnavailable);
  EXPECT_NE(session->health().message().find("the agent was shut down"), std::string::npos)
      << session->health().message();
  EXPECT_EQ(session->request("move", "status", {}).status().message(), session->health().message());
}

TEST(ConnectionHealth, AgentShutsDown_RequestIsTheFirstToHear_ExpectTheSameWords) {
  ThreadAgent agent;
  const auto session = open(agent.options());
  ASSERT_TRUE(session);
  agent.stop();
  const auto answer = session->request("move", "status", {});
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(answer.status().message(), session->health().message());
}

TEST(ConnectionHealth, AgentIsKilled_ExpectItsPid) {
  AgentProcess agent;
  const auto session = open(agent.options());
  ASSERT_TRUE(session);
  const std::string pid = std::to_string(session->info().agent_pid);
  agent.child().kill(SIGKILL);
  (void)agent.child().wait();
  EXPECT_TRUE(eventually([&] { return !session->health(); }));
  EXPECT_EQ(session->health().code(), StatusCode::kUnavailable);
  EXPECT_NE(session->health().message().find("the agent (pid " + pid + ") is gone"), std::string::npos)
      << session->health().message();
}

TEST(ConnectionOpens, TicketsThatAreNoPowerOfTwo_ExpectRefusal) {
  SessionOptions options;
  options.max_tickets = 3;
  const auto session = Connection::open(options);
  EXPECT_EQ(session.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wherry
