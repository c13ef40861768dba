// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of OffloadEngine. It posts messages as a client does, records completions for the test, and makes
// real one-sided gets from this process's memory by both local methods (UCX's gets and vectored reads).
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/testing.hpp"
#include "move/service/offload_engine.hpp"

namespace wherry::move {

using testing_support::kPatience;

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

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
  /// Makes the memory inaccessible like unmapped memory, but keeps its addresses reserved.
  void forbid() { EXPECT_EQ(mprotect(base_, bytes_, PROT_NONE), 0); }
  void fill(int value) { std::memset(base_, value, bytes_); }
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
class TestClient final : public session::Client {
 public:
  TestClient(std::uint64_t id, fabric::Worker& agent, const fabric::Region& arena, bool vectored)
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
  TestClient& join() {
    clients_.push_back(std::make_unique<TestClient>(clients_.size() + 1, *worker_, arena_region_, vectored()));
    service_->on_session_start(*clients_.back());
    return *clients_.back();
  }
  void leave(TestClient& client) { service_->on_session_end(client); }
  Result<std::uint32_t> open(TestClient& client, const StreamOptions& options, const Schema& schema) {
    auto answer = service_->on_request(client, "open", encode(OpenRequest{options, schema}));
    if (!answer) return answer.status();
    Reader in(*answer);
    return in.get<std::uint32_t>();
  }
  void close(TestClient& client, std::uint32_t stream, std::uint64_t posted) {
    Writer out;
    out.put(stream);
    out.put(posted);
    EXPECT_TRUE(service_->on_request(client, "close", out.bytes()));
  }
  void post(TestClient& client, std::uint32_t stream, std::uint64_t ticket, const FlatOffload& flat,
            std::span<const NewRegion> regions, std::span<const std::uint32_t> dropped = {}, std::uint32_t binding = 0,
            Half half = Half::kWhole, std::uint64_t tag = 0) {
    OffloadHeader header;
    header.binding = binding;
    header.half = half;
    header.tag = tag;
    header.ticket = ticket;
    header.stream = stream;
    header.rows = flat.nodes.empty() ? 0 : static_cast<std::uint64_t>(flat.nodes[0].length);
    header.node_count = static_cast<std::uint16_t>(flat.nodes.size());
    header.buffer_count = static_cast<std::uint32_t>(flat.buffers.size());
    header.region_count = static_cast<std::uint32_t>(regions.size());
    header.dropped_count = static_cast<std::uint32_t>(dropped.size());
    Bytes message;
    build_offload(header, flat, dropped, regions, message);
    service_->on_message(client, message);
  }
  /// Posts one column of doubles.
  void post(TestClient& client, std::uint32_t stream, std::uint64_t ticket, const Source& source, std::size_t bytes) {
    const NewRegion news = source.news();
    post(client, stream, ticket, {{{static_cast<std::int64_t>(bytes / 8), 0}}, {source.ref(0, bytes)}}, {&news, 1});
  }
  void step() {
    worker_->progress();
    for (auto& client : clients_) client->progress();
    service_->poll();
  }
  bool done(TestClient& client, std::size_t tickets) {
    const Deadline deadline(kPatience);
    while (client.outcomes.size() < tickets && !deadline.passed()) step();
    return client.outcomes.size() == tickets;
  }
  static void expect_beyond(Limit limit, std::uint64_t allowed, const TestClient::Outcome& outcome) {
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
  std::vector<std::unique_ptr<TestClient>> clients_;
  std::unique_ptr<OffloadEngine> service_;  // first to go: what UCX still holds reports to nobody
};

}  // namespace wherry::move
