// SPDX-License-Identifier: Apache-2.0
#include "children.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "agent/agent.hpp"
#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/log.hpp"
#include "common/measure.hpp"
#include "flight_server.hpp"
#include "service.hpp"

namespace wherry::bench {

namespace {

// Room for the frames of five streams, two frames of 256 MiB each, and for two of the baselines, by size classes. Only
// what is used becomes resident.
constexpr std::uint64_t kBudget = std::uint64_t{6} << 30;
constexpr int kReadyTimeoutMs = 20'000;

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// The terminal's Ctrl-C reaches the whole process group. The children ignore it and wait for the parent's SIGTERM.
void become_child(int core) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, [](int) { stop_requested.store(true, std::memory_order_relaxed); });
  require(pin_thread({core}), "--agent-core");
}

/// "move.window=4MiB", in the table of all settings.
void apply(const std::vector<std::string>& words, AgentConfig& config, const Services& services) {
  const Settings table = settings(config, services);
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const auto setting = std::ranges::find(table, word.substr(0, equals), &Setting::key);
    if (equals == std::string::npos || setting == table.end())
      throw std::runtime_error("--set " + word + ": want KEY=VALUE with a key of `wherryd --dump-config`");
    require(setting->set(word.substr(equals + 1)), "--set");
  }
  require(check(config), "--set");
  require(check(services), "--set");
}

int agent_main(const Options& options, const std::string& session_file, const std::vector<std::string>& set) {
  become_child(options.agent_core);
  require(init_log("warn", ""), "log");
  AgentConfig config;
  config.session_file = session_file;
  config.budget = kBudget;
  config.core = options.agent_core;
  config.services["flight.listen"] = "off";
  config.metrics = "off";
  Services services = make_services();
  apply(set, config, services);
  services.push_back(std::make_unique<BenchService>());
  auto agent = require(Agent::create(config, std::move(services)), "agent");
  require(agent->run(stop_requested, false), "agent");
  return 0;
}

template <typename Main>
pid_t start(Main main) {
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid != 0) return pid;
  int status = 1;
  try {
    status = main();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_move, child {}: {}\n", getpid(), error.what());
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

Children::Children(const Options& options) {
  auto directory = TemporaryDirectory::create("bench");
  if (!directory) throw std::runtime_error(directory.status().message());
  directory_ = *std::move(directory);
  session_file_ = directory_.file("agent.json");
  agent_ = start([&] { return agent_main(options, session_file_, {}); });
  if (options.wants("profile")) {
    advised_file_ = directory_.file("advised.json");
    advised_ = start([&] { return agent_main(options, advised_file_, options.set); });
  }
  if (!options.wants("flight")) return;
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  flight_port_pipe_ = ends[0];
  flight_ = start([&] {
    become_child(options.agent_core);
    return serve_flight(ends[1]);
  });
  close(ends[1]);
}

Children::~Children() {
  end(agent_);
  end(advised_);
  end(flight_);
  if (flight_port_pipe_ >= 0) close(flight_port_pipe_);
}

void Children::end(pid_t child) const {
  if (child <= 0) return;
  kill(child, SIGCONT);
  kill(child, SIGTERM);
  const Deadline patience(std::chrono::seconds(8));
  while (waitpid(child, nullptr, WNOHANG) == 0) {
    if (patience.passed()) kill(child, SIGKILL);
    usleep(5000);
  }
}

std::string Children::wait_for(pid_t agent, const std::string& session_file) const {
  const Deadline patience{std::chrono::milliseconds(kReadyTimeoutMs)};
  while (!std::filesystem::exists(session_file)) {
    check_interrupted();
    if (waitpid(agent, nullptr, WNOHANG) != 0) throw std::runtime_error("the agent ended at once; it said why above");
    if (patience.passed()) throw std::runtime_error("the agent did not come up");
    usleep(2000);
  }
  return session_file;
}

int Children::wait_for_flight() const {
  pollfd ready{flight_port_pipe_, POLLIN, 0};
  int port = 0;
  if (poll(&ready, 1, kReadyTimeoutMs) <= 0 || read(flight_port_pipe_, &port, sizeof port) != sizeof port) {
    check_interrupted();
    throw std::runtime_error("the Flight server did not come up");
  }
  return port;
}

void Children::stop_agent() const { kill(agent_, SIGSTOP); }
void Children::resume_agent() const { kill(agent_, SIGCONT); }
void Children::stop_advised() const { kill(advised_, SIGSTOP); }
void Children::resume_advised() const { kill(advised_, SIGCONT); }

}  // namespace wherry::bench
