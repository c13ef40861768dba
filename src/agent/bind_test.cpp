// SPDX-License-Identifier: Apache-2.0
// Tests steps against an agent: columns that are bound once and posted repeatedly.
#include <sys/mman.h>

#include <algorithm>
#include <numeric>

#include "agent/flight_reading.hpp"
#include "agent/process_testing.hpp"
#include "agent/testing.hpp"
#include "session/session_core.hpp"

namespace wherry {
namespace {

using testing_support::eventually;
using testing_support::kPatience;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;

const Retention kLossless{.frames = 1, .when_full = Retention::WhenFull::kWait};

void expect_ok(const Status& s) { EXPECT_TRUE(s) << s.message(); }
void expect(const Status& s, StatusCode code, const std::string& words) {
  EXPECT_EQ(s.code(), code) << s.message();
  EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
}

bool mapped(const void* page) {
  unsigned char in_core = 0;
  return mincore(const_cast<void*>(page), 1, &in_core) == 0;
}

/// Runs the tests over each transport of this machine.
class Steps : public testing::TestWithParam<Transport> {
 protected:
  static AgentConfig config() {
    AgentConfig c;
    c.transport = GetParam();
    return c;
  }
  std::vector<testing_support::ReadFrame> read(const std::string& stream) {
    return testing_support::read_frames(agent_.agent().announced().flight, agent_.agent().token(), stream);
  }
  ThreadAgent agent_{config()};
  Session session_ = agent_.open();
};

INSTANTIATE_TEST_SUITE_P(Transports, Steps, testing::Values(Transport::kShm, Transport::kTcp),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(Steps, PostedWithOtherValuesEachTime_ExpectEachFrameToHoldThem) {
  constexpr int kSteps = 5;
  auto memory = session_.allocate(1000 * sizeof(double));
  ASSERT_TRUE(memory);
  std::vector<double> x(1000);  // nobody registered it
  std::vector<float> y(3 * 1000);
  auto region = session_.register_memory(y.data(), y.size() * sizeof(float));
  auto stream = Stream::open(session_, {.name = "s"},
                             {field<double>("x"), fixed_size_list("y", 3, field<float>("item")), field<double>("z")});
  ASSERT_TRUE(stream);
  auto step = stream->bind({Column(x), Column::fixed_list<3>(y), Column(memory->as<double>())});
  ASSERT_TRUE(step) << step.status().message();
  for (int i = 0; i < kSteps; ++i) {
    std::iota(x.begin(), x.end(), i);
    std::iota(y.begin(), y.end(), static_cast<float>(10 * i));
    std::ranges::fill(memory->as<double>(), -i);
    auto ticket = step->post(static_cast<std::uint64_t>(100 + i));
    ASSERT_TRUE(ticket) << ticket.status().message();
    expect_ok(ticket->wait(kPatience));
    EXPECT_EQ(ticket->sequence(), static_cast<std::uint64_t>(i));
  }
  EXPECT_EQ(step->in_flight(), 0U);
  const auto frames = read("s");
  ASSERT_EQ(frames.size(), static_cast<std::size_t>(kSteps));
  for (int i = 0; i < kSteps; ++i) {
    const auto& frame = frames[static_cast<std::size_t>(i)];
    EXPECT_EQ(frame.tag, static_cast<std::uint64_t>(100 + i));
    ASSERT_EQ(frame.batch->num_rows(), 1000);
    const auto& xs = static_cast<const arrow::DoubleArray&>(*frame.batch->column(0));
    const auto& ys = static_cast<const arrow::FixedSizeListArray&>(*frame.batch->column(1));
    const auto& items = static_cast<const arrow::FloatArray&>(*ys.values());
    const auto& zs = static_cast<const arrow::DoubleArray&>(*frame.batch->column(2));
    for (int row = 0; row < 1000; ++row) {
      ASSERT_EQ(xs.Value(row), i + row);
      ASSERT_EQ(items.Value(3 * row + 2), static_cast<float>(10 * i + 3 * row + 2));
      ASSERT_EQ(zs.Value(row), -i);
    }
  }
}

TEST_P(Steps, TwoOfOneStreamBetweenOrdinaryPosts_ExpectAllInOrder) {
  const std::vector<double> a(10, 1.0), b(20, 2.0), c(30, 3.0);
  auto stream = Stream::open(session_, {.name = "s"}, {field<double>("x")});
  ASSERT_TRUE(stream);
  auto first = stream->bind({Column(a)});
  auto second = stream->bind({Column(b)});
  ASSERT_TRUE(first && second);
  std::vector<Ticket> tickets;
  for (std::uint64_t i = 0; i < 4; ++i) {
    tickets.push_back(*first->post(3 * i));
    tickets.push_back(*stream->post({Column(c)}, {.tag = 3 * i + 1}));
    tickets.push_back(*second->post({.tag = 3 * i + 2, .deadline = 1min}));
  }
  for (const Ticket& ticket : tickets) expect_ok(ticket.wait(kPatience));
  const auto frames = read("s");
  ASSERT_EQ(frames.size(), 12U);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].tag, i);
    EXPECT_EQ(frames[i].batch->num_rows(), i % 3 == 0 ? 10 : i % 3 == 1 ? 30 : 20);
  }
}

