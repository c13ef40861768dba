// SPDX-License-Identifier: Apache-2.0
// Tests what the agent needs from a service, with services that only this test knows.
#include "session/service.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "agent/testing.hpp"
#include "base/socket.hpp"
#include "session/connection.hpp"

namespace wherry {
namespace {

using namespace std::chrono_literals;
using session::Client;
using session::MetricsWriter;
using session::ServiceHost;
using testing_support::eventually;
using testing_support::kPatience;
using testing_support::ThreadAgent;

/// A service with only the functions that it must have.
struct Echo final : session::Service {
  std::string_view name() const noexcept override { return "echo"; }
  Result<Bytes> on_request(Client&, std::string_view, ByteView payload) override {
    return Bytes(payload.begin(), payload.end());
  }
};

/// Events that a Dummy records. The agent owns the Dummy, so they are kept here.
struct Seen {
  std::atomic<int> polls{0}, messages{0}, starts{0}, ends{0}, stops{0};
  std::string greeting;
  std::size_t budget = 0;
  bool has_plane = false, drained = false, flushed = false;
};

/// Uses every part of the interface.
class Dummy final : public session::Service {
 public:
  explicit Dummy(Seen& seen) : seen_(seen) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "dummy"; }
  [[nodiscard]] unsigned message_id() const noexcept override { return 29; }
  Settings settings() override {
    return {text_setting("dummy.greeting", "dummy_greeting", seen_.greeting, "any text")};
  }
  [[nodiscard]] Status check_settings() const override {
    return seen_.greeting == "none" ? Status(StatusCode::kInvalidArgument, "dummy.greeting: say something")
                                    : ok_status();
  }
  Status start(ServiceHost& host) override {
    seen_.budget = host.arena->capacity();
    const auto plane = host.plane(Transport::kShm);
    seen_.has_plane = plane && (*plane)->worker != nullptr && (*plane)->arena.size() == host.arena->memory().size();
    return seen_.greeting == "refuse" ? Status(StatusCode::kUnavailable, "the dummy does not start") : ok_status();
  }
  void announce(SessionFile& file) const override { file.flight = "grpc://dummy"; }
  void on_session_start(Client&) override { ++seen_.starts; }
  void on_session_end(Client&) override { ++seen_.ends; }
  Result<Bytes> on_request(Client&, std::string_view method, ByteView payload) override {
    if (method == "break") broken_ = true;
    return Bytes(payload.rbegin(), payload.rend());
  }
  void on_message(Client&, ByteView) override { ++seen_.messages; }
  bool poll() override { return ++seen_.polls, false; }
  void metrics(MetricsWriter& out) const override {
    out.counter("dummy_messages_total", "Messages.", static_cast<std::uint64_t>(seen_.messages));
  }
  void shared_metrics(MetricsWriter& out) const override { out.gauge("dummy_shared", "Of any thread.", 1); }
  [[nodiscard]] Status health() const override {
    return broken_ ? Status(StatusCode::kUnavailable, "the dummy was told to break") : ok_status();
  }
  bool drained() override { return seen_.drained = true; }
  Status flush(std::chrono::milliseconds) override { return seen_.flushed = true, ok_status(); }
  Status stop(std::chrono::milliseconds) override { return ++seen_.stops, ok_status(); }

