// SPDX-License-Identifier: Apache-2.0
// Tests the whole path in one process: a session offloads, the agent makes frames, Arrow's Flight client reads them.
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "agent/flight_reading.hpp"
#include "agent/process_testing.hpp"
#include "agent/testing.hpp"
#include "base/testing.hpp"

namespace wherry {
namespace {

using testing_support::eventually;
using testing_support::kPatience;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;

/// Reads all frames of a stream through a stock Flight client.
std::vector<std::shared_ptr<arrow::RecordBatch>> read_all(Agent& agent, const std::string& stream) {
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  for (auto& frame : testing_support::read_frames(agent.announced().flight, agent.token(), stream))
    batches.push_back(std::move(frame.batch));
  return batches;
}

std::vector<double> ramp(std::size_t n, double from) {
  std::vector<double> v(n);
  std::iota(v.begin(), v.end(), from);
  return v;
}

std::shared_ptr<arrow::Array> as_arrow(const std::vector<double>& v) {
  arrow::DoubleBuilder builder;
  EXPECT_TRUE(builder.AppendValues(v).ok());
  return builder.Finish().ValueOrDie();
}

class Strategies : public testing::TestWithParam<Strategy> {};

TEST_P(Strategies, HeapRegisteredAndAllocatedMemoryArriveAlike) {
  ThreadAgent agent;
  Session session = agent.open();
  EXPECT_EQ(session.info().heap, Verdict::kOneSided);
  EXPECT_EQ(session.info().allocated, Verdict::kOneSided);
  EXPECT_TRUE(session.info().mapped);
  auto stream = Stream::open(session, {.name = "s", .strategy = GetParam()}, {field<double>("x"), field<double>("y")});
  ASSERT_TRUE(stream) << stream.status().message();
  // Odd sizes, and one that takes several transfer units.
  for (const std::size_t rows : {1UL, 1001UL, (9UL << 20) / 8 + 3}) {
    const auto heap = ramp(rows, 0.5);
    auto memory = session.allocate(rows * sizeof(double));
    ASSERT_TRUE(memory);
    const auto y = ramp(rows, -7);
    std::copy(y.begin(), y.end(), memory->as<double>().begin());
    auto ticket = stream->post({Column(heap), Column(memory->as<double>().first(rows))}, {.tag = rows});
    ASSERT_TRUE(ticket) << ticket.status().message();
    Status s = ticket->wait(kPatience);
    ASSERT_TRUE(s) << s.message();
    EXPECT_GT(ticket->transfer_ns(), 0U);
    auto region = session.register_memory(heap.data(), heap.size() * sizeof(double));
    ASSERT_TRUE(region);
    ticket = stream->post({Column(heap), Column(memory->as<double>().first(rows))});
    ASSERT_TRUE(ticket);
    ASSERT_TRUE(ticket->wait(kPatience));
    const auto batches = read_all(agent.agent(), "s");
    ASSERT_GE(batches.size(), 2U);
    for (std::size_t i = batches.size() - 2; i < batches.size(); ++i) {
      EXPECT_TRUE(batches[i]->column(0)->Equals(as_arrow(heap)));
      EXPECT_TRUE(batches[i]->column(1)->Equals(as_arrow(y)));
    }
  }
  EXPECT_TRUE(stream->close());
}

INSTANTIATE_TEST_SUITE_P(All, Strategies,
                         testing::Values(Strategy::kArrays, Strategy::kRecordBatch, Strategy::kIpc,
                                         Strategy::kIpcPageAligned, Strategy::kCAbi),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST(Raw, BuffersOfAnySizeBecomeRows) {
  ThreadAgent agent;
  Session session = agent.open();
  auto stream = Stream::open(session, {.name = "raw", .strategy = Strategy::kRaw}, {});
  ASSERT_TRUE(stream) << stream.status().message();
  const std::string a = "hello";
  const std::string b;
  const std::string c(100'000, 'x');
  const std::vector<std::span<const std::byte>> buffers{std::as_bytes(std::span(a)), std::as_bytes(std::span(b)),
                                                        std::as_bytes(std::span(c))};
  auto ticket = stream->post_raw(buffers);
  ASSERT_TRUE(ticket) << ticket.status().message();
  ASSERT_TRUE(ticket->wait(kPatience));
  const auto batches = read_all(agent.agent(), "raw");
  ASSERT_EQ(batches.size(), 1U);
  const auto& column = static_cast<const arrow::LargeBinaryArray&>(*batches[0]->column(0));
  ASSERT_EQ(column.length(), 3);
  EXPECT_EQ(column.GetView(0), a);
  EXPECT_EQ(column.GetView(1), b);
  EXPECT_EQ(column.GetView(2), c);
  auto wrong = stream->post({Column(std::span<const double>())});
  EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
}

TEST(Raw, MoreUnregisteredBuffersThanSixteenBitsCount_ExpectARowEach) {
  ThreadAgent agent;
  Session session = agent.open();
  auto stream = Stream::open(session, {.name = "raw", .strategy = Strategy::kRaw}, {});
  ASSERT_TRUE(stream) << stream.status().message();
  constexpr std::size_t kBuffers = 70'000;
  const std::vector<std::uint32_t> words = [] {
    std::vector<std::uint32_t> v(kBuffers);
    std::iota(v.begin(), v.end(), 0U);
    return v;
  }();
  std::vector<std::span<const std::byte>> buffers;
  for (const std::uint32_t& word : words) buffers.push_back(std::as_bytes(std::span(&word, 1)));
  for (int again = 0; again < 2; ++again) {
    auto ticket = stream->post_raw(buffers);
    ASSERT_TRUE(ticket) << ticket.status().message();
    const Status s = ticket->wait(kPatience);
    ASSERT_TRUE(s) << s.message();
  }
  const auto batches = read_all(agent.agent(), "raw");
  ASSERT_EQ(batches.size(), 2U);
  ASSERT_EQ(batches[1]->num_rows(), static_cast<std::int64_t>(kBuffers));
  const auto& column = static_cast<const arrow::LargeBinaryArray&>(*batches[1]->column(0));
  std::uint32_t last = 0;
  std::memcpy(&last, column.GetView(kBuffers - 1).data(), sizeof last);
  EXPECT_EQ(last, kBuffers - 1);
}

TEST(Tickets, ManyInFlightKeepTheirOrder) {
  ThreadAgent agent;
  Session session = agent.open();
  auto stream = Stream::open(session, {.name = "many", .retention = {.frames = 0}}, {field<double>("x")});
  ASSERT_TRUE(stream);
  std::vector<std::vector<double>> data;
  for (int i = 0; i < 200; ++i) data.push_back(ramp(static_cast<std::size_t>(1 + (i * 7919) % 50'000), i));
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto ticket = stream->post({Column(data[i])}, {.tag = i, .wait_for_ticket = kPatience});
    ASSERT_TRUE(ticket) << ticket.status().message();
    tickets.push_back(*ticket);
  }
  ASSERT_TRUE(session.drain(kPatience));
  EXPECT_EQ(session.in_flight(), 0U);
  const auto batches = read_all(agent.agent(), "many");
  ASSERT_EQ(batches.size(), data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    EXPECT_TRUE(tickets[i].ready());
    EXPECT_EQ(batches[i]->num_rows(), static_cast<std::int64_t>(data[i].size()));
    EXPECT_TRUE(batches[i]->column(0)->Equals(as_arrow(data[i]))) << i;
  }
}

TEST(Metadata, IsRightWhenMemoryIsReusedForOtherShapesAndStreams) {
  // One frame for each stream, so that the few extents of this size class alternate between frames of equal and
  // different shapes.
  ThreadAgent agent;
  Session session = agent.open();
  const Retention one{.frames = 1};
  auto ipc = Stream::open(session, {.name = "ipc", .strategy = Strategy::kIpcPageAligned, .retention = one},
                          {field<double>("x", true)});
  auto raw = Stream::open(session, {.name = "raw", .strategy = Strategy::kRaw, .retention = one}, {});
  auto pair = Stream::open(session, {.name = "pair", .strategy = Strategy::kIpcPageAligned, .retention = one},
                           {field<float>("a"), field<float>("b")});
  ASSERT_TRUE(ipc && raw && pair);
  const std::string junk(16384, '\xff');
  const std::vector<std::span<const std::byte>> junk_buffers{std::as_bytes(std::span(junk))};
  const std::vector<std::uint8_t> validity(512, 0x55);
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::size_t rows = 2000 + random() % 3;
    const auto x = ramp(rows, round);
    switch (random() % 4) {
      case 0:
        ASSERT_TRUE(raw->post_raw(junk_buffers)->wait(kPatience));
        break;
      case 1: {
        const std::vector<float> a(rows, 1.5F);
        ASSERT_TRUE(pair->post({Column(a), Column(a)})->wait(kPatience));
        break;
      }
      case 2: {
        ASSERT_TRUE(ipc->post({Column(x).with_validity(validity.data())})->wait(kPatience));
        const auto batches = read_all(agent.agent(), "ipc");
        ASSERT_EQ(batches.size(), 1U);
        ASSERT_EQ(batches[0]->column(0)->null_count(), static_cast<std::int64_t>(rows / 2)) << round;
        break;
      }
      default: {
        ASSERT_TRUE(ipc->post({Column(x)})->wait(kPatience));
        const auto batches = read_all(agent.agent(), "ipc");
        ASSERT_EQ(batches.size(), 1U);
        ASSERT_TRUE(batches[0]->column(0)->Equals(as_arrow(x))) << round;
      }
    }
  }
}

TEST(Tickets, BackPressureIsWouldBlockAndNothingIsLost) {
  ThreadAgent agent;
  SessionOptions options = agent.options();
  options.max_tickets = 4;
  auto session = Session::open(options);
  ASSERT_TRUE(session);
  // Without a reader, the lossless stream takes two frames, and then offloads wait.
  auto stream =
      Stream::open(*session, {.name = "full", .retention = {.frames = 2, .when_full = Retention::WhenFull::kWait}},
                   {field<double>("x")});
  ASSERT_TRUE(stream);
  const auto x = ramp(1000, 0);
  int posted = 0;
  Result<Ticket> ticket = Status(StatusCode::kInternal, "");
  const Deadline deadline(kPatience);
  while (!deadline.passed()) {
    ticket = stream->post({Column(x)});
    if (ticket)
      ++posted;
    else if (posted == 6)
      break;
  }
  EXPECT_EQ(posted, 6);
  EXPECT_TRUE(ticket.status().is_would_block());
  EXPECT_EQ(session->in_flight(), 4U);
  std::size_t read = 0;
  const Deadline reading(60s);
  while (session->in_flight() != 0 && !reading.passed()) read += read_all(agent.agent(), "full").size();
  EXPECT_EQ(session->in_flight(), 0U);
  EXPECT_GE(read, 4U);
}

TEST(Budget, TooLargeIsRefusedFullWaitsUntilTheDeadline) {
  AgentConfig config;
  config.budget = 8 << 20;
  ThreadAgent agent(config);
  Session session = agent.open();
  auto stream =
      Stream::open(session, {.name = "b", .retention = {.frames = 0, .when_full = Retention::WhenFull::kWait}},
                   {field<double>("x")});
  ASSERT_TRUE(stream);
  const auto huge = ramp((16 << 20) / 8, 0);
  auto ticket = stream->post({Column(huge)});
  ASSERT_TRUE(ticket);
  Status refused = ticket->wait(kPatience);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("budget of 8388608 bytes"), std::string::npos) << refused.message();
  auto raw = Stream::open(session, {.name = "r", .strategy = Strategy::kRaw}, {});
  ASSERT_TRUE(raw);
  const std::vector<std::span<const std::byte>> buffers{std::as_bytes(std::span(huge))};
  ticket = raw->post_raw(buffers);
  ASSERT_TRUE(ticket);
  refused = ticket->wait(kPatience);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("budget of 8388608 bytes"), std::string::npos) << refused.message();
  const auto half = ramp((4 << 20) / 8, 0);
  ASSERT_TRUE(stream->post({Column(half)})->wait(kPatience));
  ticket = stream->post({Column(half)}, {.deadline = 100ms});
  ASSERT_TRUE(ticket);
  EXPECT_EQ(ticket->wait(kPatience).code(), StatusCode::kCancelled);
  // With a retention rule that removes old frames, the same offloads never wait.
  auto evicting = Stream::open(session, {.name = "e", .retention = {.frames = 0}}, {field<double>("x")});
  ASSERT_TRUE(evicting);
  read_all(agent.agent(), "b");
  const auto quarter = ramp((1 << 20) / 8, 0);
  for (int i = 0; i < 20; ++i) {
    const Status s = evicting->post({Column(quarter)})->wait(kPatience);
    ASSERT_TRUE(s) << i << s.message();
  }
  EXPECT_EQ(Stream::open(session, {.name = "x", .announced_bytes = {1 << 30}}, {field<double>("x")}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(Streams, OneWriterANameUntilItCloses) {
  ThreadAgent agent;
  Session first = agent.open();
  Session second = agent.open();
  auto stream = Stream::open(first, {.name = "n"}, {field<double>("x")});
  ASSERT_TRUE(stream);
  EXPECT_EQ(Stream::open(second, {.name = "n"}, {field<double>("x")}).status().code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(stream->close());
  EXPECT_EQ(stream->post({Column(std::span<const double>())}).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Stream::open(second, {.name = "n"}, {field<double>("x")}));
  EXPECT_EQ(Stream::open(second, {.name = "u"}, {field("u", "+ud:0")}).status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(Stream::open(second, {.name = "a/b"}, {field<double>("x")}).status().code(), StatusCode::kInvalidArgument);
}

TEST(Streams, CloseWaitsForWhatWasPosted) {
  ThreadAgent agent;
  Session session = agent.open();
  for (int round = 0; round < 50; ++round) {
    auto stream = Stream::open(session, {.name = "c" + std::to_string(round)}, {field<double>("x")});
    ASSERT_TRUE(stream);
    const auto x = ramp(1000, round);
    std::vector<Ticket> tickets;
    for (int i = 0; i < 3; ++i) tickets.push_back(*stream->post({Column(x)}));
    ASSERT_TRUE(stream->close());
    for (const Ticket& t : tickets) {
      const Status s = t.wait(kPatience);
      ASSERT_TRUE(s) << s.message();
    }
    ASSERT_EQ(read_all(agent.agent(), stream->name()).size(), 3U);
  }
}

TEST(Columns, WrongOnesAreRefusedAtTheCall) {
  ThreadAgent agent;
  Session session = agent.open();
  auto stream = Stream::open(session, {.name = "w"}, {field<double>("x"), field<double>("y")});
  ASSERT_TRUE(stream);
  const auto x = ramp(10, 0);
  const auto y = ramp(11, 0);
  EXPECT_EQ(stream->post({Column(x)}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(stream->post({Column(x), Column(y)}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(stream->post({Column(x), Column(x), Column(x)}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(stream->post({Column(x), Column(x)})->wait(kPatience));
}

TEST(Regions, UnregisterTooEarlyIsRefused) {
  ThreadAgent agent;
  Session session = agent.open();
  auto stream =
      Stream::open(session, {.name = "r", .retention = {.frames = 1, .when_full = Retention::WhenFull::kWait}},
                   {field<double>("x")});
  ASSERT_TRUE(stream);
  const auto x = ramp(1000, 0);
  auto region = session.register_memory(x.data(), x.size() * 8);
  ASSERT_TRUE(region);
  ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  auto waiting = stream->post({Column(x)});  // the stream is full
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->wait(20ms).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(region->unregister().code(), StatusCode::kFailedPrecondition);
  read_all(agent.agent(), "r");
  ASSERT_TRUE(waiting->wait(kPatience));
  EXPECT_TRUE(region->unregister());
  EXPECT_EQ(region->unregister().code(), StatusCode::kFailedPrecondition);
  // The memory is unregistered again, so each offload of it registers it temporarily.
  read_all(agent.agent(), "r");
  EXPECT_TRUE(stream->post({Column(x)})->wait(kPatience));
}

/// Blocks an idle thread of this process in a signal handler.
class HungThread {
 public:
  explicit HungThread(const std::string& name) {
    EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0);
    struct sigaction action{};
    action.sa_handler = [](int) {
      char byte{};
      held_ = true;
      while (read(pipe_[0], &byte, 1) < 0) {
      }
    };
    sigaction(SIGUSR2, &action, &before_);
    EXPECT_TRUE(eventually([&] { return waiting(name); })) << name;
    EXPECT_EQ(syscall(SYS_tgkill, getpid(), thread_, SIGUSR2), 0);
    EXPECT_TRUE(eventually([] { return held_.load(); }));
  }
  void release() { EXPECT_EQ(write(pipe_[1], "x", 1), 1); }
  ~HungThread() {
    close(pipe_[1]);  // the handler returns, released or not
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(task()) || !in_handler(); }));
    close(pipe_[0]);
    sigaction(SIGUSR2, &before_, nullptr);
    held_ = false;
  }
  HungThread(const HungThread&) = delete;
  HungThread& operator=(const HungThread&) = delete;

 private:
  [[nodiscard]] std::string task() const { return "/proc/self/task/" + std::to_string(thread_); }
  /// Whether a thread with that name sleeps in futex(2), as on a condition variable.
  bool waiting(const std::string& name) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string comm, call;
      std::getline(std::ifstream(entry.path() / "comm"), comm);
      if (comm != name) continue;
      thread_ = std::stoi(entry.path().filename());
      std::getline(std::ifstream(entry.path() / "syscall"), call);
      return call.starts_with(std::to_string(SYS_futex) + " ");
    }
    return false;
  }
  [[nodiscard]] bool in_handler() const {
    std::string call;
    std::getline(std::ifstream(task() + "/syscall"), call);
    return call.starts_with(std::to_string(SYS_read) + " ");
  }
  static inline std::array<int, 2> pipe_{};
  static inline std::atomic<bool> held_{false};
  struct sigaction before_{};
  int thread_ = 0;
};

TEST(Sinks, FilesAppearComplete) {
  ThreadAgent agent;
  const auto directory = *TemporaryDirectory::create("test");
  Session session = agent.open();
  auto stream =
      Stream::open(session, {.name = "f", .sink = {Sink::Format::kArrow, directory.file("")}}, {field<double>("x")});
  ASSERT_TRUE(stream);
  const auto x = ramp(100, 0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(directory.file("f-00000002.arrow")); }));
}

TEST(Sinks, OutsideTheAgentsRoot_ExpectRefusalAtOpen) {
  const auto directory = *TemporaryDirectory::create("test");
  AgentConfig config;
  config.services["sink.root"] = directory.file("");
  ThreadAgent agent(config);
  Session session = agent.open();
  const auto open = [&](const char* name, const std::string& where) {
    return Stream::open(session, {.name = name, .sink = {Sink::Format::kArrow, where}}, {field<double>("x")});
  };
  EXPECT_EQ(open("out", "/tmp").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(open("up", directory.file("..")).status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(open("here", "runs/1").status().code(), StatusCode::kPermissionDenied) << "starts at this process";
  auto stream = open("below", directory.file("runs/1"));
  ASSERT_TRUE(stream) << stream.status().message();
  const auto x = ramp(10, 0);
  ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(directory.file("runs/1/below-00000000.arrow")); }));
}

TEST(Sinks, RelativeDirectory_ExpectItToStartWhereTheClientIs) {
  const auto here = *TemporaryDirectory::create("test");
  const testing_support::AgentProcess agent;  // stays where this process is now
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(here.path());
  auto session = Session::open(agent.options());
  ASSERT_TRUE(session) << session.status().message();
  auto stream = Stream::open(*session, {.name = "f", .sink = {Sink::Format::kArrow, "frames"}}, {field<double>("x")});
  std::filesystem::current_path(before);
  ASSERT_TRUE(stream) << stream.status().message();
  const auto x = ramp(10, 0);
  ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(here.file("frames/f-00000000.arrow")); }));
  EXPECT_FALSE(std::filesystem::exists("frames"));
}

TEST(Sinks, RelativeDirectoryOverTheNetwork_ExpectRefusalThatSaysWhatToGive) {
  AgentConfig config;
  config.listen = "127.0.0.1:0";
  ThreadAgent agent(config);
  SessionOptions options;
  options.agent = agent.agent().address();
  options.token = agent.agent().token();
  options.transport = Transport::kTcp;
  auto session = Session::open(options);
  ASSERT_TRUE(session) << session.status().message();
  const Status s =
      Stream::open(*session, {.name = "f", .sink = {Sink::Format::kArrow, "frames"}}, {field<double>("x")}).status();
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(s.message().find("complete path"), std::string::npos) << s.message();
}

TEST(Sinks, AgentOfAGroupWithoutARoot_ExpectNoFiles) {
  const auto directory = *TemporaryDirectory::create("test");
  AgentConfig config;
  config.group = getgrgid(getgid())->gr_name;
  ThreadAgent agent(config);
  Session session = agent.open();
  const Status s =
      Stream::open(session, {.name = "f", .sink = {Sink::Format::kArrow, directory.file("")}}, {field<double>("x")})
          .status();
  EXPECT_EQ(s.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(s.message().find("sink.root"), std::string::npos) << s.message();
}

TEST(Threads, AllButTheDataThread_ExpectLowerPriority) {
  ThreadAgent agent;
  // Each thread sets its own name and priority when it first runs, which may be later than this.
  const auto helpers = [](bool lowered) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(entry.path() / "comm"), name);
      const bool low = getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(entry.path().filename()))) > 0;
      if (name.starts_with("wherry-") && (low || !lowered)) ++count;
    }
    return count;
  };
  EXPECT_TRUE(eventually([&] { return helpers(true) >= 3; }));  // file sink, local readers, metrics
  EXPECT_TRUE(eventually([&] { return helpers(true) == helpers(false); }));
}

