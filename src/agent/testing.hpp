// SPDX-License-Identifier: Apache-2.0
// For tests: agents in a thread and agents as processes, with their own session files.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "base/clock.hpp"
#include "base/frame_channel.hpp"
#include "base/log.hpp"
#include "base/temporary_directory.hpp"
#include "base/testing.hpp"
#include "base/unix_socket.hpp"
#include "fabric/stream_auth.hpp"
#include "session/session_file.hpp"
#include "wherry/move.hpp"

namespace wherry::testing_support {

/// Waits for something that another thread or process does.
template <typename Condition>
bool eventually(Condition condition) {
  const Deadline deadline(kPatience);
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// An authenticated control connection to an agent. No Hello has been sent yet.
inline FrameChannel control_channel(Agent& agent) {
  auto stream = plain_stream(*connect_unix(agent.control_socket(), Deadline(kPatience)));
  const Status s = fabric::prove(*stream, fabric::Purpose::kControl, 0, agent.token(), Deadline(kPatience));
  EXPECT_TRUE(s) << s.message();
  return FrameChannel(std::move(stream));
}

class ThreadAgent {
 public:
  explicit ThreadAgent(AgentConfig config = {}, Services services = make_services()) {
    (void)init_log("off", "");
    config.session_file = directory_.file("agent.json");
    auto agent = Agent::create(config, std::move(services));
    EXPECT_TRUE(agent) << agent.status().message();
    agent_ = *std::move(agent);
    thread_ = std::thread([this] {
      const Status s = agent_->run(stop_, false);
      EXPECT_TRUE(s) << s.message();
    });
    EXPECT_TRUE(eventually([&] { return read_session_file(session_file()).ok(); }));
  }
  ~ThreadAgent() { stop(); }
  ThreadAgent(const ThreadAgent&) = delete;
  ThreadAgent& operator=(const ThreadAgent&) = delete;
  void stop() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] const std::string& session_file() const { return agent_->session_file(); }
  [[nodiscard]] Agent& agent() { return *agent_; }
  [[nodiscard]] SessionOptions options() const {
    SessionOptions o;
    o.agent = session_file();
    return o;
  }
  [[nodiscard]] Session open() const {
    auto session = Session::open(options());
    EXPECT_TRUE(session) << session.status().message();
    return *std::move(session);
  }

 private:
  TemporaryDirectory directory_ = *TemporaryDirectory::create("test");
  std::atomic<bool> stop_{false};
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
};

/// Runs a Wherry program as a child process.
class Child {
 public:
  /// `before`: runs in the child before exec.
  Child(const std::string& program, const std::vector<std::string>& arguments, void (*before)() = nullptr) {
    std::vector<std::string> all{program};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& a : all) argv.push_back(a.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves nobody behind
      if (before != nullptr) before();
      execv(program.c_str(), argv.data());
      _exit(127);
    }
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      (void)wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill(int signal) const { ::kill(pid_, signal); }
  /// Stops the program with SIGSTOP and waits until it is stopped. SIGCONT resumes it.
  void stop() const {
    siginfo_t info{};
    kill(SIGSTOP);
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED), 0);
  }
  /// Exit status, or 128 + signal.
  int wait() {
    int how = 0;
    if (pid_ <= 0 || waitpid(pid_, &how, 0) != pid_) return -1;
    pid_ = -1;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  }
  [[nodiscard]] bool ended() const {
    siginfo_t info{};
    return pid_ <= 0 ||
           (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace wherry::testing_support
