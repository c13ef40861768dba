// SPDX-License-Identifier: Apache-2.0
// Tests the stream transport between two ends in one process: which peers are admitted, which requests are allowed, and
// what happens to all others.
#include <gtest/gtest.h>
#include <malloc.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "base/testing.hpp"
#include "fabric/fabric.hpp"
#include "fabric/stream_worker.hpp"

namespace wherry::fabric {
namespace {

using testing_support::turn_until;

std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>> stream_pair() {
  int pair[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  return {plain_stream(Fd(pair[0])), plain_stream(Fd(pair[1]))};
}

void write_all(ByteStream& stream, ByteView bytes) {
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  ASSERT_EQ(stream.write({&part, 1}).bytes, bytes.size());
}

// ---------------------------------------------------------------- the handshake

/// Runs both sides of a handshake to their ends, and records every byte that the client sent.
struct Played {
  Status client, server;
  Bytes sent;
};
Played play(const Secret& client_knows, const Secret& server_knows, Purpose purpose = Purpose::kControl) {
  auto client = StreamHandshake::client(purpose, 7, client_knows);
  auto server = StreamHandshake::server([&](Purpose p, std::uint64_t key) {
    return p == Purpose::kControl && key == 7 ? std::optional(server_knows) : std::nullopt;
  });
  Played played;
  const auto pass = [](StreamHandshake& from, StreamHandshake& to, Status& status, Bytes* copy) {
    const Bytes bytes = std::exchange(from.out(), {});
    if (copy != nullptr) copy->insert(copy->end(), bytes.begin(), bytes.end());
    if (bytes.empty() || !status) return;
    if (auto took = to.take(bytes, {}); !took) status = took.status();
  };
  for (int i = 0; i < 3; ++i) {
    pass(client, server, played.server, &played.sent);
    pass(server, client, played.client, nullptr);
  }
  return played;
}

TEST(StreamHandshakes, SameSecret_ExpectBothToBeContent) {
  const Played played = play("secret", "secret");
  EXPECT_TRUE(played.client) << played.client.message();
  EXPECT_TRUE(played.server) << played.server.message();
  const std::string sent(reinterpret_cast<const char*>(played.sent.data()), played.sent.size());
  EXPECT_EQ(sent.find("secret"), std::string::npos) << "the secret itself never travels";
}

TEST(StreamHandshakes, OtherSecretOrPurpose_ExpectBothToRefuse) {
  for (const Played& played : {play("guess", "secret"), play("", "secret"), play("secret", "secret", Purpose::kPeer)}) {
    EXPECT_EQ(played.client.code(), StatusCode::kPermissionDenied);
    EXPECT_EQ(played.server.code(), StatusCode::kPermissionDenied);
  }
}

/// Computes the HMAC by its definition (RFC 2104), not by the code under test.
TEST(StreamHandshakes, ProofComputedByHand_ExpectItAccepted) {
  auto server = StreamHandshake::server([](Purpose, std::uint64_t) { return "secret"; });
  Writer out;
  out.put(StreamHandshake::kMagic);
  out.put(StreamHandshake::kVersion);
  out.put(Purpose::kControl);
  out.put(std::uint64_t{7});
  out.put(std::uint64_t{0});
  Bytes opening = std::move(out).take();
  opening.resize(opening.size() + StreamHandshake::kNonce, std::byte{0x5a});
  ASSERT_EQ(opening.size(), StreamHandshake::kOpening);
  ASSERT_TRUE(server.take(opening, {}));
  std::string message = "client";
  for (const Bytes* part : {&opening, &server.out()})
    message.append(reinterpret_cast<const char*>(part->data()), part->size());
  const auto sha = [](const std::string& text) {
    std::string digest(32, 0);
    unsigned length = 0;
    EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &length, EVP_sha256(),
               nullptr);
    return digest;
  };
  std::string inner(64, 0x36), outer(64, 0x5c);
  for (std::size_t i = 0; i < 6; ++i) {
    inner[i] = static_cast<char>(inner[i] ^ "secret"[i]);
    outer[i] = static_cast<char>(outer[i] ^ "secret"[i]);
  }
  const std::string proof = sha(outer + sha(inner + message));
  const auto done = server.take(std::as_bytes(std::span(proof)), {});
  ASSERT_TRUE(done) << done.status().message();
  EXPECT_TRUE(*done);
}

TEST(StreamHandshakes, Recorded_ExpectTheReplayRefused) {
  const Played once = play("secret", "secret");
  auto server = StreamHandshake::server([](Purpose, std::uint64_t) { return "secret"; });
  ASSERT_TRUE(server.take(ByteView(once.sent).first(StreamHandshake::kOpening), {}));
  const auto again = server.take(ByteView(once.sent).subspan(StreamHandshake::kOpening), {});
  EXPECT_EQ(again.status().code(), StatusCode::kPermissionDenied);
}

TEST(StreamHandshakes, ServerThatDoesNotKnowTheSecret_ExpectTheClientToRefuseIt) {
  auto client = StreamHandshake::client(Purpose::kControl, 7, "secret");
  Writer answer;
  answer.put(StreamHandshake::kMagic);
  answer.put(StreamHandshake::kVersion);
  answer.put(std::uint16_t{0});
  Bytes bytes = std::move(answer).take();
  bytes.resize(StreamHandshake::kAnswer);
  ASSERT_TRUE(client.take(bytes, {}));
  EXPECT_EQ(client.take(Bytes(StreamHandshake::kVerdict), {}).status().code(), StatusCode::kPermissionDenied);
}

TEST(StreamHandshakes, OtherBindings_ExpectRefusal) {
  auto client = StreamHandshake::client(Purpose::kControl, 7, "secret");
  auto server = StreamHandshake::server([](Purpose, std::uint64_t) { return "secret"; });
  ASSERT_TRUE(server.take(std::exchange(client.out(), {}), Bytes(32, std::byte{1})));
  ASSERT_TRUE(client.take(std::exchange(server.out(), {}), Bytes(32, std::byte{2})));
  EXPECT_FALSE(server.take(std::exchange(client.out(), {}), Bytes(32, std::byte{1}))) << "two TLS connections";
}

TEST(StreamHandshakes, OtherVersion_ExpectBothNumbers) {
  auto server = StreamHandshake::server([](Purpose, std::uint64_t) { return "secret"; });
  auto client = StreamHandshake::client(Purpose::kControl, 7, "secret");
  Bytes opening = client.out();
  opening[4] = std::byte{9};
  const auto refused = server.take(opening, {});
  EXPECT_EQ(refused.status().code(), StatusCode::kVersionMismatch);
  EXPECT_NE(refused.status().message().find('9'), std::string::npos) << refused.status().message();
  EXPECT_EQ(client.take(server.out(), {}).status().code(), StatusCode::kVersionMismatch);
}

// ---------------------------------------------------------------- links

/// Two workers joined by a link.
class Links : public testing::Test {
 protected:
  Links() {
    auto [a, b] = stream_pair();
    near_ = Endpoint::over(*near_worker_, std::move(a));
    far_ = Endpoint::over(*far_worker_, std::move(b));
    EXPECT_TRUE(far_worker_->on_message(5, on_message, this));
    far_worker_->stream()->offer_memory(true);
  }
  static void on_message(void* self, ByteView message) {
    static_cast<Links*>(self)->messages_.emplace_back(message.begin(), message.end());
  }
  void progress() {
    near_worker_->progress();
    far_worker_->progress();
  }
  bool finishes(Completion& done) {
    return turn_until([&] {
      progress();
      return done.pending() == 0;
    });
  }
  RemoteRegion remote(const void* memory, std::size_t bytes) {
    return *near_.unpack({}, reinterpret_cast<std::uint64_t>(memory), bytes, 0);
  }
  std::shared_ptr<Context> near_context_ = *Context::create(Transport::kTcp),
                           far_context_ = *Context::create(Transport::kTcp);
  std::unique_ptr<Worker> near_worker_ = *Worker::create(near_context_), far_worker_ = *Worker::create(far_context_);
  Endpoint near_, far_;
  std::vector<Bytes> messages_;
};

TEST_F(Links, MessagesAndGetsOfManySizes_ExpectEachAsItWasSent) {
  std::mt19937_64 random(3);
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, std::size_t{65'536}, std::size_t{70'001}, std::size_t{9'000'000}}) {
    Bytes source(bytes), to(bytes);
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    const auto offered = *far_context_->register_memory(source.data(), bytes);
    const auto local = *near_context_->register_memory(to.data(), bytes);
    Completion done;
    ASSERT_TRUE(near_.get(to.data(), local, remote(source.data(), bytes),
                          reinterpret_cast<std::uint64_t>(source.data()), bytes, done));
    Completion sent;
    ASSERT_TRUE(near_.send(5, source, sent));
    EXPECT_TRUE(finishes(done));
    EXPECT_TRUE(finishes(sent));
    EXPECT_EQ(done.error(), nullptr);
    EXPECT_EQ(to, source);
    ASSERT_TRUE(turn_until([&] {
      progress();
      return !messages_.empty();
    }));
    EXPECT_EQ(messages_.front(), source);
    messages_.clear();
  }
}

