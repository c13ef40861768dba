// SPDX-License-Identifier: Apache-2.0
#include "move/service/flight_server.hpp"

#include <arrow/flight/client.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "move/service/frame_arrow.hpp"
#include "move/service/testing.hpp"

namespace wherry::move {
namespace {

using namespace std::chrono_literals;
namespace flight = arrow::flight;
using testing::particles;
using Json = nlohmann::json;

struct Chunk {
  std::shared_ptr<arrow::RecordBatch> batch;
  Json about;
};

class FlightTest : public ::testing::Test {
 protected:
  std::shared_ptr<Arena> arena = *Arena::create(64 << 20);
  Catalogue catalogue;
  std::unique_ptr<FlightService> service;
  std::unique_ptr<flight::FlightClient> client;
  flight::FlightCallOptions options = with_token("secret");

  void SetUp() override { restart(std::uint64_t{1} << 30); }
  void TearDown() override {
    client.reset();
    service.reset();
  }
  void restart(std::uint64_t max_message_bytes) {
    client.reset();
    service.reset();
    auto started = FlightService::start(catalogue, arena, "127.0.0.1", 0, "secret", {0}, max_message_bytes);
    ASSERT_TRUE(started) << started.status().to_string();
    service = *std::move(started);
    client = connect();
  }
  [[nodiscard]] std::unique_ptr<flight::FlightClient> connect() const {
    return flight::FlightClient::Connect(*flight::Location::ForGrpcTcp("127.0.0.1", service->port())).ValueOrDie();
  }
  static flight::FlightCallOptions with_token(const std::string& token) {
    flight::FlightCallOptions made;
    made.headers.emplace_back("authorization", "Bearer " + token);
    made.timeout = flight::TimeoutDuration(30);
    return made;
  }
  std::shared_ptr<const StreamInfo> opened(std::string name, Retention retention = {}) {
    auto info = testing::stream(std::move(name), retention);
    EXPECT_TRUE(catalogue.open(info));
    return info;
  }
  void publish(const std::shared_ptr<const StreamInfo>& info, std::uint64_t sequence, std::int64_t rows = 100) {
    catalogue.publish(testing::frame(arena, info, sequence, *particles(rows, static_cast<std::int64_t>(sequence))));
  }
  arrow::Result<std::vector<Chunk>> get(const std::string& ticket) {
    std::vector<Chunk> chunks;
    ARROW_ASSIGN_OR_RAISE(const auto reader, client->DoGet(options, flight::Ticket{ticket}));
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(const auto chunk, reader->Next());
      if (chunk.data == nullptr) return chunks;
      chunks.push_back({chunk.data, Json::parse(chunk.app_metadata->ToString())});
    }
  }
  std::vector<Chunk> must_get(const std::string& ticket) {
    auto chunks = get(ticket);
    EXPECT_TRUE(chunks.ok()) << chunks.status().ToString();
    return chunks.ok() ? *std::move(chunks) : std::vector<Chunk>();
  }
};

TEST_F(FlightTest, AllHeldFramesWithWhatIsKnownAboutThem) {
  const auto info = opened("s", {.frames = 3});
  for (std::uint64_t i = 0; i < 5; ++i) publish(info, i);
  for (const std::string ticket : {"s", R"({"stream": "s"})", R"({"stream": "s", "from": 0, "follow": false})"}) {
    const auto chunks = must_get(ticket);
    ASSERT_EQ(chunks.size(), 3u);
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(chunks[i].batch->Equals(*particles(100, static_cast<std::int64_t>(i + 2)), true)) << i;
      EXPECT_EQ(chunks[i].about, (Json{{"sequence", i + 2},
                                       {"tag", 102 + i},
                                       {"rows", 100},
                                       {"skipped", i == 0 ? 2 : 0},
                                       {"transfer_ns", 2002 + i},
                                       {"source_bytes", 1002 + i},
                                       {"generation", 1}}));  // the catalogue's first stream
    }
  }
}

TEST_F(FlightTest, FromAndCountChooseFrames) {
  const auto info = opened("s");
  for (std::uint64_t i = 0; i < 5; ++i) publish(info, i, 3);
  const auto chunks = must_get(R"({"stream":"s","from":2,"count":2})");
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].about["sequence"], 2);
  EXPECT_EQ(chunks[1].about["sequence"], 3);
  EXPECT_TRUE(must_get(R"({"stream":"s","count":0})").empty());
  EXPECT_TRUE(must_get(R"({"stream":"s","from":7})").empty());
  EXPECT_EQ(must_get(R"({"stream":"s","from":4,"count":9,"follow":false})").size(), 1u);
}

