// SPDX-License-Identifier: Apache-2.0
// Tests how one connection affects the others: strangers without the token, clients that lie or do not read, and
// services that fail for one client.
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>
#include <set>
#include <thread>

#include "agent/process_testing.hpp"
#include "agent/sequence_testing.hpp"
#include "agent/testing.hpp"
#include "base/socket.hpp"
#include "base/testing.hpp"
#include "base/unix_socket.hpp"
#include "session/connection.hpp"
#include "session/session_core.hpp"

namespace wherry {
namespace {

using session::ControlType;
using testing_support::AgentProcess;
using testing_support::eventually;
using testing_support::expect_alive;
using testing_support::kPatience;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;

FrameChannel stranger(const Agent& agent) {
  auto socket = connect_tcp(*parse_host_port(agent.address()), Deadline(kPatience));
  EXPECT_TRUE(socket) << socket.status().message();
  return FrameChannel(*std::move(socket));
}

AgentConfig listening(std::uint64_t max_sessions) {
  AgentConfig config;
  config.listen = "127.0.0.1:0";
  config.max_sessions = max_sessions;
  return config;
}

TEST(Strangers, ManyOpenConnections_ExpectSessionsToOpenAllTheSame) {
  ThreadAgent agent(listening(2));
  std::vector<FrameChannel> strangers;
  for (int i = 0; i < 300; ++i) strangers.push_back(stranger(agent.agent()));
  Session first = agent.open();
  Session second = agent.open();
  for (int i = 0; i < 300; ++i) strangers.push_back(stranger(agent.agent()));
  const auto third = Session::open(agent.options());
  EXPECT_EQ(third.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(third.status().message().find("2 sessions already"), std::string::npos) << third.status().message();
  auto stream = Stream::open(first, {.name = "x"}, {field<double>("x")});
  ASSERT_TRUE(stream) << stream.status().message();
  const std::vector<double> x(1000, 1.0);
  EXPECT_TRUE(stream->post({Column(x)})->wait(kPatience));
}

TEST(Strangers, LongMessageBeforeTheToken_ExpectNoRoomMadeForIt) {
  ThreadAgent agent(listening(2));
  FrameChannel channel = stranger(agent.agent());
  (void)channel.post(static_cast<std::uint16_t>(ControlType::kHello), Bytes(100'000));
  auto answer = channel.receive(Deadline(kPatience));
  if (answer) {
    const auto failure = session::decode_failure(answer->payload);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, StatusCode::kProtocol);
  } else {
    EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);  // the answer was lost with the connection
  }
  EXPECT_TRUE(eventually([&] { return channel.peer_gone(); }));
}

TEST(Strangers, ManyThatAreTurnedAway_ExpectFewLinesInTheLog) {
  const auto directory = *TemporaryDirectory::create("log");
  const std::string log = directory.file("agent.log");
  const AgentProcess agent({"--log-level", "warn", "--log-file", log});
  const std::string socket = control_socket_for(agent.file());
  for (int i = 0; i < 500; ++i) {
    auto connected = connect_unix(socket, Deadline(kPatience));
    ASSERT_TRUE(connected) << connected.status().message();
    FrameChannel channel(*std::move(connected));
    ASSERT_TRUE(channel.send(99, {}, Deadline(kPatience)));
    (void)channel.receive(Deadline(kPatience));
  }
  EXPECT_TRUE(eventually([&] { return agent.metric("wherry_agent_refused_total") == 500; }));
  std::ifstream file(log);
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  EXPECT_GE(lines, 1);
  EXPECT_LE(lines, 200) << "ten in ten seconds";
  expect_alive(agent.options());
}

/// UBSan opens a pipe to check the type of an object, once for each type. Without a descriptor for the pipe it reports
/// every object; these reports must not end the process.
void survive_ubsan() { (void)::setenv("UBSAN_OPTIONS", "halt_on_error=0", 1); }

/// Limits the new process to `Limit` descriptors. It cannot raise the limit.
template <rlim_t Limit>
void few_descriptors() {
  survive_ubsan();
  const rlimit few{Limit, Limit};
  (void)setrlimit(RLIMIT_NOFILE, &few);
}

/// Opens connections that send nothing.
std::vector<Fd> idle_connections(const HostPort& to, int count) {
  std::vector<Fd> all;
  for (int i = 0; i < count; ++i) {
    auto one = connect_tcp(to, Deadline(2s));
    if (!one) break;  // the backlog is full
    all.push_back(*std::move(one));
  }
  return all;
}

/// How many connections the other side has not closed, including those in its backlog.
std::ptrdiff_t still_open(const std::vector<Fd>& connections) {
  return std::ranges::count_if(connections, [](const Fd& one) {
    pollfd p{one.get(), POLLRDHUP, 0};
    return ::poll(&p, 1, 0) == 0;
  });
}

TEST(Strangers, IdleConnectionsToFlight_ExpectSessionsToOpenAllTheSame) {
  const AgentProcess agent({"--flight", "127.0.0.1:0"}, few_descriptors<400>);
  const std::string flight = agent.flight();
  const auto strangers = idle_connections(*parse_host_port(flight.substr(flight.find("//") + 2)), 600);
  EXPECT_TRUE(eventually([&] { return Session::open(agent.options()).ok(); }));
  EXPECT_TRUE(eventually([&] { return still_open(strangers) <= 100; }));  // until then the next ones take their places
  expect_alive(agent.options());
}

TEST(Sessions, PortOfMetricsAtAnotherAddress_ExpectThemLeftAlone) {
  std::unique_ptr<AgentProcess> agent;
  const std::uint16_t port = testing_support::free_port();
  const std::string metrics = HostPort{"127.0.0.1", port}.to_string();
  agent = std::make_unique<AgentProcess>(
      std::vector<std::string>{"--listen", HostPort{"127.0.0.2", port}.to_string(), "--metrics", metrics});
  const auto file = read_session_file(agent->file());
  ASSERT_TRUE(file) << file.status().message();
  SessionOptions remote;
  remote.agent = HostPort{file->host, file->port}.to_string();
  remote.token = file->token;
  std::vector<Session> sessions;  // two connections each: more than metrics may have
  for (int i = 0; i < 16; ++i) {
    auto session = Session::open(remote);
    ASSERT_TRUE(session) << session.status().message();
    sessions.push_back(*std::move(session));
  }
  const auto strangers = idle_connections({"127.0.0.1", port}, 30);
  EXPECT_TRUE(eventually([&] { return still_open(strangers) <= 16 + 5; })) << "these are limited, but for the backlog";
  std::this_thread::sleep_for(300ms);  // some more looks
  EXPECT_EQ(agent->metric("wherry_agent_sessions"), 16);
  for (Session& session : sessions) EXPECT_TRUE(Stream::open(session, {.name = "s"}, {field<double>("x")}));
}

TEST(Strangers, IdleConnectionsToMetrics_ExpectThePageAndSessionsAllTheSame) {
  const AgentProcess agent({}, few_descriptors<400>);
  const std::string at = read_session_file(agent.file())->metrics;
  const auto strangers = idle_connections(*parse_host_port(at.substr(7, at.find("/metrics") - 7)), 120);
  EXPECT_TRUE(eventually([&] { return Session::open(agent.options()).ok(); }));
  expect_alive(agent.options());
  EXPECT_TRUE(eventually([&] { return agent.page("").find(" 401 ") != std::string::npos; }));
}

/// UCX starts a thread with its first transport. If that finds no descriptor, UCX's second attempt ends the process. So
/// UCX must start its thread before strangers can connect.
TEST(Strangers, AgentThatNobodyHasUsed_ExpectTheThreadOfUcxToRun) {
  AgentProcess agent({"--flight", "127.0.0.1:0"});
  std::multiset<std::string> names;
  for (const auto& one : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", agent.child().pid()))) {
    std::string name;
    std::ifstream(one.path() / "comm") >> name;
    names.insert(name);
  }
  EXPECT_EQ(names.count("async"), 1U) << ::testing::PrintToString(names);
}

/// Lets a running process open only `more` further descriptors.
void leave_descriptors(int pid, int more) {
  std::set<std::string> open;
  for (const auto& one : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
    open.insert(one.path().filename());
  rlimit limit{};
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, nullptr, &limit), 0);
  limit.rlim_cur = 0;
  for (; more > 0 || open.contains(std::to_string(limit.rlim_cur)); ++limit.rlim_cur)
    more -= open.contains(std::to_string(limit.rlim_cur)) ? 0 : 1;
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &limit, nullptr), 0);
}

