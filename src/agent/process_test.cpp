// SPDX-License-Identifier: Apache-2.0
// Tests the agent as a process: its core, its log, its memory under load, and messages that wait while it is stopped.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/process_testing.hpp"
#include "base/cpu.hpp"
#include "base/testing.hpp"

namespace wherry {
namespace {

using testing_support::AgentProcess;
using testing_support::Child;
using testing_support::eventually;
using testing_support::expect_alive;
using testing_support::kPatience;
using namespace std::chrono_literals;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The value of a line such as "VmRSS: 1234 kB" in the status of a process; empty if the line is missing.
std::string status_of(pid_t pid, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  }
  return {};
}

/// The number of writable shared mappings of a process.
std::ptrdiff_t shared_mappings(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  std::ptrdiff_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.find(" rw-s ") != line.npos ? 1 : 0;
  return count;
}

SessionOptions embedded_options() {
  SessionOptions options;
  options.agent = "embedded";
  options.embedded.program = WHERRYD_PROGRAM;
  options.embedded.budget_bytes = 64 << 20;
  return options;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need address space themselves
/// Leaves enough address space for the agent's memory, but not for the stacks of its threads.
void little_address_space() {
  const rlimit little{200 << 20, 200 << 20};
  (void)setrlimit(RLIMIT_AS, &little);
}

TEST(Wherryd, ThreadsCannotBeHad_ExpectAnErrorAndNothingLeft) {
  const auto directory = *TemporaryDirectory::create("test");
  const std::string said = directory.file("said"), file = directory.file("agent.json");
  ASSERT_EQ(setenv("TEST_OF_WHERRYD_SAID", said.c_str(), 1), 0);
  testing_support::Child child(WHERRYD_PROGRAM, {"--session-file", file, "--budget", "16MiB"}, [] {
    const int to = open(getenv("TEST_OF_WHERRYD_SAID"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)dup2(to, STDERR_FILENO);
    little_address_space();
  });
  ASSERT_TRUE(testing_support::eventually([&] { return child.ended(); })) << "it hangs";
  EXPECT_EQ(child.wait(), 1);
  std::ifstream words(said);
  const std::string text(std::istreambuf_iterator<char>(words), {});
  EXPECT_NE(text.find("thread"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(control_socket_for(file)));
  EXPECT_FALSE(std::filesystem::exists(local_socket_for(file)));
}
#endif

TEST(Embedded, AgentStartsServesAndEndsWithItsSession) {
  int pid = 0;
  {
    auto session = Session::open(embedded_options());
    ASSERT_TRUE(session) << session.status().message();
    pid = session->info().agent_pid;
    EXPECT_EQ(::kill(pid, 0), 0);
    auto stream = Stream::open(*session, {.name = "e"}, {field<double>("x")});
    const std::vector<double> x(1000, 1.0);
    EXPECT_TRUE(stream->post({Column(x)})->wait(kPatience));
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(Embedded, ApplicationHasAnOpenPipe_ExpectTheAgentNotToHoldIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // without O_CLOEXEC
  Fd reader(ends[0]), writer(ends[1]);
  const auto session = Session::open(embedded_options());
  ASSERT_TRUE(session) << session.status().message();
  writer.reset();
  pollfd end{reader.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&end, 1, 0), 1) << "the agent holds the pipe's other end";
  EXPECT_NE(end.revents & POLLHUP, 0);
  EXPECT_EQ(::kill(session->info().agent_pid, 0), 0);
}

TEST(Embedded, AgentHasACoreOfItsOwn) {
  const std::vector<int> before = allowed_cores();
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "this machine has one core";
  // The caller is pinned to each allowed core in turn, as applications are pinned.
  for (const int mine : before) {
    ASSERT_TRUE(pin_thread({mine}));
    auto session = Session::open(embedded_options());
    EXPECT_TRUE(pin_thread(before));
    ASSERT_TRUE(session) << session.status().message();
    const std::string allowed = status_of(session->info().agent_pid, "Cpus_allowed_list");
    EXPECT_EQ(allowed.find_first_not_of("0123456789"), std::string::npos) << "not pinned to one core: " << allowed;
    EXPECT_NE(allowed, std::to_string(mine)) << "the agent shares the core of its caller";
  }
  // Now request a core by its number.
  SessionOptions options = embedded_options();
  options.embedded.core = before.front();
  auto session = Session::open(options);
  ASSERT_TRUE(session) << session.status().message();
  EXPECT_EQ(status_of(session->info().agent_pid, "Cpus_allowed_list"), std::to_string(before.front()));
}

TEST(Log, GoesToTheFileThatTheSettingNamesAndStaysThere) {
  const auto directory = *TemporaryDirectory::create("test");
  const std::string file = directory.file("agent.log");
  for (int start = 1; start <= 2; ++start) {
    AgentProcess agent({"--log-level", "info", "--log-file", file});
    expect_alive(agent.options(), "logged");
    EXPECT_NE(text_of(file).find("stream 'logged' opened by "), std::string::npos) << "written as it happens";
    agent.child().kill(SIGTERM);
    EXPECT_EQ(agent.child().wait(), 0);
    const std::string text = text_of(file);
    EXPECT_NE(text.find("draining"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << "no colours in a file";
    // The file has one such line for each start, because a restart appends.
    int starts = 0;
    for (std::size_t at = 0; (at = text.find(" agent on ", at)) != std::string::npos; ++at) ++starts;
    EXPECT_EQ(starts, start) << text;
  }
  Child wrong(WHERRYD_PROGRAM, {"--session-file", directory.file("agent.json"), "--log-file", file + "/below"});
  EXPECT_EQ(wrong.wait(), 2) << "a log that cannot be written is a wrong setting";
}

TEST(Sessions, ManyComeAndGo_ExpectTheAgentToKeepNoMemoryOfThem) {
  AgentProcess agent;
  const pid_t pid = agent.child().pid();
  const auto after_a_session = [&] {
    expect_alive(agent.options());
    EXPECT_TRUE(eventually([&] { return agent.metric("wherry_agent_sessions") == 0; }));
    return shared_mappings(pid);
  };
  const std::ptrdiff_t before = after_a_session();
  ASSERT_GT(before, 0);
  std::ptrdiff_t after = 0;
  for (int i = 0; i < 10; ++i) after = after_a_session();
  EXPECT_EQ(after, before);
}

TEST(Load, TenThousandOffloadsFromFourProcessesLeaveTheAgentAsItWas) {
  AgentProcess agent({"--budget", "64MiB"});
  const auto offload_from_four = [&](const char* each) {
    std::vector<std::unique_ptr<Child>> clients;
    for (const char* name : {"a", "b", "c", "d"}) {
      clients.push_back(
          std::make_unique<Child>(FAULT_CLIENT_PROGRAM, std::vector<std::string>{agent.file(), "load", name, each}));
    }
    for (const auto& client : clients) EXPECT_EQ(client->wait(), 0);
    EXPECT_TRUE(eventually([&] { return agent.metric("wherry_agent_sessions") == 0; }));
  };
  const auto kib = [&](const char* key) { return std::atol(status_of(agent.child().pid(), key).c_str()); };
  offload_from_four("500");
  const double used = agent.metric("wherry_agent_used_bytes");
  const long resident = kib("VmRSS");
  const long own = kib("RssAnon");
  ASSERT_GT(used, 0);
  ASSERT_GT(own, 0);
  offload_from_four("2000");
  EXPECT_EQ(agent.metric("wherry_move_offloads_total"), 10'000);
  EXPECT_EQ(agent.metric("wherry_agent_used_bytes"), used) << "eight kept frames of the same sizes each";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A leak of 128 bytes for each offload would add 1 MiB. Touched pages of the arena stay resident.
  EXPECT_LT(kib("RssAnon") - own, 1024) << "KiB more after 10,000 offloads than after 2,000";
  EXPECT_LT(kib("VmRSS") - resident, 4096);
#else
  (void)resident;
#endif
}

class Burst : public testing::TestWithParam<Transport> {};

TEST_P(Burst, OffloadsPostedWhileTheAgentStandsStill_ExpectReadyAloneToBringThemIn) {
  constexpr std::size_t kTickets = 4096;
  AgentProcess agent;
  SessionOptions options = agent.options();
  options.max_tickets = kTickets;
  options.transport = GetParam();
  auto session = Session::open(options);
  ASSERT_TRUE(session) << session.status().message();
  auto stream = Stream::open(*session, {.name = "burst"}, {field<double>("x"), field<float>("y")});
  ASSERT_TRUE(stream) << stream.status().message();
  const std::vector<double> x(100, 1.0);
  const std::vector<float> y(100, 2.0F);
  auto region = session->register_memory(x.data(), x.size() * sizeof(double));
  ASSERT_TRUE(region);

  agent.child().stop();
  std::vector<Ticket> tickets;
  const auto post = [&] {
    auto ticket = stream->post({Column(x), Column(y)}, {.tag = tickets.size()});
    if (ticket) tickets.push_back(*ticket);
    return ticket.status();
  };
  Status last = ok_status();
  while (last && tickets.size() < kTickets) last = post();
  const std::size_t while_stopped = tickets.size();
  if (last) last = post();
  const bool early = std::any_of(tickets.begin(), tickets.end(), [](const Ticket& t) { return t.ready(); });
  agent.child().kill(SIGCONT);
  // Messages wait in the mailbox or in UCX. A full mailbox causes back-pressure, as a lack of tickets does.
  EXPECT_GE(while_stopped, 1000U);
  EXPECT_TRUE(last.is_would_block()) << last.to_string();
  EXPECT_FALSE(early);

  EXPECT_TRUE(eventually([&] {
    while (tickets.size() < kTickets) {
      if (const Status s = post(); !s) return !s.is_would_block();
    }
    return std::all_of(tickets.begin(), tickets.end(), [](const Ticket& t) { return t.ready(); });
  }));
  ASSERT_EQ(tickets.size(), kTickets);
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const Status s = tickets[i].wait(0ms);
    ASSERT_TRUE(s) << i << ": " << s.message();
    ASSERT_EQ(tickets[i].sequence(), i);
  }
  EXPECT_EQ(session->in_flight(), 0U);
  EXPECT_EQ(agent.metric("wherry_move_offloads_total"), kTickets);
}

/// A session that has posted more messages to a stopped agent than UCX has room for.
class Stalled {
 public:
  explicit Stalled(Transport transport) {
    SessionOptions options = agent.options();
    options.max_tickets = 4096;
    options.transport = transport;
    auto opened = Session::open(options);
    if (!opened) throw std::runtime_error(opened.status().message());
    session = std::make_unique<Session>(*std::move(opened));
    auto stream = Stream::open(*session, {.name = "burst", .strategy = Strategy::kRaw}, {});
    if (!stream) throw std::runtime_error(stream.status().message());
    stream_ = std::make_unique<Stream>(*std::move(stream));
    std::vector<std::span<const std::byte>> buffers;  // too many for the mailbox
    for (const char& byte : bytes_) buffers.push_back(std::as_bytes(std::span(&byte, 1)));
    auto region = session->register_memory(bytes_.data(), bytes_.size());
    if (!region) throw std::runtime_error(region.status().message());
    region_ = std::make_unique<Region>(*std::move(region));
    agent.child().stop();
    for (int i = 0; i < 500; ++i) {
      auto ticket = stream_->post_raw(buffers);
      if (!ticket) break;
      last = *std::move(ticket);
    }
  }
  AgentProcess agent;
  std::unique_ptr<Session> session;
  std::optional<Ticket> last;

 private:
  const std::string bytes_ = std::string(20'000, 'x');
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Region> region_;
};

TEST_P(Burst, AgentKilledWithMessagesOnTheirWayInUcx_ExpectTheSessionToEnd) {
  Stalled stalled(GetParam());
  stalled.agent.child().kill(SIGKILL);
  EXPECT_EQ(stalled.session->drain(kPatience).code(), StatusCode::kUnavailable);
}

TEST_P(Burst, SessionClosedWhileAnotherThreadAsksForATicket_ExpectItCancelled) {
  Stalled stalled(GetParam());
  ASSERT_TRUE(stalled.last);
  std::atomic<bool> asking{false};
  std::thread asks([&] {
    while (!stalled.last->ready()) asking = true;
  });
  EXPECT_TRUE(eventually([&] { return asking.load(); }));
  (void)stalled.session->close(0ms);
  asks.join();
  EXPECT_EQ(stalled.last->wait(0ms).code(), StatusCode::kCancelled);
  stalled.agent.child().kill(SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(Agent, Burst, testing::Values(Transport::kAuto, Transport::kTcp),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

}  // namespace
}  // namespace wherry
