// SPDX-License-Identifier: Apache-2.0
// Offloads and regions with false descriptions: each fails alone.
#include "move/service/engine_testing.hpp"

#include <chrono>

namespace wherry::move {
namespace {

using namespace std::chrono_literals;

/// Tests with UCX's gets and with vectored reads.
class Faults : public OffloadEngineTest, public testing::WithParamInterface<bool> {
 protected:
  bool vectored() const override { return GetParam(); }
};

TEST_P(Faults, ReceiveABadOffloadAmongGoodOnes_ExpectOnlyItToFail) {
  make(256 * kMiB);
  TestClient& client = join();
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
  TestClient& client = join();
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
  TestClient& client = join();
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
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s", .retention = {.frames = 1, .when_full = Retention::WhenFull::kWait}},
                            {field<double>("x")});
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
  TestClient& client = join();
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
  TestClient& client = join();
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
  TestClient& client = join();
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

TEST_F(OffloadEngineTest, ANullWhereNoneMayBe_ExpectItsBufferToBeNamed) {
  make(16 * kMiB);
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x"), field<double>("y")});
  Source source(*client.context, 4096, 1);
  const NewRegion news = source.news();
  // Four rows. A byte with value 1 has the bits 1000 0000, the first bit first.
  const FlatOffload flat{{{4, 0}, {4, -1}}, {source.ref(0, 32), source.ref(0, 1), source.ref(0, 32)}};
  post(client, stream, 1, flat, {&news, 1});
  ASSERT_TRUE(done(client, 1));
  EXPECT_EQ(client.outcomes.at(1).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(client.outcomes.at(1).detail, 1u);
}

}  // namespace
}  // namespace wherry::move
