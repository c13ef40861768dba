// SPDX-License-Identifier: Apache-2.0
// How replies are cut out of what arrives, and how a measurement ends.
#include <gtest/gtest.h>

#include <string_view>

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

/// Answers at once; an error when it is asked for an answer to nothing.
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