TEST_F(FlightTest, AnEmptyFrameAndAnEmptyStreamHaveASchema) {
  const auto info = opened("s");
  auto reader = client->DoGet(options, flight::Ticket{"s"}).ValueOrDie();
  EXPECT_TRUE(reader->GetSchema().ValueOrDie()->Equals(**to_arrow(testing::particle_schema())));
  EXPECT_EQ(reader->ToTable().ValueOrDie()->num_rows(), 0);
  publish(info, 0, 0);
  ASSERT_EQ(must_get("s").size(), 1u);
}

TEST_F(FlightTest, ListingInfoAndSchema) {
  const auto info = opened("particles");
  (void)opened("walls");
  publish(info, 0);
  publish(info, 1);
  const auto listing = client->ListFlights(options, flight::Criteria{}).ValueOrDie();
  std::vector<std::string> names;
  while (auto one = listing->Next().ValueOrDie()) names.push_back(one->descriptor().path[0]);
  EXPECT_EQ(names, (std::vector<std::string>{"particles", "walls"}));
  const auto some = client->ListFlights(options, flight::Criteria{"wa"}).ValueOrDie();
  EXPECT_EQ(some->Next().ValueOrDie()->descriptor().path[0], "walls");

  const auto descriptor = flight::FlightDescriptor::Path({"particles"});
  const auto got = client->GetFlightInfo(options, descriptor).ValueOrDie();
  EXPECT_EQ(got->total_records(), 200);
  EXPECT_EQ(got->total_bytes(), static_cast<std::int64_t>(catalogue.find("particles")->held_bytes));
  ASSERT_EQ(got->endpoints().size(), 1u);
  EXPECT_EQ(must_get(got->endpoints()[0].ticket.ticket).size(), 2u);
  arrow::ipc::DictionaryMemo memo, memo2;
  EXPECT_TRUE(got->GetSchema(&memo).ValueOrDie()->Equals(**to_arrow(info->schema)));
  EXPECT_TRUE(client->GetSchema(options, descriptor)
                  .ValueOrDie()
                  ->GetSchema(&memo2)
                  .ValueOrDie()
                  ->Equals(**to_arrow(info->schema)));

  EXPECT_TRUE(client->GetFlightInfo(options, flight::FlightDescriptor::Path({"nobody"})).status().IsKeyError());
  EXPECT_TRUE(client->GetFlightInfo(options, flight::FlightDescriptor::Path({"a", "b"})).status().IsInvalid());
  EXPECT_TRUE(client->GetFlightInfo(options, flight::FlightDescriptor::Command("particles")).status().IsInvalid());
}

TEST_F(FlightTest, TheStreamsActionTellsTheStatus) {
  const auto info = opened("s", {.frames = 1});
  publish(info, 0);
  publish(info, 1);
  ASSERT_EQ(client->ListActions(options).ValueOrDie().size(), 1u);
  const auto results = client->DoAction(options, flight::Action{"streams", nullptr}).ValueOrDie();
  const Json all = Json::parse(results->Next().ValueOrDie()->body->ToString());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["name"], "s");
  EXPECT_EQ(all[0]["strategy"], "ipc");
  EXPECT_EQ(all[0]["first"], 1);
  EXPECT_EQ(all[0]["next"], 2);
  EXPECT_EQ(all[0]["open"], true);
  EXPECT_EQ(all[0]["evicted_unread"], 1);
  const auto unknown = client->DoAction(options, flight::Action{"dance", nullptr}).ValueOrDie()->Next();
  EXPECT_TRUE(unknown.status().IsNotImplemented()) << unknown.status().ToString();
}

