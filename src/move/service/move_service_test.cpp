// SPDX-License-Identifier: Apache-2.0
// The service half alone: messages as a client would send them, real one-sided gets from this process's own memory,
// over both ways that there are on one machine (UCX's gets, and vectored reads), and completions that the test looks
// at.
#include "base/testing.hpp"
#include "move/service/offload_engine.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "move/service/announced.hpp"

namespace wherry::move {
namespace {

using namespace std::chrono_literals;
using testing_support::kPatience;
using WhenFull = Retention::WhenFull;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Memory that a client announces as one region.
class Source {
 public:
  Source(fabric::Context& context, std::size_t bytes, std::uint32_t id) : bytes_(bytes), id_(id) {
    base_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(base_, static_cast<int>(id), bytes);
    region_ = *context.register_memory(base_, bytes);
    EXPECT_TRUE(region_.pack_key(key_));
  }
  ~Source() { munmap(base_, bytes_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  /// As if it was unmapped, but that nothing else is mapped there meanwhile.
  void forbid() { EXPECT_EQ(mprotect(base_, bytes_, PROT_NONE), 0); }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(region_.data()); }
  [[nodiscard]] BufferRef ref() const { return ref(0, bytes_); }
  [[nodiscard]] BufferRef ref(std::size_t from, std::size_t bytes) const {
    return {address() + from, bytes, id_, 0, 0};
  }
  [[nodiscard]] NewRegion news() const { return {id_, address(), bytes_, key_}; }

 private:
  std::size_t bytes_;
  std::uint32_t id_;
  void* base_ = nullptr;
  fabric::Region region_;
  Bytes key_;
};

/// The agent's side of one client that lives in this process.
class Client final : public session::Client {
 public:
  Client(std::uint64_t id, fabric::Worker& agent, const fabric::Region& arena, bool vectored)
      : context(*fabric::Context::create(Transport::kShm)),
        own_(*fabric::Worker::create(context)),
        id_(id),
        agent_(agent),
        arena_(arena),
        endpoint_(*fabric::Endpoint::connect(agent, own_->address())) {
    if (vectored) reader_.emplace(getpid());
  }
  [[nodiscard]] std::uint64_t id() const noexcept override { return id_; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::uint32_t pid() const noexcept override { return static_cast<std::uint32_t>(getpid()); }
  [[nodiscard]] fabric::Endpoint& endpoint() noexcept override { return endpoint_; }
  [[nodiscard]] fabric::Worker& worker() noexcept override { return agent_; }
  [[nodiscard]] const fabric::Region& arena_region() const noexcept override { return arena_; }
  [[nodiscard]] fabric::ProcessReader* reader() noexcept override { return reader_ ? &*reader_ : nullptr; }
  [[nodiscard]] std::uint32_t max_tickets() const noexcept override { return 4096; }
  [[nodiscard]] std::uint32_t epoch() const noexcept override { return epoch_; }
  void complete(std::uint64_t ticket, StatusCode code, const session::CompletionRecord& fields) noexcept override {
    EXPECT_TRUE(outcomes.emplace(ticket, Outcome{code, fields.detail, fields.sequence}).second) << "completed twice";
    deepest = std::max(deepest, ++depth_);
    if (during_complete) during_complete();
    --depth_;
  }
  void fail(Status why) noexcept override { failure = std::move(why); }
  bool reconnect() override {
    endpoint_ = fabric::Endpoint();
    ++epoch_;
    endpoint_ = *fabric::Endpoint::connect(agent_, own_->address());
    return true;
  }
  void progress() { own_->progress(); }

  struct Outcome {
    StatusCode code;
    std::uint64_t detail, sequence;
  };
  std::map<std::uint64_t, Outcome> outcomes;
  std::function<void()> during_complete;  ///< what UCX does inside a put: it delivers messages, say
  int deepest = 0;                        ///< calls of complete() inside one another
  Status failure;
  std::shared_ptr<fabric::Context> context;

 private:
  std::unique_ptr<fabric::Worker> own_;
  std::uint64_t id_;
  fabric::Worker& agent_;
  const fabric::Region& arena_;
  fabric::Endpoint endpoint_;
  std::string name_ = "test";
  std::uint32_t epoch_ = 1;
  std::optional<fabric::ProcessReader> reader_;
  int depth_ = 0;
};

class OffloadEngineTest : public testing::Test {
 protected:
  virtual bool vectored() const { return true; }
  void make(std::size_t budget, MoveOptions options = {}) {
    (void)init_log("off", "");
    arena_ = *Arena::create(budget);
    context_ = *fabric::Context::create(Transport::kShm);
    worker_ = *fabric::Worker::create(context_);
    arena_region_ = *context_->register_memory(arena_->memory().data(), arena_->memory().size());
    service_ = std::make_unique<OffloadEngine>(options, arena_, catalogue_);
  }
  void TearDown() override {
    for (auto& client : clients_) leave(*client);
  }
  Client& join() {
    clients_.push_back(std::make_unique<Client>(clients_.size() + 1, *worker_, arena_region_, vectored()));
    service_->on_session_start(*clients_.back());
    return *clients_.back();
  }
  void leave(Client& client) { service_->on_session_end(client); }
  Result<std::uint32_t> open(Client& client, const StreamOptions& options, const Schema& schema) {
    auto answer = service_->on_request(client, "open", encode(OpenRequest{options, schema}));
    if (!answer) return answer.status();
    Reader in(*answer);
    return in.get<std::uint32_t>();
  }
  void close(Client& client, std::uint32_t stream, std::uint64_t posted) {
    Writer out;
    out.put(stream);
    out.put(posted);
    EXPECT_TRUE(service_->on_request(client, "close", out.bytes()));
  }
  void post(Client& client, std::uint32_t stream, std::uint64_t ticket, const FlatOffload& flat,
            std::span<const NewRegion> regions, std::span<const std::uint32_t> dropped = {}) {
    OffloadHeader header;
    header.ticket = ticket;
    header.stream = stream;
    header.rows = flat.nodes.empty() ? 0 : static_cast<std::uint64_t>(flat.nodes[0].length);
    header.node_count = static_cast<std::uint32_t>(flat.nodes.size());
    header.buffer_count = static_cast<std::uint32_t>(flat.buffers.size());
    header.region_count = static_cast<std::uint32_t>(regions.size());
    header.dropped_count = static_cast<std::uint32_t>(dropped.size());
    Bytes message;
    build_offload(header, flat, dropped, regions, message);
    service_->on_message(client, message);
  }
  /// One column of doubles.
  void post(Client& client, std::uint32_t stream, std::uint64_t ticket, const Source& source, std::size_t bytes) {
    const NewRegion news = source.news();
    post(client, stream, ticket, {{{static_cast<std::int64_t>(bytes / 8), 0}}, {source.ref(0, bytes)}}, {&news, 1});
  }
  void step() {
    worker_->progress();
    for (auto& client : clients_) client->progress();
    service_->poll();
  }
  bool done(Client& client, std::size_t tickets) {
    const Deadline deadline(kPatience);
    while (client.outcomes.size() < tickets && !deadline.passed()) step();
    return client.outcomes.size() == tickets;
  }
  static void expect_beyond(Limit limit, std::uint64_t allowed, const Client::Outcome& outcome) {
    EXPECT_EQ(outcome.code, StatusCode::kResourceExhausted);
    EXPECT_EQ(outcome.detail, limit_detail(limit, allowed));
  }
  double metric(const std::string& name) const {
    session::MetricsWriter out;
    service_->metrics(out);
    const std::size_t at = out.text().find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(out.text().substr(at + name.size() + 2));
  }
  std::size_t resident() const {
    std::vector<unsigned char> pages(arena_->capacity() / 4096);
    EXPECT_EQ(::mincore(arena_->memory().data(), arena_->capacity(), pages.data()), 0);
    return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char c) { return c & 1; }));
  }

