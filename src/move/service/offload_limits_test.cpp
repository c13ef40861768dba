// SPDX-License-Identifier: Apache-2.0
// A client's limits in the budget, the queues and the tables of regions, and their release.
#include "move/service/engine_testing.hpp"

#include <chrono>
#include <cstdio>

namespace wherry::move {
namespace {

using namespace std::chrono_literals;

TEST_F(OffloadEngineTest, ReceiveMoreOffloadsThanMayWait_ExpectRefusal) {
  make(16 * kMiB, {.max_offloads_per_session = 2});
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket) post(client, stream, ticket, source, 4096);
  ASSERT_TRUE(done(client, 3));
  expect_beyond(Limit::kOffloads, 2, client.outcomes.at(3));
  for (const std::uint64_t good : {1, 2}) EXPECT_EQ(client.outcomes.at(good).code, StatusCode::kOk) << good;
}

TEST_F(OffloadEngineTest, ReceiveMoreThanTheBudget_ExpectRefusalThatNamesIt) {
  make(16 * kMiB);
  TestClient& client = join();
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
  TestClient& client = join();
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
  TestClient &hog = join(), &other = join();
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
  TestClient &dead = join(), &other = join();
  const Retention wait{.frames = 100, .when_full = Retention::WhenFull::kWait};
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
  // While the other client lives, its unread frames are kept.
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

TEST_F(OffloadEngineTest, AnnouncedSizes_ExpectFramesInMemoryThatIsThereAlready) {
  for (const Strategy strategy : {Strategy::kIpc, Strategy::kIpcPageAligned, Strategy::kArrays}) {
    for (const std::size_t rows : {100UL, 5000UL, 300'000UL}) {
      for (const bool nullable : {false, true}) {
        SCOPED_TRACE(std::string(to_string(strategy)) + ", rows " + std::to_string(rows));
        make(256 * kMiB);
        TestClient& client = join();
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
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s", .announced_bytes = {3 * kMiB, 3 * kMiB}}, {field<double>("x")});
  Source source(*client.context, 7 * kMiB, 1);
  post(client, stream, 1, source, 7 * kMiB);
  ASSERT_TRUE(done(client, 1));
  EXPECT_EQ(client.outcomes.at(1).code, StatusCode::kOk);
  EXPECT_EQ(open(client, {.name = "t", .announced_bytes = {9 * kMiB}}, {field<double>("x")}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST_F(OffloadEngineTest, AHundredThousandStreamsOpenedAndClosed_ExpectMemoryFlat) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kStreams = 10'000;  // what stays is asked of the other builds; more than the catalogue keeps
#else
  constexpr int kStreams = 100'000;
#endif
  make(16 * kMiB);
  TestClient& client = join();
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
  for (int i = 0; i < kStreams; ++i) {
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
  EXPECT_TRUE(catalogue_.find("s" + std::to_string(kStreams - 1)));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(kib() - early, 16 * 1024) << "KiB more after 100,000 streams than after 20,000";
#endif
}

TEST_F(OffloadEngineTest, ReceiveMoreMessagesThanTickets_ExpectTheClientToEndAndOthersToGoOn) {
  make(16 * kMiB, {.max_arrived_bytes_per_session = 3000});
  TestClient &greedy = join(), &large = join(), &other = join();
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

TEST_F(OffloadEngineTest, ReceiveRegionsWithoutEnd_ExpectALimitAndWhatIsDroppedToComeBack) {
  make(16 * kMiB, {.max_region_bytes_per_session = 100'000});
  TestClient& client = join();
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

}  // namespace
}  // namespace wherry::move
