// SPDX-License-Identifier: Apache-2.0
// Bindings: the engine's checks of buffers that a client lists once and names afterwards.
#include "move/service/engine_testing.hpp"

namespace wherry::move {
namespace {

class BindingsTest : public OffloadEngineTest {
 protected:
  /// Posts with `binding`. With buffers it defines the binding; without buffers it uses the earlier definition.
  void post_bound(TestClient& client, std::uint32_t stream, std::uint64_t ticket, std::uint32_t binding,
                  const FlatOffload& flat, std::span<const NewRegion> regions = {},
                  std::span<const std::uint32_t> dropped = {}) {
    post(client, stream, ticket, flat, regions, dropped, binding);
  }
  static FlatOffload doubles(const Source& source, std::int64_t rows) {
    return {{{rows, 0}}, {source.ref(0, static_cast<std::size_t>(rows) * 8)}};
  }
  StatusCode outcome(TestClient& client, std::uint64_t ticket) {
    EXPECT_TRUE(done(client, ticket));
    return client.outcomes.at(ticket).code;
  }
};

TEST_F(BindingsTest, NamedAgain_ExpectTheSameRowsOfWhatTheMemoryHoldsThen) {
  make(4 * kMiB);
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  const NewRegion news = source.news();
  post_bound(client, stream, 1, 9, doubles(source, 512), {&news, 1});
  ASSERT_EQ(outcome(client, 1), StatusCode::kOk);
  std::memset(reinterpret_cast<void*>(source.address()), 0x5a, 4096);
  post_bound(client, stream, 2, 9, {});
  ASSERT_EQ(outcome(client, 2), StatusCode::kOk);
  const auto frame = catalogue_.next("s", 1, std::chrono::milliseconds(0)).frame;
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->rows, 512U);
  const auto* body = frame->extent.bytes().data() + frame->layout.buffers[1].offset;
  EXPECT_TRUE(std::all_of(body, body + 4096, [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST_F(BindingsTest, SaidAgain_ExpectTheNewMeaning) {
  make(4 * kMiB);
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  const NewRegion news = source.news();
  post_bound(client, stream, 1, 9, doubles(source, 512), {&news, 1});
  post_bound(client, stream, 2, 9, doubles(source, 100));
  post_bound(client, stream, 3, 9, {});
  ASSERT_EQ(outcome(client, 3), StatusCode::kOk);
  EXPECT_EQ(catalogue_.next("s", 2, std::chrono::milliseconds(0)).frame->rows, 100U);
}

TEST_F(BindingsTest, UnknownOrDroppedOrOfAnotherStreamOrClient_ExpectRefusals) {
  make(4 * kMiB);
  TestClient &client = join(), &other = join();
  const auto one = *open(client, {.name = "one"}, {field<double>("x")});
  const auto two = *open(client, {.name = "two"}, {field<double>("x")});
  const auto theirs = *open(other, {.name = "theirs"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  const NewRegion news = source.news();
  post_bound(client, one, 1, 9, {});
  EXPECT_EQ(outcome(client, 1), StatusCode::kFailedPrecondition);
  post_bound(client, one, 2, 9, doubles(source, 512), {&news, 1});
  EXPECT_EQ(outcome(client, 2), StatusCode::kOk);
  post_bound(client, two, 3, 9, {});
  EXPECT_EQ(outcome(client, 3), StatusCode::kFailedPrecondition);
  post_bound(other, theirs, 1, 9, {});
  EXPECT_EQ(outcome(other, 1), StatusCode::kFailedPrecondition);
  const std::uint32_t dropped = 9;
  post_bound(client, one, 4, 9, {}, {}, {&dropped, 1});
  EXPECT_EQ(outcome(client, 4), StatusCode::kFailedPrecondition);
  // A dropped region is detected as in any other offload.
  post_bound(client, one, 5, 10, doubles(source, 512));
  EXPECT_EQ(outcome(client, 5), StatusCode::kOk);
  const std::uint32_t region = 1;
  post_bound(client, one, 6, 10, {}, {}, {&region, 1});
  EXPECT_EQ(outcome(client, 6), StatusCode::kInvalidArgument);
}

TEST_F(BindingsTest, SaidInAMessageThatIsRefused_ExpectItToBeCheckedEachTime) {
  make(4 * kMiB);
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  const NewRegion news = source.news();
  FlatOffload wrong = doubles(source, 512);
  wrong.buffers[0].bytes = 8;  // not 512 rows
  post_bound(client, stream, 1, 9, wrong, {&news, 1});
  EXPECT_EQ(outcome(client, 1), StatusCode::kInvalidArgument);
  post_bound(client, stream, 2, 9, {});
  EXPECT_EQ(outcome(client, 2), StatusCode::kInvalidArgument);
}

TEST_F(BindingsTest, MoreThanMayBeKept_ExpectTheRestToBeRefusedUntilSomeGo) {
  make(4 * kMiB, {.max_queued_bytes_per_session = 1000});
  TestClient& client = join();
  const auto stream = *open(client, {.name = "s"}, {field<double>("x")});
  Source source(*client.context, 4096, 1);
  const NewRegion news = source.news();
  std::uint64_t ticket = 1;
  post_bound(client, stream, ticket, 9, doubles(source, 8), {&news, 1});
  while (outcome(client, ticket) == StatusCode::kOk && ticket < 100) {
    ++ticket;
    post_bound(client, stream, ticket, static_cast<std::uint32_t>(8 + ticket), doubles(source, 8));
  }
  ASSERT_LT(ticket, 20U);
  expect_beyond(Limit::kQueuedBytes, 1000, client.outcomes.at(ticket));
  const std::uint32_t dropped = 9;
  post_bound(client, stream, ticket + 1, 500, doubles(source, 8), {}, {&dropped, 1});
  EXPECT_EQ(outcome(client, ticket + 1), StatusCode::kOk);
  close(client, stream, ticket + 1);  // with its stream all of them go
  const auto again = *open(client, {.name = "s"}, {field<double>("x")});
  post_bound(client, again, ticket + 2, 500, {});
  EXPECT_EQ(outcome(client, ticket + 2), StatusCode::kFailedPrecondition);
  for (std::uint64_t more = 3; more < 6; ++more) {
    post_bound(client, again, ticket + more, static_cast<std::uint32_t>(600 + more), doubles(source, 8));
    EXPECT_EQ(outcome(client, ticket + more), StatusCode::kOk);
  }
}

}  // namespace
}  // namespace wherry::move