TEST_P(Steps, RawBuffers_ExpectThemAsRows) {
  auto stream = Stream::open(session_, {.name = "r", .strategy = Strategy::kRaw}, {});
  ASSERT_TRUE(stream);
  std::string text = "first";
  const std::string other(5000, 'y');
  const std::vector<std::span<const std::byte>> buffers{std::as_bytes(std::span(text)),
                                                        std::as_bytes(std::span(other))};
  expect(stream->bind_raw({}).status(), StatusCode::kInvalidArgument, "at least one buffer");
  expect(stream->bind({Column(std::span<const double>())}).status(), StatusCode::kInvalidArgument, "bind_raw");
  auto step = stream->bind_raw(buffers);
  ASSERT_TRUE(step) << step.status().message();
  expect_ok(step->post(1)->wait(kPatience));
  std::ranges::copy(std::string("later"), text.begin());
  expect_ok(step->post(2)->wait(kPatience));
  const auto frames = read("r");
  ASSERT_EQ(frames.size(), 2U);
  const auto& rows = static_cast<const arrow::LargeBinaryArray&>(*frames[1].batch->column(0));
  EXPECT_EQ(rows.GetView(0), "later");
  EXPECT_EQ(rows.GetView(1), other);
}

TEST_P(Steps, ManyBoundAndReleased_ExpectTheirMemoryToBeForgotten) {
  auto stream = Stream::open(session_, {.name = "s"}, {field<double>("x")});
  ASSERT_TRUE(stream);
  for (int i = 0; i < 300; ++i) {
    const std::vector<double> x(100, i);
    auto step = stream->bind({Column(x)});
    ASSERT_TRUE(step) << step.status().message();
    for (int k = 0; k < 2; ++k) expect_ok(step->post()->wait(kPatience));
    step->release();
    step->release();
    expect(step->post().status(), StatusCode::kFailedPrecondition, "bind it again");
  }
  EXPECT_EQ(read("s").size(), 16U);
}

TEST_P(Steps, StreamOrSessionEnds_ExpectPostsToSaySo) {
  const std::vector<double> x(100);
  std::optional<Step> step;
  {
    auto stream = Stream::open(session_, {.name = "s"}, {field<double>("x")});
    ASSERT_TRUE(stream);
    step = *stream->bind({Column(x)});
    expect_ok(step->post()->wait(kPatience));
    expect(stream->bind({Column(x), Column(x)}).status(), StatusCode::kInvalidArgument, "column");
    expect_ok(stream->close());
    expect(stream->bind({Column(x)}).status(), StatusCode::kFailedPrecondition, "is closed");
    expect(step->post().status(), StatusCode::kFailedPrecondition, "stream 's' is closed");
  }
  expect(step->post().status(), StatusCode::kFailedPrecondition, "stream 's' is closed");
  auto stream = Stream::open(session_, {.name = "s"}, {field<double>("x")});
  auto other = stream->bind({Column(x)});
  ASSERT_TRUE(other);
  expect_ok(other->post()->wait(kPatience));
  expect_ok(session_.close());
  expect(other->post().status(), StatusCode::kFailedPrecondition, "the session was closed");
  expect(stream->bind({Column(x)}).status(), StatusCode::kFailedPrecondition, "the session was closed");
}