  std::shared_ptr<Arena> arena_;
  Catalogue catalogue_;
  std::shared_ptr<fabric::Context> context_;
  std::unique_ptr<fabric::Worker> worker_;
  fabric::Region arena_region_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::unique_ptr<OffloadEngine> service_;  // first to go: what UCX still holds reports to nobody
};

/// Gets of UCX, and vectored reads.
class Faults : public OffloadEngineTest, public testing::WithParamInterface<bool> {
 protected:
  bool vectored() const override { return GetParam(); }
};

TEST_P(Faults, ReceiveABadOffloadAmongGoodOnes_ExpectOnlyItToFail) {
  make(256 * kMiB);
  Client& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source large(*client.context, 40 * kMiB, 1), gone(*client.context, 8 * kMiB, 2), gone_too(*client.context, kMiB, 4);
  Source small(*client.context, 4096, 3);
  gone.forbid();
  gone_too.forbid();
  post(client, stream, 1, large, 40 * kMiB);  // takes several turns: its gets are in flight when the next one fails
  post(client, stream, 2, gone, 8 * kMiB);
  post(client, stream, 3, small, 4096);
  post(client, stream, 4, gone_too, kMiB);
  post(client, stream, 5, large, 24 * kMiB);
  ASSERT_TRUE(done(client, 5));
  for (const std::uint64_t good : {1, 3, 5}) EXPECT_EQ(client.outcomes.at(good).code, StatusCode::kOk) << good;
  for (const std::uint64_t bad : {2, 4}) EXPECT_EQ(client.outcomes.at(bad).code, StatusCode::kSourceFault) << bad;
  EXPECT_EQ(client.outcomes.at(5).sequence, 2u);
  const auto frame = catalogue_.next("s", 0, 0ms).frame;
  ASSERT_NE(frame, nullptr);
  const std::span<const std::byte> ipc = frame->ipc();
  EXPECT_EQ(std::count(ipc.begin(), ipc.end(), std::byte{1}) >= std::ptrdiff_t{40 * kMiB}, true);
  post(client, stream, 6, small, 4096);  // and it goes on
  ASSERT_TRUE(done(client, 6));
  EXPECT_EQ(client.outcomes.at(6).code, StatusCode::kOk);
}

TEST_P(Faults, ReceiveOneBadColumnOfSixteen_ExpectItsIndex) {
  make(64 * kMiB);
  Client& client = join();
  Schema schema;
  for (int i = 0; i < 16; ++i) schema.push_back(field<double>("c" + std::to_string(i)));
  const auto stream = *open(client, {.name = "s"}, schema);
  Source good(*client.context, 64 * 1024, 1), gone(*client.context, 64 * 1024, 2);
  gone.forbid();
  FlatOffload flat;
  for (int i = 0; i < 16; ++i) {
    flat.nodes.push_back({8192, 0});
    flat.buffers.push_back(i == 3 ? gone.ref() : good.ref());
  }
  const std::vector<NewRegion> news{good.news(), gone.news()};
  post(client, stream, 1, flat, news);
  ASSERT_TRUE(done(client, 1));
  EXPECT_EQ(client.outcomes.at(1).code, StatusCode::kSourceFault);
  EXPECT_EQ(client.outcomes.at(1).detail, 3u);
}

TEST_P(Faults, ReceiveARegionAnewWhileGetsUseIt_ExpectThemToEndWell) {
  make(256 * kMiB);
  Client& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source large(*client.context, 64 * kMiB, 1);
  post(client, stream, 1, large, 64 * kMiB);
  step();  // some gets are in flight
  for (std::uint64_t ticket = 2; ticket < 8; ++ticket) {
    post(client, stream, ticket, large, 4096);  // says again where region 1 is
    step();
  }
  ASSERT_TRUE(done(client, 7));
  for (const auto& [ticket, outcome] : client.outcomes) EXPECT_EQ(outcome.code, StatusCode::kOk) << ticket;
}

TEST_P(Faults, ReceiveAnotherRegionByTheSameIdWhileAnOffloadWaits_ExpectNoByteFromOutsideIt) {
  make(16 * kMiB);
  Client& client = join();
  const auto stream =
      *open(client, {.name = "s", .retention = {.frames = 1, .when_full = WhenFull::kWait}}, {field<double>("x")});
  Source before(*client.context, kMiB, 1), after(*client.context, 4096, 1);
  post(client, stream, 1, before, kMiB);
  ASSERT_TRUE(done(client, 1));
  post(client, stream, 2, before, kMiB);  // waits: nobody has read the first
  step();
  post(client, stream, 3, after, 4096);
  step();
  ASSERT_EQ(client.outcomes.size(), 1u);
  catalogue_.mark_read(*catalogue_.next("s", 0, 0ms).frame);
  ASSERT_TRUE(done(client, 3));
  EXPECT_EQ(client.outcomes.at(2).code, StatusCode::kSourceFault);
  EXPECT_EQ(client.outcomes.at(3).code, StatusCode::kOk);
}

INSTANTIATE_TEST_SUITE_P(Ways, Faults, testing::Bool(),
                         [](const auto& tested) { return std::string(tested.param ? "Vectored" : "Ucx"); });

TEST_F(OffloadEngineTest, ReceiveAMessageThatDoesNotParse_ExpectItsTicketToFailAndItsStreamToClose) {
  make(16 * kMiB);
  Client& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  OffloadHeader header;
  header.ticket = 7;
  header.stream = stream;
  header.region_count = 3;  // and none follows
  Bytes message;
  build_offload(header, {}, {}, {}, message);
  service_->on_message(client, message);
  ASSERT_TRUE(done(client, 1));
  EXPECT_EQ(client.outcomes.at(7).code, StatusCode::kProtocol);
  service_->on_message(client, ByteView(message).first(20));  // not even a header: nobody to tell
  close(client, stream, 1);
  step();
  EXPECT_FALSE(catalogue_.find("s")->open);
}

TEST_F(OffloadEngineTest, ReceiveARegionThatIsSmallerThanItSays_ExpectRefusalAndNoByteRead) {
  make(16 * kMiB);
  Client& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  const fabric::Region memory = *client.context->allocate(4096);  // the agent maps it
  Bytes key;
  ASSERT_TRUE(memory.pack_key(key));
  const auto base = reinterpret_cast<std::uint64_t>(memory.data());
  const auto post_last = [&](std::uint64_t ticket, std::uint32_t id, std::uint64_t size) {
    const NewRegion news{id, base, size, key};
    post(client, stream, ticket, {{{1, 0}}, {{base + size - 8, 8, id, 0, 0}}}, {&news, 1});
  };
  post_last(1, 1, 4096);
  post_last(2, 2, kMiB);
  ASSERT_TRUE(done(client, 2));
  EXPECT_EQ(client.outcomes.at(1).code, StatusCode::kOk);
  EXPECT_EQ(client.outcomes.at(2).code, StatusCode::kInvalidArgument);
}

TEST_F(OffloadEngineTest, ReceiveMoreRegionsThanSixteenBitsCount_ExpectThemAll) {
  make(64 * kMiB);
  Client& client = join();
  const auto stream = *open(client, {.name = "s", .strategy = Strategy::kRaw}, {});
  Source source(*client.context, kMiB, 1);
  constexpr std::uint32_t kBuffers = 70'000;
  FlatOffload flat;
  std::vector<NewRegion> news;
  for (std::uint32_t i = 0; i < kBuffers; ++i) {
    flat.buffers.push_back({source.address() + i, 1, i + 1, 0, 0});
    NewRegion one = source.news();
    one.id = i + 1;
    news.push_back(one);
  }
  post(client, stream, 1, flat, news);
  ASSERT_TRUE(done(client, 1));
  EXPECT_EQ(client.outcomes.at(1).code, StatusCode::kOk);
  EXPECT_EQ(catalogue_.find("s")->held_rows, kBuffers);
}

TEST_F(OffloadEngineTest, ReceiveRegionsWithoutEnd_ExpectALimitAndWhatIsDroppedToComeBack) {
  make(16 * kMiB, {.max_region_bytes_per_session = 100'000});
  Client& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  NewRegion news = source.news();
  std::uint64_t ticket = 0;
  const auto post_anew = [&](std::uint32_t id, std::span<const std::uint32_t> dropped) {
    news.id = id;
    BufferRef at = source.ref();
    at.region = id;
    post(client, stream, ++ticket, {{{512, 0}}, {at}}, {&news, 1}, dropped);
    EXPECT_TRUE(done(client, ticket));
    return client.outcomes.at(ticket).code;
  };
  for (std::uint32_t id = 1; id <= 3000; ++id) {  // as a client does with memory that nobody registered
    const std::uint32_t before = id - 1;
    ASSERT_EQ(post_anew(id, {&before, 1}), StatusCode::kOk) << id;
  }
  std::uint32_t id = 10'000;
  while (id < 20'000 && post_anew(id, {}) == StatusCode::kOk) ++id;
  EXPECT_GT(id, 10'050u);
  EXPECT_LT(id, 12'000u);
  expect_beyond(Limit::kRegionBytes, 100'000, client.outcomes.at(ticket));
}

TEST_F(OffloadEngineTest, ReceiveMoreOffloadsThanMayWait_ExpectRefusal) {
  make(16 * kMiB, {.max_offloads_per_session = 2});
  Client& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket) post(client, stream, ticket, source, 4096);
  ASSERT_TRUE(done(client, 3));
  expect_beyond(Limit::kOffloads, 2, client.outcomes.at(3));
  for (const std::uint64_t good : {1, 2}) EXPECT_EQ(client.outcomes.at(good).code, StatusCode::kOk) << good;
}

TEST_F(OffloadEngineTest, ReceiveMessagesInsideEachOthersRefusal_ExpectOneAfterTheOther) {
  make(16 * kMiB);
  Client& client = join();
  constexpr std::uint64_t kMessages = 100'000;
  std::uint64_t next = 1;
  const auto deliver = [&] {
    if (next <= kMessages) post(client, 999, next++, {}, {});  // there is no such stream
  };
  client.during_complete = deliver;
  deliver();
  ASSERT_TRUE(done(client, kMessages));
  for (const auto& [ticket, outcome] : client.outcomes) ASSERT_EQ(outcome.code, StatusCode::kNotFound) << ticket;
  EXPECT_EQ(client.deepest, 1) << "a refusal ran inside another: a client could use up the stack";
}

TEST_F(OffloadEngineTest, ReceiveMessagesWhileOffloadsAreSettled_ExpectEachInItsPlace) {
  make(64 * kMiB);
  Client& client = join();
  const auto stream = *open(client, {.name = "s", .retention = {.frames = 0}}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  constexpr std::uint64_t kMessages = 200;
  std::uint64_t next = 1;
  const auto deliver = [&] {
    for (int i = 0; i < 2 && next <= kMessages; ++i) post(client, stream, next++, source, 4096);
  };
  client.during_complete = deliver;
  deliver();
  ASSERT_TRUE(done(client, kMessages));
  for (const auto& [ticket, outcome] : client.outcomes) {
    ASSERT_EQ(outcome.code, StatusCode::kOk) << ticket;
    ASSERT_EQ(outcome.sequence, ticket - 1) << "frames are in the order of the posts";
  }
  EXPECT_EQ(client.deepest, 1);
}

TEST_F(OffloadEngineTest, ReceiveMoreMessagesThanTickets_ExpectTheClientToEndAndOthersToGoOn) {
  make(16 * kMiB, {.max_arrived_bytes_per_session = 3000});
  Client &greedy = join(), &large = join(), &other = join();
  const auto stream = *open(other, {.name = "s"}, {field<double>("x")});
  for (std::uint64_t ticket = 1; ticket <= greedy.max_tickets(); ++ticket) {
    service_->on_message(greedy, {});  // takes no bytes
    ASSERT_TRUE(greedy.failure) << ticket;
  }
  service_->on_message(greedy, {});
  EXPECT_EQ(greedy.failure.code(), StatusCode::kResourceExhausted);
  const Bytes message(2000);
  service_->on_message(large, message);
  EXPECT_TRUE(large.failure);
  service_->on_message(large, message);
  EXPECT_EQ(large.failure.code(), StatusCode::kResourceExhausted);
  Source source(*other.context, 4096, 1);
  post(other, stream, 1, source, 4096);
  leave(greedy);  // with messages that nobody has taken
  ASSERT_TRUE(done(other, 1));
  EXPECT_EQ(other.outcomes.at(1).code, StatusCode::kOk);
  EXPECT_TRUE(service_->drained());
}

TEST_F(OffloadEngineTest, ReceiveMoreThanTheBudget_ExpectRefusalThatNamesIt) {
  make(16 * kMiB);
  Client& client = join();
  const auto columns = *open(client, {.name = "s"}, {field<double>("x")});
  const auto raw = *open(client, {.name = "r", .strategy = Strategy::kRaw}, {});
  Source source(*client.context, 17 * kMiB, 1);
  const NewRegion news = source.news();
  post(client, columns, 1, source, 17 * kMiB);
  post(client, raw, 2, {{}, {source.ref()}}, {&news, 1});
  post(client, raw, 3, {{}, {source.ref(0, 9 * kMiB), source.ref(0, 9 * kMiB)}}, {&news, 1});
  ASSERT_TRUE(done(client, 3));
  for (const auto& [ticket, outcome] : client.outcomes) expect_beyond(Limit::kBudget, arena_->capacity(), outcome);
}

TEST_F(OffloadEngineTest, ReceiveMoreThanMayBeQueued_ExpectTheRestToBeRefused) {
  make(16 * kMiB, {.max_queued_bytes_per_session = 1000});
  Client& client = join();
  const auto stream = *open(client, {.name = "s", .strategy = Strategy::kRaw}, {});
  Source source(*client.context, 4096, 1);
  const NewRegion news = source.news();
  FlatOffload many;
  many.buffers.assign(100, source.ref(0, 8));
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket) post(client, stream, ticket, many, {&news, 1});
  ASSERT_TRUE(done(client, 3));
  for (const std::uint64_t refused : {2, 3}) expect_beyond(Limit::kQueuedBytes, 1000, client.outcomes.at(refused));
  EXPECT_EQ(client.outcomes.at(1).code, StatusCode::kOk);  // one may always be
  post(client, stream, 4, many, {&news, 1});
  ASSERT_TRUE(done(client, 4));
  EXPECT_EQ(client.outcomes.at(4).code, StatusCode::kOk);
}

TEST_F(OffloadEngineTest, TwoClientsOnOneSmallBudget_ExpectBothToGetOn) {
  make(8 * kMiB);
  Client &hog = join(), &other = join();
  const auto filling = *open(hog, {.name = "hog"}, {field<double>("x")});
  const auto modest = *open(other, {.name = "modest"}, {field<double>("x")});
  Source source(*hog.context, kMiB, 1), own(*other.context, 3 * kMiB, 1);
  for (std::uint64_t ticket = 1; ticket <= 7; ++ticket) post(hog, filling, ticket, source, kMiB - 4096 * 4);
  ASSERT_TRUE(done(hog, 7));
  EXPECT_EQ(catalogue_.find("hog")->held_frames, 7u);
  for (std::uint64_t ticket = 1; ticket <= 10; ++ticket) {
    post(other, modest, ticket, own, 3 * kMiB - 4096 * 4);
    post(hog, filling, 7 + ticket, source, kMiB - 4096 * 4);
    ASSERT_TRUE(done(other, ticket)) << "starved";
    ASSERT_TRUE(done(hog, 7 + ticket)) << "starved";
  }
  EXPECT_GT(catalogue_.find("hog")->evicted_unread, 2u);
  EXPECT_EQ(catalogue_.next("hog", 16, 0ms).what, Catalogue::Next::What::kFrame);  // the newest is there
}

TEST_F(OffloadEngineTest, ALosslessClientThatDied_ExpectItsUnreadFramesToGoLast) {
  make(8 * kMiB);
  Client &dead = join(), &other = join();
  const Retention wait{.frames = 100, .when_full = WhenFull::kWait};
  const auto lossless = *open(dead, {.name = "lossless", .retention = wait}, {field<double>("x")});
  const auto evicting = *open(dead, {.name = "evicting"}, {field<double>("x")});
  const auto modest = *open(other, {.name = "modest", .retention = {.frames = 1}}, {field<double>("x")});
  Source source(*dead.context, kMiB, 1), own(*other.context, 2 * kMiB, 1);
  for (std::uint64_t ticket = 1; ticket <= 4; ++ticket) post(dead, lossless, ticket, source, kMiB - 4096 * 4);
  for (std::uint64_t ticket = 5; ticket <= 7; ++ticket) post(dead, evicting, ticket, source, kMiB - 4096 * 4);
  ASSERT_TRUE(done(dead, 7));
  post(other, modest, 1, own, 2 * kMiB - 4096 * 4);
  ASSERT_TRUE(done(other, 1));
  EXPECT_EQ(catalogue_.find("lossless")->held_frames, 4u) << "others had what may go";
  // While it lives, it keeps what nobody read.
  Source large(*other.context, 7 * kMiB, 2);
  post(other, modest, 2, large, 7 * kMiB - 4096 * 4);
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_EQ(other.outcomes.size(), 1u);
  EXPECT_EQ(catalogue_.find("lossless")->held_frames, 4u);
  leave(dead);
  ASSERT_TRUE(done(other, 2)) << "a dead client keeps the budget";
  EXPECT_EQ(other.outcomes.at(2).code, StatusCode::kOk);
  EXPECT_GT(catalogue_.find("lossless")->evicted_unread, 0u);
}

TEST_F(OffloadEngineTest, AnOffloadThatWaits_ExpectToBeCountedOnce) {
  make(16 * kMiB);
  Client& client = join();
  const auto stream =
      *open(client, {.name = "s", .retention = {.frames = 1, .when_full = WhenFull::kWait}}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  for (std::uint64_t ticket = 1; ticket <= 2; ++ticket) post(client, stream, ticket, source, 4096);
  for (int i = 0; i < 500; ++i) step();
  EXPECT_EQ(client.outcomes.size(), 1u);
  EXPECT_EQ(metric("wherry_move_busy_total"), 1);
}

TEST_F(OffloadEngineTest, ANullWhereNoneMayBe_ExpectItsBufferToBeNamed) {
  make(16 * kMiB);
  Client& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x"), field<double>("y")});
  Source source(*client.context, 4096, 1);
  const NewRegion news = source.news();
  // Four rows; the bits of a byte of 1s are 1000 0000.
  const FlatOffload flat{{{4, 0}, {4, -1}}, {source.ref(0, 32), source.ref(0, 1), source.ref(0, 32)}};
  post(client, stream, 1, flat, {&news, 1});
  ASSERT_TRUE(done(client, 1));
  EXPECT_EQ(client.outcomes.at(1).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(client.outcomes.at(1).detail, 1u);
}

TEST_F(OffloadEngineTest, AnnouncedSizes_ExpectFramesInMemoryThatIsThereAlready) {
  for (const Strategy strategy : {Strategy::kIpc, Strategy::kIpcPageAligned, Strategy::kArrays}) {
    for (const std::size_t rows : {100UL, 5000UL, 300'000UL}) {
      for (const bool nullable : {false, true}) {
        SCOPED_TRACE(std::string(to_string(strategy)) + ", rows " + std::to_string(rows));
        make(256 * kMiB);
        Client& client = join();
        Schema schema;
        for (int i = 0; i < 16; ++i) schema.push_back(field<double>("c" + std::to_string(i), nullable));
        const auto begin = std::chrono::steady_clock::now();
        const auto stream = *open(
            client, {.name = "s", .strategy = strategy, .retention = {.frames = 1}, .announced_bytes = {rows * 128}},
            schema);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
        while (service_->poll()) {
        }
        EXPECT_EQ(arena_->in_use(), 0u) << "it is at the disposal of all";
        const std::size_t touched = arena_->touched(), pages = resident();
        EXPECT_GE(pages * 4096, 2 * rows * 128);
        EXPECT_EQ(pages * 4096, touched);
        Source source(*client.context, rows * 8, 255);
        const NewRegion news = source.news();
        for (std::uint64_t ticket = 1; ticket <= 6; ++ticket) {
          FlatOffload flat;
          for (int i = 0; i < 16; ++i) {
            const bool nulls = nullable && ticket % 2 == 0;
            flat.nodes.push_back({static_cast<std::int64_t>(rows), nulls ? -1 : 0});
            if (nulls) flat.buffers.push_back(source.ref(0, (rows + 7) / 8));
            flat.buffers.push_back(source.ref());
          }
          post(client, stream, ticket, flat, {&news, 1});
          ASSERT_TRUE(done(client, ticket));
          ASSERT_EQ(client.outcomes.at(ticket).code, StatusCode::kOk);
        }
        EXPECT_EQ(arena_->touched(), touched);
        EXPECT_EQ(resident(), pages) << "page faults on the way";
        leave(client);
        catalogue_.close("s");
        clients_.clear();
      }
    }
  }
}

TEST_F(OffloadEngineTest, AnnouncedMemoryGivesWayToOffloadsThatAreHere) {
  make(8 * kMiB);
  Client& client = join();
  const auto stream = *open(client, {.name = "s", .announced_bytes = {3 * kMiB, 3 * kMiB}}, {field<double>("x")});
  Source source(*client.context, 7 * kMiB, 1);
  post(client, stream, 1, source, 7 * kMiB);
  ASSERT_TRUE(done(client, 1));
  EXPECT_EQ(client.outcomes.at(1).code, StatusCode::kOk);
  EXPECT_EQ(open(client, {.name = "t", .announced_bytes = {9 * kMiB}}, {field<double>("x")}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST_F(OffloadEngineTest, AHundredThousandStreamsOpenedAndClosed_ExpectMemoryFlat) {
  make(16 * kMiB);
  Client& client = join();
  Source source(*client.context, 4096, 1);
  const auto kib = [] {
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    long total = 0, pages = 0;
    if (file == nullptr || std::fscanf(file, "%ld %ld", &total, &pages) != 2) pages = -1;
    if (file != nullptr) std::fclose(file);
    return pages * 4;
  };
  [[maybe_unused]] long early = 0;
  std::uint64_t ticket = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto stream = *open(client, {.name = "s" + std::to_string(i)}, {field<double>("x")});
    const bool with_frame = i % 10 == 0;
    if (with_frame) {
      post(client, stream, ++ticket, source, 4096);
      ASSERT_TRUE(done(client, ticket));
    }
    close(client, stream, with_frame ? 1 : 0);
    step();
    if (i == 20'000) early = kib();
  }
  EXPECT_LT(catalogue_.list().size(), 6000u);
  EXPECT_TRUE(catalogue_.find("s99999"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(kib() - early, 16 * 1024) << "KiB more after 100,000 streams than after 20,000";
#endif
}

}  // namespace
}  // namespace wherry::move