TEST_F(FlightTest, NoCallWithoutTheToken) {
  const auto info = opened("s");
  publish(info, 0);
  for (const auto& wrong : {flight::FlightCallOptions(), with_token("secreT"), with_token(""), with_token("secret2")}) {
    const auto check = [](const arrow::Status& status) {
      const auto detail = flight::FlightStatusDetail::UnwrapStatus(status);
      ASSERT_NE(detail, nullptr) << status.ToString();
      EXPECT_EQ(detail->code(), flight::FlightStatusCode::Unauthenticated);
      EXPECT_NE(status.message().find("session file"), std::string::npos) << status.ToString();
    };
    check(client->ListFlights(wrong, flight::Criteria{}).status());
    check(client->GetFlightInfo(wrong, flight::FlightDescriptor::Path({"s"})).status());
    check(client->GetSchema(wrong, flight::FlightDescriptor::Path({"s"})).status());
    check(client->DoGet(wrong, flight::Ticket{"s"}).status());
    check(client->ListActions(wrong).status());
  }
  EXPECT_EQ(FlightService::start(catalogue, arena, "127.0.0.1", 0, "").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(FlightTest, PeerProvesItselfAfterConnectionsWereLookedAt_ExpectItKept) {
  opened("s");
  must_get("s");
  const std::set<std::string> came = service->proven({});
  ASSERT_EQ(came.size(), 1u) << "it was not there when the others were looked for";
  EXPECT_EQ(service->proven(came), came);
  EXPECT_TRUE(service->proven({}).empty()) << "it has gone";
}

TEST_F(FlightTest, AddressOfIpv6_ExpectItServed) {
  for (const std::string host : {"::1", "::"}) {
    auto started = FlightService::start(catalogue, arena, host, 0, "secret");
    ASSERT_TRUE(started) << started.status().to_string();
    const auto there =
        flight::FlightClient::Connect(*flight::Location::ForGrpcTcp("[::1]", (*started)->port())).ValueOrDie();
    EXPECT_TRUE(there->ListFlights(options, {}).ok());
  }
}

TEST_F(FlightTest, APortInUseIsAnErrorThatSaysSo) {
  const auto second = FlightService::start(catalogue, arena, "127.0.0.1", service->port(), "secret");
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(std::to_string(service->port())), std::string::npos);
}

TEST_F(FlightTest, WrongTicketsNameTheKey) {
  const std::pair<std::string, std::string> wrong[] = {{"", "no bytes"},
                                                       {"{", "not JSON"},
                                                       {"[1]", "stream's name"},
                                                       {R"({"from":0})", "\"stream\""},
                                                       {R"({"stream":7})", "\"stream\""},
                                                       {R"({"stream":"s","from":-1})", "\"from\""},
                                                       {R"({"stream":"s","from":1.5})", "\"from\""},
                                                       {R"({"stream":"s","count":"all"})", "\"count\""},
                                                       {R"({"stream":"s","follow":1})", "\"follow\""},
                                                       {R"({"stream":"s","form":1})", "\"form\""},
                                                       {std::string(70'000, 'a'), "64 KiB"},
                                                       {"\xff\xfe", "stream's name"}};
  for (const auto& [bytes, key] : wrong) {
    const auto parsed = parse_ticket(bytes);
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << bytes;
    EXPECT_NE(parsed.status().message().find(key), std::string::npos) << parsed.status().message();
  }
  const auto status = get(R"({"stream":"s","form":1})").status();
  EXPECT_TRUE(status.IsInvalid() && status.message().find("\"form\"") != std::string::npos) << status.ToString();
  EXPECT_TRUE(get("nobody").status().IsKeyError());
}

TEST_F(FlightTest, AFollowerSeesFramesAsTheyComeUntilTheEnd) {
  const auto info = opened("s");
  publish(info, 0);
  std::atomic<int> seen = 0;
  std::vector<Chunk> chunks;
  std::thread follower([&] {
    const auto reader = client->DoGet(options, flight::Ticket{R"({"stream":"s","follow":true})"}).ValueOrDie();
    for (;;) {
      const auto chunk = reader->Next().ValueOrDie();
      if (chunk.data == nullptr) return;
      chunks.push_back({chunk.data, Json::parse(chunk.app_metadata->ToString())});
      ++seen;
    }
  });
  for (int i = 1; i < 5; ++i) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (seen < i && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(seen, i);  // each frame arrives before the next one exists
    publish(info, static_cast<std::uint64_t>(i));
  }
  catalogue.close("s");
  follower.join();
  ASSERT_EQ(chunks.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_TRUE(chunks[i].batch->Equals(*particles(100, static_cast<std::int64_t>(i))));
}

TEST_F(FlightTest, WhatAReaderGotInFullMayGo) {
  const auto info = opened("s", {.frames = 2, .when_full = Retention::WhenFull::kWait});
  publish(info, 0);
  publish(info, 1);
  EXPECT_FALSE(catalogue.make_room(*info));
  EXPECT_EQ(must_get(R"({"stream":"s","count":1})").size(), 1u);
  EXPECT_TRUE(catalogue.make_room(*info));
  EXPECT_EQ(catalogue.find("s")->first, 1u);
  EXPECT_EQ(catalogue.find("s")->evicted_unread, 0u);
}

TEST_F(FlightTest, AFollowerOfAReplacedStreamSeesTheEnd) {
  const auto info = opened("s");
  publish(info, 0);
  const auto reader = client->DoGet(options, flight::Ticket{R"({"stream":"s","follow":true})"}).ValueOrDie();
  ASSERT_NE(reader->Next().ValueOrDie().data, nullptr);
  catalogue.close("s");
  const auto again = opened("s");
  for (std::uint64_t i = 0; i < 4; ++i) publish(again, i);
  EXPECT_EQ(reader->Next().ValueOrDie().data, nullptr);
}

TEST_F(FlightTest, AFollowerThatWentAwayLetsGo) {
  const auto info = opened("s", {.frames = 1});
  publish(info, 0);
  {
    const auto reader = client->DoGet(options, flight::Ticket{R"({"stream":"s","follow":true})"}).ValueOrDie();
    ASSERT_NE(reader->Next().ValueOrDie().data, nullptr);
    reader->Cancel();
  }
  client.reset();
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (arena->in_use() != 0 && std::chrono::steady_clock::now() < deadline) {
    (void)catalogue.evict_one(*info);  // not before the follower's end was noticed: until then it is being read
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(arena->in_use(), 0u);
}

TEST_F(FlightTest, StopIsPromptThoughFollowersWait) {
  (void)opened("s");
  std::vector<std::thread> followers;
  std::atomic<int> ended = 0;
  for (int i = 0; i < 3; ++i) {
    followers.emplace_back([&] {
      const auto own = connect();
      const auto reader = own->DoGet(options, flight::Ticket{R"({"stream":"s","follow":true})"});
      EXPECT_FALSE(reader.ok() && (*reader)->Next().ok());
      ++ended;
    });
  }
  std::this_thread::sleep_for(100ms);
  service->stop();  // returns, though nothing will ever come for them
  service->stop();
  for (auto& follower : followers) follower.join();
  EXPECT_EQ(ended, 3);
}

TEST_F(FlightTest, AFrameTooLargeForAMessageComesInParts) {
  restart(16 << 10);
  const auto info = opened("s");
  publish(info, 0, 5000);
  publish(info, 1, 10);
  const auto chunks = must_get("s");
  ASSERT_GT(chunks.size(), 5u);
  std::vector<std::shared_ptr<arrow::RecordBatch>> parts;
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) {
    std::int64_t before = 0;
    for (const auto& part : parts) before += part->num_rows();
    EXPECT_EQ(chunks[i].about["first_row"], before);
    EXPECT_EQ(chunks[i].about["rows"], 5000);
    EXPECT_EQ(chunks[i].about["sequence"], 0);
    parts.push_back(chunks[i].batch);
  }
  const auto table = arrow::Table::FromRecordBatches(parts).ValueOrDie();
  EXPECT_TRUE(table->Equals(*arrow::Table::FromRecordBatches({particles(5000, 0)}).ValueOrDie()));
  EXPECT_FALSE(chunks.back().about.contains("first_row"));
}

TEST_F(FlightTest, ColumnsAreReadWhereTheyLie) {
  const auto info = opened("s");
  const FramePtr made = testing::frame(arena, info, 0, *particles(1000, 5));
  const auto memory = made->extent.bytes();
  const auto batch = read_frame(made);
  ASSERT_TRUE(batch) << batch.status().to_string();
  EXPECT_TRUE((*batch)->Equals(*particles(1000, 5)));
  for (int column = 0; column < (*batch)->num_columns(); ++column) {
    for (const auto& buffer : (*batch)->column_data(column)->buffers) {
      if (buffer == nullptr || buffer->size() == 0) continue;
      const auto* at = reinterpret_cast<const std::byte*>(buffer->data());
      EXPECT_TRUE(at >= memory.data() && at + buffer->size() <= memory.data() + memory.size()) << column;
    }
  }
}

TEST_F(FlightTest, ABatchKeepsItsFrame) {
  const auto info = opened("s");
  auto batch = *read_frame(testing::frame(arena, info, 0, *particles(1000, 5)));
  auto column = batch->column(0);
  batch.reset();
  EXPECT_GT(arena->in_use(), 0u);
  EXPECT_EQ(static_cast<const arrow::Int64Array&>(*column).Value(999), 5'000'999);
  column.reset();
  EXPECT_EQ(arena->in_use(), 0u);
}

TEST_F(FlightTest, AFrameThatIsNoArrowIsAnErrorNotACrash) {
  const auto info = opened("s");
  const FramePtr made = testing::frame(arena, info, 0, *particles(100, 5));
  std::memset(made->extent.bytes().data() + 4, 0x7f, 64);
  EXPECT_FALSE(read_frame(made));
}

}  // namespace
}  // namespace wherry::move
