// SPDX-License-Identifier: Apache-2.0
// Tests SIGTERM: the agent finishes accepted work and refuses later work, and no client waits in vain.
#include "agent/process_testing.hpp"
#include "agent/testing.hpp"
#include "base/testing.hpp"

namespace wherry {
namespace {

using testing_support::AgentProcess;
using testing_support::eventually;
using testing_support::kPatience;
using namespace std::chrono_literals;

constexpr Retention kLossless{.frames = 1, .when_full = Retention::WhenFull::kWait};

TEST(Drain, TransfersInFlight_ExpectThemFinishedAndWrittenToFiles) {
  AgentProcess agent({"--drain-ms", "300000"});  // the disk may be slow
  const auto directory = *TemporaryDirectory::create("test");
  SessionOptions options = agent.options();
  options.transport = Transport::kTcp;  // slow enough that SIGTERM arrives in the middle
  auto session = Session::open(options);
  ASSERT_TRUE(session) << session.status().message();
  auto stream = Stream::open(*session, {.name = "last", .sink = {Sink::Format::kArrow, directory.file("")}},
                             {field<double>("x")});
  ASSERT_TRUE(stream);
  const std::vector<double> x((16 << 20) / 8, 1.0);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(*stream->post({Column(x)}));
  // Wait until all four are accepted: an offload whose message is still in flight at SIGTERM is rightly refused.
  ASSERT_TRUE(eventually([&] {
    const double done = agent.metric("wherry_move_offloads_total");  // first: one that ends in between counts once
    return done + agent.metric("wherry_move_queued") >= 4;
  }));
  agent.child().kill(SIGTERM);
  for (const Ticket& ticket : tickets) {
    const Status s = ticket.wait(kPatience);
    EXPECT_TRUE(s) << s.message();
  }
  EXPECT_EQ(agent.child().wait(), 0);
  for (const char* file : {"last-00000000.arrow", "last-00000003.arrow"})
    EXPECT_TRUE(std::filesystem::exists(directory.file(file))) << file;
}

TEST(Drain, ClientThatGoesOnOffloading_ExpectItToBeToldAndTheAgentToEnd) {
  AgentProcess agent({"--drain-ms", "60000"});
  auto session = Session::open(agent.options());
  ASSERT_TRUE(session);
  auto stream = Stream::open(*session, {.name = "busy"}, {field<double>("x")});
  ASSERT_TRUE(stream);
  const std::vector<double> x((1 << 20) / 8, 1.0);
  ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  agent.child().kill(SIGTERM);
  // Four offloads are always in flight, so the agent never runs out of work.
  std::vector<Ticket> tickets;
  Status refused;
  const Deadline deadline(kPatience);
  while (refused && !deadline.passed()) {
    auto ticket = stream->post({Column(x)}, {.wait_for_ticket = kPatience});
    if (!ticket) {
      refused = ticket.status();
      break;
    }
    tickets.push_back(*ticket);
    if (tickets.size() < 4) continue;
    refused = tickets.front().wait(kPatience);
    tickets.erase(tickets.begin());
  }
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable) << refused.message();
  EXPECT_TRUE(eventually([&] { return agent.child().ended(); }));
  EXPECT_EQ(agent.child().wait(), 0);
}

TEST(Drain, RequestsMeanwhile_ExpectCloseToWorkAndOpenToBeRefused) {
  AgentProcess agent({"--drain-ms", "4000"});
  auto session = Session::open(agent.options());
  ASSERT_TRUE(session);
  auto full = Stream::open(*session, {.name = "full", .retention = kLossless}, {field<double>("x")});
  auto other = Stream::open(*session, {.name = "other"}, {field<double>("x")});
  ASSERT_TRUE(full && other);
  const std::vector<double> x(1000, 1.0);
  ASSERT_TRUE(full->post({Column(x)})->wait(kPatience));
  auto waiting = full->post({Column(x)});  // for a reader that never comes: the agent drains for as long as it may
  ASSERT_TRUE(waiting);
  ASSERT_TRUE(eventually([&] { return agent.metric("wherry_move_queued") == 1; }));
  agent.child().kill(SIGTERM);
  int opened = 0;  // until the agent has noticed the signal
  EXPECT_TRUE(eventually([&] {
    const auto late = Stream::open(*session, {.name = "new" + std::to_string(opened++)}, {field<double>("x")});
    return late.status().code() == StatusCode::kUnavailable;
  }));
  const Status closed = other->close();
  EXPECT_TRUE(closed) << closed.message();
  EXPECT_EQ(agent.metric("wherry_move_queued"), 1) << "metrics are served while the agent drains";
  EXPECT_EQ(waiting->wait(kPatience).code(), StatusCode::kUnavailable);
  EXPECT_EQ(agent.child().wait(), 0);
}

}  // namespace
}  // namespace wherry