TEST_F(Links, MemoryThatWasNotRegistered_ExpectRefusalAndTheConnectionToGoOn) {
  Bytes source(10'000, std::byte{7}), to(10'000);
  const auto local = *near_context_->register_memory(to.data(), to.size());
  const auto at = reinterpret_cast<std::uint64_t>(source.data());
  auto offered = *far_context_->register_memory(source.data() + 100, 1000);
  struct Case {
    std::uint64_t from;
    std::size_t bytes;
    bool fits;
  };
  for (const Case& c : {Case{at, 100, false}, Case{at + 100, 1000, true}, Case{at + 100, 1001, false},
                        Case{at + 99, 2, false}, Case{at + 1099, 1, true}, Case{~std::uint64_t{0} - 5, 100, false}}) {
    Completion done;
    ASSERT_TRUE(near_.get(to.data(), local, remote(source.data(), source.size()), c.from, c.bytes, done));
    ASSERT_TRUE(finishes(done));
    EXPECT_EQ(done.error() == nullptr, c.fits) << c.from - at << ' ' << c.bytes;
  }
  offered = {};
  Completion done;
  ASSERT_TRUE(near_.get(to.data(), local, remote(source.data(), 10), at + 100, 10, done));
  ASSERT_TRUE(finishes(done));
  EXPECT_NE(done.error(), nullptr) << "it is not registered any more";
  EXPECT_FALSE(near_.failed() || far_.failed());
}