TEST(Strangers, NoDescriptorsLeft_ExpectTheAgentToRestAndToServeAfterwards) {
  AgentProcess agent({"--listen", "127.0.0.1:0"}, survive_ubsan);
  const auto file = read_session_file(agent.file());
  const HostPort at{file->host, file->port};
  const int pid = agent.child().pid();
  rlimit before{};
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, nullptr, &before), 0);
  const auto seconds = [&] {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string word;
    for (int i = 0; i < 14; ++i) stat >> word;  // up to utime; the program's name has no space
    double user = std::stod(word), kernel = 0;
    stat >> kernel;
    return (user + kernel) / static_cast<double>(sysconf(_SC_CLK_TCK));
  };
  leave_descriptors(pid, 0);
  auto strangers = idle_connections(at, 110);  // nobody can make way for them
  std::this_thread::sleep_for(200ms);
  const double earlier = seconds();
  std::this_thread::sleep_for(2s);
  EXPECT_LT(seconds() - earlier, 0.5) << "of 2 s";
  strangers.clear();
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_TRUE(eventually([&] { return Session::open(agent.options()).ok(); }));
}

/// Strangers from one address that open `count` silent connections, a few ms apart, and replace each connection that
/// ends.
class SilentCrowd {
 public:
  SilentCrowd(const HostPort& at, std::size_t count) : thread_([this, at, count] { run(at, count); }) {}
  ~SilentCrowd() {
    over_ = true;
    thread_.join();
  }
  /// Waits until that many connections have been made.
  bool has_made(std::size_t count) {
    return eventually([&] { return made_ >= count; });
  }

