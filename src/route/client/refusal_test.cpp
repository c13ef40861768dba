// SPDX-License-Identifier: Apache-2.0
// Tests how a rank refuses a call or a message: the code, and an error text that fits only this cause.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "base/testing.hpp"
#include "route/client/testing.hpp"

namespace wherry::route {

/// Its Codec refuses every value.
struct Unreadable {
  std::string text;
};
template <>
struct Codec<Unreadable> {
  static void write(std::vector<std::byte>& out, const Unreadable& value) {
    const auto bytes = std::as_bytes(std::span(value.text));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  static bool read(ByteView /*in*/, Unreadable& /*value*/) { return false; }
};

namespace {

using namespace std::chrono_literals;
using testing_support::run_ranks;
using wherry::testing_support::kPatience;

struct Small {
  std::uint64_t word;
};
struct Large {
  std::uint64_t words[9];  // too long for a pack
};

Runtime alone(const Options& options = {}) {
  return detail::make_runtime(options, std::move(wire_threads({0}, {}).front()));
}

void expect_words(const Status& status, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    EXPECT_NE(status.message().find(word), std::string::npos) << word << " is not in: " << status.to_string();
  EXPECT_EQ(status.message().find("overwritten"), std::string::npos) << status.to_string();
}

/// The status of a rank after a message for handler `sent`. The rank has registered `mine` with the same
/// number.
template <typename Theirs, typename Mine>
Status misread(const std::vector<Theirs>& messages) {
  auto wirings = wire_threads({0, 0}, {});
  Runtime sender = detail::make_runtime(Options{}, std::move(wirings[0]));
  Runtime receiver = detail::make_runtime(Options{}, std::move(wirings[1]));
  const auto theirs = sender.on<Theirs>([](auto&&) {});
  (void)receiver.on<Mine>([](auto&&) {});
  for (const Theirs& message : messages) EXPECT_EQ(sender.send(1, theirs, message), StatusCode::kOk);
  for (int i = 0; i < 100'000 && receiver.status().ok(); ++i) {
    sender.flush();
    sender.poll();
    receiver.poll();
  }
  return receiver.status();
}

// ---------------------------------------------------------------- messages that do not fit

TEST(Misfits, MessageOfAnotherSize_ExpectHandlerAndBothSizesNamed) {
  const Status status = misread<Large, Small>({{}});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.to_string();
  expect_words(status, {"72 bytes", "8 bytes", "Small", "rank 1", "same handlers, in the same order"});
}

TEST(Misfits, PackOfMessagesOfAnotherSize_ExpectHandlerAndBothSizesNamed) {
  const Status status = misread<Small, Large>({{1}, {2}, {3}});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.to_string();
  expect_words(status, {"8 bytes", "72 bytes", "Large"});
}

TEST(Misfits, LongMessageOfAnotherSize_ExpectHandlerAndBothSizesNamed) {
  const std::vector<std::byte> bytes(1 << 20);
  const Status status = misread<ByteView, Small>({ByteView(bytes)});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.to_string();
  expect_words(status, {"1048576 bytes", "8 bytes", "Small"});
}

TEST(Misfits, MessageThatItsCodecRefuses_ExpectTheCodecNamed) {
  const Status status = misread<Unreadable, Unreadable>({{"twelve bytes"}});
  EXPECT_EQ(status.code(), StatusCode::kProtocol) << status.to_string();
  expect_words(status, {"Codec", "Unreadable", "12 bytes"});
}

TEST(Misfits, HandlerThatIsNotRegistered_ExpectFailedPrecondition) {
  auto wirings = wire_threads({0, 0}, {});
  Runtime sender = detail::make_runtime(Options{}, std::move(wirings[0]));
  Runtime receiver = detail::make_runtime(Options{}, std::move(wirings[1]));
  EXPECT_EQ(sender.send(1, sender.on<Small>([](const Small&) {}), Small{}), StatusCode::kOk);
  sender.flush();
  receiver.poll();
  EXPECT_EQ(receiver.status().code(), StatusCode::kFailedPrecondition);
  expect_words(receiver.status(), {"not registered", "rank 1"});
}

TEST(Misfits, ReplyOfAnotherSize_ExpectFailedPreconditionWithBothSizes) {
  auto wirings = wire_threads({0, 0}, {});
  Runtime asking = detail::make_runtime(Options{}, std::move(wirings[0]));
  Runtime answering = detail::make_runtime(Options{}, std::move(wirings[1]));
  const auto four = asking.serve<std::uint32_t, std::uint32_t>([](const std::uint32_t& x) { return x; });
  (void)answering.serve<std::uint32_t, std::uint64_t>([](const std::uint32_t& x) { return std::uint64_t{x}; });
  EXPECT_EQ(asking.request(1, four, std::uint32_t{1}, [](const std::uint32_t&) { FAIL(); }), StatusCode::kOk);
  asking.flush();
  for (int i = 0; i < 100 && asking.status().ok(); ++i) {
    answering.poll();
    answering.flush();
    asking.poll();
  }
  EXPECT_EQ(asking.status().code(), StatusCode::kFailedPrecondition) << asking.status().to_string();
  expect_words(asking.status(), {"answer", "8 bytes", "different services"});
}

TEST(Sends, HandlersOutOfRange_ExpectInvalidArgumentAndTheJobToGoOn) {
  run_ranks({0, 0}, {}, {}, [](Runtime& runtime) {
    (void)runtime.on<Small>([](const Small&) { ADD_FAILURE() << "nobody has sent it a message"; });
    (void)runtime.on<ByteView>([](ByteView) { ADD_FAILURE() << "nobody has sent it a message"; });
    for (const std::uint32_t id : {0U, 6U, 15U, 32768U, 32768U + 16, 32768U + 17, ~0U}) {
      EXPECT_EQ(runtime.send(0, Handler<Small>{id}, Small{}), StatusCode::kInvalidArgument) << id;
      EXPECT_EQ(runtime.try_send(0, Handler<Small>{id}, Small{}), StatusCode::kInvalidArgument) << id;
      EXPECT_EQ(runtime.send(0, Handler<ByteView>{id}, ByteView()), StatusCode::kInvalidArgument) << id;
      EXPECT_EQ(runtime.send(0, Handler<Unreadable>{id}, Unreadable{}), StatusCode::kInvalidArgument) << id;
    }
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
  });
}

// ---------------------------------------------------------------- fragments

/// A message as a single fragment, for `handler` of rank 0.
std::vector<std::byte> fragment_of(std::uint32_t handler, std::span<const std::byte> message) {
  const detail::FragmentHead head{0, 0, static_cast<std::uint32_t>(message.size()), handler, 0, 0};
  const Header header = Header::make(sizeof head + message.size(), kFragmentHandler, 0);
  std::vector<std::byte> bytes(header.stride());
  header.store(bytes.data());
  std::memcpy(bytes.data() + sizeof header, &head, sizeof head);
  std::memcpy(bytes.data() + sizeof header + sizeof head, message.data(), message.size());
  return bytes;
}

/// Sends bytes from a rank to itself. Returns the rank's status, and how many messages it has handled.
std::pair<Status, std::uint64_t> receive(std::span<const std::byte> bytes) {
  Runtime runtime = alone();
  (void)runtime.on<Small>([](const Small&) {});
  const auto space = runtime.try_buffer(0, bytes.size());
  EXPECT_EQ(space.size(), bytes.size());
  std::memcpy(space.data(), bytes.data(), bytes.size());
  runtime.post_buffer(0, bytes.size(), 0);
  runtime.flush();
  runtime.poll();
  return {runtime.status(), runtime.statistics().handled};
}

TEST(Fragments, OfAMessageForAHandler_ExpectItHandled) {
  const Small small{1};
  const auto [status, handled] = receive(fragment_of(kFirstUserHandler, std::as_bytes(std::span(&small, 1))));
  EXPECT_TRUE(status) << status.to_string();
  EXPECT_EQ(handled, 1U);
}

TEST(Fragments, OfFragmentsPacksOrNotices_ExpectProtocolAndNothingHandled) {
  const Small small{1};
  const std::vector<std::byte> inner = fragment_of(kFirstUserHandler, std::as_bytes(std::span(&small, 1)));
  const std::span<const std::byte> payload = std::span(inner).subspan(sizeof(Header));  // of the inner fragment
  // The header has 15 bits for the handler. Further bits would change the rank, and 0x8001 would be a fragment again.
  for (const std::uint32_t handler : {0U, 1U, 2U, 3U, 5U, 6U, 7U, 15U, 0x8000U, 0x8001U, 0x18001U, 0x8010U, ~0U}) {
    const auto [status, handled] = receive(fragment_of(handler, payload));
    EXPECT_EQ(status.code(), StatusCode::kProtocol) << handler << ": " << status.to_string();
    EXPECT_EQ(handled, 0U) << handler;
  }
  std::vector<std::byte> pack(2 * sizeof(Header) + sizeof small);
  Header::make(sizeof(Header) + sizeof small, kPackHandler, 0).store(pack.data());
  Header::make(sizeof small, kFirstUserHandler, 0).store(pack.data() + sizeof(Header));
  ASSERT_EQ(receive(pack).second, 1U) << "as it is, it is a pack";
  for (const std::uint32_t handler : {std::uint32_t{kPackHandler}, 0x8000U + kPackHandler}) {
    const auto [status, handled] = receive(fragment_of(handler, std::span(pack).subspan(sizeof(Header))));
    EXPECT_EQ(status.code(), StatusCode::kProtocol) << status.to_string();
    EXPECT_EQ(handled, 0U);
  }
}

TEST(Fragments, NestedThousandsDeep_ExpectProtocol) {
  const Small small{1};
  std::vector<std::byte> bytes = fragment_of(kFirstUserHandler, std::as_bytes(std::span(&small, 1)));
  // Nest fragments as deep as a buffer permits: each layer adds a header and the head of a fragment.
  while (bytes.size() + 64 < RingShape{}.buffer_bytes) bytes = fragment_of(0x8001, std::span(bytes).subspan(8));
  const auto [status, handled] = receive(bytes);
  EXPECT_EQ(status.code(), StatusCode::kProtocol) << status.to_string();
  EXPECT_EQ(handled, 0U);
}

// ---------------------------------------------------------------- options and calls

TEST(Options, BacklogBelowItsMinimum_ExpectInvalidArgument) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kMaxMessageBytes - 1}) {
    const auto runtime = Runtime::start({.backlog_bytes = bytes});
    ASSERT_FALSE(runtime) << bytes;
    EXPECT_EQ(runtime.status().code(), StatusCode::kInvalidArgument);
    expect_words(runtime.status(), {"backlog_bytes", std::to_string(bytes), std::to_string(kMaxMessageBytes)});
  }
  EXPECT_TRUE(Runtime::start({.backlog_bytes = kMaxMessageBytes}));
}

