// SPDX-License-Identifier: Apache-2.0
// Tests that messages are processed in order, whenever they arrive.
#include "move/service/engine_testing.hpp"

namespace wherry::move {
namespace {

TEST_F(OffloadEngineTest, ReceiveMessagesInsideEachOthersRefusal_ExpectOneAfterTheOther) {
  make(16 * kMiB);
  TestClient& client = join();
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
  TestClient& client = join();
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

TEST_F(OffloadEngineTest, ATicketThatEndsWell_ExpectReadersToFindItsFrame) {
  make(64 * kMiB);
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  std::uint64_t found = 0;
  client.during_complete = [&] {
    const Catalogue::Next next = catalogue_.next("s", client.outcomes.size() - 1, std::chrono::milliseconds(0));
    found += next.what == Catalogue::Next::What::kFrame ? 1 : 0;
  };
  for (std::uint64_t ticket = 1; ticket <= 5; ++ticket) post(client, stream, ticket, source, 4096);
  ASSERT_TRUE(done(client, 5));
  EXPECT_EQ(found, 5U);
}

TEST_F(OffloadEngineTest, AnOffloadThatWaits_ExpectToBeCountedOnce) {
  make(16 * kMiB);
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s", .retention = {.frames = 1, .when_full = Retention::WhenFull::kWait}},
                            {field<double>("x")});
  Source source(*client.context, 4096, 1);
  for (std::uint64_t ticket = 1; ticket <= 2; ++ticket) post(client, stream, ticket, source, 4096);
  for (int i = 0; i < 500; ++i) step();
  EXPECT_EQ(client.outcomes.size(), 1u);
  EXPECT_EQ(metric("wherry_move_busy_total"), 1);
}

TEST_F(OffloadEngineTest, TwoLargeOffloadsOfOneStream_ExpectTheFirstToEndBeforeTheSecondBegins) {
  make(64 * kMiB, {.transfer_unit = kMiB, .window = 2 * kMiB});
  TestClient& client = join();
  const auto large = *open(client, {.name = "large"}, {field<double>("x")});
  const auto small = *open(client, {.name = "small"}, {field<double>("x")});
  Source source(*client.context, 8 * kMiB, 1), little(*client.context, 4096, 2);
  post(client, large, 1, source, 8 * kMiB);
  post(client, large, 2, source, 8 * kMiB);
  post(client, small, 3, little, 4096);
  step();
  step();
  EXPECT_TRUE(client.outcomes.contains(3)) << "another stream has a turn between two units";
  EXPECT_FALSE(client.outcomes.contains(1));
  const Deadline deadline(kPatience);
  while (!client.outcomes.contains(1) && !deadline.passed()) step();
  ASSERT_TRUE(client.outcomes.contains(1));
  // The first offload's eight units, the small offload, and the second offload's share of the same turn.
  EXPECT_LE(metric("wherry_move_gets_total"), 8 + 1 + 1);
  ASSERT_TRUE(done(client, 3));
  EXPECT_EQ(metric("wherry_move_gets_total"), 8 + 1 + 8);
  for (const auto& [ticket, outcome] : client.outcomes) EXPECT_EQ(outcome.code, StatusCode::kOk) << ticket;
}

}  // namespace
}  // namespace wherry::move
