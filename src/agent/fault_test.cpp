// SPDX-License-Identifier: Apache-2.0
// Tests failures of real processes: each ends in a clear error or a clean state, and the agent continues.
#include <fmt/core.h>
#include <sys/socket.h>

#include <fstream>
#include <random>

#include "agent/flight_reading.hpp"
#include "agent/process_testing.hpp"
#include "base/testing.hpp"
#include "base/unix_socket.hpp"
#include "move/client/post.hpp"
#include "move/message.hpp"
#include "session/control.hpp"
#include "session/session_core.hpp"

namespace wherry {
namespace {

using testing_support::AgentProcess;
using testing_support::Child;
using testing_support::eventually;
using testing_support::expect_alive;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;
using session::ControlType;
using testing_support::kPatience;

class KilledClient : public testing::TestWithParam<const char*> {};

TEST_P(KilledClient, MidTransfer_ExpectItsMemoryBackAndOnlyWholeFrames) {
  // A frame of fault_client has 32 MiB, so each frame needs many gets.
  constexpr double kGetsAFrame = 32;
  constexpr std::int64_t kRows = (32 << 20) / 8;
  AgentProcess agent({"--flight", "127.0.0.1:0", "--transfer-unit", "1MiB"});
  const auto now = [&](const char* what) { return agent.metric("wherry_move_" + std::string(what) + "_total"); };
  int cut_short = 0;
  for (int round = 0; round < 40 && cut_short < 3; ++round) {
    const double delivered = now("offloads");
    const double gets = now("gets");
    const double failed = now("failed");
    {
      Child client(FAULT_CLIENT_PROGRAM, {agent.file(), "die", GetParam()});
      // Wait until a frame of this round's client is complete; the client has then already posted the next ones.
      ASSERT_TRUE(eventually([&] { return now("offloads") > delivered; })) << agent.metrics();
      std::this_thread::sleep_for(std::chrono::milliseconds(2 + 3 * (round % 12)));
      client.kill(SIGKILL);
      EXPECT_EQ(client.wait(), 128 + SIGKILL);
    }
    ASSERT_TRUE(eventually([&] { return agent.metric("wherry_agent_sessions") == 0; }));
    // If more gets were made than the delivered frames need plus one for each failed frame, at least one frame was half
    // complete.
    const double lost = now("gets") - gets - kGetsAFrame * (now("offloads") - delivered);
    if (lost > now("failed") - failed) ++cut_short;
    if (lost > 0) {
      EXPECT_GT(now("failed"), failed) << "an offload was begun and neither delivered nor failed";
    }
    EXPECT_EQ(agent.metric("wherry_move_queued"), 0);
    // The agent holds only two kept frames and the probe's page.
    EXPECT_LT(agent.metric("wherry_agent_used_bytes"), 3 * (32 << 20));

    const auto frames = testing_support::read_frames(agent.flight(), agent.token(), "doomed");
    ASSERT_FALSE(frames.empty());
    ASSERT_LE(frames.size(), 2U);
    for (const auto& frame : frames) {
      EXPECT_EQ(frame.sequence, frames.front().sequence + static_cast<std::uint64_t>(&frame - frames.data()));
      ASSERT_EQ(frame.batch->num_rows(), kRows);
      const double* x = std::static_pointer_cast<arrow::DoubleArray>(frame.batch->column(0))->raw_values();
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < kRows; ++i)
        wrong += x[i] != static_cast<double>(frame.tag) * 1e9 + static_cast<double>(i) ? 1 : 0;
      EXPECT_EQ(wrong, 0) << "values of frame " << frame.sequence << " are another frame's";
    }
  }
  EXPECT_EQ(cut_short, 3) << "rounds in which a client was killed while one of its frames was half there";
  expect_alive(agent.options());
  EXPECT_FALSE(agent.child().ended());
}

TEST_P(KilledClient, WithOffloadsWaiting_ExpectOneLineInTheLogWithTheirNumber) {
  TemporaryDirectory directory = *TemporaryDirectory::create("test");
  std::string log, pid;
  int failed = 0;
  // How many offloads a killed client leaves waiting depends on its speed. Each retry gives the client more time.
  for (int patience = 50; failed < 2 && patience < 5000; patience *= 2) {
    log = directory.file(fmt::format("log.{}", patience));
    AgentProcess agent({"--log-level", "warn", "--log-file", log});
    Child client(FAULT_CLIENT_PROGRAM, {agent.file(), "die", GetParam()});
    ASSERT_TRUE(eventually([&] { return agent.metric("wherry_move_offloads_total") > 0; })) << agent.metrics();
    agent.child().stop();  // so that some are under way, and some behind them, when it dies
    std::this_thread::sleep_for(std::chrono::milliseconds(patience));
    pid = fmt::format("(pid {})", client.pid());
    client.kill(SIGKILL);
    EXPECT_EQ(client.wait(), 128 + SIGKILL);
    agent.child().kill(SIGCONT);
    ASSERT_TRUE(eventually([&] { return agent.metric("wherry_agent_sessions") == 0; }));
    failed = static_cast<int>(agent.metric("wherry_move_failed_total"));
  }
  ASSERT_GT(failed, 1) << "offloads that a client left behind";

  int about_offloads = 0;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    if (line.find("offload") == line.npos && line.find("ticket") == line.npos) continue;
    ++about_offloads;
    EXPECT_NE(line.find(fmt::format("{}: {} offloads failed", pid, failed)), line.npos) << line;
  }
  EXPECT_EQ(about_offloads, 1);
}