TEST(Options, UnknownPlacement_ExpectInvalidArgumentEvenAlone) {
  ASSERT_EQ(::setenv("WHERRY_PLACEMENT", "nonsense", 1), 0);
  const auto named = Runtime::start();
  ::unsetenv("WHERRY_PLACEMENT");
  ASSERT_FALSE(named);
  EXPECT_EQ(named.status().code(), StatusCode::kInvalidArgument);
  expect_words(named.status(), {"WHERRY_PLACEMENT", "nonsense"});
  const auto number = Runtime::start({.placement = static_cast<Placement>(9)});
  ASSERT_FALSE(number);
  EXPECT_EQ(number.status().code(), StatusCode::kInvalidArgument);
}

TEST(Backlog, LargestMessageFromAHandlerWithTheLeastBacklog_ExpectItTaken) {
  Options options;
  options.backlog_bytes = kMaxMessageBytes;
  run_ranks({0, 0}, options, {2, 256}, [](Runtime& runtime) {
    const std::vector<std::byte> large(kMaxMessageBytes);
    std::size_t got = 0;
    const auto take = runtime.on<ByteView>([&](ByteView bytes) { got += bytes.size(); });
    const auto kick = runtime.on<Small>(
        [&](const Small&) { EXPECT_EQ(runtime.send(1 - runtime.rank(), take, large), StatusCode::kOk); });
    EXPECT_EQ(runtime.send(1 - runtime.rank(), kick, Small{}), StatusCode::kOk);
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
    ASSERT_EQ(runtime.send(1 - runtime.rank(), take, large), StatusCode::kOk);  // outside of handlers, too
    ASSERT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
    EXPECT_EQ(got, 2 * kMaxMessageBytes);
  });
}

