// SPDX-License-Identifier: Apache-2.0
// Tests workers that listen, like processes of a job. Each connects to the other over loopback, with and without TLS.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <new>
#include <optional>
#include <random>

#include "base/secret.hpp"
#include "base/socket.hpp"
#include "base/testing.hpp"
#include "fabric/fabric.hpp"
#include "fabric/stream_address.hpp"
#include "fabric/stream_worker.hpp"
#include "fabric/tls_testing.hpp"

namespace wherry::fabric {
namespace {

using namespace std::chrono_literals;
using testing_support::kPatience;
using testing_support::turn_until;

class Workers : public testing::Test {
 protected:
  struct One {
    std::shared_ptr<Context> context = *Context::create(Transport::kTcp);
    std::unique_ptr<Worker> worker = *Worker::create(context);
    Bytes payload = Bytes(100);  // what is sent lies still for as long as the endpoint may have it
    Endpoint endpoint;
    int messages = 0;
  };
  static std::unique_ptr<One> make(const TlsFiles& tls = {}) {
    auto one = std::make_unique<One>();
    EXPECT_TRUE(
        one->worker->on_message(1, [](void* self, ByteView) { ++static_cast<One*>(self)->messages; }, one.get()));
    const Status s = one->worker->listen({.listen = "lo", .tls = tls});
    EXPECT_TRUE(s) << s.message();
    return one;
  }
  static void connect(One& from, One& to, const std::string& who) {
    from.endpoint = *Endpoint::connect(*from.worker, to.worker->address(), who);
  }
  static TlsFiles certificates(const std::string& authority, const std::string& name, const std::string& subject) {
    static testing_support::Certificates made;
    return made.files(authority, name, subject);
  }
  static bool arrives(One& from, One& to) {
    const int before = to.messages;
    Completion done;
    if (!from.endpoint.send(1, from.payload, done)) return false;
    return turn_until([&] {
             from.worker->progress();
             to.worker->progress();
             return to.messages > before || from.endpoint.failed() || to.endpoint.failed();
           }) &&
           to.messages > before;
  }
};

TEST_F(Workers, EachConnectsToTheOther_ExpectMessagesBothWays) {
  const auto a = make(), b = make();
  connect(*a, *b, "b");
  connect(*b, *a, "a");
  EXPECT_TRUE(arrives(*a, *b));
  EXPECT_TRUE(arrives(*b, *a));
}

TEST_F(Workers, PeerThatIsBusyForSeconds_ExpectItReachedAfterThem) {
  const auto a = make(), b = make();
  connect(*a, *b, "b");
  for (const Deadline deadline(4s); !deadline.passed();) a->worker->progress();
  EXPECT_FALSE(a->endpoint.failed()) << a->endpoint.status().message();
  EXPECT_TRUE(arrives(*a, *b));
}

TEST_F(Workers, EndpointGoesWithMessagesUnderWay_ExpectThemToldBeforeItHasGone) {
  for (const bool met : {false, true}) {
    const auto a = make(), b = make();
    connect(*a, *b, "b");
    std::optional<Endpoint> second = *Endpoint::connect(*a->worker, b->worker->address(), "b");
    if (met) {
      ASSERT_TRUE(arrives(*a, *b));
    }
    // Completions that are freed with their endpoint, as by a bridge. A second endpoint to this peer remains.
    auto done = std::make_unique<std::array<Completion, 3>>();
    auto large = std::make_unique<Bytes>(16 << 20);
    for (Completion& one : *done) ASSERT_TRUE(second->send(1, *large, one));
    for (int round = 0; round < 1000; ++round) a->worker->progress();
    ASSERT_EQ(done->back().pending(), 1U) << "b, which makes no progress, has taken it";
    second.reset();
    EXPECT_EQ(done->back().pending(), 0U);
    EXPECT_NE(done->back().error(), nullptr);
    done.reset();
    large.reset();
    for (int round = 0; round < 1000; ++round) a->worker->progress();
    EXPECT_TRUE(a->endpoint.failed());
    EXPECT_FALSE(arrives(*a, *b));
  }
}

TEST_F(Workers, ChildOfForkEndsItsCopyOfAnEndpoint_ExpectNobodyToldThere) {
  const auto a = make(), b = make();
  connect(*a, *b, "b");
  ASSERT_TRUE(arrives(*a, *b));
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& done = *new (memory) Completion;
  const Bytes large(16 << 20);
  ASSERT_TRUE(a->endpoint.send(1, large, done));
  ASSERT_EQ(done.pending(), 1U);
  const pid_t child = fork();
  if (child == 0) {  // where the completion may have gone before
    if (mprotect(memory, page, PROT_NONE) != 0) _exit(2);
    a->endpoint = {};
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(done.pending(), 1U);
  a->endpoint = {};
  EXPECT_EQ(done.pending(), 0U);
  munmap(memory, page);
}

/// The value of a TCP option for each connection of this process that was accepted at `port`.
std::vector<int> of_connections_at(std::uint16_t port, int option) {
  std::vector<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in at{}, from{};
    socklen_t size = sizeof at, from_size = sizeof from, value_size = sizeof(int);
    int value = 0;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0 || ntohs(at.sin_port) != port) continue;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&from), &from_size) != 0) continue;  // the listener
    if (::getsockopt(fd, IPPROTO_TCP, option, &value, &value_size) == 0) found.push_back(value);
  }
  return found;
}