TEST_F(Links, MemoryUnmappedUnderTheGet_ExpectThatGetToFailAndTheOthersNot) {
  constexpr std::size_t kBytes = 1 << 20;
  auto* gone =
      static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Bytes good(kBytes, std::byte{9}), to(4 * kBytes);
  const auto offered_gone = *far_context_->register_memory(gone, kBytes);
  const auto offered = *far_context_->register_memory(good.data(), kBytes);
  const auto local = *near_context_->register_memory(to.data(), to.size());
  mprotect(gone + kBytes / 2, kBytes / 2, PROT_NONE);
  Completion first, faulty, last;
  const auto get = [&](std::size_t slot, const std::byte* from, Completion& done) {
    ASSERT_TRUE(near_.get(to.data() + slot * kBytes, local, remote(from, kBytes), reinterpret_cast<std::uint64_t>(from),
                          kBytes, done));
  };
  get(0, good.data(), first);
  get(1, gone, faulty);
  get(2, good.data(), last);
  for (Completion* done : {&first, &faulty, &last}) ASSERT_TRUE(finishes(*done));
  EXPECT_EQ(first.error(), nullptr);
  EXPECT_NE(faulty.error(), nullptr);
  EXPECT_EQ(last.error(), nullptr);
  EXPECT_EQ(std::memcmp(to.data() + 2 * kBytes, good.data(), kBytes), 0);
  munmap(gone, kBytes);
}

TEST_F(Links, PutsWhereTheyMayGo_ExpectThemThereAndNowhereElse) {
  std::vector<std::uint64_t> memory(16, 1);
  far_worker_->stream()->accept_puts(reinterpret_cast<std::uint64_t>(memory.data() + 4), 64);
  const std::uint64_t words[4] = {10, 11, 12, 13};
  const auto put = [&](std::size_t at, std::size_t count) {
    Completion done;
    const Status s = near_.put(reinterpret_cast<const std::byte*>(words), remote(memory.data(), 128),
                               reinterpret_cast<std::uint64_t>(memory.data() + at), 8 * count, done);
    (void)finishes(done);
    for (int i = 0; i < 100; ++i) progress();
    return s;
  };
  ASSERT_TRUE(put(8, 4));
  EXPECT_EQ(memory[8], 10U);
  EXPECT_EQ(memory[11], 13U);
  EXPECT_FALSE(far_.failed());
  (void)put(10, 3);  // one word too far
  EXPECT_EQ(memory[10], 12U);
  EXPECT_EQ(memory[12], 1U);
  EXPECT_TRUE(far_.failed()) << "who writes where it may not is not heard any more";
}

/// A hostile peer with a link to a worker that offers no memory, like the agent's worker.
class ClaimsOfHolders : public testing::Test {
 protected:
  std::shared_ptr<Context> context_ = *Context::create(Transport::kTcp);
  std::unique_ptr<Worker> worker_ = *Worker::create(context_);
};