 private:
  Seen& seen_;
  bool broken_ = false;
};

/// The metrics page as a holder of the token gets it.
std::string page_of(const Agent& agent) {
  const std::string url = agent.announced().metrics;  // http://host:port/metrics
  const std::string where = url.substr(7, url.find('/', 7) - 7);
  auto socket = connect_tcp(*parse_host_port(where), Deadline(kPatience));
  EXPECT_TRUE(socket) << socket.status().message();
  const std::string request = "GET /metrics HTTP/1.0\r\nAuthorization: Bearer " + agent.token() + "\r\n\r\n";
  EXPECT_EQ(::send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  std::string page;
  std::array<char, 4096> part;
  pollfd one{socket->get(), POLLIN, 0};
  while (::poll(&one, 1, 60'000) == 1) {
    const ssize_t n = ::recv(socket->get(), part.data(), part.size(), 0);
    if (n <= 0) break;
    page.append(part.data(), static_cast<std::size_t>(n));
  }
  return page;
}

Bytes bytes_of(std::string_view text) {
  const ByteView view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

TEST(Services, OneOfFiveLinesAddedByALine_ExpectItHosted) {
  Services services = make_services();
  services.push_back(std::make_unique<Echo>());
  ThreadAgent agent({}, std::move(services));
  const auto session = *session::Connection::open(agent.options());
  EXPECT_EQ(*session->request("echo", "anything", bytes_of("hello")), bytes_of("hello"));
  EXPECT_TRUE(session->request("move", "status", {}));
  EXPECT_NE(page_of(agent.agent()).find("wherry_service_healthy{service=\"echo\"} 1"), std::string::npos);
}

TEST(Services, OneThatUsesEverything_ExpectItAskedPolledShownAndStopped) {
  Seen seen;
  {
    Services services = make_services();
    services.push_back(std::make_unique<Dummy>(seen));
    AgentConfig config;
    config.budget = 16 << 20;
    config.services["dummy.greeting"] = "good morning";
    ThreadAgent agent(config, std::move(services));
    EXPECT_EQ(seen.greeting, "good morning");
    EXPECT_EQ(seen.budget, std::size_t{16} << 20);
    EXPECT_TRUE(seen.has_plane);
    EXPECT_EQ(read_session_file(agent.session_file())->flight, "grpc://dummy");
    for (const Transport transport : {Transport::kShm, Transport::kTcp}) {
      SessionOptions options = agent.options();
      options.transport = transport;
      const int messages = seen.messages;
      const auto session = *session::Connection::open(options);
      EXPECT_EQ(session->info().flight_uri, "grpc://dummy");
      EXPECT_EQ(*session->request("dummy", "reverse", bytes_of("abc")), bytes_of("cba"));
      fabric::Completion sent;
      const std::uint64_t id = session->id();
      if (session->mailbox()) {
        std::byte* const to = session->mailbox().try_reserve(sizeof id);
        ASSERT_NE(to, nullptr);
        std::memcpy(to, &id, sizeof id);
        session->mailbox().publish(29);
      } else {
        const auto lock = session->lock_fabric();
        ASSERT_TRUE(session->endpoint().send(29, std::as_bytes(std::span(&id, 1)), sent));
      }
      EXPECT_TRUE(eventually([&] { return seen.messages == messages + 1; }));
    }
    EXPECT_TRUE(eventually([&] { return seen.ends == 2; }));
    EXPECT_EQ(seen.starts, 2);
    EXPECT_GT(seen.polls, 0);

    std::string page = page_of(agent.agent());
    for (const char* line :
         {"dummy_messages_total 2", "dummy_shared 1", "wherry_service_healthy{service=\"dummy\"} 1",
          "wherry_service_healthy{service=\"move\"} 1", "wherry_service_healthy{service=\"route\"} 1"})
      EXPECT_NE(page.find(line), std::string::npos) << line << " in: " << page;
    const auto session = *session::Connection::open(agent.options());
    ASSERT_TRUE(session->request("dummy", "break", {}));
    page = page_of(agent.agent());
    EXPECT_NE(page.find("wherry_service_healthy{service=\"dummy\"} 0"), std::string::npos) << page;
  }
  EXPECT_TRUE(seen.drained);
  EXPECT_TRUE(seen.flushed);
  EXPECT_EQ(seen.stops, 1);
}

TEST(Services, OneDoesNotStartOrIsSetWrongly_ExpectNoAgentAndTheReason) {
  const auto directory = *TemporaryDirectory::create("test");
  for (const auto& [greeting, code] :
       {std::pair{"refuse", StatusCode::kUnavailable}, std::pair{"none", StatusCode::kInvalidArgument}}) {
    Seen seen;
    Services services = make_services();
    services.push_back(std::make_unique<Dummy>(seen));
    AgentConfig config;
    config.session_file = directory.file("agent.json");
    config.services["dummy.greeting"] = greeting;
    const auto agent = Agent::create(config, std::move(services));
    EXPECT_EQ(agent.status().code(), code) << agent.status().message();
    EXPECT_NE(agent.status().message().find("dummy"), std::string::npos) << agent.status().message();
  }
}

TEST(Services, AskedForAMethodThatOneLacks_ExpectItsNameInTheError) {
  ThreadAgent agent;
  const auto session = *session::Connection::open(agent.options());
  for (const char* service : {"move", "route"}) {
    const auto answer = session->request(service, "fly", {});
    ASSERT_FALSE(answer);
    EXPECT_NE(answer.status().message().find("fly"), std::string::npos) << answer.status().message();
  }
}

}  // namespace
}  // namespace wherry