 private:
  Fd connect(const HostPort& at) {
    Fd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    (void)::bind(one.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(at.port);
    (void)::connect(one.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ++made_;
    return one;
  }
  void run(const HostPort& at, std::size_t count) {
    std::vector<Fd> all;
    for (std::size_t next = 0; !over_; next = (next + 1) % count) {
      if (all.size() <= next) {
        all.push_back(connect(at));
      } else {
        pollfd ended{all[next].get(), POLLRDHUP, 0};
        if (::poll(&ended, 1, 0) == 1 && (ended.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
          all[next] = connect(at);
      }
      std::this_thread::sleep_for(2ms);
    }
  }
  std::atomic<bool> over_{false};
  std::atomic<std::size_t> made_{0};
  std::thread thread_;
};

TEST(Strangers, MoreSilentConnectionsThanDescriptors_ExpectLocalAndRemoteClientsToBeServed) {
  const AgentProcess agent({"--listen", "127.0.0.1:0"}, few_descriptors<400>);
  const auto file = read_session_file(agent.file());
  SessionOptions remote;
  remote.agent = HostPort{file->host, file->port}.to_string();
  remote.token = file->token;
  remote.connect_timeout = 20s;
  SessionOptions local = agent.options();
  local.connect_timeout = 20s;
  SilentCrowd strangers({file->host, file->port}, 600);
  ASSERT_TRUE(strangers.has_made(600));
  std::vector<Session> held;
  for (int i = 0; i < 4; ++i) {
    for (const SessionOptions& options : {local, remote}) {
      auto session = Session::open(options);
      ASSERT_TRUE(session) << i << ": " << session.status().message();
      held.push_back(*std::move(session));
    }
  }
  expect_alive(local, "local");
  expect_alive(remote, "remote");
}

TEST(Clients, TheAgentIsOutOfDescriptors_ExpectThatAsTheReasonAndTheRemedy) {
  AgentProcess agent({}, survive_ubsan);
  const int pid = agent.child().pid();
  rlimit before{};
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, nullptr, &before), 0);
  for (const Transport transport : {Transport::kShm, Transport::kAuto}) {
    SessionOptions options = agent.options();
    options.transport = transport;
    std::string said;
    const bool told = eventually([&] {  // until what earlier sessions held has been closed
      leave_descriptors(pid, 2);
      const Status refused = Session::open(options).status();
      said = refused.message();
      return refused.code() == StatusCode::kResourceExhausted;
    });
    EXPECT_TRUE(told) << said;
    for (const char* const words : {"the agent has no file descriptors left", "Too many open files", "ulimit -n"})
      EXPECT_NE(said.find(words), std::string::npos) << said;
  }
  SessionOptions impatient = agent.options();
  impatient.connect_timeout = 500ms;
  Status waited;
  EXPECT_TRUE(eventually([&] {
    leave_descriptors(pid, 0);  // it cannot even accept
    waited = Session::open(impatient).status();
    return waited.code() == StatusCode::kDeadlineExceeded;
  })) << waited.message();
  EXPECT_NE(waited.message().find("it has no file descriptors left"), std::string::npos) << waited.message();
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &before, nullptr), 0);
  expect_alive(agent.options());
}

