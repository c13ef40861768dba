// SPDX-License-Identifier: Apache-2.0
#include "session/embedded.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/cpu.hpp"
#include "base/try.hpp"

namespace wherry::session {
namespace {

namespace fs = std::filesystem;

/// Finds wherryd: the given path, else beside the library or program that contains this code, else in related
/// directories, else on PATH.
Result<std::string> find_program(const std::string& named) {
  const char* from_environment = std::getenv("WHERRY_WHERRYD");
  const std::string wanted = !named.empty() ? named : from_environment != nullptr ? from_environment : "";
  if (!wanted.empty()) {
    if (access(wanted.c_str(), X_OK) == 0) return wanted;
    return Status(StatusCode::kNotFound, fmt::format("'{}' is not a program that can be run", wanted));
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&spare_core), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code error;
    const fs::path here = fs::canonical(info.dli_fname, error).parent_path();
    for (const char* place : {"wherryd", "../_bin/wherryd", "../bin/wherryd", "../../bin/wherryd", "../src/wherryd",
                              "src/wherryd", "../../../build/release/src/wherryd"}) {
      const fs::path candidate = here / place;
      if (access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal().string();
    }
  }
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/wherryd";
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return Status(StatusCode::kNotFound,
                "cannot find wherryd beside the library or on PATH: set WHERRY_WHERRYD or EmbeddedAgent::program");
}

}  // namespace

int spare_core() {
  const int mine = current_core();
  std::vector<int> cores = allowed_cores();
  if (cores.size() < 2) {
    cores.clear();
    for (int core = 0; core < sysconf(_SC_NPROCESSORS_ONLN); ++core) cores.push_back(core);
  }
  for (auto it = cores.rbegin(); it != cores.rend(); ++it) {
    if (*it != mine) return *it;
  }
  return -1;
}

Result<EmbeddedProcess> EmbeddedProcess::start(const EmbeddedAgent& options, Transport transport,
                                               const Deadline& deadline) {
  WHERRY_ASSIGN(auto program, find_program(options.program));
  EmbeddedProcess process;
  WHERRY_ASSIGN(process.directory_, TemporaryDirectory::create("embedded"));
  process.session_file_ = process.directory_.file("agent.json");

  std::vector<std::string> arguments{program,          "--embedded",
                                     "--session-file", process.session_file_,
                                     "--budget",       std::to_string(options.budget_bytes),
                                     "--core",         std::to_string(options.core >= 0 ? options.core : spare_core()),
                                     "--log-level",    "warn"};
  if (transport != Transport::kAuto)
    arguments.insert(arguments.end(), {"--transport", std::string(to_string(transport))});
  if (!options.flight) arguments.insert(arguments.end(), {"--flight", "off"});
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  std::array<int, 2> leash{};
  if (pipe2(leash.data(), O_CLOEXEC) != 0)
    return Status(StatusCode::kInternal, fmt::format("pipe: {}", std::strerror(errno)));
  const Fd child_end(leash[0]);
  process.leash_ = Fd(leash[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_end.get(), STDIN_FILENO);
#if __GLIBC_PREREQ(2, 34)
  // Close inherited descriptors. Otherwise a process that waits for the application's pipe or lock waits for the agent.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // With a separate process group, Ctrl-C reaches only the application, which ends its agent at its own exit.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = posix_spawn(&process.pid_, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    process.pid_ = -1;
    return Status(StatusCode::kNotFound, fmt::format("cannot start {}: {}", program, std::strerror(error)));
  }
  for (;;) {
    const Status ready = read_session_file(process.session_file_).status();
    if (ready.ok()) break;
    int how = 0;
    if (waitpid(process.pid_, &how, WNOHANG) == process.pid_) {
      process.pid_ = -1;
      return Status(StatusCode::kUnavailable, fmt::format("{} ended at once ({} {}); its message is on standard error",
                                                          program, WIFSIGNALED(how) ? "signal" : "exit status",
                                                          WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how)));
    }
    // The file appears only when it is complete, so do not wait for a faulty file to change.
    if (ready.code() != StatusCode::kNotFound && ready.code() != StatusCode::kUnavailable)
      return Status(ready.code(), fmt::format("{} is of no use to this client: {}", program, ready.message()));
    if (deadline.passed()) {
      return Status(
          StatusCode::kDeadlineExceeded,
          fmt::format("{} was started and did not become ready within SessionOptions::connect_timeout", program));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return process;
}

EmbeddedProcess::EmbeddedProcess(EmbeddedProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      leash_(std::move(other.leash_)),
      directory_(std::move(other.directory_)),
      mark_(other.mark_),
      session_file_(std::exchange(other.session_file_, {})) {}

EmbeddedProcess& EmbeddedProcess::operator=(EmbeddedProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(leash_, other.leash_);
  std::swap(directory_, other.directory_);
  std::swap(mark_, other.mark_);
  std::swap(session_file_, other.session_file_);
  return *this;
}

EmbeddedProcess::~EmbeddedProcess() {
  leash_.reset();
  if (pid_ > 0 && !mark_.inherited()) {
    (void)kill(pid_, SIGTERM);  // a child that another thread forks at this moment holds the leash
    const Deadline deadline(std::chrono::seconds(10));
    int how = 0;
    while (waitpid(pid_, &how, WNOHANG) == 0) {
      if (deadline.passed()) kill(pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

}  // namespace wherry::session
