// SPDX-License-Identifier: Apache-2.0
#include "agents.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/socket.hpp"
#include "common/measure.hpp"

namespace wherry::bench {
namespace {

AgentMemory memory_of(int pid) {
  AgentMemory memory;
  std::ifstream rollup(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string line; std::getline(rollup, line);) {
    std::istringstream words(line);
    std::string name;
    std::size_t kib = 0;
    words >> name >> kib;
    if (name == "Rss:") memory.rss = kib << 10;
    if (name == "Pss:") memory.pss = kib << 10;
  }
  return memory;
}

/// The agent's metrics page, in Prometheus' text format. Throws an exception if the agent does not send it.
std::string metrics_page(const std::string& session_file) {
  const SessionFile session = require(read_session_file(session_file), "an agent's session file");
  constexpr std::string_view kScheme = "http://", kPath = "/metrics";
  const std::string at = session.metrics.substr(kScheme.size(), session.metrics.find(kPath) - kScheme.size());
  const Deadline deadline(std::chrono::seconds(10));
  const Fd socket = require(connect_tcp(require(parse_host_port(at), "an agent's metrics"), deadline), at);
  const std::string request = fmt::format("GET /metrics HTTP/1.0\r\nAuthorization: Bearer {}\r\n\r\n", session.token);
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    throw std::runtime_error(fmt::format("{}: {}", at, std::strerror(errno)));
  std::string text;
  char chunk[4096];
  while (!deadline.passed()) {
    const ssize_t n = ::recv(socket.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (n == 0) {
      const std::string_view status = std::string_view(text).substr(0, text.find('\r'));
      if (status.find(" 200 ") == std::string_view::npos) throw std::runtime_error(fmt::format("{}: {}", at, status));
      return text;
    }
    if (n > 0) {
      text.append(chunk, static_cast<std::size_t>(n));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  throw std::runtime_error(at + ": no answer within 10 s");
}

}  // namespace

AgentMemory RunningAgent::memory() const {
  AgentMemory memory = memory_of(process.pid());
  memory.idle_rss = idle_rss;
  return memory;
}

AgentCounts RunningAgent::counts() const {
  AgentCounts counts;
  std::istringstream lines(metrics_page(process.session_file()));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (!(words >> name >> value)) continue;
    if (name == "wherry_route_bytes_total") counts.bytes = value;
    if (name == "wherry_route_transfers_total") counts.transfers = value;
    if (name == "wherry_route_blocked_total") counts.blocked = value;
  }
  return counts;
}

AgentPool::~AgentPool() {
  for (const RunningAgent& agent : agents_) kill(agent.process.pid(), SIGCONT);
  agents_.clear();
  keeper_.reset();
  if (keeper_pid_ > 0) waitpid(keeper_pid_, nullptr, 0);
}

void AgentPool::start_keeper() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  Fd read_end(ends[0]);
  keeper_ = Fd(ends[1]);
  keeper_pid_ = fork();
  if (keeper_pid_ < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  if (keeper_pid_ > 0) return;
  keeper_.reset();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  std::vector<pid_t> agents;
  for (pid_t pid = 0; ::read(read_end.get(), &pid, sizeof pid) == sizeof pid;) agents.push_back(pid);
  for (const pid_t pid : agents) kill(pid, SIGCONT);
  _exit(0);
}

RunningAgent& AgentPool::take(int core, std::uint32_t threads, bool fresh) {
  const auto found = std::ranges::find_if(agents_, [&](const RunningAgent& agent) {
    return !fresh && !agent.taken && agent.core == core && agent.threads == threads;
  });
  if (found != agents_.end()) {
    kill(found->process.pid(), SIGCONT);
    found->taken = true;
    return *found;
  }
  if (keeper_pid_ < 0) start_keeper();
  EmbeddedAgent wanted;
  wanted.budget_bytes = std::size_t{1} << 20;  // of move, which is idle
  wanted.core = core;
  wanted.flight = false;
  wanted.arguments = {
      "--metrics",         "127.0.0.1:0",          "--spin-us", "0", "--nap-us", "0", "--buffer-budget", "4GiB",
      "--routing-threads", std::to_string(threads)};
  auto agent =
      require(session::EmbeddedProcess::start(wanted, Transport::kAuto, Deadline(std::chrono::seconds(20))), "wherryd");
  const pid_t pid = agent.pid();
  if (::write(keeper_.get(), &pid, sizeof pid) != sizeof pid)
    throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  return agents_.emplace_back(RunningAgent{std::move(agent), core, threads, true, memory_of(pid).rss});
}

void AgentPool::give_back(RunningAgent& agent) noexcept {
  agent.taken = false;
  kill(agent.process.pid(), SIGSTOP);
}

void AgentPool::end(const RunningAgent& agent) noexcept {
  agents_.remove_if([&](const RunningAgent& one) { return &one == &agent; });
}

}  // namespace wherry::bench