TEST(Clients, TheApplicationIsOutOfDescriptors_ExpectItToBeNamed) {
  const AgentProcess agent;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  leave_descriptors(getpid(), 2);
  const Status refused = Session::open(agent.options()).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("this process has no file descriptors left"), std::string::npos)
      << refused.message();
  expect_alive(agent.options());
}

TEST(Clients, NameWithANewline_ExpectOneLineInTheLog) {
  const auto directory = *TemporaryDirectory::create("log");
  const std::string log = directory.file("agent.log");
  const AgentProcess agent({"--log-level", "info", "--log-file", log});
  SessionOptions options = agent.options();
  options.name =
      "a\n2026-01-01T00:00:00.000 error forged\x1b[31m\xc2\x9b"
      "1mgr\xc3\xbc\xe2\x80\x99n";  // U+009B is CSI
  {
    const auto session = Session::open(options);
    ASSERT_TRUE(session) << session.status().message();
  }
  const auto text = [&] {
    std::ifstream file(log);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ASSERT_TRUE(eventually([&] { return text().find(" ended") != std::string::npos; }));
  EXPECT_EQ(text().find("\n2026-01-01"), std::string::npos) << text();
  EXPECT_EQ(text().find("\x1b[31m"), std::string::npos);
  EXPECT_NE(text().find("a\\n2026-01-01T00:00:00.000 error forged\\x1b[31m\\x9b1mgr\xc3\xbc\xe2\x80\x99n"),
            std::string::npos)
      << text();
}

TEST(Metrics, AskedWithoutTheToken_ExpectRefusal) {
  const AgentProcess agent;
  for (const std::string& header :
       {std::string(), std::string("Authorization: Bearer wrong\r\n"), "Authorization: " + agent.token() + "\r\n"}) {
    const std::string page = agent.page(header);
    EXPECT_NE(page.find(" 401 "), std::string::npos) << page;
    EXPECT_EQ(page.find("wherry_agent"), std::string::npos) << page;
  }
  EXPECT_NE(agent.metrics().find("wherry_agent_sessions 0"), std::string::npos) << agent.metrics();
}

TEST(Metrics, DeclaredPublic_ExpectThePageWithoutTheToken) {
  const AgentProcess agent({"--metrics-public", "true"});
  EXPECT_NE(agent.page("").find("wherry_agent_sessions 0"), std::string::npos);
}

/// A client that sends requests and does not read the answers.
class Silent : public session::Connection {
 public:
  static std::unique_ptr<Silent> open(const SessionOptions& options) {
    auto session = Connection::open(options, [] { return std::unique_ptr<Connection>(new Silent); });
    EXPECT_TRUE(session) << session.status().message();
    return std::unique_ptr<Silent>(static_cast<Silent*>(session->release()));
  }
  using Connection::tell;

 private:
  Silent() = default;
};

TEST(Clients, OneDoesNotReadItsAnswers_ExpectOthersToBeServedAndItselfLater) {
  ThreadAgent agent;
  SessionOptions options = agent.options();
  options.max_tickets = 1;
  const auto silent = Silent::open(options);
  const auto other = *session::Connection::open(options);
  const std::string nobody(4000, 'x');  // its name comes back in the answer
  int asked = 0;
  const Deadline deadline(kPatience);
  while (!deadline.passed()) {
    const auto told = silent->tell(nobody, "status", {});
    if (told) {
      ++asked;
      continue;
    }
    ASSERT_EQ(told.status().code(), StatusCode::kResourceExhausted) << told.status().message();
    break;  // the agent reads no more requests before it got rid of its answers
  }
  EXPECT_GT(asked, 500);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(other->request("move", "status", {}));
  const auto answer = silent->request("move", "status", {});
  EXPECT_TRUE(answer) << answer.status().message();
}

/// A service that fails for each client that asks it to fail.
class Failing final : public session::Service {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "failing"; }
  [[nodiscard]] unsigned message_id() const noexcept override { return 30; }
  Result<Bytes> on_request(session::Client&, std::string_view method, ByteView) override {
    if (method == "poll") throw_in_poll_ = true;
    if (method == "memory") throw std::bad_alloc();
    if (method == "logic") throw std::out_of_range("an index");
    return Bytes();
  }
  void on_message(session::Client&, ByteView) override { throw std::bad_alloc(); }
  bool poll() override {
    if (std::exchange(throw_in_poll_, false)) throw std::bad_alloc();
    return false;
  }

 private:
  bool throw_in_poll_ = false;
};

