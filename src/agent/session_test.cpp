// SPDX-License-Identifier: Apache-2.0
// Tests the client half against an agent: the state of a session after failed calls, and its error texts.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "agent/flight_reading.hpp"
#include "agent/process_testing.hpp"
#include "agent/testing.hpp"
#include "base/socket.hpp"
#include "base/testing.hpp"
#include "move/client/post.hpp"
#include "session/control.hpp"
#include "session/session_core.hpp"

namespace wherry {
namespace {

using testing_support::Child;
using testing_support::eventually;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;
using session::ControlType;

using testing_support::kPatience;
using Buffers = std::vector<std::span<const std::byte>>;

const Retention kLossless{.frames = 1, .when_full = Retention::WhenFull::kWait};

bool mapped(const void* page) {
  unsigned char in_core = 0;
  return mincore(const_cast<void*>(page), 1, &in_core) == 0;
}

void expect(const Status& s, StatusCode code, const std::vector<std::string>& words) {
  EXPECT_EQ(s.code(), code) << s.message();
  for (const auto& word : words) EXPECT_NE(s.message().find(word), std::string::npos) << word << " in: " << s.message();
}

// ---------------------------------------------------------------- requests without an answer

/// The agent is stopped while streams are opened, and then continues.
class UnansweredOpens : public testing::Test {
 protected:
  void open_in_vain(const std::string& name, const Schema& schema) {
    agent_.child().stop();
    session_.core()->request_patience = 20ms;
    EXPECT_EQ(Stream::open(session_, {.name = name}, schema).status().code(), StatusCode::kDeadlineExceeded);
    session_.core()->request_patience = 30s;
    agent_.child().kill(SIGCONT);
  }
  static void expect_offload(Stream& stream, std::uint64_t sequence) {
    const std::vector<double> x(100);
    auto ticket = stream.post({Column(x)});
    ASSERT_TRUE(ticket) << ticket.status().message();
    const Status s = ticket->wait(kPatience);
    EXPECT_TRUE(s) << s.message();
    EXPECT_EQ(ticket->sequence(), sequence);
  }
  const Schema schema_{field<double>("x")};
  testing_support::AgentProcess agent_;
  Session session_ = *Session::open(agent_.options());
};

TEST_F(UnansweredOpens, OpenedAgain_ExpectTheStream) {
  open_in_vain("a", schema_);
  auto stream = Stream::open(session_, {.name = "a"}, schema_);
  ASSERT_TRUE(stream) << stream.status().message();
  expect_offload(*stream, 0);
  EXPECT_EQ(Stream::open(session_, {.name = "a"}, schema_).status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(stream->close());
}

TEST_F(UnansweredOpens, TwiceInVain_ExpectTheStreamTheThirdTime) {
  open_in_vain("a", schema_);
  open_in_vain("a", schema_);
  auto stream = Stream::open(session_, {.name = "a"}, schema_);
  ASSERT_TRUE(stream) << stream.status().message();
  expect_offload(*stream, 0);
}

TEST_F(UnansweredOpens, OpenedAgainWithAnotherSchema_ExpectThatOne) {
  open_in_vain("a", {field<std::int32_t>("y"), field<float>("z")});
  auto stream = Stream::open(session_, {.name = "a"}, schema_);
  ASSERT_TRUE(stream) << stream.status().message();
  expect_offload(*stream, 0);
}

TEST_F(UnansweredOpens, NotOpenedAgain_ExpectTheNameFreeForOthers) {
  for (const char* name : {"a", "b", "c"}) open_in_vain(name, schema_);
  auto stream = Stream::open(session_, {.name = "d"}, schema_);
  ASSERT_TRUE(stream) << stream.status().message();
  expect_offload(*stream, 0);
  auto other = Session::open(agent_.options());
  ASSERT_TRUE(other) << other.status().message();
  EXPECT_TRUE(eventually([&] { return Stream::open(*other, {.name = "b"}, schema_).ok(); }));
  EXPECT_TRUE(stream->close());
}

TEST_F(UnansweredOpens, AnAnswerComesWhileAnotherIsAwaitedInVain_ExpectBothNamesFreeForOthers) {
  auto other = Session::open(agent_.options());
  ASSERT_TRUE(other) << other.status().message();
  open_in_vain("a", schema_);
  (void)Stream::open(*other, {.name = "a"}, schema_);  // as a rule refused: the agent has answered the one before
  open_in_vain("b", schema_);
  auto stream = Stream::open(session_, {.name = "c"}, schema_);
  ASSERT_TRUE(stream) << stream.status().message();
  for (const char* name : {"a", "b"})
    EXPECT_TRUE(eventually([&] { return Stream::open(*other, {.name = name}, schema_).ok(); })) << name;
}

TEST_F(UnansweredOpens, NameThatAnotherSessionHas_ExpectItsStreamToStay) {
  auto other = Session::open(agent_.options());
  ASSERT_TRUE(other) << other.status().message();
  auto theirs = Stream::open(*other, {.name = "a"}, schema_);
  ASSERT_TRUE(theirs);
  open_in_vain("a", schema_);
  EXPECT_EQ(Stream::open(session_, {.name = "a"}, schema_).status().code(), StatusCode::kAlreadyExists);
  expect_offload(*theirs, 0);
}

// ---------------------------------------------------------------- closing

TEST(Close, SessionWithWorkInFlight_ExpectMemoryAndOutcomesToOutliveIt) {
  ThreadAgent agent;
  Session session = agent.open();
  auto memory = session.allocate(8000);
  ASSERT_TRUE(memory);
  auto stream = Stream::open(session, {.name = "c", .retention = kLossless}, {field<double>("x")});
  ASSERT_TRUE(stream);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(*stream->post({memory->as<double>()}, {.wait_for_ticket = kPatience}));
  ASSERT_TRUE(tickets[0].wait(kPatience));
  EXPECT_EQ(session.close(50ms).code(), StatusCode::kDeadlineExceeded);  // nobody reads: the others wait
  EXPECT_TRUE(session.close());
  EXPECT_TRUE(tickets[0].wait(0s));
  EXPECT_TRUE(tickets[1].ready());
  expect(tickets[1].wait(0s), StatusCode::kCancelled, {"offload 2", "the session was closed"});
  expect(stream->post({memory->as<double>()}).status(), StatusCode::kFailedPrecondition, {"the session was closed"});
  expect(Stream::open(session, {.name = "d"}, {field<double>("x")}).status(), StatusCode::kFailedPrecondition, {});
  expect(session.allocate(8).status(), StatusCode::kFailedPrecondition, {"the session was closed"});
  std::ranges::fill(memory->as<double>(), 1.0);
  EXPECT_EQ(session.in_flight(), 0U);
}

// ---------------------------------------------------------------- posting

TEST(Posts, FailedOne_ExpectTheRegionsThatItWouldHaveAnnouncedUsable) {
  ThreadAgent agent;
  Session session = agent.open();
  auto stream = Stream::open(session, {.name = "u", .strategy = Strategy::kRaw}, {});
  ASSERT_TRUE(stream);
  const std::string good(1000, 'x');
  const std::string other(1000, 'y');
  auto region = session.register_memory(good.data(), good.size());
  ASSERT_TRUE(region);
  const std::span<const std::byte> nowhere(static_cast<const std::byte*>(nullptr), 8);
  const Buffers bad{std::as_bytes(std::span(good)), std::as_bytes(std::span(other)), nowhere};
  for (int i = 0; i < 3; ++i) expect(stream->post_raw(bad).status(), StatusCode::kInvalidArgument, {"cannot register"});
  EXPECT_EQ(session.in_flight(), 0U);
  auto ticket = stream->post_raw(Buffers{std::as_bytes(std::span(good)), std::as_bytes(std::span(other))});
  ASSERT_TRUE(ticket) << ticket.status().message();
  const Status s = ticket->wait(kPatience);
  EXPECT_TRUE(s) << s.message();
  EXPECT_TRUE(region->unregister());
}

TEST(Tickets, MoreFailuresThanAreKept_ExpectTheForgottenOnesToSaySo) {
  ThreadAgent agent;
  Session session = agent.open();
  detail::SessionCore& core = *session.core();
  constexpr int kFailures = 1100;
  std::vector<std::uint64_t> tickets;
  move::FlatOffload none;
  HotVector<std::uint32_t> hints;
  for (int i = 0; i < kFailures; ++i) {
    auto ticket = move::post(core, 999, 0, none, hints, {.wait_for_ticket = kPatience});
    ASSERT_TRUE(ticket) << ticket.status().message();
    tickets.push_back(*ticket);
  }
  EXPECT_EQ(session.drain(kPatience).code(), StatusCode::kNotFound);
  expect(core.wait(tickets.front(), 0s), StatusCode::kFailedPrecondition, {"offload 1 is no longer known", "1024"});
  EXPECT_EQ(core.wait(tickets[kFailures - 1024], 0s).code(), StatusCode::kNotFound);
  EXPECT_EQ(core.wait(tickets.back(), 0s).code(), StatusCode::kNotFound);
  auto stream = Stream::open(session, {.name = "n"}, {field<double>("x")});
  const std::vector<double> x(10);
  EXPECT_TRUE(stream->post({Column(x)})->wait(kPatience));
  // The first wait for a ticket returns its error, however many others failed before.
  auto late = move::post(core, 999, 0, none, hints, {});
  ASSERT_TRUE(late);
  EXPECT_EQ(core.wait(*late, kPatience).code(), StatusCode::kNotFound);
}

// ---------------------------------------------------------------- memory

TEST(Memories, GivenUpWhileAnOffloadReadsThem_ExpectThemKeptUntilItIsDone) {
  ThreadAgent agent;
  Session session = agent.open();
  detail::SessionCore& core = *session.core();
  auto stream = Stream::open(session, {.name = "g", .retention = kLossless}, {field<double>("x")});
  ASSERT_TRUE(stream);
  const std::vector<double> x(1000);
  ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  constexpr std::size_t kBytes = 64 << 10;
  auto index = core.allocate(kBytes);
  ASSERT_TRUE(index);
  std::byte* const data = core.region_data(*index);
  const std::span rows(reinterpret_cast<const double*>(data), 100);
  auto waiting = stream->post({Column(rows)});  // the stream is full
  ASSERT_TRUE(waiting);
  testing::internal::CaptureStderr();
  core.remove_region_waiting(*index, 50ms);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("wherry: warning: offloads in flight still read 1 buffers"),
            std::string::npos);
  EXPECT_TRUE(mapped(data)) << "freed under an offload's feet";
  EXPECT_FALSE(waiting->ready());
  // The region no longer exists, so a new offload from that memory does not use it.
  auto stranger = stream->post({Column(rows)}, {.deadline = 300ms});
  ASSERT_TRUE(stranger);
  ASSERT_EQ(testing_support::read_frames(agent.agent().announced().flight, agent.agent().token(), "g").size(), 1U);
  EXPECT_TRUE(waiting->wait(kPatience));
  EXPECT_TRUE(eventually([&] { return !mapped(data); })) << "nobody reads it any more";
  EXPECT_EQ(stranger->wait(kPatience).code(), StatusCode::kCancelled);
}

TEST(Memories, GivenUpWithTheAgentGone_ExpectNoWait) {
  auto agent = std::make_unique<ThreadAgent>();
  Session session = agent->open();
  auto stream = Stream::open(session, {.name = "g", .retention = kLossless}, {field<double>("x")});
  ASSERT_TRUE(stream);
  auto memory = session.allocate(8000);
  ASSERT_TRUE(memory);
  ASSERT_TRUE(stream->post({Column(memory->as<double>())})->wait(kPatience));
  ASSERT_TRUE(stream->post({Column(memory->as<double>())}));  // waits for a reader
  agent.reset();
  const Deadline deadline(kPatience);
  *memory = Memory();
  EXPECT_FALSE(deadline.passed());
}

// ---------------------------------------------------------------- the progress thread

/// For ThreadSanitizer: memory is registered, unregistered and posted while the progress thread runs.
TEST(EmulatedGets, MemoryComesAndGoesWhileTheProgressThreadWorks) {
  AgentConfig config;
  config.transport = Transport::kTcp;
  config.services["flight.listen"] = "off";
  ThreadAgent agent(config);
  SessionOptions options = agent.options();
  options.max_tickets = 8;
  auto session = Session::open(options);
  ASSERT_TRUE(session) << session.status().message();
  ASSERT_EQ(session->info().heap, Verdict::kEmulated);
  auto stream =
      Stream::open(*session, {.name = "t", .retention = {.frames = 2}}, {field<double>("x"), field<double>("y")});
  ASSERT_TRUE(stream);
  std::vector<std::vector<double>> heap(16);
  for (int i = 0; i < 300; ++i) {
    const std::size_t rows = 1 + static_cast<std::size_t>(i * 37) % 500;
    auto memory = session->allocate(rows * sizeof(double));
    ASSERT_TRUE(memory);
    std::ranges::fill(memory->as<double>(), i);
    std::vector<double>& x = heap[static_cast<std::size_t>(i) % heap.size()];
    x.assign(rows, i);
    Result<Region> region = Status::would_block();
    if (i % 3 != 0) region = session->register_memory(x.data(), rows * sizeof(double));
    auto ticket = stream->post({Column(x), Column(memory->as<double>())}, {.wait_for_ticket = kPatience});
    ASSERT_TRUE(ticket) << ticket.status().message();
    // In every second round the destructors wait for the offload.
    if (i % 2 == 0) {
      const Status s = ticket->wait(kPatience);
      ASSERT_TRUE(s) << s.message();
      EXPECT_GT(ticket->transfer_ns(), 0U);
    }
  }
  const Status s = session->drain(kPatience);
  EXPECT_TRUE(s) << s.message();
}

// ---------------------------------------------------------------- opening

class Opening : public testing::Test {
 protected:
  Opening() {
    unsetenv("WHERRY_AGENT");
    setenv("WHERRY_SESSION", path_.c_str(), 1);
    options_.embedded.program = "/no/such/wherryd";
    file_.pid = getpid();
    file_.host = "127.0.0.1";
    file_.port = 1;  // nobody listens there
    file_.token = "secret";
  }
  ~Opening() override { unsetenv("WHERRY_SESSION"); }
  void write() {
    auto claim = SessionFileClaim::make(path_);
    ASSERT_TRUE(claim) << claim.status().message();
    claim_ = *std::move(claim);
    ASSERT_TRUE(claim_.publish(file_));
  }
  [[nodiscard]] Status open() const { return Session::open(options_).status(); }