/// Sends many requests at once, whose replies exceed the answering rank's backlog. Returns its status and its backlog.
template <std::size_t kBytes>
void ask_too_much(std::uint64_t requests) {
  struct Reply {
    std::array<std::byte, kBytes> bytes;
  };
  Options options;
  options.backlog_bytes = kMaxMessageBytes;
  auto wirings = wire_threads({0, 0}, {2, 4096});
  Runtime asking = detail::make_runtime(options, std::move(wirings[0]));
  Runtime answering = detail::make_runtime(options, std::move(wirings[1]));
  const auto answer = [](const std::uint32_t&) { return Reply{}; };
  const auto service = asking.serve<std::uint32_t, Reply>(answer);
  (void)answering.serve<std::uint32_t, Reply>(answer);
  std::uint64_t answers = 0;
  for (std::uint64_t i = 0; i < requests; ++i)
    ASSERT_EQ(asking.request(1, service, std::uint32_t{1}, [&](const Reply&) { ++answers; }), StatusCode::kOk);
  for (std::uint64_t i = 0; i < requests && answering.status().ok() && answers < requests; ++i) {
    asking.poll();
    answering.poll();
    EXPECT_LE(answering.statistics().backlog_high, options.backlog_bytes);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(answering.status().code(), StatusCode::kResourceExhausted) << answers << " answers came";
  expect_words(answering.status(), {"backlog_bytes", "rank 1", "16777216", "requests"});
}

TEST(Backlog, RepliesBeyondIt_ExpectTheJobToFail) { ask_too_much<1000>(100'000); }

TEST(Backlog, LongRepliesBeyondIt_ExpectTheJobToFail) { ask_too_much<100'000>(1000); }

TEST(Reductions, AfterAFailedQuiesce_ExpectWhatStatusSays) {
  Runtime runtime = alone();
  StatusCode inside = StatusCode::kOk;
  const auto take = runtime.on<Small>([&](const Small&) { inside = StatusCode::kCancelled; });
  ASSERT_EQ(runtime.send(0, take, Small{}), StatusCode::kOk);
  ASSERT_EQ(runtime.quiesce(0ns).code(), StatusCode::kDeadlineExceeded) << "it is under way";
  detail::core_of(runtime).fail(Status{StatusCode::kResourceExhausted, "the reason"});
  EXPECT_EQ(runtime.quiesce(1s).code(), StatusCode::kResourceExhausted);
  const auto reduced = runtime.reduce(std::uint64_t{1});
  ASSERT_FALSE(reduced);
  EXPECT_EQ(reduced.status().code(), StatusCode::kResourceExhausted) << reduced.status().message();
  EXPECT_EQ(reduced.status().message(), "the reason");
}

TEST(Reductions, UnknownCombine_ExpectInvalidArgumentAndNoRound) {
  Runtime runtime = alone();
  const auto unknown = static_cast<Runtime::Combine>(9);
  EXPECT_EQ(runtime.reduce(std::uint64_t{1}, unknown).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(runtime.reduce(1.0, unknown).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(*runtime.reduce(std::uint64_t{1}), 1U);
}

TEST(Requests, LambdaForTheReply_ExpectItsTypeDeduced) {
  Runtime runtime = alone();
  const auto twice = runtime.serve<std::uint32_t, std::uint64_t>([](const std::uint32_t& x) { return 2ULL * x; });
  std::uint64_t got = 0;
  ASSERT_EQ(runtime.request(0, twice, std::uint32_t{4}, [&](const std::uint64_t& y) { got = y; }), StatusCode::kOk);
  ASSERT_TRUE(runtime.quiesce(kPatience));
  EXPECT_EQ(got, 8U);
}

TEST(Requests, EmptyFunctionForTheReply_ExpectInvalidArgument) {
  Runtime runtime = alone();
  const auto same = runtime.serve<std::uint32_t, std::uint32_t>([](const std::uint32_t& x) { return x; });
  EXPECT_EQ(runtime.request(0, same, std::uint32_t{4}, std::function<void(const std::uint32_t&)>()),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(runtime.quiesce(kPatience)) << runtime.status().message();
}

}  // namespace
}  // namespace wherry::route
