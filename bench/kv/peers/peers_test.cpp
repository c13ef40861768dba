// SPDX-License-Identifier: Apache-2.0
// Tests how the clients split received bytes into replies, and how a measurement ends.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/socket.hpp"
#include "kv/peers/http2.hpp"
#include "kv/peers/peer.hpp"
#include "kv/peers/resp.hpp"

namespace wherry::kv::bench {
namespace {

using namespace std::string_view_literals;

ByteView bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Resp, RepliesOfOurCommands_ExpectKindNumberAndLength) {
  const auto ok = first_reply(bytes("+OK\r\n:1\r\n"));
  ASSERT_TRUE(ok);
  EXPECT_EQ(ok->kind, '+');
  EXPECT_EQ(ok->text, "OK");
  EXPECT_EQ(ok->bytes, 5U);
  const auto replicas = first_reply(bytes(":12\r\n"));
  ASSERT_TRUE(replicas);
  EXPECT_EQ(replicas->number, 12);
  const auto value = first_reply(bytes("$4\r\na\r\nb\r\nrest"));
  ASSERT_TRUE(value);
  EXPECT_EQ(value->number, 4);
  EXPECT_EQ(value->bytes, 10U);
  const auto none = first_reply(bytes("$-1\r\n"));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->number, -1);
  EXPECT_EQ(none->bytes, 5U);
  const auto error = first_reply(bytes("-ERR no\r\n"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->text, "ERR no");
}

TEST(Resp, EveryPrefixOfAReply_ExpectNoneYet) {
  const std::string_view whole = "$4\r\nabcd\r\n";
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(first_reply(bytes(whole.substr(0, n)))) << n;
}

TEST(Resp, OtherThings_ExpectNoReply) {
  for (const std::string_view text : {"\r\n", "HTTP/1.1\r\n", ":x\r\n", "$1x\r\n"}) {
    const auto reply = first_reply(bytes(text));
    ASSERT_TRUE(reply) << text;
    EXPECT_EQ(reply->kind, 0) << text;
  }
}

TEST(Http2, FrameThatWasMade_ExpectItBack) {
  const auto header = http2::header(0x010203, http2::Type::data, http2::kEndStream, 0x7f000001);
  Bytes whole(header.begin(), header.end());
  EXPECT_FALSE(http2::first_frame(whole));
  whole.resize(http2::kHeaderBytes + 0x010203);
  const auto frame = http2::first_frame(whole);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->type, 0);
  EXPECT_EQ(frame->flags, 1);
  EXPECT_EQ(frame->stream, 0x7f000001U);
  EXPECT_EQ(frame->payload.size(), 0x010203U);
  whole.pop_back();
  EXPECT_FALSE(http2::first_frame(whole));
}

TEST(Http2, HeadersOfACall_ExpectHpack) {
  EXPECT_EQ(http2::grpc_headers("/p", "a"),
            "\x83\x86\x04\x02/p\x01\x01"
            "a\x0f\x10\x10"
            "application/grpc\x00\x02te\x08trailers"sv);
}

/// A minimal etcd for one client. Its output was written by hand, from RFC 9113.
class EtcdByHand {
 public:
  EtcdByHand() {
    auto listener = listen_tcp({"127.0.0.1", 0});
    EXPECT_TRUE(listener) << listener.status().message();
    auto peer = connect_etcd(HostPort{"127.0.0.1", *local_port(*listener)}.to_string(), 8);
    EXPECT_TRUE(peer) << peer.status().message();
    peer_ = *std::move(peer);
    socket_ = Fd(::accept(listener->get(), nullptr, nullptr));
  }
  [[nodiscard]] Peer& peer() noexcept { return *peer_; }