TEST_F(Workers, ConnectionsThatCameIn_ExpectTheKernelToMissTheirSendersWithinThePeerTimeout) {
  for (const TlsFiles& tls : {TlsFiles(), certificates("authority", "alive", "IP:127.0.0.1")}) {
    const auto a = make(tls), b = make(tls);
    connect(*a, *b, "b");
    ASSERT_TRUE(arrives(*a, *b)) << a->endpoint.status().message();
    const std::uint16_t port = decode_stream_address(b->worker->address())->candidates.front().port;
    // Keep-alive sends a probe after `idle` s, then one every `every` s, until `count` have no answer.
    const int most = static_cast<int>(StreamOptions().peer_timeout.count());
    const std::vector<int> idle = of_connections_at(port, TCP_KEEPIDLE), every = of_connections_at(port, TCP_KEEPINTVL),
                           count = of_connections_at(port, TCP_KEEPCNT);
    ASSERT_EQ(idle.size(), 1U);
    EXPECT_LE(idle[0] + every[0] * count[0], most);
  }
}

TEST_F(Workers, StrangerWithAnotherSecret_ExpectItNamedAndNothingDelivered) {
  const auto a = make(), b = make();
  auto address = *decode_stream_address(b->worker->address());
  address.secret = make_token() + make_token();
  a->endpoint = *Endpoint::connect(*a->worker, encode(address), "rank 7");
  EXPECT_FALSE(arrives(*a, *b));
  EXPECT_EQ(a->endpoint.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(a->endpoint.status().message().find("rank 7"), std::string::npos) << a->endpoint.status().message();
  EXPECT_EQ(b->messages, 0);
}

TEST_F(Workers, PeerThatEndsWithoutAFarewell_ExpectItNamedOnTheOtherSide) {
  const auto a = make();
  auto b = make();
  connect(*a, *b, "rank 1");
  connect(*b, *a, "rank 0");
  ASSERT_TRUE(arrives(*a, *b) && arrives(*b, *a));
  b->endpoint = {};
  b.reset();
  ASSERT_TRUE(turn_until([&] {
    a->worker->progress();
    return a->endpoint.failed();
  }));
  EXPECT_NE(a->endpoint.status().message().find("rank 1"), std::string::npos) << a->endpoint.status().message();
}

TEST_F(Workers, PeerThatSaysGoodbye_ExpectNoFailure) {
  const auto a = make();
  auto b = make();
  connect(*a, *b, "rank 1");
  connect(*b, *a, "rank 0");
  ASSERT_TRUE(arrives(*a, *b) && arrives(*b, *a));
  ASSERT_TRUE(turn_until([&] {
    b->worker->progress();
    return b->endpoint.say_bye();
  }));
  b->endpoint = {};
  b.reset();
  for (const Deadline deadline(300ms); !deadline.passed();) a->worker->progress();
  EXPECT_FALSE(a->endpoint.failed()) << a->endpoint.status().message();
  Completion done;
  EXPECT_TRUE(a->endpoint.send(1, a->payload, done)) << "what is sent to who has left goes nowhere";
}

TEST_F(Workers, StrangersAtTheListener_ExpectTheJobToGoOn) {
  const auto a = make(), b = make();
  const HostPort at = decode_stream_address(b->worker->address())->candidates.front();
  std::vector<Fd> stalled;
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    stalled.push_back(*connect_tcp(at, Deadline(kPatience)));
    std::string bytes(random() % 80, 0);
    for (char& c : bytes) c = static_cast<char>(random());
    (void)::send(stalled.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    b->worker->progress();
  }
  connect(*a, *b, "b");
  connect(*b, *a, "a");
  EXPECT_TRUE(arrives(*a, *b));
  EXPECT_TRUE(arrives(*b, *a));
}

// ---------------------------------------------------------------- TLS

class StreamTls : public Workers {
 protected:
  static TlsFiles files(const std::string& authority, const std::string& name, const std::string& subject) {
    return certificates(authority, name, subject);
  }
};

TEST_F(StreamTls, CertificatesOfOneAuthority_ExpectMessagesBothWays) {
  const TlsFiles tls = files("authority", "node", "IP:127.0.0.1,IP:::1");
  const auto a = make(tls), b = make(tls);
  connect(*a, *b, "b");
  connect(*b, *a, "a");
  EXPECT_TRUE(arrives(*a, *b)) << a->endpoint.status().message();
  EXPECT_TRUE(arrives(*b, *a)) << b->endpoint.status().message();
  EXPECT_EQ(a->endpoint.transports(), "stream/tcp+tls");
}

TEST_F(StreamTls, CertificateOfAnotherAuthorityOrHost_ExpectTheReason) {
  const TlsFiles right = files("authority", "right", "IP:127.0.0.1");
  for (const auto& [wrong, reason] : {std::pair(files("stranger", "strange", "IP:127.0.0.1"), "certificate"),
                                      std::pair(files("authority", "elsewhere", "IP:192.0.2.1"), "mismatch")}) {
    const auto a = make(right), b = make(wrong);
    connect(*a, *b, "rank 1");
    EXPECT_FALSE(arrives(*a, *b));
    EXPECT_NE(a->endpoint.status().message().find(reason), std::string::npos) << a->endpoint.status().message();
    EXPECT_EQ(b->messages, 0);
  }
}

TEST_F(StreamTls, OneSideWithout_ExpectTlsNamedByEither) {
  const TlsFiles tls = files("authority", "half", "IP:127.0.0.1");
  const auto a = make(tls), b = make();
  connect(*a, *b, "rank 1");
  connect(*b, *a, "rank 0");
  EXPECT_TRUE(turn_until([&] {
    a->worker->progress();
    b->worker->progress();
    return a->endpoint.failed() && b->endpoint.failed();
  }));
  EXPECT_EQ(a->messages + b->messages, 0);
  EXPECT_NE(a->endpoint.status().message().find("TLS"), std::string::npos) << a->endpoint.status().message();
  EXPECT_NE(b->endpoint.status().message().find("speaks TLS"), std::string::npos) << b->endpoint.status().message();
}

TEST_F(StreamTls, FilesThatDoNotFit_ExpectWhich) {
  const TlsFiles good = files("authority", "fit", "IP:127.0.0.1");
  const TlsFiles other = files("authority", "other", "IP:127.0.0.1");
  EXPECT_NE(Tls::server({good.certificate, other.key, {}}).status().message().find("tls.key"), std::string::npos);
  EXPECT_NE(Tls::server({"/nowhere.pem", good.key, {}}).status().message().find("/nowhere.pem"), std::string::npos);
  EXPECT_EQ(Tls::server({{}, {}, good.ca}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Tls::client({good.certificate, {}, good.ca}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Tls::client({{}, {}, good.ca}));
}

/// Gets under TLS read memory through a copy. A fault must not end the process.
TEST_F(StreamTls, MemoryUnmappedUnderTheGet_ExpectTheGetToFail) {
  const TlsFiles tls = files("authority", "fault", "IP:127.0.0.1");
  const auto a = make(tls), b = make(tls);
  b->worker->stream()->offer_memory(true);
  connect(*a, *b, "b");
  connect(*b, *a, "a");
  ASSERT_TRUE(arrives(*a, *b) && arrives(*b, *a));
  constexpr std::size_t kBytes = 1 << 18;
  auto* gone =
      static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto offered = *b->context->register_memory(gone, kBytes);
  mprotect(gone + kBytes / 2, kBytes / 2, PROT_NONE);
  Bytes to(kBytes);
  const auto local = *a->context->register_memory(to.data(), kBytes);
  Completion done;
  ASSERT_TRUE(a->endpoint.get(to.data(), local,
                              *a->endpoint.unpack({}, reinterpret_cast<std::uint64_t>(gone), kBytes, 0),
                              reinterpret_cast<std::uint64_t>(gone), kBytes, done));
  ASSERT_TRUE(turn_until([&] {
    a->worker->progress();
    b->worker->progress();
    return done.pending() == 0;
  }));
  EXPECT_NE(done.error(), nullptr);
  munmap(gone, kBytes);
}

}  // namespace
}  // namespace wherry::fabric
