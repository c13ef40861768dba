// SPDX-License-Identifier: Apache-2.0
// Tests sessions after fork(): the child's calls fail, its exit does not harm the parent, and the agent notices the
// parent's death although the child lives.
#include <fcntl.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "agent/process_testing.hpp"
#include "agent/testing.hpp"
#include "base/testing.hpp"
#include "session/connection.hpp"
#include "session/session_core.hpp"

namespace wherry {
namespace {

using testing_support::AgentProcess;
using testing_support::eventually;
using testing_support::kPatience;
using namespace std::chrono_literals;

/// The result of `body` in a child of fork(). -1: the child was killed.
template <typename Body>
int in_child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);  // a child that hangs fails the test
    _exit(body());
  }
  int how = 0;
  EXPECT_EQ(waitpid(pid, &how, 0), pid);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

/// Counts failures in child processes, where EXPECT cannot report them.
class Failures {
 public:
  void expect_refused(const Status& s, const char* what) { expect(refused(s), what, s); }
  void expect(bool good, const char* what, const Status& s = ok_status()) {
    if (good) return;
    std::fprintf(stderr, "in the child: %s: %s\n", what, s.to_string().c_str());
    ++count_;
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  static bool refused(const Status& s) {
    return s.code() == StatusCode::kFailedPrecondition && s.message().find("is a fork") != std::string::npos &&
           s.message().find(std::to_string(getppid())) != std::string::npos;
  }
  int count_ = 0;
};

class Forks : public testing::TestWithParam<Transport> {
 protected:
  [[nodiscard]] SessionOptions options() const {
    SessionOptions options = agent_.options();
    options.transport = GetParam();
    return options;
  }
  AgentProcess agent_;
};

TEST_P(Forks, ChildCalls_ExpectEachToFailAndTheParentToGoOn) {
  auto session = Session::open(options());
  ASSERT_TRUE(session) << session.status().message();
  auto stream = Stream::open(*session, {.name = "p"}, {field<double>("x")});
  ASSERT_TRUE(stream);
  auto memory = session->allocate(4096);
  ASSERT_TRUE(memory);
  std::vector<double> x(1000, 1.0);
  auto region = session->register_memory(x.data(), x.size() * sizeof(double));
  ASSERT_TRUE(region);
  ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  agent_.child().stop();
  const auto pending = stream->post({Column(x)});
  ASSERT_TRUE(pending);
  const int failures = in_child([&] {
    Failures f;
    f.expect_refused(stream->post({Column(x)}).status(), "post");
    f.expect_refused(Stream::open(*session, {.name = "q"}, {field<double>("x")}).status(), "open_stream");
    f.expect_refused(session->allocate(4096).status(), "allocate");
    f.expect_refused(session->register_memory(x.data(), 8).status(), "register_memory");
    f.expect_refused(region->unregister(), "unregister");
    f.expect_refused(session->drain(1s), "drain");
    f.expect_refused(pending->wait(1s), "wait");
    f.expect(pending->ready(), "nothing reads the child's memory");
    f.expect(session->in_flight() == 0, "in_flight");
    f.expect_refused(stream->close(), "close");
    return f.count();
  });
  agent_.child().kill(SIGCONT);
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(pending->wait(kPatience));
  auto ticket = stream->post({Column(x)}, {.tag = 2});
  ASSERT_TRUE(ticket) << ticket.status().message();
  const Status s = ticket->wait(kPatience);
  EXPECT_TRUE(s) << s.message();
  EXPECT_EQ(ticket->sequence(), 2U);
  EXPECT_TRUE(region->unregister());
  EXPECT_TRUE(stream->close());
}

TEST_P(Forks, ChildDestroysEverythingAndOpensASessionOfItsOwn_ExpectBothToServe) {
  auto session = std::make_unique<Session>(*Session::open(options()));
  auto stream = std::make_unique<Stream>(*Stream::open(*session, {.name = "p"}, {field<double>("x")}));
  auto memory = std::make_unique<Memory>(*session->allocate(4096));
  std::vector<double> x(1000, 1.0);
  auto region = std::make_unique<Region>(*session->register_memory(x.data(), x.size() * sizeof(double)));
  ASSERT_TRUE(stream->post({Column(x)})->wait(kPatience));
  const int failures = in_child([&] {
    Failures f;
    region.reset();
    memory.reset();
    stream.reset();
    session.reset();
    auto own = Session::open(agent_.options());  // not over UCX's TCP, which needs a thread that children lack
    f.expect(own.ok(), "open", own.status());
    if (!own) return f.count();
    auto q = Stream::open(*own, {.name = "q"}, {field<double>("x")});
    f.expect(q.ok(), "open_stream", q.status());
    if (!q) return f.count();
    const Status s = q->post({Column(x)})->wait(kPatience);
    f.expect(s.ok(), "wait", s);
    return f.count();
  });
  EXPECT_EQ(failures, 0);
  auto ticket = stream->post({Column(x)});
  ASSERT_TRUE(ticket) << ticket.status().message();
  const Status s = ticket->wait(kPatience);
  EXPECT_TRUE(s) << s.message();
  EXPECT_EQ(ticket->sequence(), 1U);
  EXPECT_TRUE(stream->close());
}

TEST_P(Forks, ConnectionInAChild_ExpectRefusalsAndNoLockHeldForEver) {
  SessionOptions one = options();
  one.max_tickets = 1;
  auto session = *session::Connection::open(one);
  for (int i = 0; i < 20; ++i) {  // over TCP: also while its thread holds the lock
    const int failures = in_child([&] {
      Failures f;
      f.expect_refused(session->request("move", "status", {}).status(), "request");
      f.expect_refused(session->health(), "health");
      {
        const auto lock = session->lock_fabric();
      }
      session.reset();
      return f.count();
    });
    ASSERT_EQ(failures, 0);
  }
  EXPECT_TRUE(session->request("move", "status", {}));
}

INSTANTIATE_TEST_SUITE_P(OverTransports, Forks, testing::Values(Transport::kShm, Transport::kTcp),
                         [](const auto& which) { return std::string(to_string(which.param)); });

SessionOptions embedded_options() {
  SessionOptions options;
  options.agent = "embedded";
  options.embedded.program = WHERRYD_PROGRAM;
  options.embedded.budget_bytes = 64 << 20;
  options.embedded.flight = false;
  return options;
}

TEST(EmbeddedForks, ChildEndsItsCopy_ExpectAgentAndDirectoryToStay) {
  auto session = std::make_unique<Session>(*Session::open(embedded_options()));
  const std::filesystem::path file = session->info().session_file;
  EXPECT_EQ(in_child([&] {
              session.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(std::filesystem::exists(file));
  auto stream = Stream::open(*session, {.name = "p"}, {field<double>("x")});
  ASSERT_TRUE(stream) << stream.status().message();
  const std::vector<double> x(1000, 1.0);
  EXPECT_TRUE(stream->post({Column(x)})->wait(kPatience));
}

/// The owner's exit must not wait for its forked child, and its death must be noticed although the child lives.
void expect_agent_to_end_before_the_childs_child(bool killed) {
  int report[2];  // the owner tells the pids; the write end also stays with its child, until that ends
  ASSERT_EQ(pipe2(report, O_CLOEXEC), 0);
  const Fd from(report[0]);
  const pid_t owner = fork();
  if (owner == 0) {
    auto session = std::make_unique<Session>(*Session::open(embedded_options()));
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    const int pids[2] = {session->info().agent_pid, child};
    if (write(report[1], pids, sizeof pids) != sizeof pids) _exit(1);
    if (killed) pause();
    const std::uint64_t start = now_ns();
    session.reset();
    _exit(now_ns() - start < 9'000'000'000 ? 0 : 2);  // 10 s: then it kills an agent that does not end
  }
  ::close(report[1]);
  int pids[2] = {};
  ASSERT_EQ(read(from.get(), pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  if (killed) ::kill(owner, SIGKILL);
  int how = 0;
  EXPECT_EQ(waitpid(owner, &how, 0), owner);
  if (!killed) {
    EXPECT_EQ(WIFEXITED(how) ? WEXITSTATUS(how) : -1, 0);
  }
  const auto running = [](int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    return !line.empty() && line.find(") Z ") == std::string::npos;
  };
  EXPECT_TRUE(eventually([&] { return !running(pids[0]); })) << "the agent outlives its owner";
  EXPECT_TRUE(running(pids[1]));
  ::kill(pids[1], SIGKILL);
  ::kill(pids[0], SIGKILL);
}
TEST(EmbeddedForks, OwnerIsKilledWhileItsChildLives_ExpectAgentToEnd) {
  expect_agent_to_end_before_the_childs_child(true);
}
TEST(EmbeddedForks, OwnerClosesWhileItsChildLives_ExpectAgentToEndAtOnce) {
  expect_agent_to_end_before_the_childs_child(false);
}

TEST(AgentForks, ClientIsKilledWhileItsChildLives_ExpectItsSessionToEnd) {
  AgentProcess agent;
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    auto session = Session::open(agent.options());
    auto stream = Stream::open(*session, {.name = "p"}, {field<double>("x")});
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, 0);
      pause();
      _exit(0);
    }
    if (write(ready[1], &child, sizeof child) != sizeof child) _exit(1);
    pause();
  }
  pid_t child = 0;
  ASSERT_EQ(read(ready[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::kill(owner, SIGKILL);
  EXPECT_EQ(waitpid(owner, nullptr, 0), owner);
  EXPECT_TRUE(eventually([&] { return agent.metric("wherry_agent_sessions") == 0; }));
  EXPECT_EQ(::kill(child, 0), 0);
  ::kill(child, SIGKILL);
  auto session = Session::open(agent.options());
  ASSERT_TRUE(session);
  EXPECT_TRUE(Stream::open(*session, {.name = "p"}, {field<double>("x")}));
}

}  // namespace
}  // namespace wherry