  void send(http2::Type type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
    const auto header = http2::header(payload.size(), type, flags, stream);
    ASSERT_EQ(::write(socket_.get(), header.data(), header.size()), static_cast<ssize_t>(header.size()));
    ASSERT_EQ(::write(socket_.get(), payload.data(), payload.size()), static_cast<ssize_t>(payload.size()));
  }
  /// A reply that is longer than a value of eight bytes.
  void answer(std::uint32_t stream) {
    send(http2::Type::headers, http2::kEndHeaders, stream, "\x88"sv);
    send(http2::Type::data, 0, stream,
         "\0\0\0\0\x10"
         "0123456789abcdef"sv);
    send(http2::Type::headers, http2::kEndHeaders | http2::kEndStream, stream, "\x88"sv);
  }
  /// Polls until `count` operations have ended, or one fails.
  wherry::Status ended(std::size_t count, std::vector<std::uint32_t>& tags) {
    const Deadline deadline(std::chrono::seconds(20));
    while (tags.size() < count) {
      if (deadline.passed()) return {StatusCode::kDeadlineExceeded, "no answer"};
      if (auto s = peer_->poll(tags); !s) return s;
      peer_->wait(Idle::sleep);
    }
    return {};
  }

 private:
  std::unique_ptr<Peer> peer_;
  Fd socket_;
};

TEST(Etcd, ServerWantsNoMoreOfARequestThatItHasAnswered_ExpectTheAnswerAndTheNextOne) {
  EtcdByHand etcd;
  std::vector<std::uint32_t> tags;
  etcd.peer().read(7, 1);
  ASSERT_TRUE(etcd.peer().flush());
  etcd.answer(1);
  etcd.send(http2::Type::reset, 0, 1, "\0\0\0\0"sv);
  etcd.peer().read(8, 1);
  ASSERT_TRUE(etcd.peer().flush());
  etcd.answer(3);
  const auto s = etcd.ended(2, tags);
  EXPECT_TRUE(s) << s.message();
  EXPECT_EQ(tags, (std::vector<std::uint32_t>{7, 8}));
}

TEST(Etcd, ServerEndsACall_ExpectTheErrorOfHttp2) {
  for (const auto code : {"\0\0\0\0"sv, "\0\0\0\x08"sv}) {
    EtcdByHand etcd;
    std::vector<std::uint32_t> tags;
    etcd.peer().read(7, 1);
    ASSERT_TRUE(etcd.peer().flush());
    etcd.send(http2::Type::reset, 0, 1, code);
    const auto s = etcd.ended(1, tags);
    EXPECT_EQ(s.code(), StatusCode::kUnavailable);
    EXPECT_EQ(s.message(), fmt::format("etcd has ended a call: HTTP/2 error {}", static_cast<int>(code.back())));
  }
}

TEST(Etcd, ServerEndsTheConnection_ExpectItsReason) {
  for (const auto& [payload, reason] :
       {std::pair{"\0\0\0\0\0\0\0\x0btoo_many_pings"sv, "11, too_many_pings"}, std::pair{"\0\0"sv, "unknown"}}) {
    EtcdByHand etcd;
    std::vector<std::uint32_t> tags;
    etcd.peer().read(7, 1);
    ASSERT_TRUE(etcd.peer().flush());
    etcd.send(http2::Type::go_away, 0, 0, payload);
    EXPECT_EQ(etcd.ended(1, tags).message(), fmt::format("etcd has ended the connection: HTTP/2 error {}", reason));
  }
}

/// Answers at once. Fails if it is polled without an operation.
class AtOnce : public Peer {
 public:
  void read(std::uint32_t tag, std::uint64_t /*key*/) override { posted_.push_back(tag); }
  void write(std::uint32_t tag, std::uint64_t /*key*/, ByteView /*value*/) override { posted_.push_back(tag); }
  wherry::Status flush() override { return {}; }
  wherry::Status poll(std::vector<std::uint32_t>& ended) override {
    if (posted_.empty()) return {StatusCode::kInternal, "nothing is in flight"};
    ended.swap(posted_);
    posted_.clear();
    return {};
  }
  void wait(Idle /*how*/) const noexcept override {}

 private:
  std::vector<std::uint32_t> posted_;
};

TEST(Load, EndOfTimeBetweenTwoOperations_ExpectNoWaitForNothing) {
  for (int n = 0; n < 20'000; ++n) {
    AtOnce peer;
    const auto result = load(peer, {.seconds = 1e-6 + n % 100 * 1e-9, .warm_up = 0});
    ASSERT_TRUE(result) << n << ": " << result.status().message();
  }
}

}  // namespace
}  // namespace wherry::kv::bench