TEST(Sinks, ASlowDiskHoldsPublishingBackAndLosesNothing) {
  constexpr int kFrames = 150;
  constexpr int kQueue = 64;  // frames of one stream that may wait for the disk (kSinkQueue)
  ThreadAgent agent;
  const auto directory = *TemporaryDirectory::create("test");
  Session session = agent.open();
  auto first = Stream::open(session, {.name = "first", .sink = {Sink::Format::kArrow, directory.file("")}},
                            {field<double>("x")});
  auto behind = Stream::open(session, {.name = "behind", .sink = {Sink::Format::kArrow, directory.file("")}},
                             {field<double>("x")});
  ASSERT_TRUE(first && behind);
  HungThread disk("wherry-sink");
  const auto x = ramp(10, 0);
  ASSERT_TRUE(first->post({Column(x)})->wait(kPatience));
  std::vector<Ticket> tickets;
  for (int i = 0; i < kFrames; ++i) {
    auto ticket = behind->post({Column(x)}, {.wait_for_ticket = kPatience});
    ASSERT_TRUE(ticket) << ticket.status().message();
    tickets.push_back(*ticket);
  }
  const auto ready = [&] {
    return std::count_if(tickets.begin(), tickets.end(), [](const Ticket& t) { return t.ready(); });
  };
  EXPECT_TRUE(eventually([&] { return ready() >= kQueue; }));
  // Streams that do not use the disk continue meanwhile.
  auto other = Stream::open(session, {.name = "other"}, {field<double>("x")});
  ASSERT_TRUE(other);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(other->post({Column(x)})->wait(kPatience));
  // Room is checked before an offload's transfer, so concurrent offloads may exceed the limit by up to fifteen.
  EXPECT_LT(ready(), kQueue + 16) << "while the disk hung at the first file";
  disk.release();
  for (const Ticket& t : tickets) {
    const Status s = t.wait(kPatience);
    ASSERT_TRUE(s) << s.message();
  }
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(directory.file("behind-00000149.arrow")); }));
  const auto files = std::filesystem::directory_iterator(directory.file(""));
  EXPECT_EQ(std::distance(begin(files), end(files)), kFrames + 1) << "one a frame";
}

TEST(Shutdown, ClientsAreToldAndTheSessionFileGoes) {
  auto agent = std::make_unique<ThreadAgent>();
  Session session = agent->open();
  auto stream =
      Stream::open(session, {.name = "s", .retention = {.frames = 1, .when_full = Retention::WhenFull::kWait}},
                   {field<double>("x")});
  const auto x = ramp(10, 0);
  ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  auto waiting = stream->post({Column(x)});
  const std::string file = agent->session_file();
  std::thread stopper([&] { agent->stop(); });
  const Status s = waiting->wait(kPatience);
  stopper.join();
  EXPECT_EQ(s.code(), StatusCode::kUnavailable) << s.message();
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(stream->post({Column(x)}).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wherry