TEST_P(Steps, ReleasedWhileInFlight_ExpectTheOffloadsToArrive) {
  auto stream = Stream::open(session_, {.name = "s", .retention = kLossless}, {field<double>("x")});
  ASSERT_TRUE(stream);
  const std::vector<double> x(1000, 7.0);
  auto step = stream->bind({Column(x)});
  ASSERT_TRUE(step);
  auto arrived = step->post(1);
  expect_ok(arrived->wait(kPatience));
  auto waiting = step->post(2);  // for a reader
  ASSERT_TRUE(waiting);
  EXPECT_EQ(step->in_flight(), 1U);
  step->release();
  EXPECT_FALSE(waiting->ready());
  ASSERT_EQ(read("s").size(), 1U);
  expect_ok(waiting->wait(kPatience));
  ASSERT_EQ(read("s").size(), 1U);
}

TEST(Step, MemoryThatItReads_ExpectItKeptUntilTheStepGoes) {
  ThreadAgent agent;
  Session session = agent.open();
  auto stream = Stream::open(session, {.name = "s"}, {field<double>("x"), field<double>("y")});
  ASSERT_TRUE(stream);
  std::optional<Memory> memory = *session.allocate(64 << 10);
  std::byte* const data = memory->bytes().data();
  std::vector<double> x(8 << 10, 3.0);
  auto region = session.register_memory(x.data(), x.size() * sizeof(double));
  ASSERT_TRUE(region);
  auto step = stream->bind({Column(memory->as<double>()), Column(x)});
  ASSERT_TRUE(step);
  expect_ok(step->post()->wait(kPatience));
  expect(region->unregister(), StatusCode::kFailedPrecondition, "release the step first");
  memory.reset();  // does not wait for the step
  EXPECT_TRUE(mapped(data));
  expect_ok(step->post()->wait(kPatience));
  step->release();
  EXPECT_FALSE(mapped(data));
  expect_ok(region->unregister());
  expect_ok(stream->post({Column(x), Column(x)})->wait(kPatience));
}

TEST(Step, UnmappedBehindItsBack_ExpectASourceFaultAndTheNextToArrive) {
  testing_support::AgentProcess agent;
  auto session = Session::open(agent.options());
  ASSERT_TRUE(session);
  auto stream = Stream::open(*session, {.name = "s"}, {field<double>("x")});
  ASSERT_TRUE(stream);
  constexpr std::size_t kBytes = 1 << 20;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto step = stream->bind({Column(std::span(static_cast<const double*>(memory), kBytes / sizeof(double)))});
  ASSERT_TRUE(step);
  expect_ok(step->post()->wait(kPatience));
  ASSERT_EQ(mprotect(memory, kBytes, PROT_NONE), 0);  // nothing else comes to be there, as after munmap
  expect(step->post()->wait(kPatience), StatusCode::kSourceFault, "buffer 0");
  const std::vector<double> x(100);
  expect_ok(stream->post({Column(x)})->wait(kPatience));
  ASSERT_EQ(mprotect(memory, kBytes, PROT_READ), 0);
  expect_ok(step->post()->wait(kPatience));
  step->release();
  munmap(memory, kBytes);
}

TEST(Step, AgentDies_ExpectUnavailable) {
  testing_support::AgentProcess agent;
  auto session = Session::open(agent.options());
  ASSERT_TRUE(session);
  auto stream = Stream::open(*session, {.name = "s"}, {field<double>("x")});
  const std::vector<double> x(100);
  auto step = stream->bind({Column(x)});
  ASSERT_TRUE(step);
  expect_ok(step->post()->wait(kPatience));
  agent.child().kill(SIGKILL);
  (void)agent.child().wait();
  auto ticket = step->post();
  const Status s = ticket ? ticket->wait(kPatience) : ticket.status();
  EXPECT_EQ(s.code(), StatusCode::kUnavailable) << s.message();
  EXPECT_EQ(step->post().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(stream->bind({Column(x)}).status().code(), StatusCode::kUnavailable);
}

TEST(Step, MoreInFlightThanTickets_ExpectTheStreamsRules) {
  ThreadAgent agent;
  SessionOptions options = agent.options();
  options.max_tickets = 2;
  auto session = Session::open(options);
  ASSERT_TRUE(session);
  auto stream = Stream::open(*session, {.name = "s", .retention = kLossless}, {field<double>("x")});
  const std::vector<double> x(100);
  auto step = stream->bind({Column(x)});
  ASSERT_TRUE(step);
  expect_ok(step->post()->wait(kPatience));
  ASSERT_TRUE(step->post());
  ASSERT_TRUE(step->post());
  EXPECT_TRUE(step->post().status().is_would_block());
  EXPECT_TRUE(step->post({.wait_for_ticket = 5ms}).status().is_would_block());
  EXPECT_EQ(step->in_flight(), 2U);
}

}  // namespace
}  // namespace wherry