INSTANTIATE_TEST_SUITE_P(Faults, KilledClient, testing::Values("auto", "tcp"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(Faults, AgentKilledWithTicketsWaiting_ExpectUnavailableWithinSeconds) {
  AgentProcess agent;
  Child client(FAULT_CLIENT_PROGRAM, {agent.file(), "wait"});
  ASSERT_TRUE(eventually([&] { return agent.metric("wherry_move_queued") == 1; }));
  agent.child().kill(SIGKILL);
  const Deadline deadline(kPatience);
  while (!client.ended() && !deadline.passed()) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(client.ended()) << "the client hangs on a dead agent";
  EXPECT_EQ(client.wait(), 0);
}

TEST(Faults, SourceMemoryGone_ExpectSourceFaultAndTheSessionGoesOn) {
  AgentProcess agent;
  Child client(FAULT_CLIENT_PROGRAM, {agent.file(), "unmap"});
  EXPECT_EQ(client.wait(), 0);
  expect_alive(agent.options());
}

TEST(Faults, SigtermDrainsAndExitsCleanly) {
  AgentProcess agent;
  expect_alive(agent.options());
  agent.child().kill(SIGTERM);
  EXPECT_EQ(agent.child().wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(agent.file()));
}

TEST(Faults, WrongToken_ExpectPermissionDenied) {
  ThreadAgent agent({.listen = "127.0.0.1:0"});
  SessionOptions options;
  options.agent = agent.agent().address();
  options.token = "0123456789abcdef";
  EXPECT_EQ(Session::open(options).status().code(), StatusCode::kPermissionDenied);
  options.token = "";
  EXPECT_EQ(Session::open(options).status().code(), StatusCode::kPermissionDenied);
  options.token = agent.agent().token();
  auto session = Session::open(options);
  EXPECT_TRUE(session) << session.status().message();
}

TEST(Faults, WrongVersion_ExpectBothVersionsNamed) {
  ThreadAgent agent;
  FrameChannel channel = testing_support::control_channel(agent.agent());
  session::Hello hello;
  hello.version = 77;
  ASSERT_TRUE(channel.send(static_cast<std::uint16_t>(ControlType::kHello), encode(hello), Deadline(kPatience)));
  auto frame = channel.receive(Deadline(kPatience));
  ASSERT_TRUE(frame);
  auto failure = session::decode_failure(frame->payload);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, StatusCode::kVersionMismatch);
  EXPECT_NE(failure->message.find("77"), std::string::npos);
}

TEST(Faults, TransportByName_ExpectItOrAnError) {
  ThreadAgent agent;
  SessionOptions options = agent.options();
  options.transport = Transport::kRdma;
  const auto rdma = Session::open(options);
  if (rdma) {
    const std::string& used = rdma->info().transports;
    const bool verbs = used.find("rc_") != used.npos || used.find("dc_") != used.npos || used.find("ud_") != used.npos;
    EXPECT_TRUE(verbs) << "asked for RDMA, got " << used;
  } else {
    EXPECT_EQ(rdma.status().code(), StatusCode::kUnsupported) << rdma.status().message();
  }
  options.transport = Transport::kTcp;
  auto tcp = Session::open(options);
  ASSERT_TRUE(tcp) << tcp.status().message();
  EXPECT_NE(tcp->info().transports.find("stream/"), std::string::npos);
  EXPECT_EQ(tcp->info().heap, Verdict::kEmulated);
  // Emulated gets need the client's progress thread, but the result is the same.
  auto stream = Stream::open(*tcp, {.name = "tcp"}, {field<double>("x")});
  ASSERT_TRUE(stream);
  const std::vector<double> x(1 << 20, 3.0);
  for (int i = 0; i < 3; ++i) {
    const Status s = stream->post({Column(x)})->wait(kPatience);
    ASSERT_TRUE(s) << s.message();
  }
  AgentConfig only;
  only.transport = Transport::kTcp;
  ThreadAgent tcp_agent(only);
  options = tcp_agent.options();
  options.transport = Transport::kShm;
  EXPECT_EQ(Session::open(options).status().code(), StatusCode::kUnsupported);
}

TEST(Faults, ClientsNameThatLooksLikeMetrics_ExpectItEscaped) {
  const AgentProcess agent;
  SessionOptions options = agent.options();
  options.name = "evil\" 1\nwherry_agent_sessions 99\\";
  auto session = Session::open(options);
  ASSERT_TRUE(session);
  EXPECT_EQ(agent.metric("wherry_agent_sessions"), 1);
  const std::string page = agent.metrics();
  EXPECT_NE(page.find("name=\"evil\\\" 1?wherry_agent_sessions 99\\\\\""), std::string::npos) << page;
}

TEST(Faults, RandomBytesOnTheSocket_ExpectTheAgentToServeOn) {
  ThreadAgent agent;
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    auto socket = connect_unix(agent.agent().control_socket(), Deadline(kPatience));
    ASSERT_TRUE(socket);
    std::string bytes(1 + random() % 3000, 0);
    for (char& b : bytes) b = static_cast<char>(random());
    if (round % 2 == 0) {
      // Random bytes in a plausible frame pass the first check.
      const auto length = static_cast<std::uint32_t>(bytes.size() - 4 < 2 || bytes.size() < 8 ? 2 : bytes.size() - 4);
      std::memcpy(bytes.data(), &length, std::min<std::size_t>(4, bytes.size()));
      if (bytes.size() > 5) bytes[4] = static_cast<char>(1 + random() % 8), bytes[5] = 0;
    }
    (void)::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // These clients may use all sessions until the agent notices that they are gone.
  ASSERT_TRUE(eventually([&] { return Session::open(agent.options()).ok(); }));
  expect_alive(agent.options());
}

TEST(Faults, MessagesOnTheFabricThatLie_ExpectRefusalsAndNoCrash) {
  ThreadAgent agent;
  auto session = Session::open(agent.options());
  ASSERT_TRUE(session);
  auto stream = Stream::open(*session, {.name = "lies"}, {field<double>("x"), utf8("s")});
  ASSERT_TRUE(stream);
  const std::vector<double> x(100, 1.0);
  std::vector<std::int32_t> offsets(101);
  for (int i = 0; i <= 100; ++i) offsets[static_cast<std::size_t>(i)] = i;
  const std::string text(100, 't');
  ASSERT_TRUE(stream->post({Column(x), Column::utf8(offsets, text.data())})->wait(kPatience));

  // The client half refuses wrong input. A hostile client would not: SessionCore sends any list of nodes and buffers.
  struct Lie {
    const char* what;
    std::uint64_t rows;
    std::vector<move::NodeRef> nodes;
    std::vector<move::BufferRef> buffers;
  };
  const auto at = [](const void* p) { return reinterpret_cast<std::uint64_t>(p); };
  const move::BufferRef xs{at(x.data()), 800, 0, 0, 0};
  const move::BufferRef os{at(offsets.data()), 404, 0, 0, 0};
  const move::BufferRef ts{at(text.data()), 100, 0, 0, 0};
  const std::vector<Lie> lies{
      {"too few buffers", 100, {{100, 0}, {100, 0}}, {xs}},
      {"too many nodes", 100, {{100, 0}, {100, 0}, {100, 0}}, {xs, os, ts}},
      {"rows beyond reason", 1ULL << 62, {{1LL << 62, 0}, {1LL << 62, 0}}, {xs, os, ts}},
      {"negative rows", 100, {{-1, 0}, {-1, 0}}, {xs, os, ts}},
      {"more rows than bytes", 200, {{200, 0}, {200, 0}}, {xs, os, ts}},
      {"nulls beyond rows", 100, {{100, 500}, {100, 0}}, {{at(x.data()), 13, 0, 0, 0}, xs, os, ts}},
      {"data shorter than its offsets say", 100, {{100, 0}, {100, 0}}, {xs, os, {at(text.data()), 50, 0, 0, 0}}},
  };
  for (const Lie& lie : lies) {
    move::FlatOffload flat;
    flat.nodes.assign(lie.nodes.begin(), lie.nodes.end());
    flat.buffers.assign(lie.buffers.begin(), lie.buffers.end());
    HotVector<std::uint32_t> hints;
    auto ticket = move::post(*session->core(), 1, lie.rows, flat, hints, {});
    ASSERT_TRUE(ticket) << lie.what;
    const Status s = session->core()->wait(*ticket, kPatience);
    EXPECT_TRUE(s.code() == StatusCode::kInvalidArgument || s.code() == StatusCode::kSourceFault)
        << lie.what << ": " << s.to_string();
  }
  move::FlatOffload none;
  HotVector<std::uint32_t> hints;
  auto ticket = move::post(*session->core(), 999, 0, none, hints, {});
  EXPECT_EQ(session->core()->wait(*ticket, kPatience).code(), StatusCode::kNotFound);
  EXPECT_TRUE(stream->post({Column(x), Column::utf8(offsets, text.data())})->wait(kPatience));
}

TEST(Faults, NoAgent_ExpectAClearError) {
  SessionOptions options;
  options.agent = "/no/such/agent.json";
  EXPECT_EQ(Session::open(options).status().code(), StatusCode::kNotFound);
  options.agent = "127.0.0.1:1";
  EXPECT_EQ(Session::open(options).status().code(), StatusCode::kUnavailable);
  options.agent = "embedded";
  options.embedded.program = "/no/such/wherryd";
  EXPECT_EQ(Session::open(options).status().code(), StatusCode::kNotFound);
  options.max_tickets = 3;
  EXPECT_EQ(Session::open(options).status().code(), StatusCode::kInvalidArgument);
}

TEST(Faults, SessionsBeyondTheLimitAreTurnedAway) {
  AgentConfig config;
  config.max_sessions = 2;
  ThreadAgent agent(config);
  auto a = Session::open(agent.options());
  auto b = Session::open(agent.options());
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  EXPECT_EQ(Session::open(agent.options()).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wherry