TEST(Services, ThrowForOneClient_ExpectItsSessionToEndAndOthersToGoOn) {
  (void)init_log("off", "");
  const auto directory = *TemporaryDirectory::create("test");
  AgentConfig config;
  config.session_file = directory.file("agent.json");
  config.services["flight.listen"] = "off";
  Services services = make_services();
  services.push_back(std::make_unique<Failing>());
  auto agent = *Agent::create(config, std::move(services));
  std::atomic<bool> stop{false};
  std::thread thread([&] { EXPECT_TRUE(agent->run(stop, false)); });
  EXPECT_TRUE(eventually([&] { return read_session_file(config.session_file).ok(); }));
  SessionOptions options;
  options.agent = config.session_file;
  options.max_tickets = 1;
  for (const Transport transport : {Transport::kShm, Transport::kTcp}) {
    options.transport = transport;
    const auto other = *session::Connection::open(options);
    for (const char* how : {"memory", "logic"}) {
      const auto session = *session::Connection::open(options);
      EXPECT_FALSE(session->request("failing", how, {}));
      EXPECT_TRUE(eventually([&] { return !session->health(); }));
    }
    const auto session = *session::Connection::open(options);
    fabric::Completion sent;
    const std::uint64_t id = session->id();
    if (session->mailbox()) {
      std::byte* to = session->mailbox().try_reserve(sizeof id);
      ASSERT_NE(to, nullptr);
      std::memcpy(to, &id, sizeof id);
      session->mailbox().publish(30);
    } else {
      const auto lock = session->lock_fabric();
      ASSERT_TRUE(session->endpoint().send(30, std::as_bytes(std::span(&id, 1)), sent));
    }
    EXPECT_TRUE(eventually([&] {
      const auto lock = session->lock_fabric();
      session->worker().progress();
      return !session->health();
    }));
    EXPECT_EQ(session->health().code(), StatusCode::kResourceExhausted) << session->health().message();
    EXPECT_TRUE(other->request("failing", "poll", {}));
    EXPECT_TRUE(other->request("failing", "nothing", {}));
    EXPECT_TRUE(other->request("move", "status", {}));
  }
  stop.store(true);
  thread.join();
}

TEST(Sequences, ControlMessagesInAnyOrder_ExpectTheAgentToServeOn) {
  const ThreadAgent agent;
  testing_support::SequencePlayer player(const_cast<ThreadAgent&>(agent).agent());
  std::mt19937 random(7);
  for (int round = 0; round < 80; ++round) {
    Bytes bytes(random() % 200);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 8));
    player.play(bytes);
  }
  expect_alive(agent.options());
}

}  // namespace
}  // namespace wherry
