// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "base/bytes.hpp"
#include "base/copy.hpp"
#include "base/cpu.hpp"
#include "base/frame_channel.hpp"
#include "base/log.hpp"
#include "base/socket.hpp"
#include "base/testing.hpp"

namespace wherry {
namespace {

using testing_support::kPatience;
using namespace std::chrono_literals;

TEST(Reader, StaysFailedAfterAShortRead) {
  Writer out;
  out.put(std::uint32_t{7});
  out.put_string("abc");
  Reader in(out.bytes());
  EXPECT_EQ(in.get<std::uint32_t>(), 7U);
  EXPECT_EQ(in.get_string(), "abc");
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(in.get<std::uint64_t>(), 0U);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.get_string(), "");
}

TEST(Reader, ALengthBeyondTheEndIsAFailureNotARead) {
  Writer out;
  out.put(std::uint32_t{0xffffffff});
  Reader in(out.bytes());
  EXPECT_TRUE(in.get_bytes().empty());
  EXPECT_FALSE(in.ok());
}

TEST(CopyStreaming, EqualsMemcpyAtEveryAlignmentAndSize) {
  std::vector<std::byte> from(41000);
  std::mt19937 random(1);
  for (auto& b : from) b = static_cast<std::byte>(random());
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 65UL, 127UL, 128UL, 1000UL, 4096UL, 16384UL, 40000UL}) {
    for (std::size_t shift_to = 0; shift_to < 64; shift_to += 21) {
      for (std::size_t shift_from = 0; shift_from < 64; shift_from += 31) {
        std::vector<std::byte> to(41000, std::byte{0xAA});
        copy_streaming(to.data() + shift_to, from.data() + shift_from, bytes);
        ASSERT_EQ(std::memcmp(to.data() + shift_to, from.data() + shift_from, bytes), 0) << bytes;
        for (std::size_t i = 0; i < to.size(); ++i) {
          if (i < shift_to || i >= shift_to + bytes) {
            ASSERT_EQ(to[i], std::byte{0xAA}) << i;
          }
        }
      }
    }
  }
}

/// Copies 4 MiB in `pieces` pieces, `transfers` times. cold, warm: the time of each kind of copy in ns per MiB, while
/// the memory is new and afterwards. Returns the kind that is chosen at the end.
bool streams_in_the_end(std::size_t pieces, std::array<std::uint64_t, 2> cold, std::array<std::uint64_t, 2> warm) {
  constexpr std::size_t kWhole = std::size_t{4} << 20;
  CopyChooser chooser;
  for (std::uint32_t transfer = 0; transfer < 2 * CopyChooser::kTrials; ++transfer) {
    const bool streaming = chooser.streams(kWhole);
    EXPECT_EQ(streaming, transfer % 2 == 1);
    for (std::size_t i = 0; i < pieces; ++i) {
      EXPECT_EQ(chooser.streams(kWhole), streaming) << "a transfer is copied one way";
      chooser.note(kWhole / pieces, kWhole, 4 * (transfer < 4 ? cold : warm)[streaming ? 1 : 0] / pieces);
    }
  }
  return chooser.streams(kWhole);
}

TEST(CopyChooser, MemoryIsNewAtFirst_ExpectTheCopyThatIsFasterLater_HoweverManyPieces) {
  for (const std::size_t pieces : {1UL, 4UL, 16UL, 64UL}) {
    EXPECT_FALSE(streams_in_the_end(pieces, {80'000, 60'000}, {24'000, 48'000})) << pieces;
    EXPECT_TRUE(streams_in_the_end(pieces, {80'000, 90'000}, {70'000, 48'000})) << pieces;
  }
}

TEST(HostPort, TakesNamesAndBothFamilies) {
  EXPECT_EQ(parse_host_port("127.0.0.1:80")->port, 80);
  EXPECT_EQ(parse_host_port("[::1]:81")->host, "::1");
  EXPECT_EQ(parse_host_port("[::1]:81")->to_string(), "[::1]:81");
  for (const char* wrong : {"", ":", "host", "host:", "host:x", "host:70000", ":80", "host:-1", "host:80x"}) {
    EXPECT_FALSE(parse_host_port(wrong)) << wrong;
  }
}

struct Pair {
  FrameChannel a, b;
  int raw = -1;
};
Pair make_pair() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  return {FrameChannel(Fd(fds[0])), FrameChannel(Fd(fds[1])), fds[0]};
}

TEST(FrameChannel, CarriesFramesOfAnySizeUpToTheLimit) {
  Pair p = make_pair();
  Bytes large(kMaxFrameBytes - 2, std::byte{5});
  std::thread sender([&] {
    EXPECT_TRUE(p.a.send(1, {}, Deadline(kPatience)));
    EXPECT_TRUE(p.a.send(2, large, Deadline(kPatience)));
  });
  auto first = p.b.receive(Deadline(kPatience));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->type, 1);
  auto second = p.b.receive(Deadline(kPatience));
  sender.join();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->payload, large);
  large.push_back({});
  EXPECT_EQ(p.a.send(3, large, Deadline(std::chrono::seconds(1))).code(), StatusCode::kInvalidArgument);
}

