// SPDX-License-Identifier: Apache-2.0
// A session of no service in particular against an agent: what every service's client half is made of.
#include "fabric/client_session.hpp"

#include <cstring>

#include "agent/process_testing.hpp"
#include "agent/testing.hpp"

namespace wherry {
namespace {

using fabric::ClientSession;
using testing_support::AgentProcess;
using testing_support::eventually;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;

std::unique_ptr<ClientSession> open(SessionOptions options) {
  options.max_tickets = 1;  // it posts none
  auto session = ClientSession::open(options);
  EXPECT_TRUE(session) << session.status().message();
  return session ? *std::move(session) : nullptr;
}

class ClientSessions : public testing::TestWithParam<Transport> {};

TEST_P(ClientSessions, AskMoveForItsStatus_ExpectAnswer) {
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

TEST_P(ClientSessions, AskAServiceThatTheAgentLacks_ExpectItsNameAndTheSessionToGoOn) {
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

/// Over TCP the session's own thread makes progress meanwhile.
TEST_P(ClientSessions, FabricUsedUnderItsLock_ExpectMemoryRegisteredAndMessagesSent) {
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
    ASSERT_TRUE(session->endpoint().send(fabric::kPingMessage, std::as_bytes(std::span(&ping, 1)), sent));
  }
  EXPECT_TRUE(eventually([&] {
    const auto lock = session->lock_fabric();
    session->worker().progress();
    return sent.pending() == 0;
  }));
  EXPECT_EQ(sent.error(), nullptr);
  EXPECT_TRUE(session->request("move", "status", {}));
}

INSTANTIATE_TEST_SUITE_P(OverTransports, ClientSessions, testing::Values(Transport::kShm, Transport::kTcp),
                         [](const auto& which) { return std::string(to_string(which.param)); });

TEST(ClientSessionRequests, OneTimesOut_ExpectLaterAnswersToBelongToTheirRequests) {
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

/// More than the connection holds while nobody reads it.
TEST(ClientSessionRequests, LargeOneTimesOutHalfSent_ExpectTheSessionToGoOn) {
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

TEST(ClientSessionHealth, AgentShutsDown_ExpectWhatItSaid) {
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

TEST(ClientSessionHealth, AgentShutsDown_RequestIsTheFirstToHear_ExpectTheSameWords) {
  ThreadAgent agent;
  const auto session = open(agent.options());
  ASSERT_TRUE(session);
  agent.stop();
  const auto answer = session->request("move", "status", {});
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(answer.status().message(), session->health().message());
}

TEST(ClientSessionHealth, AgentIsKilled_ExpectItsPid) {
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

TEST(ClientSessionOpens, TicketsThatAreNoPowerOfTwo_ExpectRefusal) {
  SessionOptions options;
  options.max_tickets = 3;
  const auto session = ClientSession::open(options);
  EXPECT_EQ(session.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wherry