TEST_F(ClaimsOfHolders, HeadOfALargeMessage_ExpectNoMemoryBeforeItsBytesCome) {
  constexpr std::size_t kLinks = 40;
  std::vector<std::unique_ptr<ByteStream>> others;
  std::vector<Endpoint> ends;
  for (std::size_t i = 0; i < kLinks; ++i) {
    auto [other, ours] = stream_pair();
    others.push_back(std::move(other));
    ends.push_back(Endpoint::over(*worker_, std::move(ours)));
  }
  const auto held = [] {
    const struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
  };
  const std::size_t before = held();
  const FrameHead head{std::uint64_t{16} << 20, FrameType::kMessage, 5};
  for (const auto& other : others) write_all(*other, std::as_bytes(std::span(&head, 1)));
  for (int i = 0; i < 100; ++i) worker_->progress();
  EXPECT_LT(held() - before, kLinks << 20) << "640 MiB were announced, and nothing of it came";
}

TEST_F(ClaimsOfHolders, ReadsWhoseAnswersNobodyTakes_ExpectTheConnectionToEndSoon) {
  auto [other, ours] = stream_pair();
  const Endpoint end = Endpoint::over(*worker_, std::move(ours));
  struct {
    FrameHead head{16, FrameType::kRead, 0};
    std::uint64_t address = 4096, bytes = 64;
  } read;
  std::size_t asked = 0;
  EXPECT_TRUE(turn_until([&] {
    ++read.head.number;
    const iovec part{&read, sizeof read};
    if (other->write({&part, 1}).bytes != 0) ++asked;
    worker_->progress();
    return end.failed();
  }));
  EXPECT_EQ(end.status().code(), StatusCode::kProtocol) << end.status().message();
  EXPECT_LT(asked, 100'000U);
}

TEST_F(Links, MoreGetsThanMayWait_ExpectAllOfThemToFinish) {
  Bytes source(1 << 16), target(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7);
  const auto region = far_context_->register_memory(source.data(), source.size());
  const auto arena = near_context_->register_memory(target.data(), target.size());
  ASSERT_TRUE(region && arena);
  const RemoteRegion there = remote(source.data(), source.size());
  Completion done;
  for (std::size_t at = 0; at < source.size(); at += 4) {
    ASSERT_TRUE(
        near_.get(target.data() + at, *arena, there, reinterpret_cast<std::uint64_t>(source.data() + at), 4, done));
  }
  EXPECT_GT(source.size() / 4, StreamLink::kMaxReads) << "else this shows nothing";
  ASSERT_TRUE(finishes(done));
  EXPECT_EQ(done.error(), nullptr);
  EXPECT_EQ(source, target);
}

TEST_F(Links, OtherSideGone_ExpectWhatIsUnderWayToFail) {
  Bytes to(100);
  const auto local = *near_context_->register_memory(to.data(), to.size());
  Completion done;
  ASSERT_TRUE(near_.get(to.data(), local, remote(to.data(), 100), 4096, 100, done));
  far_ = {};
  ASSERT_TRUE(finishes(done));
  EXPECT_NE(done.error(), nullptr);
  EXPECT_TRUE(near_.failed());
  EXPECT_FALSE(near_.send(5, to, done));
}

/// Tests frames that a correct peer never sends.
TEST(StreamFrames, Wrong_ExpectTheConnectionToEndAndNothingElse) {
  const auto frame = [](std::uint64_t bytes, std::uint32_t type, std::uint32_t number, std::size_t body) {
    Writer out;
    out.put(bytes);
    out.put(type);
    out.put(number);
    Bytes all = std::move(out).take();
    all.resize(all.size() + body);
    return all;
  };
  for (const Bytes& bytes :
       {frame(0, 0, 0, 0), frame(8, 99, 0, 8), frame(~std::uint64_t{0}, 1, 5, 100), frame((16 << 20) + 1, 1, 5, 0),
        frame(8, 2, 1, 8), frame(100, 3, 1, 100), frame(8, 4, 1, 8), frame(8, 5, 0, 8), frame(17, 5, 0, 17),
        frame(16, 5, 0, 16), frame(1000, 5, 0, 1000), frame(1, 6, 0, 1)}) {
    auto [a, b] = stream_pair();
    const auto context = *Context::create(Transport::kTcp);
    const auto worker = *Worker::create(context);
    worker->stream()->offer_memory(true);
    const Endpoint endpoint = Endpoint::over(*worker, std::move(a));
    write_all(*b, bytes);
    EXPECT_TRUE(turn_until([&] {
      worker->progress();
      return endpoint.failed();
    }));
    EXPECT_EQ(endpoint.status().code(), StatusCode::kProtocol);
  }
}

}  // namespace
}  // namespace wherry::fabric