TEST(FrameChannel, ReceiveAbsurdLength_ExpectProtocolError) {
  Pair p = make_pair();
  const std::uint32_t absurd = 0xfffffff0;
  ASSERT_EQ(::send(p.raw, &absurd, 4, 0), 4);
  ASSERT_EQ(::send(p.raw, &absurd, 4, 0), 4);
  EXPECT_EQ(p.b.receive(Deadline(std::chrono::seconds(1))).status().code(), StatusCode::kProtocol);
}

TEST(FrameChannel, SendTimesOutHalfWay_ExpectPeerToReadWholeFramesOnly) {
  auto [a, b, raw] = make_pair();
  const Bytes first(kMaxFrameBytes - 2, std::byte{1});  // more than the socket holds
  const Bytes second(1000, std::byte{2});
  EXPECT_EQ(a.send(1, first, Deadline(0ms)).code(), StatusCode::kDeadlineExceeded);
  ASSERT_GT(a.unsent(), 0U);
  EXPECT_EQ(a.send(2, second, Deadline(0ms)).code(), StatusCode::kDeadlineExceeded);  // did not get its turn
  std::thread reader([b = std::move(b), &first, &second]() mutable {
    for (const Bytes* wanted : {&first, &second}) {
      auto frame = b.receive(Deadline(kPatience));
      ASSERT_TRUE(frame) << frame.status().message();
      EXPECT_TRUE(frame->payload == *wanted);
    }
  });
  EXPECT_TRUE(a.send(3, second, Deadline(kPatience)));
  reader.join();
}

TEST(FrameChannel, PostToAPeerThatDoesNotRead_ExpectItNotToBlockAndALimit) {
  auto [a, b, raw] = make_pair();
  const Bytes payload(100'000, std::byte{7});
  Status s;
  int posted = 0;
  for (; s && posted < 1000; ++posted) s = a.post(1, payload);
  EXPECT_EQ(s.code(), StatusCode::kResourceExhausted);
  EXPECT_LE(a.unsent(), kMaxUnsentBytes);
  for (int i = 0; i < posted - 1; ++i) {
    std::optional<ControlFrame> frame;
    for (const Deadline deadline(kPatience); !frame && !deadline.passed();) {
      ASSERT_TRUE(a.flush());
      auto received = b.try_receive();
      ASSERT_TRUE(received) << received.status().message();
      frame = *std::move(received);
    }
    ASSERT_TRUE(frame && frame->payload == payload) << i;
  }
  EXPECT_EQ(a.unsent(), 0U);
}

TEST(FrameChannel, PeerLeaves_ExpectUnavailable) {
  Pair p = make_pair();
  EXPECT_FALSE(p.b.peer_gone());
  EXPECT_EQ(p.b.receive(Deadline(std::chrono::milliseconds(5))).status().code(), StatusCode::kDeadlineExceeded);
  p.a.close();
  EXPECT_TRUE(p.b.peer_gone());
  EXPECT_EQ(p.b.receive(Deadline(std::chrono::seconds(1))).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(p.b.send(1, {}, Deadline(std::chrono::seconds(1))).code(), StatusCode::kUnavailable);
}

TEST(Cpu, RefusesACoreThatIsNotThere) {
  EXPECT_FALSE(pin_thread({-1}));
  EXPECT_FALSE(pin_thread({1000}));
  const auto cores = allowed_cores();
  ASSERT_FALSE(cores.empty());
  EXPECT_TRUE(pin_thread({cores.front()}));
  EXPECT_EQ(current_core(), cores.front());
  EXPECT_TRUE(pin_thread(cores));
}

TEST(Log, NamesTheLevelsItKnows) {
  const Status s = init_log("loud", "");
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(s.message().find("debug"), std::string::npos);
  EXPECT_EQ(init_log("info", "/proc/nowhere/x").code(), StatusCode::kInvalidArgument);
}

TEST(Status, Ok_ExpectItToAskWhetherTheStatusIsSuccess) {
  EXPECT_TRUE(ok_status().ok());
  EXPECT_FALSE(Status(StatusCode::kUnavailable, "gone").ok());
  EXPECT_FALSE(Status::would_block().ok());
  EXPECT_FALSE(Result<int>(Status(StatusCode::kNotFound, "none")).ok());
  EXPECT_EQ(Result<int>(Status(StatusCode::kNotFound, "none")).value_or(7), 7);
}

TEST(ResultDeathTest, UseOfAFailedResult_ExpectItsStatusAndAnAbort) {
  Result<std::string> failed(Status(StatusCode::kNotFound, "no stream 'x'"));
  EXPECT_DEATH((void)failed->size(), "not found: no stream 'x'");
  EXPECT_DEATH((void)*failed, "not found: no stream 'x'");
  EXPECT_DEATH((void)failed.value(), "not found: no stream 'x'");
}

TEST(Status, SaysWhatAndWhy) {
  EXPECT_EQ(Status(StatusCode::kSourceFault, "buffer 3").to_string(), "source fault: buffer 3");
  EXPECT_TRUE(Status::would_block().is_would_block());
  for (int c = 0; c <= static_cast<int>(StatusCode::kInternal); ++c) {
    EXPECT_NE(to_string(static_cast<StatusCode>(c)), "unknown status");
  }
}

}  // namespace
}  // namespace wherry