  TemporaryDirectory directory_ = *TemporaryDirectory::create("test");
  std::string path_ = directory_.file("agent.json");
  SessionOptions options_;
  SessionFile file_;
  SessionFileClaim claim_;
};

TEST_F(Opening, AutoWithoutAnAgent_ExpectOneStartedOrBothReasons) {
  expect(open(), StatusCode::kNotFound, {path_, "does not exist", "none could be started", "/no/such/wherryd"});
  write();
  claim_ = {};  // its agent ended
  expect(open(), StatusCode::kNotFound, {path_, "is not running any more", "none could be started"});
}

TEST_F(Opening, AutoWithASessionFileThatCannotBeUsed_ExpectAnErrorAndNoOtherAgent) {
  write();
  expect(open(), StatusCode::kUnavailable, {"127.0.0.1:1", path_, "remove the file"});
  chmod(path_.c_str(), 0644);
  expect(open(), StatusCode::kPermissionDenied, {path_, "chmod 600", "WHERRY_AGENT=embedded"});
  chmod(path_.c_str(), 0600);
  std::ofstream(path_) << R"({"version": 7})";
  expect(open(), StatusCode::kVersionMismatch, {path_, "version 7", "WHERRY_AGENT=embedded"});
  std::ofstream(path_) << "garbage";
  expect(open(), StatusCode::kProtocol, {path_, "is not a session file", "WHERRY_AGENT=embedded"});
}

TEST_F(Opening, NamesThatAreNone_ExpectWhatTheyMayBe) {
  options_.agent = "nonsense";
  expect(open(), StatusCode::kNotFound, {"no agent 'nonsense'", "host:port"});
  options_.agent = "embedded";
  options_.embedded.program = "/bin/false";
  expect(open(), StatusCode::kUnavailable, {"/bin/false ended at once (exit status 1)"});
}

/// Opens a session against a peer that is not an agent, or that dies.
Status open_against(const std::function<void(FrameChannel&)>& answer) {
  auto listener = listen_tcp({"127.0.0.1", 0});
  EXPECT_TRUE(listener);
  SessionOptions options;
  options.agent = "127.0.0.1:" + std::to_string(*local_port(*listener));
  options.token = "secret";
  std::thread server([&] {
    Fd socket;
    EXPECT_TRUE(eventually([&] { return (socket = Fd(accept(listener->get(), nullptr, nullptr))).get() >= 0; }));
    auto stream = plain_stream(std::move(socket));
    auto handshake = fabric::StreamHandshake::server([](fabric::Purpose, std::uint64_t) { return "secret"; });
    EXPECT_TRUE(eventually([&] {
      const auto done = handshake.advance(*stream);
      return done && *done;
    }));
    FrameChannel channel(std::move(stream));
    EXPECT_TRUE(channel.receive(Deadline(kPatience)));
    answer(channel);
  });
  const Status s = Session::open(options).status();
  server.join();
  return s;
}

TEST_F(Opening, AgentDies_ExpectWhichAndThatItClosed) {
  expect(open_against([](FrameChannel&) {}), StatusCode::kUnavailable,
         {"no session with the agent at 127.0.0.1:", "closed the control connection"});
}

TEST_F(Opening, NotAnAgent_ExpectTheQuestion) {
  expect(open_against([](FrameChannel& c) { (void)::send(c.fd(), "HTTP/1.1 400\r\n", 14, 0); }), StatusCode::kProtocol,
         {"no session with the agent at 127.0.0.1:", "is it an agent of Wherry"});
}

TEST_F(Opening, AgentOfAnotherVersion_ExpectItsOwnWords) {
  const auto answer = [](FrameChannel& c) {
    const session::Failure failure{StatusCode::kVersionMismatch, "install the same version on both sides"};
    EXPECT_TRUE(c.send(static_cast<std::uint16_t>(ControlType::kFailure), encode(failure), Deadline(kPatience)));
  };
  expect(open_against(answer), StatusCode::kVersionMismatch,
         {"no session with the agent at 127.0.0.1:", "install the same version on both sides"});
}

TEST_F(Opening, WrongOrNoToken_ExpectTheDifference) {
  const ThreadAgent agent({.listen = "127.0.0.1:0"});
  options_.agent = const_cast<ThreadAgent&>(agent).agent().address();
  options_.token = "guess";
  expect(open(), StatusCode::kPermissionDenied, {options_.agent, "wrong token"});
  EXPECT_EQ(open().message().find("no token was given"), std::string::npos);
  options_.token = "";
  expect(open(), StatusCode::kPermissionDenied, {options_.agent, "no token was given", "SessionOptions::token"});
}

}  // namespace
}  // namespace wherry
